"""One request on an HTTP/1.1 connection and its response, as ASGI has them."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Protocol

import trio

from ..calls import Message
from ..outbox import PeerGoneError
from ..request_head import InvalidRequestError, RequestHead, asgi_scope
from ..transport import Service, Transport
from .protocol import RequestParser, ResponseError, ResponseWriter

SEND_PIECE = 64 * 1024
"""Bytes per write. The write timeout runs for each piece anew."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Carrier(Protocol):
    """The connection of a call, as that uses it; `http1/connection.py` says what each of these is."""

    transport: Transport
    service: Service
    parser: RequestParser
    broken: bool
    peer_finished: bool
    abort_reason: str

    def note_worked(self) -> None:
        """The response begins."""

    async def read(self) -> bytes:
        """The next bytes of the peer."""

    def read_ahead(self) -> Awaitable[object]:
        """Keep what comes behind the request."""

    async def write(self, data: bytes | memoryview, *, last: bool = False) -> None:
        """Send all of it. Raises `PeerGoneError`."""


class HttpCall:
    """One request and its response, as ASGI has them."""

    def __init__(self, connection: Carrier, head: RequestHead) -> None:
        self._connection = connection
        self._head = head
        self.response = ResponseWriter(head)
        self.begun = False
        """Whether anything of the response was sent."""
        self.told_of_end = False
        self.refused: InvalidRequestError | None = None
        """Why the rest of the request is refused, if it is."""
        self._unsent_head = b""
        self._body_given = False
        self._never_whole = False
        self._waiting: trio.CancelScope | None = None

    def scope(self) -> Message:
        """The scope of ASGI's HTTP connection.

        Beyond ASGI, there is the extension `probe.whole_body` where the whole body has come with the head: the first
        `receive` gives it and does not wait. The extension `probe.notes` is a mapping for what the application makes of
        the head alone: mostly the next request with the same head, byte for byte, has the same mapping.
        """
        transport = self._connection.transport
        scheme = "https" if transport.secure else "http"
        common = asgi_scope(self._head, scheme, transport.peer, transport.here)
        extensions = transport.extensions()
        extensions["probe.notes"] = self._head.notes
        if self._connection.parser.complete:
            extensions["probe.whole_body"] = {}
        return {"type": "http", "method": self._head.method, "extensions": extensions, **common}

    def receive(self) -> Awaitable[Message]:
        """ASGI's `receive`.

        Beyond ASGI, `http.disconnect` has a `reason` where it was this server that cut the peer off, and `half_closed`
        where the peer has ended its own direction only: it may have left, or it may wait for the response. After that
        one the next `receive` waits until nothing can be sent any more.
        """
        # No coroutine of its own, because each open stream would hold it.
        return self._receive_end() if self._body_given else self._receive_body()

    async def _receive_body(self) -> Message:
        connection, parser = self._connection, self._connection.parser
        while (part := parser.next_part()) is None:
            if self._head.expects_continue and not self.begun:
                self._head.expects_continue = False
                await connection.write(_CONTINUE)
            try:
                data = await connection.read()
                parser.receive_data(data)
            except InvalidRequestError as refused:
                self.refused, data = refused, b""
            if not data:
                self._body_given = self._never_whole = True
                return await self._end()
        self._body_given = parser.complete
        return {"type": "http.request", "body": part, "more_body": not parser.complete}

    async def _receive_end(self) -> Message:
        connection = self._connection
        while not (self.response.done or connection.broken or self._never_whole):
            if connection.peer_finished and not self.told_of_end:
                return await self._end(half_closed=True)
            with trio.CancelScope() as self._waiting:
                await connection.read_ahead()
            self._waiting = None
        return await self._end()

    async def _end(self, **more: Any) -> Message:
        await trio.lowlevel.checkpoint()
        return self._disconnect(**more)

    def _disconnect(self, **more: Any) -> Message:
        self.told_of_end = True
        why = self._connection.abort_reason
        return {"type": "http.disconnect", **({"reason": why} if why else {}), **more}

    async def send(self, message: Message) -> None:
        """ASGI's `send`; for a part of a body it returns when the socket has taken it.

        Raises `PeerGoneError` when that will not be, and `ResponseError` for what is no response. Cancelled, it may
        have sent a part; then nothing can follow.
        """
        if message["type"] == "http.response.start":
            self._connection.note_worked()
            await self._send_head(message)
        elif message["type"] == "http.response.body":
            await self._send_part(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise ResponseError(f"{message['type']} belongs to no HTTP response")

    async def _send_head(self, message: Message) -> None:
        connection = self._connection
        date, close = connection.service.date(), not connection.parser.complete
        data = self.response.head(message["status"], message.get("headers", ()), date, close=close)
        if self.response.awaits_body:
            self._unsent_head = data
        else:
            self.begun = True
            # A peer that has gone is told of by the disconnect, and by what is sent behind the head.
            with suppress(PeerGoneError):
                await connection.write(data)

    async def _send_part(self, body: bytes, *, more: bool) -> None:
        before, body, behind = self.response.part(body, more=more)
        before, self._unsent_head = self._unsent_head + before, b""
        self.begun = True
        write = self._connection.write
        if len(body) <= SEND_PIECE:
            await write(b"".join((before, body, behind)) if before or behind else body, last=not more)
        else:
            if before:
                await write(before)
            view = memoryview(body)
            for at in range(0, len(body), SEND_PIECE):
                await write(view[at : at + SEND_PIECE])
            if behind:
                await write(behind)
        if self.response.done and self._waiting is not None:
            self._waiting.cancel()

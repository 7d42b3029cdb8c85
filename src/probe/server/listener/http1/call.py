"""One request on an HTTP/1.1 connection and its response, in the terms of ASGI."""

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
"""The bytes per write. The write timeout starts anew for each piece."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Carrier(Protocol):
    """The connection of a call, as far as the call uses it; see `http1/connection.py`."""

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
        """Keep bytes behind the request."""

    async def write(self, data: bytes | memoryview, *, last: bool = False) -> None:
        """Send all bytes. Raises `PeerGoneError`."""


class HttpCall:
    """One request and its response, in the terms of ASGI."""

    def __init__(self, connection: Carrier, head: RequestHead) -> None:
        self._connection = connection
        self._head = head
        self.response = ResponseWriter(head)
        self.begun = False
        """Whether bytes of the response were sent."""
        self.told_of_end = False
        self.refused: InvalidRequestError | None = None
        """The reason if the rest of the request is refused."""
        self._unsent_head = b""
        self._body_given = False
        self._never_whole = False
        self._waiting: trio.CancelScope | None = None

    def scope(self) -> Message:
        """The scope of ASGI's HTTP connection.

        Beyond ASGI, the extension `probe.whole_body` is there if the whole body has come with the head: then the first
        `receive` returns it without waiting. The extension `probe.notes` is a mapping for values that the application
        derives from the head; the next request with the same bytes mostly gets the same mapping.
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

        Beyond ASGI, `http.disconnect` has a `reason` if this server cut the peer off, and `half_closed` if the peer
        ended only its own direction: it may have left, or may wait for the response. After `half_closed` the next
        `receive` waits until the connection cannot be written to.
        """
        # Not a coroutine of its own, because each open stream would hold it.
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

        Raises `PeerGoneError` if it cannot, and `ResponseError` for an invalid response. If cancelled, it may have sent
        a part; then no more can be sent.
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
            # The loss of the peer shows in the disconnect, and in later sends.
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

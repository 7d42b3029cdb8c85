"""One request on an HTTP/1.1 connection and its response, as ASGI has them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import trio

from ..calls import Contained, Message, Rest
from ..outbox import PeerGoneError
from ..request_head import InvalidRequestError, RequestHead, asgi_scope
from ..transport import Service, Transport
from .protocol import RequestParser, ResponseError, ResponseWriter
from .silent_calls import Watch

SEND_PIECE = 64 * 1024
"""Bytes per write. The write timeout runs for each piece anew."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def _nobody(_event: Message) -> None:
    pass


class Carrier(Protocol):
    """The connection of a call, as that uses it; `http1/connection.py` says what each of these is."""

    transport: Transport
    service: Service
    parser: RequestParser
    broken: bool
    peer_finished: bool
    abort_reason: str
    watched: HttpCall | None

    @property
    def expected(self) -> int:
        """The events for which the socket of a call that waits is to be watched."""

    def noticed(self, events: int) -> None:
        """Take in what the system says of the socket."""

    def note_worked(self) -> None:
        """The response begins."""

    async def read(self) -> bytes:
        """The next bytes of the peer."""

    async def read_ahead(self) -> None:
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
        self.rest: Rest | None = None
        """What the application leaves to be awaited once it has returned."""
        self._unsent_head = b""
        self._body_given = False
        self._never_whole = False
        self._waiting: trio.CancelScope | None = None
        self._watch: Watch | None = None
        self._disconnected: Callable[[Message], None] = _nobody

    def scope(self) -> Message:
        """The scope of ASGI's HTTP connection.

        Beyond ASGI, there is the extension `probe.whole_body` where the whole body has come with the head: the first
        `receive` gives it and does not wait. The extension `probe.notes` is a mapping for what the application makes of
        the head alone: mostly the next request with the same head, byte for byte, has the same mapping. The extension
        `probe.rest` is a function that takes a coroutine function, to be awaited when the application has returned: the
        call ends with that. The extension `probe.watch` is `watch`, where the system can do that.
        """
        transport = self._connection.transport
        scheme = "https" if transport.secure else "http"
        common = asgi_scope(self._head, scheme, transport.peer, transport.here)
        extensions = transport.extensions()
        extensions["probe.notes"] = self._head.notes
        extensions["probe.rest"] = self._leave
        if transport.plain and self._connection.service.silent.runs:
            extensions["probe.watch"] = self.watch
        if self._connection.parser.complete:
            extensions["probe.whole_body"] = {}
        return {"type": "http", "method": self._head.method, "extensions": extensions, **common}

    def _leave(self, rest: Rest) -> None:
        self.rest = rest

    async def receive(self) -> Message:
        """ASGI's `receive`.

        Beyond ASGI, `http.disconnect` has a `reason` where it was this server that cut the peer off, and `half_closed`
        where the peer has ended its own direction only: it may have left, or it may wait for the response. After that
        one the next `receive` waits until nothing can be sent any more.
        """
        if not self._body_given and (message := await self._receive_body()) is not None:
            return message
        return await self._receive_end()

    async def _receive_body(self) -> Message | None:
        """The next part of the body; None when it will not come."""
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

    def watch(self, disconnected: Callable[[Message], None], look: Callable[[], float]) -> None:
        """Give `disconnected` each `http.disconnect` that `receive` would return, once the body has been received.

        Nobody waits for it: it is called by the task that notices the disconnect, which may be this one, at once.
        `look` is called now, and whenever the time has come that it last returned, in seconds of trio's clock. Neither
        of the two waits or raises. This goes on until the response is complete, the call ends, or `watch` is called
        again; what was told before is not told again. Raises `OSError` where the system can watch no more sockets.
        """
        self.end_watch()
        connection = self._connection
        self._disconnected = disconnected
        connection.watched = self
        try:
            self._watch = Watch(connection.transport.number_of_socket, self._noticed, look)
        except trio.ClosedResourceError:
            connection.broken = True
        else:
            connection.service.silent.begin(self._watch, connection.expected)
        self.tell()

    def end_watch(self) -> None:
        """Tell nothing any more. Harmless when repeated, and without a watch."""
        watch, self._watch = self._watch, None
        if watch is not None:
            self._connection.service.silent.end(watch)
        # Whoever is told mostly knows the call: kept by that, it would be a cycle.
        self._disconnected, self._connection.watched = _nobody, None

    def _noticed(self, events: int) -> None:
        connection = self._connection
        try:
            connection.noticed(events)
        except InvalidRequestError as refused:
            self.refused, self._never_whole = refused, True
        if not self._body_given:
            # Nobody asks for the rest of the body any more.
            connection.parser.drop_body()
            self._never_whole = self._never_whole or (connection.peer_finished and not connection.parser.complete)
        self.tell()

    def tell(self) -> None:
        """Tell of the end of the peer's direction, or of the connection, where that has come."""
        connection, disconnected = self._connection, self._disconnected
        if connection.broken or self._never_whole:
            self.end_watch()
            with Contained("a call that is told of its end"):
                disconnected(self._disconnect())
        elif connection.peer_finished and not self.told_of_end:
            with Contained("a call that is told of its end"):
                disconnected(self._disconnect(half_closed=True))
        if self._watch is not None:
            connection.service.silent.change(self._watch, connection.expected)

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
        if self.response.done:
            if self._waiting is not None:
                self._waiting.cancel()
            if self._watch is not None:
                self.end_watch()

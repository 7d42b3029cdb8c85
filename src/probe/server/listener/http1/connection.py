"""One HTTP/1.1 connection in one task: it reads a request, runs the application call, and reads the next request.

A call that waits in `receive` reads, so it notices when the peer closes.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any

import trio

from ..calls import CONTAINED_CALL, UNAVAILABLE, WRITE_TIMEOUT, Message, PeerGoneError
from ..outbox import CHECK_S, FLUSH_S, LINGER_S
from ..request_head import InvalidRequestError, RequestHead, asgi_scope
from ..transport import READ_PIECE, Service, Transport, connection_turns
from .protocol import RequestParser, ResponseError, ResponseWriter

if TYPE_CHECKING:
    from ..websocket import WebSocket

SEND_PIECE = 64 * 1024
"""The bytes per write. The write timeout starts anew for each piece."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

READ_AHEAD = 256 * 1024
"""The bytes that are read behind a running request.

While there is room, the end of the peer's direction is seen at once; beyond it the peer of a call in `receive` is
checked every `CHECK_S` seconds. Less would not do: a FIN waits in the peer's own kernel behind some 64 KiB.
"""

WRITES_PER_TURN = 16
"""The writes that the socket takes at once before other tasks run.

A streaming application mostly waits after each write; another pass of the scheduler for each message would cost time.
"""

UNANSWERED = "it came behind a request that is not answered"
"""The reason for a dropped request: answers have the order of the requests (RFC 9112, section 9.3.2)."""

SHORT_BODY = 4096
"""The most bytes of a body that is checked for a continuation of earlier work (`Hooks.goes_on`)."""

_NOTHING = ((b"content-length", b"0"), (b"connection", b"close"))


class HttpCall:
    """One request and its response, in the terms of ASGI."""

    def __init__(self, connection: Http1Connection, head: RequestHead) -> None:
        self._connection = connection
        self._head = head
        self.response = ResponseWriter(head)
        self.begun = False
        self.end_received = False
        self.refused: InvalidRequestError | None = None
        """The reason if the rest of the request is refused."""
        self._unsent_head = b""
        self._body_given = False
        self._never_whole = False
        self._waiting: trio.CancelScope | None = None

    def scope(self) -> Message:
        """The scope of ASGI's HTTP connection.

        Its extensions `probe.whole_body` and `probe.notes` are described in `endpoints/asgi.py`.
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
        ended only its own direction: it may wait for the response. After that the next `receive` waits until the
        connection cannot be written to.
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
            if connection.peer_finished and not self.end_received:
                return await self._end(half_closed=True)
            with trio.CancelScope() as self._waiting:
                await connection.read_ahead()
            self._waiting = None
        return await self._end()

    async def _end(self, **more: Any) -> Message:
        await trio.lowlevel.checkpoint()
        return self._disconnect(**more)

    def _disconnect(self, **more: Any) -> Message:
        self.end_received = True
        why = self._connection.abort_reason
        return {"type": "http.disconnect", **({"reason": why} if why else {}), **more}

    async def send(self, message: Message) -> None:
        """ASGI's `send`; for a part of a body it returns when the socket has taken it.

        Raises `PeerGoneError`, and `ResponseError` for an invalid response. If cancelled, no more can be sent.
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


class Http1Connection:
    """`run` serves the connection in the task that calls it."""

    def __init__(self, service: Service, transport: Transport) -> None:
        limits = service.settings.limits
        self.transport = transport
        self.service = service
        self.broken = False
        self.peer_finished = False
        """True if the peer has ended its direction; it may wait for answers."""
        self.abort_reason = ""
        """The reason if the server has cut the peer off; else empty."""
        self.parser = RequestParser(limits.max_header_bytes, limits.max_headers, service.heads)
        self._stream = transport.stream
        self._turns = connection_turns(service, transport)
        self._busy = False
        self._turn = 0
        self._idle_since = trio.current_time()
        self._sending_since = inf
        self._torn = False
        self._writes = 0
        self._lingers = False
        self._websocket: WebSocket | None = None
        self._why_closed = ""
        self.requests = 0

    @property
    def ended_by(self) -> str:
        if self.abort_reason or self._why_closed:
            return self.abort_reason or self._why_closed
        return "client" if self.peer_finished or self.broken else "the last response"

    async def run(self) -> None:
        """Serve until the peer leaves, a response is the last one, or a limit is reached; then close.

        If cancelled, an unanswered request gets a 503, and the connection is closed within `FLUSH_S` seconds.
        """
        try:
            self.parser.receive_data(self.transport.first)
            while await self._serve_next():
                pass
        except InvalidRequestError as refused:
            self._lingers = True
            self._note_refused(refused.status, refused.why)
            await self._answer(refused.status, _NOTHING)
        except trio.Cancelled:
            self._why_closed = "the server closed it"
            raise
        finally:
            await self._close()

    def _note_dropped(self) -> None:
        if self.parser.bytes_behind and self.service.hooks.log is not None:
            self.service.hooks.log.refused(self.transport.number, None, UNANSWERED)

    def _note_refused(self, status: int | None, why: str) -> None:
        self._why_closed = "no valid HTTP request"
        if self.service.hooks.log is not None:
            self.service.hooks.log.refused(self.transport.number, status, why)

    async def check(self, now: float) -> None:
        settings = self.service.settings
        if self._websocket is not None:
            self._websocket.check(now)
        elif now - self._sending_since >= settings.write_timeout_s:
            self.abort_reason = WRITE_TIMEOUT
            await self.abort()
        elif not self._busy and now - self._idle_since >= settings.idle_connection_s:
            self._why_closed = "idle"
            await self.abort()

    async def abort(self) -> None:
        self.broken = True
        await trio.aclose_forcefully(self._stream)

    async def _serve_next(self) -> bool:
        """Returns True if another request may follow."""
        while (head := self.parser.next_head()) is None:
            data = await self.read()
            if not data:
                return False
            self.parser.receive_data(data)
        self._busy = True
        self.requests += 1
        self._read_rest(head)
        goes_on = self.service.hooks.goes_on
        message = goes_on is not None and goes_on(self.parser.short_body(SHORT_BODY))
        try:
            self._turn = await self._turns.wait_request(head.target, head.headers, message=message)
        except trio.Cancelled:
            await self._send_unavailable()
            raise
        # More bytes may have come during the wait for the turn.
        self._read_rest(head)
        if head.upgrades:
            await self._upgrade(head)
            return False
        return await self._call(head)

    async def _upgrade(self, head: RequestHead) -> None:
        # wsproto loads a second HTTP parser: a twentieth of the server's start.
        from ..websocket import WebSocket

        websocket = WebSocket(self.service, self.transport, self._turns, head, self.parser.take_rest())
        self._websocket = websocket
        try:
            await websocket.run()
        finally:
            self._why_closed = websocket.ended_by
            self._websocket = None

    async def _call(self, head: RequestHead) -> bool:
        call = HttpCall(self, head)
        ended = False
        try:
            with CONTAINED_CALL:
                await self.service.app(call.scope(), call.receive, call.send)
            ended = True
        finally:
            # Only the end of the server cancels this.
            if not (ended or call.begun or call.end_received):
                await self._send_unavailable()
        going_on = await self._finish(call)
        self._busy, self._idle_since = False, trio.current_time()
        return going_on

    async def _finish(self, call: HttpCall) -> bool:
        refused = call.refused
        if refused is not None:
            self._note_refused(None if call.begun else refused.status, refused.why)
        if not call.begun and (refused is not None or not call.end_received):
            self._lingers = True
            await self._answer(500 if refused is None else refused.status, _NOTHING)
        if self.broken or self._torn or not call.response.done:
            self._note_dropped()
            return False
        if call.response.closes or not self.parser.complete:
            # Bytes that come after closing would reset the connection, and so lose the response.
            self._lingers = not self.parser.complete or self.parser.buffered > 0
            return False
        self.parser.drop_body()
        return True

    async def _answer(self, status: int, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        data = ResponseWriter(RequestHead()).head(status, headers, self.service.date(), close=True)
        with suppress(PeerGoneError):
            await self.write(data)

    async def _send_unavailable(self) -> None:
        with trio.move_on_after(FLUSH_S, shield=True):
            if not (self.broken or self._torn):
                self._lingers = not self.parser.complete
                await self._answer(503, UNAVAILABLE)

    async def _close(self) -> None:
        try:
            if self._lingers and not self.broken:
                stopping = trio.current_effective_deadline() == -inf
                with trio.move_on_after(FLUSH_S if stopping else LINGER_S, shield=stopping):
                    await self._linger()
        finally:
            self.parser.close()
            await trio.aclose_forcefully(self._stream)

    async def _linger(self) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                await self._stream.send_eof()
            while await self.read():
                pass

    def note_worked(self) -> None:
        """Charge the turn: when the response begins, most of the work is done."""
        self._turns.worked(self._turn)

    async def read(self, *, ahead: bool = False) -> bytes:
        """The next bytes of the peer, with `ahead` kept for the parser; empty at the end of its direction."""
        try:
            data = await self.transport.read(READ_PIECE)
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            self.broken = True
            return b""
        if not data:
            self.peer_finished = True
            self.broken = self.broken or self.transport.secure
        elif ahead:
            self.parser.receive_data(data)
        return data

    def _read_rest(self, head: RequestHead) -> None:
        """Take a body that has come in the segment behind its head. Raises `InvalidRequestError`."""
        if self.parser.complete or head.expects_continue or self.broken:
            return
        try:
            data = self.transport.read_now(READ_PIECE)
        except (trio.ClosedResourceError, OSError):
            self.broken = True
            return
        if data:
            self.parser.receive_data(data)

    def read_ahead(self) -> Awaitable[object]:
        """Keep bytes behind a request; if none can come, wait, then check for the peer's end."""
        # Not a coroutine of its own, because each open stream would hold it.
        waits = self.peer_finished or self.parser.buffered >= READ_AHEAD
        return self._check_later() if waits else self.read(ahead=True)

    async def _check_later(self) -> None:
        await trio.sleep(CHECK_S)
        self.peer_finished = self.peer_finished or self.transport.peer_has_finished()
        self.broken = self.broken or self.transport.peer_has_reset()

    async def write(self, data: bytes | memoryview, *, last: bool = False) -> None:
        """Return when the socket has taken all bytes. Raises `PeerGoneError` if it cannot.

        If cancelled, it may have sent a part; then no more can be sent. Not always a checkpoint (`WRITES_PER_TURN`).
        """
        if self.broken or self._torn:
            await trio.lowlevel.checkpoint()
            raise PeerGoneError("the connection is over")
        if not last:
            await trio.lowlevel.checkpoint_if_cancelled()
        try:
            sent = self.transport.write_now(data)
            if sent < len(data):
                self._sending_since = trio.current_time()
                self._torn = True
                await self._stream.send_all(memoryview(data)[sent:])
                self._torn = False
            elif not last:
                self._writes += 1
                if self._writes % WRITES_PER_TURN == 0:
                    await trio.lowlevel.cancel_shielded_checkpoint()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            self.broken = True
            raise PeerGoneError("the connection broke") from None
        finally:
            self._sending_since = inf

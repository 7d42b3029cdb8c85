"""One HTTP/1.1 connection in one task, which reads a request, runs the application call, and reads the next request.

The call itself sends, and while it waits in `receive` for the end of the connection, it reads. So a peer that closes is
noticed by each call that asks, and by each that sends.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

import trio

from ..calls import UNAVAILABLE, WRITE_TIMEOUT, Contained
from ..outbox import PeerGoneError
from ..request_head import InvalidRequestError, RequestHead
from ..times import FLUSH_S, LINGER_S, LOOK_S
from ..transport import READ_PIECE, Service, Transport, connection_turns
from .call import HttpCall
from .protocol import RequestParser, ResponseWriter

if TYPE_CHECKING:
    from ..websocket import WebSocket

READ_AHEAD = 256 * 1024
"""Bytes that are read behind a running request. While there is room, the end of the peer's direction is seen at once.
Where a peer has sent more, a call that is watched is told of it at once as well, and for another one the peer is looked
at (`LOOK_S`). Less would not do: a FIN waits in the peer's own kernel behind what ours has no room for, which is only
some 64 KiB."""

WRITES_PER_TURN = 16
"""Writes that the socket takes at once before other tasks run. An application that streams mostly waits behind each of
them for something to say; to let others run then as well would cost a message a pass of the scheduler."""

UNANSWERED = "it came behind a request that is not answered"
"""Why a request is dropped: HTTP/1.1 answers in the order of the requests (RFC 9112, section 9.3.2)."""


SHORT_BODY = 4096
"""Bytes of a body that is looked at to see whether it goes on with what another request began."""

_NOTHING = ((b"content-length", b"0"), (b"connection", b"close"))


class Http1Connection:
    """`run` serves the connection in the task that calls it."""

    def __init__(self, service: Service, transport: Transport) -> None:
        limits = service.settings.limits
        self.transport = transport
        self.service = service
        self.broken = False
        """Whether nothing can be sent any more."""
        self.peer_finished = False
        """Whether the peer has ended its direction: it may have closed, or wait for its answers."""
        self.abort_reason = ""
        """Why the server has cut the peer off; empty while it has not."""
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
        """`client`, or why the server closed it."""
        if self.abort_reason or self._why_closed:
            return self.abort_reason or self._why_closed
        return "client" if self.peer_finished or self.broken else "the last response"

    async def run(self) -> None:
        """Serve until the peer leaves, a response is the last one, or a limit is reached; then close.

        Cancelled, a request that is not answered gets a 503, and the connection is closed within `FLUSH_S` seconds.
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
        """Record the requests behind one that is not answered: their responses could not be told from its own."""
        if self.parser.bytes_behind and self.service.hooks.log is not None:
            self.service.hooks.log.refused(self.transport.number, None, UNANSWERED)

    def _note_refused(self, status: int | None, why: str) -> None:
        self._why_closed = "no valid HTTP request"
        if self.service.hooks.log is not None:
            self.service.hooks.log.refused(self.transport.number, status, why)

    async def check(self, now: float) -> None:
        """Cut off a peer that does not read, and close a connection on which no request has been for too long."""
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
        """Close the socket, whatever is under way: what waits on it raises."""
        self.broken = True
        await trio.aclose_forcefully(self._stream)

    async def _serve_next(self) -> bool:
        """Serve one request; whether another one may follow."""
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
            self._turn = await self._turns.wait_request(head.headers, message=message)
        except trio.Cancelled:
            await self._say_unavailable()
            raise
        # What has not come before the turn may have come in it.
        self._read_rest(head)
        if head.upgrades:
            await self._upgrade(head)
            return False
        return await self._call(head)

    async def _upgrade(self, head: RequestHead) -> None:
        try:
            # wsproto brings a second parser of HTTP with it: a twentieth of the server's start.
            made = (await self.service.late.get("websocket")).WebSocket
        except trio.Cancelled:
            await self._say_unavailable()
            raise
        websocket: WebSocket = made(self.service, self.transport, self._turns, head, self.parser.take_rest())
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
            with Contained("the application"):
                await self.service.app(call.scope(), call.receive, call.send)
            ended = True
        finally:
            # Cancelled, which only the end of the server does.
            if not (ended or call.begun or call.told_of_end):
                await self._say_unavailable()
        going_on = await self._finish(call)
        self._busy, self._idle_since = False, trio.current_time()
        return going_on

    async def _finish(self, call: HttpCall) -> bool:
        """Do the work that the end of a call leaves; returns whether another request may follow."""
        refused = call.refused
        if refused is not None:
            self._note_refused(None if call.begun else refused.status, refused.why)
        if not call.begun and (refused is not None or not call.told_of_end):
            self._lingers = True
            await self._answer(500 if refused is None else refused.status, _NOTHING)
        if self.broken or self._torn or not call.response.done:
            self._note_dropped()
            return False
        if call.response.closes or not self.parser.complete:
            # Bytes that are still on their way would have the kernel destroy the response.
            self._lingers = not self.parser.complete or self.parser.buffered > 0
            return False
        self.parser.drop_body()
        return True

    async def _answer(self, status: int, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        """Send a whole response without a body, behind which the connection ends."""
        data = ResponseWriter(RequestHead()).head(status, headers, self.service.date(), close=True)
        with suppress(PeerGoneError):
            await self.write(data)

    async def _say_unavailable(self) -> None:
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
        """End our direction, and read on until the peer ends its own."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                await self._stream.send_eof()
            while await self.read():
                pass

    # -- for the call

    def note_worked(self) -> None:
        """The response begins, so that most of the work is done."""
        self._turns.worked(self._turn)

    async def read(self, *, ahead: bool = False) -> bytes:
        """The next bytes of the peer, with `ahead` kept for the parser; empty when nothing more will come."""
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
        """Take what has come behind a head: most clients send the body in a segment of its own, right behind it.

        So the body is seen before the turn of its request, and the call need not wait for it. Raises
        `InvalidRequestError`.
        """
        if self.parser.complete or head.expects_continue or self.broken:
            return
        if data := self._read_now():
            self.parser.receive_data(data)

    def _read_now(self) -> bytes | None:
        try:
            return self.transport.read_now(READ_PIECE)
        except (trio.ClosedResourceError, OSError):
            self.broken = True
            return None

    def read_ahead(self) -> Awaitable[object]:
        """Keep what comes behind a request; where nothing can come, look some time later whether the peer has left."""
        # No coroutine of its own, because each open stream would hold it.
        waits = self.peer_finished or self.parser.buffered >= READ_AHEAD
        return self._look_later() if waits else self.read(ahead=True)

    async def _look_later(self) -> None:
        await trio.sleep(LOOK_S)
        self.peer_finished = self.peer_finished or self.transport.peer_has_finished()
        self.broken = self.broken or self.transport.peer_has_reset()

    async def write(self, data: bytes | memoryview, *, last: bool = False) -> None:
        """Returns when the socket has taken all of it. Raises `PeerGoneError` when it will not.

        Cancelled, a part of it may have been sent: nothing can follow then. Where the socket takes all of it at once,
        others run only behind each of `WRITES_PER_TURN`, and with `last` it is no checkpoint at all: nothing more is
        sent before the connection reads.
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

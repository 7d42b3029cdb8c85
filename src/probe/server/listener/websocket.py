"""One WebSocket (RFC 6455) from its handshake to its end; wsproto parses and makes the frames.

The caller of `run` runs the application call; the reader handles frames, answers pings and notices the peer's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from functools import partial
from math import inf
from typing import TypeAlias

import trio
from trio.lowlevel import ParkingLot
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError

from ...core.callbacks import nothing
from .calls import CONTAINED_CALL, UNAVAILABLE, WRITE_TIMEOUT, Inbox, Message, PeerGoneError
from .fair_queue import ConnectionTurns
from .http1.protocol import ResponseError, ResponseWriter
from .outbox import CALLS_END_S, CHECK_S, CONTROL_ROOM, Outbox, Writer
from .request_head import RequestHead, asgi_scope
from .transport import READ_PIECE, Service, Transport
from .websocket_input import NOT_VALID, FrameHeads, PartialMessage, accepting, is_valid, subprotocols

CLOSE_S = 5.0
"""Seconds for the peer to answer our close, after earlier messages."""

FRAMES_PER_TURN = 64
"""The frames handled before other tasks run: one read can bring thousands of the smallest."""

MESSAGE_BYTES = 256 * 1024
"""The bytes of unread messages, each with `calls.MESSAGE_COST` more, above which the reader stops."""

READ_ON = MESSAGE_BYTES // 2
"""The reader goes on below this many bytes; waking it for each message would cost two task switches."""

DEAD_PEER = "dead peer"
"""The reason for an end without any frame of the peer, not even the answer to a ping."""

BY_APPLICATION = "closed by the application"
"""The reason for an end if the application gave none."""

SLOW_MESSAGE = "a message is not complete in time"
"""The reason for an end if the peer did not complete a message in time."""

_NOTHING = ((b"content-length", b"0"), (b"connection", b"close"))


NoteFrame: TypeAlias = Callable[[str, str, int, str | None], None]
"""Direction, opcode and payload size in bytes of a frame, and the reason of its refusal, or None."""


class WebSocketState(Enum):
    """The states of a WebSocket."""

    ASKED = auto()
    REFUSING = auto()
    """The application refuses with an HTTP response."""
    OPEN = auto()
    CLOSING = auto()
    """The application has sent a close; the peer has not answered it."""
    OVER = auto()


class _PeerLeftError(Exception):
    """The peer has left behind more messages than there is room for."""


class WebSocket:
    """`run` serves a WebSocket on the transport of its handshake, and closes the transport."""

    def __init__(
        self, service: Service, transport: Transport, turns: ConnectionTurns, head: RequestHead, early: bytes
    ) -> None:
        settings = service.settings
        self._app = service.app
        self._date = service.date
        self._note_frame: NoteFrame = nothing
        self.ended_by = "client"
        """`client`, or the server's reason for closing it; final when it is over."""
        self._settings = settings
        self._transport = transport
        self._head = head
        self._message = PartialMessage(service.incomplete, turns.client(head.headers))
        self._state = WebSocketState.ASKED
        self._outbox = Outbox()
        self._writer = Writer(transport.stream, self._outbox)
        self._inbox = Inbox(partial(turns.wait_request, head.target, head.headers, message=True))
        self._inbox.taken = self._note_taken
        self._response = ResponseWriter(RequestHead())
        self._protocol = Connection(ConnectionType.SERVER)
        self._frames = FrameHeads(settings.limits.max_body_bytes)
        self._early = early
        self._before_accept = trio.CancelScope()
        self._taken = ParkingLot()
        self._received_at = inf
        self._pinged_at = -inf
        self._ping: Ping | None = None
        self._outbox.taken = self._answer_ping
        self._code: int = CloseReason.ABNORMAL_CLOSURE
        self._why = ""
        self._answered = trio.Event()
        self._call_ended = trio.Event()

    async def run(self) -> None:
        """Serve until the call has ended and the connection is closed.

        If cancelled, the peer gets a close 1001, or a 503 for an open handshake.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            nursery.start_soon(self._read)
            if is_valid(self._head):
                await self._call()
            else:
                self._refuse(400, NOT_VALID)
        # These two refer to this WebSocket: a cycle, which the garbage collector would find much later.
        del self._inbox, self._outbox.taken

    async def _call(self) -> None:
        self._inbox.put({"type": "websocket.connect"})
        ended = False
        try:
            with CONTAINED_CALL:
                await self._app(self._scope(), self._inbox.receive, self.send)
            ended = True
        finally:
            # Only the end of the server cancels this.
            if not ended:
                self._send_unavailable()
            self._call_ended.set()
            self._inbox.close()
        await self._end_call()

    def check(self, now: float) -> None:
        """Ping a silent peer; cut off one that is dead, does not read, or does not complete a message."""
        why = WRITE_TIMEOUT if self._writer.is_stuck(now, self._settings.write_timeout_s) else self._silence(now)
        if why:
            if not self._inbox.disconnected:
                self._inbox.cut_off = why
            self._writer.cut()

    def _silence(self, now: float) -> str:
        if self._is_full() or self._outbox:
            # The silence may be the server's: frames wait in the kernel until the application has read earlier ones. A
            # ping waits behind bytes to send, for which there is the write timeout.
            self._received_at = now
            self._message.wait_from(now)
        if self._state is not WebSocketState.OPEN:
            return ""
        if now - self._message.began_at >= self._settings.idle_connection_s:
            return SLOW_MESSAGE
        if self._received_at <= self._pinged_at:
            # Counted from the ping, so that no peer counts as dead after a pause of this process.
            return DEAD_PEER if now - self._pinged_at >= self._settings.ws_ping_s else ""
        if now - self._received_at >= self._settings.ws_ping_s:
            self._pinged_at = now
            self._send_control(Ping())
        return ""

    def _scope(self) -> Message:
        transport = self._transport
        scheme = "wss" if transport.secure else "ws"
        return {
            "type": "websocket",
            "subprotocols": subprotocols(self._head),
            "extensions": {
                "websocket.http.response": {},
                "probe.frames": self._set_note,
                **transport.extensions(),
            },
            **asgi_scope(self._head, scheme, transport.peer, transport.here),
        }

    def _set_note(self, note: NoteFrame) -> None:
        self._note_frame = note

    async def _read(self) -> None:
        try:
            with self._before_accept:
                await self._read_early()
            if self._state is not WebSocketState.ASKED:
                await self._read_on()
        except _PeerLeftError:
            pass
        except trio.Cancelled:
            # The server ends. The call is cancelled too, and may send its last messages before the close.
            with trio.move_on_after(CALLS_END_S, shield=True):
                await self._call_ended.wait()
            self._send_unavailable()
            raise
        finally:
            self._end(peer_left=True)

    async def _read_early(self) -> None:
        """Keep bytes that come before the application accepts; return when the peer has left."""
        while True:
            if len(self._early) >= MESSAGE_BYTES:
                await trio.sleep(CHECK_S)
                if self._transport.peer_has_finished():
                    return
            elif data := await self._receive():
                self._early += data
            else:
                return

    async def _read_on(self) -> None:
        data, self._early = self._early, b""
        while data or (data := await self._receive()):
            if self._state in (WebSocketState.OPEN, WebSocketState.CLOSING):
                self._received_at = trio.current_time()
                await self._take(data)
            data = b""

    async def _receive(self) -> bytes:
        try:
            return bytes(await self._transport.stream.receive_some(READ_PIECE))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    async def _take(self, data: bytes) -> None:
        at = handled = 0
        while at < len(data):
            end = self._frames.part_end(data, at)
            if self._frames.too_large:
                self._refuse_size()
                return
            self._protocol.receive_data(data[at:end])
            at = end
            for event in self._protocol.events():
                await self._react(event)
                if self._state is WebSocketState.OVER:
                    return
                handled += 1
                if handled % FRAMES_PER_TURN == 0:
                    await trio.lowlevel.checkpoint()

    def _refuse_size(self) -> None:
        # After our close, frames of the peer are ignored.
        if self._state is WebSocketState.OPEN:
            why = f"a message is larger than {self._settings.limits.max_body_bytes} bytes (max_body_bytes)"
            self._note_refused(why)
            self._fail(CloseReason.MESSAGE_TOO_BIG, why)

    def _note_refused(self, why: str) -> None:
        self._note_frame("received", self._frames.opcode, self._frames.size, why)

    async def _react(self, event: Event) -> None:
        if isinstance(event, Pong):
            self._note_frame("received", "pong", len(event.payload), None)
        elif isinstance(event, CloseConnection):
            self._close_received(event)
        elif self._state is not WebSocketState.OPEN:
            return
        elif isinstance(event, TextMessage | BytesMessage):
            await self._collect(event)
        elif isinstance(event, Ping):
            self._note_frame("received", "ping", len(event.payload), None)
            self._ping = event
            self._answer_ping()

    async def _collect(self, part: TextMessage | BytesMessage) -> None:
        if why := self._message.add(part.data, trio.current_time(), last=part.message_finished):
            self._fail(CloseReason.TRY_AGAIN_LATER, why)
        elif part.message_finished:
            self._inbox.put({"type": "websocket.receive", **self._message.complete()})
            if self._is_full():
                await self._wait_room()

    def _is_full(self) -> bool:
        return self._inbox.size >= MESSAGE_BYTES

    async def _wait_room(self) -> None:
        """Wait until the application has read enough. Raises `_PeerLeftError`."""
        while self._inbox.size > READ_ON and self._state is WebSocketState.OPEN:
            with trio.move_on_after(CHECK_S) as looking:
                await self._taken.park()
            if looking.cancelled_caught and self._transport.peer_has_finished():
                raise _PeerLeftError

    def _note_taken(self, _size: int) -> None:
        if self._inbox.size <= READ_ON:
            self._taken.unpark_all()

    def _answer_ping(self) -> None:
        # RFC 6455 section 5.5.3: an endpoint may "send a Pong frame for only the most recently processed Ping frame".
        # To stop reading instead would cut off a peer that reads only after it has sent all its pings.
        if self._ping is not None and len(self._outbox) <= CONTROL_ROOM:
            ping, self._ping = self._ping, None
            self._send_control(ping.response())

    def _close_received(self, close: CloseConnection) -> None:
        if self._protocol.state in (ConnectionState.OPEN, ConnectionState.LOCAL_CLOSING):
            # wsproto reports a violation of the protocol like this; afterwards it parses no more.
            utf8 = close.code == CloseReason.INVALID_FRAME_PAYLOAD_DATA
            why = "text is not UTF-8" if utf8 else close.reason or ""
            self._note_refused(why)
            self._fail(close.code, why)
            return
        self._note_frame("received", "close", _close_bytes(close), None)
        if self._state is WebSocketState.OPEN:
            self._code = close.code
            self._send_control(close.response())
            self._end()
        else:
            self._answered.set()

    def _fail(self, code: int, why: str) -> None:
        """RFC 6455 section 7.1.7: send the reason, and close without waiting for an answer."""
        if self._state is WebSocketState.OPEN:
            self._code, self._why = code, why
            self._send_control(CloseConnection(code, why))
        self._writer.lingers = True
        self._end()

    def _end(self, *, peer_left: bool = False) -> None:
        if peer_left:
            self._writer.peer_left.set()
            self._writer.limit_rest()
        self._before_accept.cancel()
        self._answered.set()
        self._taken.unpark_all()
        self._outbox.close()
        if self._state is not WebSocketState.OVER:
            self._state = WebSocketState.OVER
            self._message.forget()
            self.ended_by = self._why or self._inbox.cut_off or self.ended_by
            reason = {"reason": self._why} if self._why else {}
            self._inbox.put({"type": "websocket.disconnect", "code": self._code, **reason})

    async def _write(self) -> None:
        await self._writer.run()
        self._end(peer_left=True)

    async def send(self, message: Message) -> None:
        """ASGI's `send`.

        Returns when the socket has taken the message; for a close when the peer has answered, or after `CLOSE_S`
        seconds. Raises `PeerGoneError`.
        """
        kind = message["type"]
        if kind == "websocket.close":
            await self._send_close(message)
        elif self._state in (WebSocketState.OVER, WebSocketState.CLOSING):
            raise PeerGoneError("the WebSocket is closed")
        elif kind == "websocket.send" and self._state is WebSocketState.OPEN:
            await self._send_message(message)
        elif kind == "websocket.accept" and self._state is WebSocketState.ASKED:
            await self._accept(message)
        elif kind == "websocket.http.response.start" and self._state is WebSocketState.ASKED:
            self._begin_refusal(message["status"], message.get("headers", ()))
        elif kind == "websocket.http.response.body" and self._state is WebSocketState.REFUSING:
            await self._refuse_with(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise ResponseError(f"{kind} does not belong here")

    async def _accept(self, message: Message) -> None:
        accepted = accepting(self._head, message.get("subprotocol"))
        self._outbox.write(ResponseWriter.upgrade([*accepted, *message.get("headers", ())], self._date()))
        self._state = WebSocketState.OPEN
        self._received_at = trio.current_time()
        self._before_accept.cancel()
        await trio.lowlevel.checkpoint()

    async def _send_message(self, message: Message) -> None:
        data = message.get("bytes")
        event: Event = TextMessage(message["text"]) if data is None else BytesMessage(data)
        turns = self._outbox.turns
        await self._outbox.put(self._protocol.send(event))
        await self._outbox.delivered()
        if self._outbox.turns == turns:
            await trio.lowlevel.checkpoint()

    async def _send_close(self, message: Message) -> None:
        self._inbox.hang_up()
        if self._state is WebSocketState.ASKED:
            self._refuse(403, _NOTHING)
        elif self._state is WebSocketState.OPEN:
            await self._close(message.get("code") or CloseReason.NORMAL_CLOSURE, message.get("reason") or "")
        await trio.lowlevel.checkpoint()

    async def _close(self, code: int, reason: str) -> None:
        self._state = WebSocketState.CLOSING
        self._message.forget()
        self._code, self._why = code, reason or BY_APPLICATION
        self._send_control(CloseConnection(code, reason))
        # The reader may wait for room, and the peer's answer is behind messages that are no longer read.
        self._taken.unpark_all()
        try:
            with trio.move_on_after(CLOSE_S):
                await self._answered.wait()
        finally:
            self._end()

    def _begin_refusal(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        rest = [pair for pair in headers if pair[0] != b"connection"]
        self._outbox.write(self._response.head(status, rest, self._date(), close=True))
        self._state = WebSocketState.REFUSING

    async def _refuse_with(self, body: bytes, *, more: bool) -> None:
        await self._outbox.put(b"".join(self._response.part(body, more=more)))
        if not more:
            self._linger_for_eager_peer()
            await self._outbox.delivered()
            self._end()

    def _refuse(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._begin_refusal(status, headers)
        self._linger_for_eager_peer()
        self._end()

    def _linger_for_eager_peer(self) -> None:
        # With TLS the peer sees the end of our direction only with the end of the connection.
        self._writer.lingers = bool(self._early) or not self._transport.secure

    def _send_unavailable(self) -> None:
        """The server ends: refuse an open handshake with 503, or send a close 1001."""
        if self._state is WebSocketState.ASKED:
            self._refuse(503, UNAVAILABLE)
        elif self._state is WebSocketState.OPEN:
            self._send_control(CloseConnection(CloseReason.GOING_AWAY))
        self._end()
        self._writer.limit_rest()

    async def _end_call(self) -> None:
        if self._state is WebSocketState.ASKED:
            self._refuse(500, _NOTHING)
        elif self._state is WebSocketState.OPEN:
            await self._close(CloseReason.INTERNAL_ERROR, "")
        self._end()

    def _send_control(self, event: Event) -> None:
        """Send a control frame without waiting. No frame may follow a close."""
        try:
            data = self._protocol.send(event)
        except LocalProtocolError:
            return
        self._outbox.write(data)
        if isinstance(event, Ping | Pong):
            self._note_frame("sent", "ping" if isinstance(event, Ping) else "pong", len(event.payload), None)
        elif isinstance(event, CloseConnection):
            self._note_frame("sent", "close", _close_bytes(event), None)


def _close_bytes(close: CloseConnection) -> int:
    """The size of a close frame's payload: 0, or a code of two bytes and a reason (RFC 6455, section 5.5.1)."""
    if close.code == CloseReason.NO_STATUS_RCVD:
        return 0
    return 2 + len((close.reason or "").encode())

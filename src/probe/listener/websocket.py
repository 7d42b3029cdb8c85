"""hypercorn's WebSocket with its defects contained.

The frames are parsed and made by wsproto, as in hypercorn. How an upgrade is judged, what a frame from the peer causes
and how a connection ends are ours.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from math import inf
from typing import Any
from urllib.parse import unquote

import h11
import trio
from hypercorn.protocol.events import Data, EndBody, Event, Request, Response, StreamClosed
from hypercorn.protocol.ws_stream import ASGIWebsocketState, Handshake, WSStream
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Message, Ping
from wsproto.events import Event as FrameEvent
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError

from ..core.shares import Shares, has_bytes
from .calls import Inbox
from .outbox import CONTROL_ROOM, Outbox, PeerGoneError

CLOSE_S = 5.0
"""How long a peer may take to answer our close; it may have to read what is on its way first."""

FRAMES_PER_TURN = 64
"""Frames that are handled before others run: the smallest have six bytes, so one read can bring thousands of them."""

DEAD_PEER = "dead peer"
"""Why the server cuts off a peer from which nothing comes, not even the answer to a ping."""

BY_APPLICATION = "closed by the application"
"""Why the server ended a connection where the application gave no reason."""

_VERSION = b"13"
_KEY_BYTES = 16


def asks_for_websocket(request: h11.Request) -> bool:
    """Whether a request wants to go on as a WebSocket, be it as it should or not."""
    upgrade, connection = _listed(request.headers, b"upgrade"), _listed(request.headers, b"connection")
    return request.method == b"GET" and b"websocket" in upgrade and b"upgrade" in connection


SLOW_MESSAGE = "a message is not complete in time"
"""Why the server cuts off a peer that has begun a message and does not end it."""


class Incomplete:
    """The `bytes` of messages of which more is to come, of all WebSockets of a listener: at most `most`."""

    def __init__(self, most: int, share: float) -> None:
        self.bytes = 0
        self._most = most
        self._shares = Shares(share)

    def take(self, holder: str | None, size: int) -> None:
        """Count so many bytes more of what a client has said, also beyond the limit: they are here."""
        self.bytes += size
        self._shares.take("max_incoming_bytes", holder, size)

    def give_back(self, holder: str | None, size: int) -> None:
        """They are here no longer."""
        self.bytes -= size
        self._shares.give_back("max_incoming_bytes", holder, size)

    def excess(self, holder: str | None, message: int) -> str:
        """Why a message of which so many bytes are here is too much; empty if it is not."""
        if not has_bytes(self._most, self.bytes, 0, message):
            return f"more than {self._most} bytes are on their way, 1/8 of it for small ones (max_incoming_bytes)"
        share = self._shares.most(self._most)
        if self._shares.held("max_incoming_bytes", holder) > max(share, message):
            return f"more than {share} bytes of this address are on their way (address_share of max_incoming_bytes)"
        return ""


class ContainedWebSocket(WSStream):
    """One WebSocket. Its frames are parsed in the task that calls `handle`; the application's calls `app_send`.

    `room` waits until there is room for what the application has yet to receive. Frames go out whole, because each is
    appended to `outbox` in one step, whoever is cancelled. A message counts in `incomplete` until all of it is there,
    for which its peer has `message_s` seconds.
    """

    def __init__(
        self,
        *args: Any,
        outbox: Outbox,
        ping_s: float,
        message_s: float,
        incomplete: Incomplete,
        holder: str | None,
        room: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(*args)
        self.start_time = 0.0  # for hypercorn's access log, which is off
        self.heard_at = inf
        """When anything came from the peer, or could not have been read because of us."""
        self._outbox = outbox
        self._ping_s = ping_s
        self._message_s = message_s
        self._incomplete = incomplete
        self._holder = holder
        self._room = room
        self._size = 0
        self._began_at = inf
        self._unsent_pongs = 0
        self._pinged_at = -inf
        self._code: int = CloseReason.ABNORMAL_CLOSURE
        self._why = ""
        self._answered = trio.Event()

    @property
    def accepted(self) -> bool:
        """Whether the peer speaks WebSocket by now."""
        return self.handshake.accepted

    def check(self, now: float) -> str:
        """Ping a peer that is silent; gives why the connection has to be cut off, or nothing."""
        if self.state is not ASGIWebsocketState.CONNECTED:
            return ""
        if now - self._began_at >= self._message_s:
            return SLOW_MESSAGE
        if self.heard_at <= self._pinged_at:
            # Counted from the ping, so that nobody is dead because this process itself stood still.
            return DEAD_PEER if now - self._pinged_at >= self._ping_s else ""
        if now - self.heard_at >= self._ping_s:
            self._pinged_at = now
            self._write(Ping())
        return ""

    def pardon(self, now: float) -> None:
        """The peer could not have said anything up to now."""
        self.heard_at = now
        self._began_at = now if self._size else inf

    def goodbye(self) -> None:
        """Say that the server goes away, unless a close was said."""
        if self.state is ASGIWebsocketState.CONNECTED:
            self._write(CloseConnection(CloseReason.GOING_AWAY))

    # -- what the peer causes

    async def handle(self, event: Event) -> None:
        """Take an upgrade request or bytes behind it, or learn that the connection is over."""
        if self.closed:
            return
        if isinstance(event, Request):
            await self._requested(event)
        elif isinstance(event, Data):
            await self._received(event.data)
        elif isinstance(event, StreamClosed):
            await self._over()

    async def _requested(self, request: Request) -> None:
        self.handshake = Handshake(request.headers, request.http_version)
        offered = _values(request.headers, b"sec-websocket-protocol")
        self.handshake.subprotocols = [name.decode("latin-1") for name in offered]
        # No compression: what stands in a packet capture is what was sent. It also costs 300 kB per connection, and a
        # small message could unfold into a huge one.
        self.handshake.extensions = None
        if _is_valid(request):
            self.scope = self._scope_of(request)
            self.app_put = await self.task_group.spawn_app(self.app, self.config, self.scope, self.app_send)
            await self.app_put({"type": "websocket.connect"})
        else:
            # RFC 6455 section 4.4: the header tells a client of another version which one would be understood.
            headers = [(b"content-length", b"0"), (b"connection", b"close"), (b"sec-websocket-version", _VERSION)]
            await self.send(Response(self.stream_id, headers, 400))
            await self.send(EndBody(self.stream_id))
            self.closed = True

    def _scope_of(self, request: Request) -> Any:
        path, _, query = request.raw_path.partition(b"?")
        return {
            "type": "websocket",
            "asgi": {"spec_version": "2.4", "version": "3.0"},
            "scheme": self.scheme,
            "http_version": request.http_version,
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": self.config.root_path,
            "headers": request.headers,
            "client": self.client,
            "server": self.server,
            "state": request.state.copy(),
            "subprotocols": self.handshake.subprotocols,
            "extensions": {"websocket.http.response": {}},
        }

    async def _received(self, data: bytes) -> None:
        if self.connection.state not in (ConnectionState.OPEN, ConnectionState.LOCAL_CLOSING):
            return
        self.connection.receive_data(data)
        for number, event in enumerate(self.connection.events(), 1):
            await self._react(event)
            if self.closed:
                return
            if number % FRAMES_PER_TURN == 0:
                await trio.lowlevel.checkpoint()

    async def _react(self, event: FrameEvent) -> None:
        if isinstance(event, CloseConnection):
            await self._closed_by(event)
        elif self.state is not ASGIWebsocketState.CONNECTED:
            # What was on its way when we said our close is for nobody any more.
            return
        elif isinstance(event, Message):
            await self._collect(event)
        elif isinstance(event, Ping):
            await self._pong(event)

    async def _collect(self, part: Message[Any]) -> None:
        # hypercorn counts characters, of which each may be four bytes.
        self._count(len(part.data.encode() if isinstance(part.data, str) else part.data))
        if self._size > self.buffer.max_length:
            why = f"a message is larger than {self.buffer.max_length} bytes (max_body_bytes)"
            await self._fail(CloseReason.MESSAGE_TOO_BIG, why)
            return
        # What is complete is on its way no longer.
        if not part.message_finished and (why := self._incomplete.excess(self._holder, self._size)):
            await self._fail(CloseReason.TRY_AGAIN_LATER, why)
            return
        self.buffer.extend(part)
        if part.message_finished and self.app_put is not None:
            await self.app_put(self.buffer.to_message())
            self._forget()
            await self._room()

    def _count(self, size: int) -> None:
        if not self._size:
            self._began_at = trio.current_time()
        self._size += size
        self._incomplete.take(self._holder, size)

    def _forget(self) -> None:
        self.buffer.clear()
        self._incomplete.give_back(self._holder, self._size)
        self._size, self._began_at = 0, inf

    async def _pong(self, ping: Ping) -> None:
        self._unsent_pongs += self._write(ping.response())
        if self._unsent_pongs > CONTROL_ROOM:
            # Who sends so many pings has to read the answers. A few may wait behind a message that is sent slowly.
            with suppress(PeerGoneError):
                await self._outbox.delivered()
            self._unsent_pongs = 0

    async def _closed_by(self, close: CloseConnection) -> None:
        if self.connection.state in (ConnectionState.OPEN, ConnectionState.LOCAL_CLOSING):
            # wsproto's way to say that the peer has violated the protocol, after which it parses no more.
            utf8 = close.code == CloseReason.INVALID_FRAME_PAYLOAD_DATA
            await self._fail(close.code, "a text frame is not UTF-8" if utf8 else close.reason or "")
            return
        if self.state is ASGIWebsocketState.CONNECTED:
            self._code = close.code
            self._write(close.response())
            await self.send(StreamClosed(self.stream_id))
        else:
            self._answered.set()

    async def _fail(self, code: int, why: str) -> None:
        """RFC 6455 section 7.1.7: say why, and close without waiting for an answer."""
        if self.state is ASGIWebsocketState.CONNECTED:
            self._code, self._why = code, why
            self._write(CloseConnection(code, why))
        await self.send(StreamClosed(self.stream_id))

    async def _over(self) -> None:
        self.closed = True
        self._answered.set()
        self._forget()
        if self.app_put is not None:
            reason = {"reason": self._why} if self._why else {}
            await self.app_put({"type": "websocket.disconnect", "code": self._code, **reason})

    # -- what the application causes

    async def app_send(self, message: Any) -> None:
        """ASGI's `send`; None when the call has ended.

        A message returns when the socket has taken it, a close when the peer has answered it or had `CLOSE_S` seconds
        to do so. Raises `PeerGoneError` when nobody is there any more to send to.
        """
        kind = None if message is None else message["type"]
        if kind == "websocket.close" and isinstance(self.app_put, Inbox):
            self.app_put.hang_up()
        if self.closed or (self.state is ASGIWebsocketState.CLOSED and kind is not None):
            if kind not in (None, "websocket.close"):
                raise PeerGoneError("the WebSocket is closed")
        elif self.state is ASGIWebsocketState.CONNECTED and kind is None:
            await self._close(CloseReason.INTERNAL_ERROR, "")
        elif self.state is ASGIWebsocketState.CONNECTED and kind == "websocket.close":
            await self._close(message.get("code", CloseReason.NORMAL_CLOSURE), message.get("reason") or "")
        elif kind == "websocket.http.response.start":
            rest = [pair for pair in message["headers"] if pair[0] != b"connection"]
            last: Any = {**message, "headers": [*rest, (b"connection", b"close")]}
            await super().app_send(last)
        else:
            await super().app_send(message)
            if kind == "websocket.accept":
                self.heard_at = trio.current_time()

    async def _close(self, code: int, reason: str) -> None:
        self.state = ASGIWebsocketState.CLOSED
        self._forget()
        self._code, self._why = code, reason or BY_APPLICATION
        self._write(CloseConnection(code, reason))
        try:
            with trio.move_on_after(CLOSE_S):
                await self._answered.wait()
        finally:
            await self.send(StreamClosed(self.stream_id))

    def _write(self, event: FrameEvent) -> int:
        """Send a control frame, without waiting; gives its size. Nothing may follow a close."""
        try:
            data = self.connection.send(event)
        except LocalProtocolError:
            return 0
        self._outbox.write(data)
        return len(data)


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    """The items of a list header, over all its lines."""
    return [item.strip() for key, value in headers if key == name for item in value.split(b",")]


def _listed(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> set[bytes]:
    return {item.lower() for item in _values(headers, name)}


def _is_valid(request: Request) -> bool:
    """RFC 6455 section 4.2.1, and no body: its bytes would be taken for frames."""
    headers = request.headers
    keys = _values(headers, b"sec-websocket-key")
    bodiless = not _values(headers, b"transfer-encoding") and _listed(headers, b"content-length") <= {b"0"}
    version = _values(headers, b"sec-websocket-version") == [_VERSION]
    return request.http_version == "1.1" and bodiless and version and len(keys) == 1 and _is_key(keys[0])


def _is_key(value: bytes) -> bool:
    try:
        return len(b64decode(value, validate=True)) == _KEY_BYTES
    except ValueError:
        return False

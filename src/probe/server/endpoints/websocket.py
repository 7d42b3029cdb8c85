"""WebSockets: `/ws` for MCP, one JSON-RPC message in each text frame, and paths for programs with a shared secret.

Those programs are tool hosts (`/toolhost`) and forwarders of logs. A handshake is checked before the upgrade, so that a
peer gets an HTTP status such as 401 or 403 for its mistake.

Control frames and refused frames are recorded, if the listener has the ASGI extension `probe.frames`:
`scope["extensions"]["probe.frames"]` is a function that takes a `NoteFrame`, which the listener then calls for each
ping, pong and close, in both directions, and for each frame of the peer that it refuses.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from ...core.budgets import Rates
from ...core.callbacks import nothing
from ...core.inbound import HostPolicy, HttpHead
from ...engine.engine import Engine
from ...engine.pipes.wires import Closed, ConnectionEnd, Peer, WireBrokenError
from ...engine.services import Limit, LimitError
from ...log.context import Recorder
from ...log.events import Direction, Opcode, WebSocketFrame
from ...wire.errors import Refusal, Rejection
from .asgi import Headers, Receive, RefusedError, Scope, Send, host_policy, http_head, refuse, upgrade_required
from .exchange import EndpointExchanges, HttpExchange, asked_selection

if TYPE_CHECKING:
    from ...engine.host_tools.connection import HostConnection

FRAMES: Final = "probe.frames"

NoteFrame: TypeAlias = Callable[[Direction, Opcode, int, str | None], None]
"""Direction, opcode and payload size in bytes of a frame, and the reason of its refusal, or None."""

# A ping of six bytes costs its peer little.
_BURST: Final = 20
_PER_S: Final = 0.5

_UNSUPPORTED_DATA = 1003
SUBPROTOCOL = "mcp"


class FrameFacts:
    """Records frames of one WebSocket after `opened`. `now` is a monotonic clock, in seconds.

    All closes and refusals are recorded; of pings and pongs the first 20, then one every two seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._rates = Rates(_PER_S, _BURST, 1)
        self._recorder: Recorder | None = None

    def opened(self, recorder: Recorder) -> None:
        """The connection is open; the recorder's cause is its `connection.opened`."""
        self._recorder = recorder

    def note(self, direction: Direction, opcode: Opcode, size: int, refused: str | None = None) -> None:
        rare = opcode == "close" or refused is not None
        if self._recorder is not None and (rare or not self._rates.take("", self._now()).wait_s):
            self._recorder.append(WebSocketFrame(direction, opcode, size, refused))


def _at_once(_size: int) -> float:
    return 0.0


class WebSocketWire:
    """The `Wire` of one accepted WebSocket. `report_frames` is the listener's extension `FRAMES`."""

    def __init__(
        self,
        receive: Receive,
        send: Send,
        pace: Callable[[int], float] = _at_once,
        report_frames: Callable[[NoteFrame], None] = nothing,
    ) -> None:
        self.closed: Closed | None = None
        """The end of the connection, set before `receive` returns None."""
        self._receive = receive
        self._send = send
        self._pace = pace
        self._report_frames = report_frames
        self._frames = FrameFacts(trio.current_time)
        self._waiting: str | None = None
        self._due = 0.0

    def opened(self, recorder: Recorder) -> None:
        self._frames.opened(recorder)
        self._report_frames(self._frames.note)

    async def receive(self) -> bytes | None:
        """The next message, or None at the end of the connection. Raises `WireBrokenError` for a binary frame."""
        if self._waiting is None:
            self._waiting = await self._next()
            if self._waiting is None:
                return None
            self._due = trio.current_time() + self._pace(len(self._waiting))
        else:
            await trio.lowlevel.checkpoint()
        # A receiver that is cancelled here finds the message again. Both branches above had a checkpoint already.
        if self._due > trio.current_time():
            await trio.sleep_until(self._due)
        text, self._waiting = self._waiting, None
        return text.encode()

    async def _next(self) -> str | None:
        if self.closed is not None:
            return None
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            self.closed = Closed(event["code"], event.get("reason") or "client")
            return None
        text = event.get("text")
        if text is None:
            self._frames.note("received", "binary", len(event.get("bytes") or b""), "messages are text")
            raise WireBrokenError(_UNSUPPORTED_DATA, "a binary frame; messages are text")
        return str(text)

    async def send(self, message: bytes) -> None:
        """Send one message; returns when the socket has taken it. Raises `OSError` if it cannot."""
        await self._send({"type": "websocket.send", "text": message.decode()})

    async def close(self, code: int, why: str) -> Closed:
        """Close, unless it is over. The peer has some seconds to answer."""
        await self._send({"type": "websocket.close", "code": code, "reason": why})
        while self.closed is None:
            try:
                await self._next()
            except WireBrokenError:
                continue
        return self.closed


Pace: TypeAlias = Callable[[Scope, int], float]
"""Returns the seconds that a message of so many bytes has to wait by its client's rate limit."""


Serve: TypeAlias = Callable[[WebSocketWire, Peer], Awaitable[ConnectionEnd]]
"""Serves the messages of a connection to its end. Raises no error for anything a peer does."""


class WebSocketEndpoint:
    """`/ws` of one engine. `wait_idle` returns when no connection is open."""

    def __init__(self, engine: Engine, serve: Serve, pace: Pace) -> None:
        settings = engine.settings
        self._engine = engine
        self._settings = settings
        self._places = Limit("max_websockets", "There are {most} WebSockets already ({name})", engine.services.shares)
        self._serve = serve
        self._pace = pace
        self._policy = host_policy(settings)
        self._exchanges = EndpointExchanges(engine.services, engine.sessions.label)
        self._changed = trio.lowlevel.ParkingLot()

    @property
    def open(self) -> int:
        return self._places.held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await refuse(send, http_head(scope), upgrade_required(SUBPROTOCOL))
            return
        await receive()
        exchange = self._exchanges.upgrade(scope, receive, send)
        try:
            peer = self._judge(scope, exchange)
        except Rejection as rejection:
            try:
                await exchange.reject(rejection)
            except OSError:
                exchange.close("client")
            return
        try:
            report_frames = scope.get("extensions", {}).get(FRAMES, nothing)
            wire = WebSocketWire(receive, send, partial(self._pace, scope), report_frames)
            if await exchange.accept(send, SUBPROTOCOL):
                ending = await self._serve(wire, peer)
                await wire.close(ending.code, ending.why)
        finally:
            self._places.release(exchange.holder)
            self._changed.unpark_all()

    async def wait_idle(self) -> None:
        while self.open:
            await self._changed.park()

    def _judge(self, scope: Scope, exchange: HttpExchange) -> Peer:
        """Check a handshake and take a place for its peer. Raises `Rejection`."""
        # Browsers let every page open a WebSocket to any address, without CORS: only this check keeps a foreign page
        # from a server on this machine.
        self._policy.check(exchange.head)
        if SUBPROTOCOL not in scope["subprotocols"]:
            why = f'Bad Request: Sec-WebSocket-Protocol must offer "{SUBPROTOCOL}"'
            raise Rejection(Refusal.INVALID_REQUEST, why)
        exchange.check_label()
        selection = asked_selection(exchange.query, self._engine.selection)
        self._engine.refuse_while_draining()
        try:
            self._places.acquire(exchange.holder, exchange.recorder)
        except LimitError as full:
            raise full.rejection() from None
        return Peer(
            transport="websocket",
            address=exchange.address,
            origin=exchange.origin,
            selection=selection,
            client=exchange.client,
            peer=exchange.peer,
            request=exchange.recorder,
        )


_RETRY: Final[Headers] = ((b"retry-after", b"5"),)

Converse: TypeAlias = Callable[[HttpExchange, WebSocketWire], Awaitable[None]]
"""Serves an accepted connection to its end and closes it. Raises no error for anything that its program does."""

_NORMAL, _GOING_AWAY = 1000, 1001


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secret of a setting, and the subprotocol. `who` is the name of the program."""

    secret: str = field(repr=False)
    setting: str
    protocol: str
    who: str
    what: str

    @property
    def off(self) -> RefusedError:
        return RefusedError(404, f"{self.what} are off; start the server with --{self.setting.replace('_', '-')}")

    def judge(self, head: HttpHead, policy: HostPolicy, subprotocols: Collection[str]) -> None:
        """Raise `RefusedError` for a request with wrong credentials."""
        if not self.secret:
            raise self.off
        try:
            policy.check(head)
            origin, credentials = head.get("origin"), head.get("authorization")
        except Rejection as rejection:
            raise RefusedError(rejection.refusal.status, rejection.message) from None
        if origin is not None:
            raise RefusedError(403, f"a request with Origin comes from a web page, and no web page is a {self.who}")
        if not self._knows_secret(credentials):
            # RFC 6750, section 3.
            challenge = [(b"www-authenticate", f'Bearer realm="{self.who.replace(" ", "")}"'.encode())]
            why = f"the secret is missing or not this server's ({self.setting}): Authorization is Bearer and the secret"
            raise RefusedError(401, why, challenge)
        if self.protocol not in subprotocols:
            raise RefusedError(400, f'Sec-WebSocket-Protocol must offer "{self.protocol}"')

    def _knows_secret(self, credentials: str | None) -> bool:
        scheme, _, given = (credentials or "").partition(" ")
        same = hmac.compare_digest(given.strip(" ").encode(), self.secret.encode())
        return same and scheme.lower() == "bearer"


class SecretEndpoint:
    """One path of one engine for programs with the secret. `places` bounds its connections.

    `wait_idle` returns when there is none.
    """

    def __init__(self, engine: Engine, required: Credentials, places: Limit, converse: Converse) -> None:
        self._engine = engine
        self._required = required
        self._places = places
        self._converse = converse
        self._policy = host_policy(engine.settings)
        self._exchanges = EndpointExchanges(engine.services, engine.sessions.label)
        self._changed = trio.lowlevel.ParkingLot()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        required = self._required
        if scope["type"] == "http":
            await refuse(
                send, http_head(scope), upgrade_required(required.protocol) if required.secret else required.off
            )
            return
        await receive()
        exchange = self._exchanges.upgrade(scope, receive, send)
        try:
            self._judge(scope, exchange)
        except RefusedError as refused:
            try:
                await exchange.refuse(refused)
            except OSError:
                exchange.close("client")
            return
        try:
            if await exchange.accept(send, required.protocol):
                await self._converse(exchange, WebSocketWire(receive, send))
        finally:
            self._places.release(None)
            self._changed.unpark_all()

    async def wait_idle(self) -> None:
        while self._places.held:
            await self._changed.park()

    def _judge(self, scope: Scope, exchange: HttpExchange) -> None:
        """Check a handshake and take a place for it. Raises `RefusedError`."""
        self._required.judge(exchange.head, self._policy, scope["subprotocols"])
        if self._engine.draining:
            raise RefusedError(503, self._engine.ending, _RETRY)
        try:
            # It knows the secret, so its address has no share.
            self._places.acquire(None, exchange.recorder)
        except LimitError as full:
            raise RefusedError(503, full.message, _RETRY) from None


def tool_host_endpoint(engine: Engine) -> SecretEndpoint:
    """`/toolhost` of one engine."""
    secret = engine.settings.toolhost_secret
    host_connection, protocol = _load() if secret else (None, "")
    required = Credentials(secret, "toolhost_secret", protocol, "tool host", "tool hosts")
    places = Limit("max_tool_hosts", "there are {most} tool hosts already ({name})", engine.services.shares)

    async def converse(exchange: HttpExchange, wire: WebSocketWire) -> None:
        assert host_connection is not None, "without a secret all connections are refused"
        recorder, client, peer = exchange.recorder, exchange.client, exchange.peer
        await _converse(host_connection(engine, recorder, client, peer), wire)

    return SecretEndpoint(engine, required, places, converse)


def _load() -> tuple[type[HostConnection], str]:
    """Load the code for tool hosts, which takes long and which most servers do not need."""
    from ...engine.host_tools.connection import HostConnection
    from ...wire.toolhost import SUBPROTOCOL

    return HostConnection, SUBPROTOCOL


async def _converse(connection: HostConnection, wire: WebSocketWire) -> None:
    ending = ConnectionEnd(_GOING_AWAY, "the server stopped")
    try:
        reader = _UntilBroken(wire)
        await connection.serve(reader)
        ending = reader.ending or ConnectionEnd(*(connection.ending or (_NORMAL, "client")))
    finally:
        closed = wire.closed or Closed(ending.code, ending.why)
        connection.closed(closed.code, closed.by)
    await wire.close(ending.code, ending.why)


class _UntilBroken:
    """A wire that ends when the host breaks the rules of WebSocket, with the reason `ending`."""

    def __init__(self, wire: WebSocketWire) -> None:
        self.ending: ConnectionEnd | None = None
        self.send = wire.send
        self._wire = wire

    async def receive(self) -> bytes | None:
        try:
            return await self._wire.receive()
        except WireBrokenError as broken:
            self.ending = ConnectionEnd(broken.code, broken.why)
            return None

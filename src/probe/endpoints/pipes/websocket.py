"""`/ws`: MCP over WebSocket, one JSON-RPC message in each text frame.

Everything about the handshake, frames and close codes is here; what the messages mean is `serve`'s business. The
handshake is judged before the upgrade, so that a client learns by an HTTP status what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import trio

from ...engine.catalogue.catalogue import UnknownSelectionError
from ...engine.engine import Engine
from ...engine.shares import AddressLimitError
from ...observe.context import Recorder
from ...observe.events import LimitReached
from ...wire.errors import Refusal, Rejection, busy, shutting_down
from ..asgi import Receive, Scope, Send, host_policy, http_head
from ..exchange import Exchange
from ..messages import read_selection
from ..problem_details import refuse
from ..rooms import Unsent
from .frame_facts import FRAMES, FrameFacts, NoteFrame
from .upgrade import accept, upgrade_exchange, upgrade_required
from .wires import Closed, Ending, Peer, WireBrokenError

SUBPROTOCOL = "mcp"

_UNSUPPORTED_DATA = 1003
_RETRY_S = 5


Pace: TypeAlias = Callable[[Scope, int], float]
"""How many seconds a message of so many bytes has to wait until its client may have sent it."""


def _at_once(_size: int) -> float:
    return 0.0


def _has_no_frames(_note: NoteFrame) -> None:
    pass


class WebSocketWire:
    """The `Wire` of one accepted WebSocket. `pace` says of each message how many seconds it has to wait by its size.

    `tell_frames` is the extension `frame_facts.FRAMES` of the listener, if it has that.
    """

    def __init__(
        self,
        receive: Receive,
        send: Send,
        pace: Callable[[int], float] = _at_once,
        tell_frames: Callable[[NoteFrame], None] = _has_no_frames,
    ) -> None:
        self.closed: Closed | None = None
        """How the connection has ended, once `receive` has given None."""
        self._receive = receive
        self._send = send
        self._pace = pace
        self._tell_frames = tell_frames
        self._frames = FrameFacts(trio.current_time)
        self._waiting: str | None = None
        self._due = 0.0

    def opened(self, recorder: Recorder) -> None:
        """The connection is in the log."""
        self._frames.opened(recorder)
        self._tell_frames(self._frames.note)

    async def receive(self) -> bytes | None:
        """The next message, or None when the connection is over. Raises `WireBrokenError` for a binary one."""
        if self._waiting is None:
            self._waiting = await self._next()
            if self._waiting is None:
                return None
            self._due = trio.current_time() + self._pace(len(self._waiting))
        # Kept meanwhile: whoever stops waiting for a message comes again.
        await trio.sleep_until(self._due)
        text, self._waiting = self._waiting, None
        return text.encode()

    async def _next(self) -> str | None:
        if self.closed is not None:
            return None
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            # ASGI has no reason here; our listener gives one where it was not the client.
            self.closed = Closed(event["code"], event.get("reason") or "client")
            return None
        text = event.get("text")
        if text is None:
            self._frames.note("received", "binary", len(event.get("bytes") or b""), "messages are text")
            raise WireBrokenError(_UNSUPPORTED_DATA, "a binary frame; messages are text")
        return str(text)

    async def send(self, message: bytes) -> None:
        """Send one message; returns when the socket has taken it. Raises `OSError` when it will not."""
        await self._send({"type": "websocket.send", "text": message.decode()})

    async def close(self, code: int, why: str) -> Closed:
        """Close, unless it is over: the peer has some seconds to answer. What it still sends is for nobody."""
        await self._send({"type": "websocket.close", "code": code, "reason": why})
        while self.closed is None:
            try:
                await self._next()
            except WireBrokenError:
                continue
        return self.closed


Serve: TypeAlias = Callable[[WebSocketWire, Peer], Awaitable[Ending]]
"""Serves the messages of a connection until it is over or is to be closed. Raises nothing for what a peer does."""


class WebSocketEndpoint:
    """`/ws` of one engine. At most `max_websockets` are open at a time; `wait_idle` tells when none is any more."""

    def __init__(self, engine: Engine, serve: Serve, pace: Pace) -> None:
        settings = engine.settings
        self._engine = engine
        self._settings = settings
        self._serve = serve
        self._pace = pace
        self._policy = host_policy(settings)
        self._unsent = Unsent(settings.limits.max_unsent_bytes, engine.shares)
        self._changed = trio.lowlevel.ParkingLot()
        self.open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, from its handshake to its end, or refuse an HTTP request that is no handshake."""
        if scope["type"] == "http":
            await refuse(send, http_head(scope), upgrade_required(SUBPROTOCOL))
            return
        await receive()
        exchange = upgrade_exchange(self._engine, self._unsent, scope, receive, send)
        try:
            peer = self._judge(scope, exchange)
        except Rejection as rejection:
            await self._refuse(exchange, rejection)
            return
        self.open += 1
        shares = self._engine.shares
        shares.take("max_websockets", peer.holder)
        try:
            tell_frames = scope.get("extensions", {}).get(FRAMES, _has_no_frames)
            wire = WebSocketWire(receive, send, partial(self._pace, scope), tell_frames)
            await self._converse(exchange, peer, wire, send)
        finally:
            self.open -= 1
            shares.give_back("max_websockets", peer.holder)
            self._changed.unpark_all()

    async def wait_idle(self) -> None:
        """Wait until no connection is open."""
        while self.open:
            await self._changed.park()

    def _judge(self, scope: Scope, exchange: Exchange) -> Peer:
        """Raises `Rejection`."""
        # Host and Origin first. A browser lets every page open a WebSocket to anywhere and knows no CORS for it, so
        # this is all that keeps one from using a server on this machine.
        self._policy.check(exchange.head)
        if SUBPROTOCOL not in scope["subprotocols"]:
            why = f'Bad Request: Sec-WebSocket-Protocol must offer "{SUBPROTOCOL}"'
            raise Rejection(Refusal.INVALID_REQUEST, why)
        exchange.check_label()
        selection = self._selection(exchange.query)
        self._check_room(exchange)
        return Peer(
            transport="websocket",
            address=exchange.address,
            origin=exchange.origin,
            selection=selection,
            client=exchange.client,
            peer=exchange.peer,
            request=exchange.recorder,
        )

    def _selection(self, query: str) -> str:
        try:
            return read_selection(self._engine, query)
        except UnknownSelectionError as error:
            raise Rejection(Refusal.UNKNOWN_TOOLS, f"Bad Request: {error}") from None

    def _check_room(self, exchange: Exchange) -> None:
        if self._engine.draining:
            raise shutting_down()
        most = self._settings.limits.max_websockets
        if self.open >= most:
            exchange.recorder.append(LimitReached("max_websockets", most))
            raise busy(f"There are {most} WebSockets already (max_websockets)", _RETRY_S)
        try:
            self._engine.shares.check("max_websockets", exchange.holder, exchange.recorder)
        except AddressLimitError as full:
            raise full.rejection() from None

    async def _refuse(self, exchange: Exchange, rejection: Rejection) -> None:
        try:
            await exchange.reject(rejection)
        except OSError:
            exchange.close("client")

    async def _converse(self, exchange: Exchange, peer: Peer, wire: WebSocketWire, send: Send) -> None:
        if await accept(exchange, send, SUBPROTOCOL):
            ending = await self._serve(wire, peer)
            await wire.close(ending.code, ending.why)

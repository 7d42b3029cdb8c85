"""`/ws`: MCP over WebSocket, one JSON-RPC message in each text frame.

This module handles the handshake, frames and close codes; `serve` handles the messages. The handshake is checked before
the upgrade, so that a client gets an HTTP status such as 403 for its mistake.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import trio

from ....engine.budgets import Limit, LimitError
from ....engine.engine import Engine
from ....engine.pipes.wires import Ending, Peer
from ....wire.errors import Refusal, Rejection, shutting_down
from ..asgi import Receive, Scope, Send, host_policy, http_head
from ..exchange import EndpointExchanges, Exchange, asked_selection
from ..problem_details import refuse
from .frame_facts import FRAMES
from .upgrade import upgrade_required
from .websocket_wire import WebSocketWire, has_no_frames

SUBPROTOCOL = "mcp"

Pace: TypeAlias = Callable[[Scope, int], float]
"""Returns the seconds that a message of so many bytes has to wait by its client's rate limit."""


Serve: TypeAlias = Callable[[WebSocketWire, Peer], Awaitable[Ending]]
"""Serves the messages of a connection until it is over or has to be closed.

Raises no error for anything a peer does.
"""


class WebSocketEndpoint:
    """`/ws` of one engine, with at most `max_websockets` open connections. `wait_idle` returns when there is none."""

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
        """The number of open connections."""
        return self._places.held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection from its handshake to its end, or refuse an HTTP request that is no handshake."""
        if scope["type"] == "http":
            await refuse(send, http_head(scope), upgrade_required(SUBPROTOCOL))
            return
        await receive()
        exchange = self._exchanges.upgrade(scope, receive, send)
        try:
            peer = self._judge(scope, exchange)
        except Rejection as rejection:
            await self._refuse(exchange, rejection)
            return
        try:
            tell_frames = scope.get("extensions", {}).get(FRAMES, has_no_frames)
            wire = WebSocketWire(receive, send, partial(self._pace, scope), tell_frames)
            await self._converse(exchange, peer, wire, send)
        finally:
            self._places.release(exchange.holder)
            self._changed.unpark_all()

    async def wait_idle(self) -> None:
        """Wait until no connection is open."""
        while self.open:
            await self._changed.park()

    def _judge(self, scope: Scope, exchange: Exchange) -> Peer:
        """Check a handshake and take a place for its peer. Raises `Rejection`."""
        # Host and Origin first. Browsers let every page open a WebSocket to any address, without CORS, so only this
        # check keeps a foreign page from a server on this machine.
        self._policy.check(exchange.head)
        if SUBPROTOCOL not in scope["subprotocols"]:
            why = f'Bad Request: Sec-WebSocket-Protocol must offer "{SUBPROTOCOL}"'
            raise Rejection(Refusal.INVALID_REQUEST, why)
        exchange.check_label()
        selection = asked_selection(exchange.query, self._engine.selection)
        if self._engine.draining:
            raise shutting_down()
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

    async def _refuse(self, exchange: Exchange, rejection: Rejection) -> None:
        try:
            await exchange.reject(rejection)
        except OSError:
            exchange.close("client")

    async def _converse(self, exchange: Exchange, peer: Peer, wire: WebSocketWire, send: Send) -> None:
        if await exchange.accept(send, SUBPROTOCOL):
            ending = await self._serve(wire, peer)
            await wire.close(ending.code, ending.why)

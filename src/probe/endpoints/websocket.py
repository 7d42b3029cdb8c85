"""`/ws`: MCP over WebSocket, one JSON-RPC message in each text frame.

Everything about the handshake, frames and close codes is here; what the messages mean is `serve`'s business. The
handshake is judged before the upgrade, so that a client learns by an HTTP status what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

from ..engine.catalogue import UnknownSelectionError
from ..engine.engine import Engine
from ..observe.events import HttpResponse, LimitReached
from ..wire.errors import Refusal, Rejection, busy, shutting_down
from .asgi import Receive, Scope, Send, before_upgrade, host_policy, http_head
from .exchange import Exchange, Unsent
from .messages import read_selection
from .problem_details import RefusedError, refuse
from .wires import Closed, Ending, Peer, WireBrokenError

SUBPROTOCOL = "mcp"

_UNSUPPORTED_DATA = 1003
_RETRY_S = 5
_SWITCHING_PROTOCOLS = 101


class WebSocketWire:
    """The `Wire` of one accepted WebSocket."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self.closed: Closed | None = None
        """How the connection has ended, once `receive` has given None."""
        self._receive = receive
        self._send = send

    async def receive(self) -> bytes | None:
        """The next message, or None when the connection is over. Raises `WireBrokenError` for a binary one."""
        if self.closed is not None:
            return None
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            # ASGI has no reason here; our listener gives one where it was not the client.
            self.closed = Closed(event["code"], event.get("reason") or "client")
            return None
        text = event.get("text")
        if text is None:
            raise WireBrokenError(_UNSUPPORTED_DATA, "a binary frame; messages are text")
        return str(text).encode()

    async def send(self, message: bytes) -> None:
        """Send one message; returns when the socket has taken it. Raises `OSError` when it will not."""
        await self._send({"type": "websocket.send", "text": message.decode()})

    async def close(self, code: int, why: str) -> Closed:
        """Close, unless it is over: the peer has some seconds to answer. What it still sends is for nobody."""
        await self._send({"type": "websocket.close", "code": code, "reason": why})
        while self.closed is None:
            try:
                await self.receive()
            except WireBrokenError:
                continue
        return self.closed


Serve: TypeAlias = Callable[[WebSocketWire, Peer], Awaitable[Ending]]
"""Serves the messages of a connection until it is over or is to be closed. Raises nothing for what a peer does."""


class WebSocketEndpoint:
    """`/ws` of one engine. At most `max_websockets` are open at a time; `wait_idle` tells when none is any more."""

    def __init__(self, engine: Engine, serve: Serve) -> None:
        settings = engine.settings
        self._engine = engine
        self._settings = settings
        self._serve = serve
        self._policy = host_policy(settings)
        self._unsent = Unsent(settings.limits.max_unsent_bytes, engine.log)
        self._changed = trio.lowlevel.ParkingLot()
        self.open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, from its handshake to its end, or refuse an HTTP request that is no handshake."""
        if scope["type"] == "http":
            await refuse(send, http_head(scope), _UPGRADE_REQUIRED)
            return
        await receive()
        exchange = self._exchange(scope, receive, send)
        try:
            peer = self._judge(scope, exchange)
        except Rejection as rejection:
            await self._refuse(exchange, rejection)
            return
        self.open += 1
        try:
            await self._converse(exchange, peer, receive, send)
        finally:
            self.open -= 1
            self._changed.unpark_all()

    async def wait_idle(self) -> None:
        """Wait until no connection is open."""
        while self.open:
            await self._changed.park()

    def _exchange(self, scope: Scope, receive: Receive, send: Send) -> Exchange:
        """The upgrade request as the HTTP request that it is."""
        engine = self._engine
        request = {**scope, "method": "GET", "scheme": "https" if scope["scheme"] == "wss" else "http"}
        answers = before_upgrade(send)
        url = self._settings.public_url
        return Exchange(
            next(engine.exchanges), request, receive, answers, engine.log, self._unsent, engine.outbox, url
        )

    def _judge(self, scope: Scope, exchange: Exchange) -> Peer:
        """Raises `Rejection`."""
        # Host and Origin first. A browser lets every page open a WebSocket to anywhere and knows no CORS for it, so
        # this is all that keeps one from using a server on this machine.
        self._policy.check(exchange.head)
        if SUBPROTOCOL not in scope["subprotocols"]:
            why = f'Bad Request: Sec-WebSocket-Protocol must offer "{SUBPROTOCOL}"'
            raise Rejection(Refusal.INVALID_REQUEST, why)
        selection = self._selection(exchange.query)
        self._check_room()
        host, port = scope.get("client") or ("", 0)
        return Peer(
            "websocket", exchange.address, exchange.origin, selection, f"{host}:{port}", exchange.number
        )

    def _selection(self, query: str) -> str:
        try:
            return read_selection(self._engine, query)
        except UnknownSelectionError as error:
            raise Rejection(Refusal.UNKNOWN_TOOLS, f"Bad Request: {error}") from None

    def _check_room(self) -> None:
        if self._engine.draining:
            raise shutting_down()
        most = self._settings.limits.max_websockets
        if self.open >= most:
            self._engine.log.append(LimitReached(None, "max_websockets", most))
            raise busy(f"There are {most} WebSockets already (max_websockets)", _RETRY_S)

    async def _refuse(self, exchange: Exchange, rejection: Rejection) -> None:
        try:
            await exchange.reject(rejection)
        except OSError:
            exchange.close("client")

    async def _converse(self, exchange: Exchange, peer: Peer, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
        except OSError:
            exchange.close("client")
            return
        self._engine.log.append(HttpResponse(exchange.number, _SWITCHING_PROTOCOLS, "", None, None, None))
        wire = WebSocketWire(receive, send)
        ending = await self._serve(wire, peer)
        await wire.close(ending.code, ending.why)


_UPGRADE_REQUIRED = RefusedError(
    426,
    f'this is a WebSocket: connect by HTTP/1.1, with the subprotocol "{SUBPROTOCOL}"',
    # HTTP/2, which knows neither of them, leaves them out.
    [(b"upgrade", b"websocket"), (b"connection", b"upgrade")],
)

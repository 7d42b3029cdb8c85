"""`/toolhost`: tool hosts connect here, by WebSocket and with the shared secret (docs/tool-hosts.md).

The handshake is judged before the upgrade, so that a host learns by an HTTP status what is wrong with it. What the
messages mean is `hosting`'s business.
"""

from __future__ import annotations

import hmac

import trio

from ..engine.engine import Engine
from ..hosting.connection import HostConnection
from ..hosting.roster import Roster
from ..observe.events import LimitReached
from ..wire.errors import Rejection
from ..wire.toolhost import SUBPROTOCOL
from .asgi import Receive, Scope, Send, host_policy, http_head
from .exchange import Exchange
from .pipes.upgrade import accept, upgrade_exchange, upgrade_required
from .pipes.websocket import WebSocketWire
from .pipes.wires import Closed, Ending, WireBrokenError
from .problem_details import RefusedError, refuse
from .rooms import Unsent

_RETRY = ((b"retry-after", b"5"),)
_NORMAL, _GOING_AWAY = 1000, 1001


class ToolHostEndpoint:
    """`/toolhost` of one engine. `open` counts its connections; `wait_idle` tells when there is none any more."""

    def __init__(self, engine: Engine) -> None:
        settings = engine.settings
        self.open = 0
        self._engine = engine
        self._settings = settings
        self._roster = Roster(engine.hosted)
        self._policy = host_policy(settings)
        self._unsent = Unsent(settings.limits.max_unsent_bytes, engine.shares)
        self._changed = trio.lowlevel.ParkingLot()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, from its handshake to its end, or refuse an HTTP request that is no handshake."""
        if scope["type"] == "http":
            refused = upgrade_required(SUBPROTOCOL) if self._settings.toolhost_secret else _off()
            await refuse(send, http_head(scope), refused)
            return
        await receive()
        exchange = upgrade_exchange(self._engine, self._unsent, scope, receive, send)
        try:
            self._judge(scope, exchange)
        except RefusedError as refused:
            await self._refuse(exchange, refused)
            return
        self.open += 1
        try:
            if await accept(exchange, send, SUBPROTOCOL):
                await self._converse(exchange, WebSocketWire(receive, send))
        finally:
            self.open -= 1
            self._changed.unpark_all()

    async def wait_idle(self) -> None:
        """Wait until no host is connected."""
        while self.open:
            await self._changed.park()

    def _judge(self, scope: Scope, exchange: Exchange) -> None:
        """Raises `RefusedError`."""
        if not self._settings.toolhost_secret:
            raise _off()
        head = exchange.head
        try:
            self._policy.check(head)
            origin, credentials = head.get("origin"), head.get("authorization")
        except Rejection as rejection:
            raise RefusedError(rejection.refusal.status, rejection.message) from None
        if origin is not None:
            raise RefusedError(403, "a request with Origin comes from a web page, and no web page is a tool host")
        if not self._knows_secret(credentials):
            # RFC 6750, section 3.
            challenge = [(b"www-authenticate", b'Bearer realm="toolhost"')]
            why = "the secret is missing or not this server's (toolhost_secret): Authorization is Bearer and the secret"
            raise RefusedError(401, why, challenge)
        if SUBPROTOCOL not in scope["subprotocols"]:
            raise RefusedError(400, f'Sec-WebSocket-Protocol must offer "{SUBPROTOCOL}"')
        self._check_room(exchange)

    def _knows_secret(self, credentials: str | None) -> bool:
        scheme, _, given = (credentials or "").partition(" ")
        secret = self._settings.toolhost_secret
        same = hmac.compare_digest(given.strip(" ").encode(), secret.encode())
        return same and scheme.lower() == "bearer"

    def _check_room(self, exchange: Exchange) -> None:
        if self._engine.draining:
            raise RefusedError(503, "the server is shutting down", _RETRY)
        most = self._settings.limits.max_tool_hosts
        if self.open >= most:
            exchange.recorder.append(LimitReached("max_tool_hosts", most))
            raise RefusedError(503, f"there are {most} tool hosts already (max_tool_hosts)", _RETRY)

    async def _refuse(self, exchange: Exchange, refused: RefusedError) -> None:
        try:
            await exchange.refuse(refused)
        except OSError:
            exchange.close("client")

    async def _converse(self, exchange: Exchange, wire: WebSocketWire) -> None:
        connection = HostConnection(self._engine, self._roster, exchange.recorder, exchange.client, exchange.peer)
        ending = Ending(_GOING_AWAY, "the server stopped")
        try:
            reader = _UntilBroken(wire)
            await connection.serve(reader)
            ending = reader.ending or Ending(*(connection.ending or (_NORMAL, "client")))
        finally:
            closed = wire.closed or Closed(ending.code, ending.why)
            connection.closed(closed.code, closed.by)
        await wire.close(ending.code, ending.why)


class _UntilBroken:
    """A wire whose end it is when the host breaks the rules of WebSocket; `ending` says how."""

    def __init__(self, wire: WebSocketWire) -> None:
        self.ending: Ending | None = None
        self.send = wire.send
        self._wire = wire

    async def receive(self) -> bytes | None:
        """The next message; None when nothing more will come."""
        try:
            return await self._wire.receive()
        except WireBrokenError as broken:
            self.ending = Ending(broken.code, broken.why)
            return None


def _off() -> RefusedError:
    return RefusedError(404, "tool hosts are off; start the server with --toolhost-secret")

"""`/toolhost`: tool hosts connect here, by WebSocket and with the shared secret (docs/tool-hosts.md).

The handshake is judged before the upgrade, so that a host learns by an HTTP status what is wrong with it. What the
messages mean is `hosting`'s business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ..engine.engine import Engine
from ..engine.pipes.wires import Closed, Ending, WireBrokenError
from ..engine.shares import Limit, LimitError
from ..hosting.roster import Roster
from .asgi import Receive, Scope, Send, host_policy, http_head
from .exchange import EndpointExchanges, Exchange
from .pipes.upgrade import upgrade_required
from .pipes.websocket_wire import WebSocketWire
from .problem_details import RefusedError, refuse
from .secret_door import SecretDoor

if TYPE_CHECKING:
    from ..hosting.connection import HostConnection

_RETRY = ((b"retry-after", b"5"),)
_NORMAL, _GOING_AWAY = 1000, 1001


def _load() -> tuple[type[HostConnection], str]:
    """Load the class that speaks to a host, and its protocol's name. It takes long, and most servers have no hosts."""
    from ..hosting.connection import HostConnection
    from ..wire.toolhost import SUBPROTOCOL

    return HostConnection, SUBPROTOCOL


class ToolHostEndpoint:
    """`/toolhost` of one engine. `wait_idle` tells when there is no connection any more."""

    def __init__(self, engine: Engine) -> None:
        settings = engine.settings
        self._engine = engine
        self._places = Limit("max_tool_hosts", "there are {most} tool hosts already ({name})", engine.shares)
        self._settings = settings
        if settings.toolhost_secret:
            self._host_connection, self._protocol = _load()
            self._door = SecretDoor(settings.toolhost_secret, "toolhost_secret", self._protocol, "tool host")
        self._roster = Roster(engine.hosted)
        self._policy = host_policy(settings)
        self._exchanges = EndpointExchanges(engine.services, engine.sessions.label)
        self._changed = trio.lowlevel.ParkingLot()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, from its handshake to its end, or refuse an HTTP request that is no handshake."""
        if scope["type"] == "http":
            refused = upgrade_required(self._protocol) if self._settings.toolhost_secret else _off()
            await refuse(send, http_head(scope), refused)
            return
        await receive()
        exchange = self._exchanges.upgrade(scope, receive, send)
        try:
            self._judge(scope, exchange)
        except RefusedError as refused:
            await self._refuse(exchange, refused)
            return
        try:
            if await exchange.accept(send, self._protocol):
                await self._converse(exchange, WebSocketWire(receive, send))
        finally:
            self._places.release(None)
            self._changed.unpark_all()

    async def wait_idle(self) -> None:
        """Wait until no host is connected."""
        while self._places.held:
            await self._changed.park()

    def _judge(self, scope: Scope, exchange: Exchange) -> None:
        """Take a place for a host that may connect. Raises `RefusedError`."""
        if not self._settings.toolhost_secret:
            raise _off()
        self._door.judge(exchange.head, self._policy, scope["subprotocols"])
        self._take_place(exchange)

    def _take_place(self, exchange: Exchange) -> None:
        if self._engine.draining:
            raise RefusedError(503, "the server is shutting down", _RETRY)
        try:
            # Hosts know the secret of this server, so no share of an address bounds them.
            self._places.acquire(None, exchange.recorder)
        except LimitError as full:
            raise RefusedError(503, full.message, _RETRY) from None

    async def _refuse(self, exchange: Exchange, refused: RefusedError) -> None:
        try:
            await exchange.refuse(refused)
        except OSError:
            exchange.close("client")

    async def _converse(self, exchange: Exchange, wire: WebSocketWire) -> None:
        recorder, client, peer = exchange.recorder, exchange.client, exchange.peer
        connection = self._host_connection(self._engine, self._roster, recorder, client, peer)
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

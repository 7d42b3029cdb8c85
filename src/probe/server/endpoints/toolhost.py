"""`/toolhost`: tool hosts connect here, by WebSocket and with the shared secret (docs/tool-hosts.md).

`engine.host_tools` reads the messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...engine.budgets import Limit
from ...engine.engine import Engine
from ...engine.pipes.wires import Closed, Ending, WireBrokenError
from .exchange import Exchange
from .pipes.websocket_wire import WebSocketWire
from .secret_door import SecretDoor, SecretEndpoint

if TYPE_CHECKING:
    from ...engine.host_tools.connection import HostConnection

_NORMAL, _GOING_AWAY = 1000, 1001


def tool_host_endpoint(engine: Engine) -> SecretEndpoint:
    """`/toolhost` of one engine."""
    secret = engine.settings.toolhost_secret
    host_connection, protocol = _load() if secret else (None, "")
    door = SecretDoor(secret, "toolhost_secret", protocol, "tool host", "tool hosts")
    places = Limit("max_tool_hosts", "there are {most} tool hosts already ({name})", engine.services.shares)

    async def converse(exchange: Exchange, wire: WebSocketWire) -> None:
        assert host_connection is not None, "without a secret nobody comes in"
        recorder, client, peer = exchange.recorder, exchange.client, exchange.peer
        await _converse(host_connection(engine, recorder, client, peer), wire)

    return SecretEndpoint(engine, door, places, converse)


def _load() -> tuple[type[HostConnection], str]:
    """Load the code for tool hosts. It takes long, and most servers have no hosts."""
    from ...engine.host_tools.connection import HostConnection
    from ...wire.toolhost import SUBPROTOCOL

    return HostConnection, SUBPROTOCOL


async def _converse(connection: HostConnection, wire: WebSocketWire) -> None:
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
    """A wire that ends when the host breaks the rules of WebSocket; `ending` is then the reason."""

    def __init__(self, wire: WebSocketWire) -> None:
        self.ending: Ending | None = None
        self.send = wire.send
        self._wire = wire

    async def receive(self) -> bytes | None:
        try:
            return await self._wire.receive()
        except WireBrokenError as broken:
            self.ending = Ending(broken.code, broken.why)
            return None

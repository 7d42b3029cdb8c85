"""WebSockets for programs with a shared secret: tool hosts at `/toolhost`, and forwarders of logs.

The handshake is checked before the upgrade, so that a program gets an HTTP status such as 401 for its mistake.
`engine.host_tools` reads the messages of tool hosts (docs/tool-hosts.md).
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from ...core.inbound import HostPolicy, HttpHead
from ...engine.budgets import Limit, LimitError
from ...engine.engine import Engine
from ...engine.pipes.wires import Closed, ConnectionEnd, WireBrokenError
from ...wire.errors import Rejection
from .asgi import Headers, Receive, RefusedError, Scope, Send, host_policy, http_head, refuse, upgrade_required
from .exchange import EndpointExchanges, HttpExchange
from .websocket import WebSocketWire

if TYPE_CHECKING:
    from ...engine.host_tools.connection import HostConnection

_RETRY: Final[Headers] = ((b"retry-after", b"5"),)

Converse: TypeAlias = Callable[[HttpExchange, WebSocketWire], Awaitable[None]]
"""Serves an accepted connection to its end and closes it. Raises no error for anything that its program does."""

_NORMAL, _GOING_AWAY = 1000, 1001


@dataclass(frozen=True, slots=True)
class Credentials:
    """The required credentials: the secret of a setting, and the subprotocol. `who` is the name of the program."""

    secret: str = field(repr=False)
    setting: str
    protocol: str
    who: str
    what: str

    @property
    def off(self) -> RefusedError:
        """The refusal of a server without this secret."""
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
            # The program knows the secret, so the share of its address does not bound it.
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
    """Load the code for tool hosts. It takes long, and most servers have no hosts."""
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
    """A wire that ends when the host breaks the rules of WebSocket; `ending` is then the reason."""

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

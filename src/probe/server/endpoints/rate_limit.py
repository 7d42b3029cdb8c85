"""The address of each client and its rate limit: the first step of every request."""

from __future__ import annotations

from collections.abc import MutableMapping
from math import ceil
from typing import Any

import trio

from ...core.budgets import Admission, Rates
from ...core.clients import client_of, is_within, networks
from ...core.modern_inbound import era_of_unread
from ...engine.services import Services
from ...log.events import LimitReached
from ...wire.errors import Rejection, too_many
from ...wire.jsonrpc import Json, encode
from ...wire.v2026.codec import modern_error
from .asgi import (
    FORWARDED,
    Receive,
    RefusedError,
    Scope,
    Send,
    before_upgrade,
    forwarded,
    holder_of,
    http_head,
    refuse,
    respond,
)
from .exchange import JSON_HEADERS
from .socket_facts import MOST_CLIENTS

# Platforms ask for these on behalf of all clients, from the same few addresses.
_EXEMPT = ("/health", "/ready")
# Parsing costs grow with the size: otherwise a client could send 50 requests of 4 MiB in a second.
_PIECE_BYTES = 64 * 1024
_WHY = "Too many requests from this address (requests_per_second)"


class RateLimiter:
    """The rate limiter of one engine. Raises `NetworksError` if `trusted_proxies` has an item that is no network."""

    def __init__(self, services: Services) -> None:
        limits = services.limits
        self._services = services
        self._clock = services.clock
        self._trusted = networks(services.settings.trusted_proxies.split(","))
        self._rates = Rates(limits.requests_per_second, limits.request_burst, MOST_CLIENTS)

    def _with_client_address(self, scope: Scope) -> Scope:
        """The scope with the client's address, as a trusted proxy passes it on.

        Beyond ASGI: behind a proxy the client's port is None, and `peer` is the proxy's address and port.
        """
        peer = scope.get("client") or ("", None)
        client = client_of(peer[0], scope["headers"], self._trusted)
        if is_within(peer[0], self._trusted):
            scope = {**scope, FORWARDED: forwarded(scope["headers"])}
        return scope if client == peer[0] else {**scope, "client": (client, None), "peer": peer}

    async def admit(self, scope: Scope, receive: Receive, send: Send) -> tuple[Scope, Receive] | None:
        """Check the rate limit: the scope with the client's own address, and a `receive` that charges for the body.

        Returns None if the request was answered with 429.
        """
        if self._trusted:
            scope = self._with_client_address(scope)
        key = holder_of(scope)
        if key is None:
            return scope, receive
        wait_s = 0.0 if scope["path"] in _EXEMPT else self._recorded(self._rates.take(key, self._clock.now())).wait_s
        if wait_s:
            await refuse_unread(scope, receive, send, too_many(_WHY, ceil(wait_s)))
            return None
        return scope, _PacedBody(self, key, receive) if scope["type"] == "http" else receive

    def pace(self, scope: Scope, size: int) -> float:
        """Count a message of `size` bytes on a connection; returns the seconds that its client has to wait."""
        key = holder_of(scope)
        return 0.0 if key is None else self.charge(key, messages_of(size))

    def charge(self, key: str, requests: int) -> float:
        """Count `requests` more of a known client; returns the seconds that it has to wait."""
        return self._recorded(self._rates.charge(key, requests, self._clock.now())).wait_s

    def _recorded(self, verdict: Admission) -> Admission:
        if verdict.first:
            most = self._services.limits.requests_per_second
            self._services.log.append(LimitReached("requests_per_second", most))
        return verdict


def messages_of(size: int) -> int:
    """The requests that a message of so many bytes counts for."""
    return 1 + size // _PIECE_BYTES


async def refuse_unread(scope: Scope, receive: Receive, send: Send, rejection: Rejection) -> None:
    """Refuse a request before it is read, in the form of answers of its path."""
    status, headers = rejection.refusal.status, rejection.headers
    if scope["type"] == "websocket":
        await receive()
        scope, send = {**scope, "method": "GET"}, before_upgrade(send)
        is_mcp = scope["path"] == "/ws"
    else:
        is_mcp = scope["path"] == "/mcp"
    if is_mcp:
        await respond(send, status, [*JSON_HEADERS, *headers], encode(_error(scope, rejection)))
    else:
        await refuse(send, http_head(scope), RefusedError(status, rejection.message, headers))


class _PacedBody:
    def __init__(self, rate_limiter: RateLimiter, key: str, receive: Receive) -> None:
        self._rate_limiter = rate_limiter
        self._key = key
        self._receive = receive
        self._bytes = 0

    async def __call__(self) -> MutableMapping[str, Any]:
        event = await self._receive()
        before = self._bytes // _PIECE_BYTES
        self._bytes += len(event.get("body", b""))
        more = self._bytes // _PIECE_BYTES - before
        if more:
            # Bytes that are not read stay with the client: its flow-control window runs out.
            await trio.sleep(self._rate_limiter.charge(self._key, more))
        return event


def _error(scope: Scope, rejection: Rejection) -> Json:
    body = rejection.body()
    # A WebSocket handshake belongs to no era.
    modern = scope["type"] == "http" and era_of_unread(http_head(scope)) == "modern"
    return {**body, "error": modern_error(body["error"])} if modern else body

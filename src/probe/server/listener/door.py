"""The limit of connections: a total, a share for each address, and reserved ones for pages and health."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable
from dataclasses import replace

import trio

from ...core.budgets import Shares
from ...core.clients import client_key, is_within
from .calls import LOG, App, Contained, Message, Receive, Send
from .connection import converse
from .transport import Service

_KIND = "max_connections"


class Door:
    """Accepts at most `max_connections` at a time, and of one address its share. Trusted proxies have no share.

    Beyond that there are `reserved_connections`. On these `reserve` answers (an ASGI application, or None for no
    reserved connections) while more than `max_connections` are open. The oldest of them is closed for the next one. So
    a client that holds all of them without a request does not keep out, for example, a health probe.
    """

    def __init__(self, service: Service, reserve: App | None) -> None:
        limits = service.settings.limits
        self._app = service.app
        self._reserve = service.app if reserve is None else reserve
        self._service = service
        self._reserving = replace(service, app=self._answer)
        self._most = limits.max_connections
        self._most_reserved = 0 if reserve is None else limits.reserved_connections
        self._shares = Shares(limits.address_share)
        self._inside = 0
        self._expected = 0
        self._refused = 0
        # Connections that were closed for a new one are not among these, but count until they have ended.
        self._beyond: deque[trio.CancelScope] = deque()

    def free(self) -> int:
        """The number of free places, without those of expected connections."""
        return self._most - self._inside - self._expected

    def expect(self) -> None:
        """Count an accepted connection; the caller passes it to `enter`."""
        self._expected += 1

    async def enter(self, transport: trio.SocketStream) -> None:
        """Serve one expected connection, or close it at once if there are too many."""
        self._expected -= 1
        try:
            holder = self._holder(transport)
        except OSError:
            # The peer has gone already.
            return
        if not self._shares.has_room(_KIND, holder, self._most):
            self._refuse()
            return
        if self._inside >= self._most + 2 * self._most_reserved:
            self._refuse()
            return
        with Contained("a connection"):
            self._shares.take(_KIND, holder)
            self._inside += 1
            try:
                if self._inside <= self._most:
                    await converse(self._service, transport)
                else:
                    await self._hear(transport)
            finally:
                self._inside -= 1
                self._shares.give_back(_KIND, holder)

    async def _hear(self, transport: trio.SocketStream) -> None:
        if len(self._beyond) >= self._most_reserved:
            self._beyond.popleft().cancel()
            self._refuse()
        with trio.CancelScope() as scope:
            self._beyond.append(scope)
            try:
                await converse(self._reserving, transport)
            finally:
                if not scope.cancel_called:
                    self._beyond.remove(scope)

    def _holder(self, transport: trio.SocketStream) -> str | None:
        address = str(transport.socket.getpeername()[0])
        return None if is_within(address, self._service.trusted) else client_key(address)

    def _answer(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request on a reserved connection."""
        app = self._app if self._inside <= self._most else self._reserve
        return app(scope, receive, send)

    def _refuse(self) -> None:
        self._refused += 1
        if self._refused.bit_count() == 1:
            # Log only powers of two, so that a client with many connections does not fill the log.
            LOG.warning("%d connections are open; refused %d so far", self._inside, self._refused)

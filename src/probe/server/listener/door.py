"""The limit of connections: so many at a time, of one address its share, and some beyond that for pages and health."""

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
    """Lets in at most `max_connections` at a time, and of one address its share: but a proxy's has all clients.

    Beyond that there are `reserved_connections`, on which `reserve` (an ASGI application; None for no such thing)
    answers in place of the application, as long as there are more than `max_connections` in all. The oldest of them
    makes room for the next one: so whoever takes all of them and says nothing does not keep out who has a question.
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
        # Those that had to make room are not among them, until they have ended.
        self._beyond: deque[trio.CancelScope] = deque()

    def free(self) -> int:
        """How many connections find a place now, beside those that are expected."""
        return self._most - self._inside - self._expected

    def expect(self) -> None:
        """A connection was accepted, which will `enter`."""
        self._expected += 1

    async def enter(self, transport: trio.SocketStream) -> None:
        """Serve one connection that was expected, or close it at once when there are too many."""
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
        """Serve one request on a connection that came when all places were taken."""
        app = self._app if self._inside <= self._most else self._reserve
        return app(scope, receive, send)

    def _refuse(self) -> None:
        self._refused += 1
        if self._refused.bit_count() == 1:
            # Powers of two only: who opens connections in a loop does not fill the log as well.
            LOG.warning("%d connections are open; refused %d so far", self._inside, self._refused)

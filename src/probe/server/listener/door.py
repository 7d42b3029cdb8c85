"""The limit of connections: so many at a time, of one address its share, and some beyond that for pages and health."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import trio

from ...core.addresses import client_key, is_within
from ...core.budgets.shares import Shares
from .calls import LOG, App, Contained, Message, Receive, Send
from .connection import converse
from .transport import Service

_KIND = "max_connections"


class Door:
    """Lets in at most `max_connections` at a time, and of one address its share: but a proxy's has all clients.

    When all places are taken, `reserve` (an ASGI application; None for no such thing) answers whoever comes, on
    `reserved_connections` further connections. The one of them that has asked for nothing for longest makes room for
    the next one: so whoever takes all of them and says nothing does not keep out who has a question. With a request
    such a connection gets a place, if one is free by then.
    """

    def __init__(self, service: Service, reserve: App | None) -> None:
        limits = service.settings.limits
        self.app = service.app
        self.reserve = reserve
        self._service = service
        self._most = limits.max_connections
        self._most_reserved = 0 if reserve is None else limits.reserved_connections
        self._shares = Shares(limits.address_share)
        self._inside = 0
        self._expected = 0
        self._refused = 0
        # In the order of their last requests. Those that had to make room are not among them, until they have ended.
        self._waiting: OrderedDict[_Visit, None] = OrderedDict()
        self._reserved = 0

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
        with Contained("a connection"):
            self._shares.take(_KIND, holder)
            try:
                if self._inside < self._most:
                    self._inside += 1
                    try:
                        await converse(self._service, transport)
                    finally:
                        self._inside -= 1
                elif self._reserved < 2 * self._most_reserved:
                    await self._hear(transport)
                else:
                    self._refuse()
            finally:
                self._shares.give_back(_KIND, holder)

    def _holder(self, transport: trio.SocketStream) -> str | None:
        address = str(transport.socket.getpeername()[0])
        return None if is_within(address, self._service.trusted) else client_key(address)

    async def _hear(self, transport: trio.SocketStream) -> None:
        visit = _Visit(self)
        self._reserved += 1
        self._make_room()
        self._waiting[visit] = None
        try:
            with visit.scope:
                await converse(replace(self._service, app=visit), transport)
        finally:
            self._waiting.pop(visit, None)
            if visit.placed:
                self._inside -= 1
            else:
                self._reserved -= 1

    def _make_room(self) -> None:
        if len(self._waiting) >= self._most_reserved:
            longest, _ = self._waiting.popitem(last=False)
            longest.scope.cancel()
            self._refuse()

    def asked(self, visit: _Visit) -> None:
        """A visitor has a request: it gets a place if there is one, else it has the more time."""
        if visit not in self._waiting:
            return
        if self._inside < self._most:
            del self._waiting[visit]
            visit.placed = True
            self._reserved -= 1
            self._inside += 1
        else:
            self._waiting.move_to_end(visit)

    def _refuse(self) -> None:
        self._refused += 1
        if self._refused.bit_count() == 1:
            # Powers of two only: who opens connections in a loop does not fill the log as well.
            LOG.warning("%d connections are open; refused %d so far", self._inside, self._refused)


class _Visit:
    """A connection beyond `max_connections`, as the application that serves it; `placed` once it has a place."""

    def __init__(self, door: Door) -> None:
        self.scope = trio.CancelScope()
        self.placed = False
        self._door = door

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request of it."""
        self._door.asked(self)
        reserve = self._door.reserve
        app = self._door.app if self.placed or reserve is None else reserve
        await app(scope, receive, send)

"""Who goes next: one piece of work for each pass of trio's scheduler, and the clients in turn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import trio
from trio.lowlevel import ParkingLot

from ..core.addresses import Network, client_key, forwarded_client


class Turnstile:
    """Lets one task through in each pass. One for all connections of a server.

    trio runs everything that is ready before it looks at sockets and clocks again, and a request needs several of these
    passes. If hundreds of connections went ahead in each, every pass would take long, and whoever comes would wait for
    all of them several times: so each waits once, before there is a call, and passes stay short. What waits is in
    the buffers of connections and of the kernel, which are bounded; no call has been made for it, or, on a WebSocket,
    the call has not been told of it.

    Those who wait in one lane go in the order in which they came, and the lanes take turns: a client with a thousand
    connections delays the others by no more than one with a single one.
    """

    def __init__(self) -> None:
        self._busy = False
        # In the order of their turns. One that nobody waits in any more is dropped when its turn comes.
        self._lanes: OrderedDict[str | None, ParkingLot] = OrderedDict()

    async def through(self, lane: str | None) -> None:
        """Wait for one's turn. A checkpoint; cancelled, the turn is somebody else's."""
        if self._busy:
            await self._lanes.setdefault(lane, ParkingLot()).park()
            self._next()
        else:
            self._busy = True
            try:
                await trio.lowlevel.checkpoint()
            finally:
                self._next()

    def _next(self) -> None:
        """Let somebody through in the next pass, which is when a task runs that is woken now."""
        while self._lanes:
            lane, waiting = self._lanes.popitem(last=False)
            if waiting:
                waiting.unpark()
                self._lanes[lane] = waiting
                return
        self._busy = False


@dataclass(frozen=True, slots=True)
class Entrance:
    """The way of one connection through the turnstile; `peer` is the address at its other end."""

    turnstile: Turnstile
    peer: str
    trusted: Sequence[Network]

    async def enter(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Wait for the turn of the client whose request has these headers; all on this machine are one client."""
        client = self.peer
        if self.trusted:
            values = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
            client = forwarded_client(self.peer, ",".join(values), self.trusted)
        await self.turnstile.through(client_key(client))

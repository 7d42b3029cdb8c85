"""Who goes next: one piece of work for each pass of trio's scheduler, and the clients in turn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import trio
from trio.lowlevel import ParkingLot

from ..core.addresses import Network, client_key, forwarded_client, is_within


class Turnstile:
    """Lets one task through in each pass. One for all connections of a server.

    trio runs everything that is ready before it looks at sockets and clocks again, and a request needs several of these
    passes. If hundreds of connections went ahead in each, every pass would take long, and whoever comes would wait for
    all of them several times: so each waits once, before there is a call, and passes stay short. What waits is in
    the buffers of connections and of the kernel, which are bounded; no call has been made for it, or, on a WebSocket,
    the call has not been told of it.

    Those who wait in one lane go in the order in which they came, and the lanes take turns: a client with a thousand
    connections delays the others by no more than one with a single one. Every second turn is for lanes that have had
    none in this round. So a client that asks now and then waits for others who do, and not for all who always want more
    (the sparse flows of FQ-CoDel, RFC 8290 section 4.2). No more than every second: endless new clients do not starve
    the others.
    """

    def __init__(self) -> None:
        self._busy = False
        self._new_ones_turn = False
        # Both in the order of their turns. A lane that has had one goes to the end of `_served`, also when nobody waits
        # in it any more: it is dropped when its turn comes again, and only then it is new once more.
        self._new: OrderedDict[Hashable, ParkingLot] = OrderedDict()
        self._served: OrderedDict[Hashable, ParkingLot] = OrderedDict()

    async def through(self, lane: Hashable) -> None:
        """Wait for one's turn. A checkpoint; cancelled, the turn is somebody else's."""
        if self._busy:
            lanes = self._served if lane in self._served else self._new
            await lanes.setdefault(lane, ParkingLot()).park()
            self._next()
        else:
            self._busy = True
            try:
                await trio.lowlevel.checkpoint()
            finally:
                self._next()

    def _next(self) -> None:
        """Let somebody through in the next pass, which is when a task runs that is woken now."""
        self._new_ones_turn = not self._new_ones_turn
        for lanes in (self._new, self._served) if self._new_ones_turn else (self._served, self._new):
            while lanes:
                lane, waiting = lanes.popitem(last=False)
                if waiting:
                    waiting.unpark()
                    self._served[lane] = waiting
                    return
        self._busy = False


@dataclass(frozen=True, slots=True, eq=False)
class Entrance:
    """The way of one connection through the turnstile; `peer` is the address at its other end."""

    turnstile: Turnstile
    peer: str
    trusted: Sequence[Network]

    def client(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """The client whose request has these headers; None for all on this machine, who are one."""
        client = self.peer
        if self.trusted:
            values = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
            client = forwarded_client(self.peer, ",".join(values), self.trusted)
        return client_key(client)

    async def enter(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Wait for the turn of the client whose request has these headers."""
        await self.turnstile.through(self.client(headers))

    async def go_on(self) -> None:
        """Wait for the turn of this connection, in the middle of what it says.

        A proxy's says what many clients do: as these cannot be told apart before it is parsed, it has a lane alone.
        """
        await self.turnstile.through(self if is_within(self.peer, self.trusted) else client_key(self.peer))

"""The order of work: one request or message for each pass of trio's scheduler, and the clients in turn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import trio
from trio.lowlevel import ParkingLot

from ..core.addresses import Network, client_key, client_of, is_within


class Turnstile:
    """Lets one task through in each pass. One for all connections of a server.

    trio runs everything that is ready before it looks at sockets and clocks again, and a request needs several of these
    passes. If hundreds of connections went ahead in each, every pass would take long, and whoever comes would wait for
    all of them several times: so each waits once, before there is a call, and passes stay short. Requests that
    wait are in the buffers of connections and of the kernel, which are bounded; no call has been made for them, or, on
    a WebSocket, the call has not been told of them.

    Those who wait in one lane go in the order in which they came, and the lanes take turns: a client with a thousand
    connections delays the others by no more than one with a single one. Every second turn is for requests, and every
    second one for those who go on with what has begun, as cancellations and the messages of a WebSocket do: hundreds of
    clients that always have more to say on their connections do not keep out whoever comes with a request, nor the
    other way round.
    """

    def __init__(self) -> None:
        self._busy = False
        self._request_next = False
        # Both in the order of their turns. One that nobody waits in any more is dropped when its turn comes.
        self._requests: OrderedDict[Hashable, ParkingLot] = OrderedDict()
        self._messages: OrderedDict[Hashable, ParkingLot] = OrderedDict()

    async def through(self, lane: Hashable, *, message: bool = False) -> None:
        """Wait for one's turn, with a request or a `message`. A checkpoint; cancelled, the turn is somebody else's."""
        if self._busy:
            lanes = self._messages if message else self._requests
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
        self._request_next = not self._request_next
        for lanes in (self._requests, self._messages) if self._request_next else (self._messages, self._requests):
            while lanes:
                lane, waiting = lanes.popitem(last=False)
                if waiting:
                    waiting.unpark()
                    lanes[lane] = waiting
                    return
        self._busy = False


@dataclass(frozen=True, slots=True, eq=False)
class Entrance:
    """The way of one connection through the turnstile; `peer` is the address at its other end."""

    turnstile: Turnstile
    peer: str
    trusted: Sequence[Network]

    def client(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """The client whose request has these headers; None for all on loopback, who are one."""
        return client_key(client_of(self.peer, headers, self.trusted))

    async def enter(self, headers: Iterable[tuple[bytes, bytes]], *, message: bool = False) -> None:
        """Wait for the turn of the client whose request has these headers.

        With `message` for that of a message on a WebSocket whose upgrade had them, or of a request that goes on with
        what another one began, as a cancellation does.
        """
        await self.turnstile.through(self.client(headers), message=message)

    async def go_on(self) -> None:
        """Wait for the turn of this connection, in the middle of what it says.

        A proxy's says what many clients do: as these cannot be told apart before it is parsed, it has a lane alone.
        """
        lane = self if is_within(self.peer, self.trusted) else client_key(self.peer)
        await self.turnstile.through(lane, message=True)

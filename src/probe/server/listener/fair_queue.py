"""The order of work: one request or message in each pass of trio's scheduler, and the clients in turn.

trio runs every task that is ready before it looks at sockets and clocks again, and a request needs several such passes.
If hundreds of connections went on in each pass, a new request would wait for several long passes. So each request waits
for a turn before its call is made.

Clients get their turns by deficit round robin (`core/budgets.py`): a thousand connections of one client delay others no
more than one does. Requests and messages of all clients of a room take the turns of one, but not the pieces of their
input. Every second turn is for a request, every other one for a message about earlier work, such as a cancellation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import trio
from trio.lowlevel import ParkingLot

from ...core.budgets import DeficitRoundRobin
from ...core.clients import Network, client_key, client_of, is_within

TurnsBy: TypeAlias = Callable[[bytes], Hashable]
"""The key by which requests for a target take turns; None if that is the address of the client."""


class FairQueue:
    """Lets one task continue in each pass. All connections of a server share one queue."""

    def __init__(self) -> None:
        self._busy = False
        self._request_next = False
        self._requests = _Waiting()
        self._messages = _Waiting()
        self._turns = 0
        self._last: tuple[DeficitRoundRobin, Hashable] = self._requests.order, None
        self._since = 0.0

    async def wait_turn(self, client: Hashable, *, message: bool = False) -> int:
        """Wait for a turn of `client`, with a request or a `message`; returns its number.

        A checkpoint; if it is cancelled, the turn goes to the next task.
        """
        waiting = self._messages if message else self._requests
        if self._busy:
            await waiting.wait(client)
            self._next()
        else:
            self._busy = True
            # The task of the last turn may still run, but other tasks ran since: the time is no longer its alone.
            self._turns += 1
            try:
                await trio.lowlevel.checkpoint()
            finally:
                self._next()
        self._turns += 1
        self._last, self._since = (waiting.order, client), trio.current_time()
        return self._turns

    def worked(self, turn: int) -> None:
        """Charge the client of this turn for its time, unless it is not the last one: other tasks ran after it."""
        if self._busy and turn == self._turns:
            order, client = self._last
            order.charge(client, trio.current_time() - self._since)

    def _next(self) -> None:
        self._request_next = not self._request_next
        first, second = self._requests, self._messages
        if not self._request_next:
            first, second = second, first
        if not (first.wake() or second.wake()):
            self._busy = False


class _Waiting:
    def __init__(self) -> None:
        self.order = DeficitRoundRobin()
        self._lots: dict[Hashable, ParkingLot] = {}

    async def wait(self, client: Hashable) -> None:
        lot = self._lots.get(client)
        if lot is None:
            lot = self._lots[client] = ParkingLot()
            self.order.join(client)
        await lot.park()

    def wake(self) -> bool:
        while self.order:
            client = self.order.take()
            lot = self._lots[client]
            woken = lot.unpark()
            if lot:
                self.order.join(client)
            else:
                del self._lots[client]
            if woken:
                return True
        self.order.forget()
        return False


@dataclass(frozen=True, slots=True, eq=False)
class ConnectionTurns:
    """The turns of one connection; `peer` is the address of its peer."""

    queue: FairQueue
    peer: str
    trusted: Sequence[Network]
    turns_by: TurnsBy | None = None

    def client(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """The client of a request with these headers; None for loopback, which counts as one client."""
        return client_key(client_of(self.peer, headers, self.trusted))

    async def wait_request(
        self, target: bytes, headers: Iterable[tuple[bytes, bytes]], *, message: bool = False
    ) -> int:
        """Wait for a turn of the client of a request, or of those by which its target takes turns; returns its number.

        With `message` it is for a WebSocket message (the headers are those of the upgrade) or for a request about
        earlier work.
        """
        by = None if self.turns_by is None else self.turns_by(target)
        return await self.queue.wait_turn(self.client(headers) if by is None else by, message=message)

    def worked(self, turn: int) -> None:
        self.queue.worked(turn)

    async def wait_read(self) -> None:
        """Wait for a turn of this connection between two pieces of its input.

        A trusted proxy sends requests of many clients, so its connection counts as a client of its own.
        """
        client = self if is_within(self.peer, self.trusted) else client_key(self.peer)
        await self.queue.wait_turn(client, message=True)

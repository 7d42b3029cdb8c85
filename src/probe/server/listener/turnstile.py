"""The order of work: one request or message for each pass of trio's scheduler, and the clients in turn."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import trio
from trio.lowlevel import ParkingLot

from ...core.addresses import Network, client_key, client_of, is_within
from ...core.budgets.lanes import Lanes


class Turnstile:
    """Lets one task through in each pass. One for all connections of a server.

    trio runs everything that is ready before it looks at sockets and clocks again, and a request needs several of these
    passes. If hundreds of connections went ahead in each, every pass would take long, and whoever comes would wait for
    all of them several times: so each waits once, before there is a call, and passes stay short. Requests that
    wait are in the buffers of connections and of the kernel, which are bounded; no call has been made for them, or, on
    a WebSocket, the call has not been told of them.

    Those who wait in one lane go in the order in which they came, and the lanes take turns by the time that their turns
    take (`core/budgets/lanes.py`): a client with a thousand connections delays the others by no more than one with a
    single
    one, and a client whose answers take long to make delays one whose answers take a moment by a few of them. Every
    second turn is for requests, and every second one for those who go on with what has begun, as cancellations and the
    messages of a WebSocket do: hundreds of clients that always have more to say on their connections do not keep out
    whoever comes with a request, nor the other way round.
    """

    def __init__(self) -> None:
        self._busy = False
        self._request_next = False
        self._requests = _Queue()
        self._messages = _Queue()
        self._turns = 0
        self._last: tuple[Lanes, Hashable] = self._requests.lanes, None
        self._since = 0.0

    async def through(self, lane: Hashable, *, message: bool = False) -> int:
        """Wait for one's turn, with a request or a `message`, and return its number.

        A checkpoint; cancelled, the turn is somebody else's.
        """
        queue = self._messages if message else self._requests
        if self._busy:
            await queue.wait(lane)
            self._next()
        else:
            self._busy = True
            # Whoever had the last turn and waits since then has worked: from now on it is no longer the last.
            self._turns += 1
            try:
                await trio.lowlevel.checkpoint()
            finally:
                self._next()
        self._turns += 1
        self._last, self._since = (queue.lanes, lane), trio.current_time()
        return self._turns

    def worked(self, turn: int) -> None:
        """The work is done whose turn has this number; its lane pays for the time that it took.

        Only the last turn can pay: the work of any other has let others run, so that its time was not its own. And
        nobody pays while nobody waits.
        """
        if self._busy and turn == self._turns:
            lanes, lane = self._last
            lanes.charge(lane, trio.current_time() - self._since)

    def _next(self) -> None:
        """Let somebody through in the next pass, which is when a task runs that is woken now."""
        self._request_next = not self._request_next
        first, second = self._requests, self._messages
        if not self._request_next:
            first, second = second, first
        if not (first.wake() or second.wake()):
            self._busy = False


class _Queue:
    """Those who wait for a turn, in their lanes."""

    def __init__(self) -> None:
        self.lanes = Lanes()
        self._lots: dict[Hashable, ParkingLot] = {}

    async def wait(self, lane: Hashable) -> None:
        """Wait for a turn of this lane."""
        lot = self._lots.get(lane)
        if lot is None:
            lot = self._lots[lane] = ParkingLot()
            self.lanes.join(lane)
        await lot.park()

    def wake(self) -> bool:
        """Wake who is next, if anybody waits; a lane is dropped when its turn comes and everybody has left it."""
        while self.lanes:
            lane = self.lanes.take()
            lot = self._lots[lane]
            woken = lot.unpark()
            if lot:
                self.lanes.join(lane)
            else:
                del self._lots[lane]
            if woken:
                return True
        self.lanes.forget()
        return False


@dataclass(frozen=True, slots=True, eq=False)
class Entrance:
    """The way of one connection through the turnstile; `peer` is the address at its other end."""

    turnstile: Turnstile
    peer: str
    trusted: Sequence[Network]

    def client(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """The client whose request has these headers; None for all on loopback, who are one."""
        return client_key(client_of(self.peer, headers, self.trusted))

    async def enter(self, headers: Iterable[tuple[bytes, bytes]], *, message: bool = False) -> int:
        """Wait for the turn of the client whose request has these headers, and return its number.

        With `message` for that of a message on a WebSocket whose upgrade had them, or of a request that goes on with
        what another one began, as a cancellation does.
        """
        return await self.turnstile.through(self.client(headers), message=message)

    def worked(self, turn: int) -> None:
        """The work of the turn with this number is done: its client pays for the time."""
        self.turnstile.worked(turn)

    async def go_on(self) -> None:
        """Wait for the turn of this connection, in the middle of what it says.

        A proxy's says what many clients do: as these cannot be told apart before it is parsed, it has a lane alone.
        """
        lane = self if is_within(self.peer, self.trusted) else client_key(self.peer)
        await self.turnstile.through(lane, message=True)

"""Limits on what clients use together: turns, rates, shares, and open files. Each class is pure; times are arguments.

    DeficitRoundRobin    in which order waiting clients get their turns
    Rates                how often one client may come: a token bucket for each
    Shares               how much of a limit one client holds
    SharedBytes          what several holders may hold together; the largest gives up the rest
    fitting              how many connections fit into RLIMIT_NOFILE

**Deficit round robin** (Shreedhar and Varghese, 1995) is used here with time in place of bytes. A client has at most
one turn in a round. A short turn costs one round; a turn of n times `SHORT_S` costs n rounds more.

* A client that begins to wait gets a turn in the next round, behind those that waited earlier. A turn in the present
  round would let one client with many addresses keep out all others.
* Used time stays charged while a client does not wait. Otherwise a client that sends its next request after each answer
  would always come as a new one.
* One turn costs at most `MOST_ROUNDS`, since the machine may have done something else meanwhile. This bounds the memory
  too: a charge is kept for that many rounds.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count, islice
from typing import Final, NamedTuple

from ..settings.description import for_large

SHORT_S: Final = 0.002
"""A turn that takes less counts as equal to others, so that noise does not change the order."""

MOST_ROUNDS: Final = 16

SMALL_BYTES: Final = 64 * 1024
"""A body, message or answer of at most this size may use the last eighth of a limit in bytes."""


class DeficitRoundRobin:
    """The clients that wait for a turn, by any key."""

    def __init__(self) -> None:
        self._round = 0
        # The round of each waiting client, and its place in the order of arrival.
        self._waiting: list[tuple[int, int, Hashable]] = []
        self._numbers = count()
        # The first round in which a client may have a turn; one before the next round has no effect.
        self._from: dict[Hashable, int] = {}
        self._swept = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, client: Hashable) -> None:
        """A client begins to wait; it must not wait already."""
        heappush(self._waiting, (max(self._round + 1, self._from.get(client, 0)), next(self._numbers), client))

    def take(self) -> Hashable:
        """The client with the next turn; it waits no longer. Raises `IndexError` where none waits."""
        while True:
            at, number, client = heappop(self._waiting)
            first = self._from.get(client, 0)
            if first <= at:
                break
            # It joined before the length of its last turn was known.
            heappush(self._waiting, (first, number, client))
        self._round = at
        self._from[client] = at + 1
        if at >= self._swept + MOST_ROUNDS:
            self._swept = at
            self._from = {known: first for known, first in self._from.items() if first > at}
        return client

    def charge(self, client: Hashable, seconds: float) -> None:
        rounds = min(int(seconds / SHORT_S), MOST_ROUNDS - 1)
        if rounds:
            self._from[client] = self._round + 1 + rounds

    def forget(self) -> None:
        """Forget all charges. Raises `ValueError` while a client waits."""
        if self._waiting:
            raise ValueError("clients wait")
        self._from.clear()


class Admission(NamedTuple):
    """`wait_s` is 0 for a client that may come, else the seconds until it may."""

    wait_s: float
    first: bool


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float
    short: bool = False


class Rates:
    """A token bucket for each client, with `burst` tokens and `rate` more a second.

    Of more than `most_keys` the one that was away longest starts anew.
    """

    def __init__(self, rate: float, burst: int, most_keys: int) -> None:
        self._rate = rate
        self._burst = burst
        self._most = most_keys
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: str, now: float) -> Admission:
        """Take a token if there is one: for a client that can be refused."""
        bucket = self._bucket(key, now)
        wait_s = max(0.0, 1 - bucket.tokens) / self._rate
        bucket.tokens -= not wait_s
        return self._verdict(bucket, wait_s)

    def charge(self, key: str, tokens: int, now: float) -> Admission:
        """Take tokens also where there are too few: for a client that stays connected and waits until there are.

        A debt gives each waiter a time of its own; the number of waiters bounds it.
        """
        bucket = self._bucket(key, now)
        bucket.tokens -= tokens
        return self._verdict(bucket, max(0.0, -bucket.tokens) / self._rate)

    def _verdict(self, bucket: _Bucket, wait_s: float) -> Admission:
        first = wait_s > 0 and not bucket.short
        bucket.short = wait_s > 0
        return Admission(wait_s, first)

    def _bucket(self, key: str, now: float) -> _Bucket:
        self._forget_full(now)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._burst, now)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        bucket.tokens = self._filled(bucket, now)
        bucket.filled_at = now
        return bucket

    def _filled(self, bucket: _Bucket, now: float) -> float:
        return min(self._burst, bucket.tokens + (now - bucket.filled_at) * self._rate)

    def _forget_full(self, now: float) -> None:
        # At most two for each request, so that no request pays for all.
        for key in [*islice(self._buckets, 2)]:
            if self._filled(self._buckets[key], now) >= self._burst:
                del self._buckets[key]


def has_bytes(most: int, taken: int, size: int, held: int = 0, declared: int = 0) -> bool:
    """True if a body, message or answer may take `size` more bytes of a limit, of which `taken` bytes are in use.

    It holds `held` of these bytes, and declared a size of `declared` bytes (0: none). The last eighth is kept for small
    ones, so that a client with many addresses and large, slow bodies does not keep out requests of a few kilobytes.
    """
    return taken + size <= (most if max(held + size, declared) <= SMALL_BYTES else for_large(most))


class Shares:
    """The amount of each kind that a client holds, such as sessions or bytes. `part` is its largest share of a limit.

    A holder asks with `has_room`, counts with `take` and gives back. A client that holds nothing has no entry, so the
    limits bound the table. The holder None has no share of its own, such as a client on loopback.
    """

    def __init__(self, part: float) -> None:
        self._part = part
        self._held: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return len(self._held)

    def most(self, total: float) -> int:
        return max(1, int(total * self._part))

    def held(self, kind: str, holder: str | None) -> int:
        return 0 if holder is None else self._held.get((kind, holder), 0)

    def by_holder(self, kind: str) -> dict[str, int]:
        return {holder: amount for (held, holder), amount in self._held.items() if held == kind}

    def has_room(self, kind: str, holder: str | None, total: float, amount: int = 1) -> bool:
        """True if a holder may hold `amount` more. A holder of nothing may always take one thing, of any size."""
        held = self.held(kind, holder)
        return held == 0 or held + amount <= self.most(total)

    def take(self, kind: str, holder: str | None, amount: int = 1) -> None:
        if holder is not None and amount:
            self._held[kind, holder] += amount

    def give_back(self, kind: str, holder: str | None, amount: int = 1) -> None:
        if holder is None or not amount:
            return
        left = self._held[kind, holder] - amount
        assert left >= 0, f"{holder} gives back more of {kind} than it holds"
        if left:
            self._held[kind, holder] = left
        else:
            del self._held[kind, holder]


class SharedBytes:
    """A bound on the bytes of several holders together. Beyond it, the holder with the most gives something up.

    A holder is a function that returns how many bytes it has after it gave some up. It always can, while it has any.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.bytes = 0
        self._number = count()
        self._numbers: dict[Callable[[], int], int] = {}
        self._holders: dict[int, Callable[[], int]] = {}
        self._held: dict[int, int] = {}
        # Largest size first, with the number of its holder. Old sizes stay until they are taken or swept.
        self._sizes: list[tuple[int, int]] = []

    def weigh(self, holder: Callable[[], int], size: int) -> None:
        number = self._numbers.get(holder)
        if number is None:
            number = self._numbers[holder] = next(self._number)
            self._holders[number] = holder
        self.bytes += size - self._held.get(number, 0)
        self._held[number] = size
        heappush(self._sizes, (-size, number))
        if len(self._sizes) > 4 * len(self._held):
            self._sizes = [(-size, number) for number, size in self._held.items()]
            heapify(self._sizes)

    def make_room(self) -> None:
        """The largest holders give up bytes until all are within the bound. Called after bytes were added."""
        while self.bytes > self.most:
            size, number = heappop(self._sizes)
            if self._held.get(number) == -size:
                largest = self._holders[number]
                left = largest()
                assert left < -size, f"{largest} gives nothing up"
                self.weigh(largest, left)

    def remove(self, holder: Callable[[], int]) -> None:
        """Harmless when repeated."""
        number = self._numbers.pop(holder, None)
        if number is not None:
            del self._holders[number]
            self.bytes -= self._held.pop(number)


class ConnectionCounts(NamedTuple):
    """The number of connections that may be open, and how many of these may be WebSockets."""

    connections: int
    websockets: int


def raised(soft: int, hard: int, needed: int) -> int:
    """The soft limit (RLIMIT_NOFILE) to ask for: at most `hard`, at least the present `soft`."""
    return max(soft, min(hard, needed))


def fitting(wanted: ConnectionCounts, descriptors: int) -> ConnectionCounts:
    """The part of `wanted` that fits into `descriptors`, one for each connection; at least one connection.

    Where not all connections fit, at most half may be WebSockets: these last, and requests need the others.
    """
    if wanted.connections <= descriptors:
        return wanted
    connections = max(1, descriptors)
    return ConnectionCounts(connections, min(wanted.websockets, max(1, connections // 2)))

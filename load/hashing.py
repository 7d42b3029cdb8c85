"""`python -m load.hashing`: which replica has which room, in rings as HAProxy and nginx make them of container/.

A seeded simulation of growth and failures with ids that `RoomIds` makes; docs/scaling.md has what it printed. Pure but
for `main`.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias
from zlib import crc32

from probe.rooms.ids import RANDOM_BYTES, ROUTING, RoomIds

HAPROXY_WEIGHT: Final = 256
"""`weight` in container/haproxy.cfg; each unit is 16 points of the ring."""

NGINX_WEIGHT: Final = 32
"""`weight` in container/nginx.conf.template; each unit is 160 points of the ring."""

_BITS: Final = 0xFFFFFFFF
_SEED: Final = 33


@dataclass(frozen=True, slots=True)
class Ring:
    """Points of 32 bits in order, and the replica of each. A key has the next one, or with `nearest` the nearer one."""

    points: Sequence[int]
    replicas: Sequence[int]
    hash: Callable[[str], int]
    nearest: bool

    def replica(self, key: str) -> int:
        """The number of the replica that a routing key leads to."""
        at = self.hash(key)
        after = bisect_left(self.points, at) % len(self.points)
        before = after - 1
        if self.nearest and (at - self.points[before]) & _BITS <= (self.points[after] - at) & _BITS:
            return self.replicas[before]
        return self.replicas[after]


def haproxy(replicas: Iterable[int], weight: int = HAPROXY_WEIGHT) -> Ring:
    """`hash-type consistent sdbm avalanche`; replicas are numbered from 1, in the order of their lines."""
    most = 256 * 16
    ring = sorted((_avalanche(n * most + point), n) for n in replicas for point in range(weight * 16))
    return Ring([at for at, _ in ring], [n for _, n in ring], lambda key: _avalanche(_sdbm(key)), nearest=True)


def nginx(addresses: Mapping[int, str], weight: int = NGINX_WEIGHT) -> Ring:
    """`hash … consistent`: the points of a replica are made of its address, such as `10.0.0.1:8000`."""
    ring: dict[int, int] = {}
    for n, address in addresses.items():
        host, _, port = address.rpartition(":")
        name, point = f"{host}\0{port}".encode(), 0
        for _ in range(weight * 160):
            point = crc32(name + point.to_bytes(4, "little"))
            ring.setdefault(point, n)
    points = sorted(ring)
    return Ring(points, [ring[at] for at in points], lambda key: crc32(key.encode()), nearest=False)


def _sdbm(key: str) -> int:
    at = 0
    for byte in key.encode():
        at = (byte + (at << 6) + (at << 16) - at) & _BITS
    return at


def _avalanche(value: int) -> int:
    """The 32 bits that HAProxy puts in a ring for these."""
    value = (value + 0x7ED55D16 + (value << 12)) & _BITS
    value ^= 0xC761C23C ^ (value >> 19)
    value = (value + 0x165667B1 + (value << 5)) & _BITS
    value = ((value + 0xD3A2646C) ^ (value << 9)) & _BITS
    value = (value + 0xFD7046C5 + (value << 3)) & _BITS
    value ^= 0xB55A4F09 ^ (value >> 16)
    return (value * 3221225473) & _BITS


def routing_keys(count: int, seed: int = _SEED) -> Iterator[str]:
    """The part that balancers hash of so many ids of rooms."""
    random = Random(seed)  # noqa: S311 - the same ids each time
    ids = RoomIds([bytes(32)])
    for _ in range(count):
        yield ids.make(random.randbytes(RANDOM_BYTES), 0)[:ROUTING]


def balance(replicas: Sequence[int]) -> float:
    """The rooms of the fullest replica, by those of the mean one; `replicas` has that of each room."""
    rooms = Counter(replicas)
    return max(rooms.values()) * len(rooms) / len(replicas)


def moved(before: Sequence[int], after: Sequence[int]) -> float:
    """The share of rooms that have another replica."""
    return sum(old != new for old, new in zip(before, after, strict=True)) / len(before)


Rings: TypeAlias = Callable[[Sequence[int]], Ring]
"""A ring of the replicas with these numbers."""


@dataclass(frozen=True, slots=True)
class Days:
    """Rooms in use for some time on replicas that fail and come back. Times in hours.

    Each replica fails once in `between_failures` on average and is back after `outage`; `rooms` are open at each time,
    each for `life`.
    """

    replicas: int = 10
    rooms: int = 2_000
    life: float = 6.0
    between_failures: float = 24 * 30.0
    outage: float = 0.05
    hours: float = 24 * 30.0


@dataclass(frozen=True, slots=True)
class Lost:
    """Rooms that ended early: `failed` with their replica, `stranded` when their hash led to one that came back."""

    opened: int
    failed: int
    stranded: int


def lost(days: Days, rings: Rings, seed: int = _SEED) -> Lost:
    """Play failures; a room is stranded that was opened elsewhere while the replica of its hash was away."""
    random = Random(seed)  # noqa: S311 - the same story each time
    ring = rings(range(1, days.replicas + 1))
    opened = int(days.rooms * days.hours / days.life)
    failed = stranded = 0
    moments = sorted(_failures(days, random))
    starts = sorted((random.uniform(-days.life, days.hours), key) for key in routing_keys(opened, seed))
    for replica, down in moments:
        for began, key in _between(starts, down - days.life, down + days.outage):
            if ring.replica(key) == replica:
                failed += began < down
                stranded += began >= down
    return Lost(opened, failed, stranded)


def _failures(days: Days, random: Random) -> Iterator[tuple[int, float]]:
    for replica in range(1, days.replicas + 1):
        at = random.expovariate(1 / days.between_failures)
        while at < days.hours:
            yield replica, at
            at += days.outage + random.expovariate(1 / days.between_failures)


def _between(starts: Sequence[tuple[float, str]], since: float, until: float) -> Sequence[tuple[float, str]]:
    return starts[bisect_left(starts, (since, "")) : bisect_left(starts, (until, ""))]


def growth(sizes: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The lines of a table: for each number of rooms and of replicas, the balance and the share that moves."""
    yield "| rooms | replicas | | fullest / mean | one more moves | its share | one less moves | its share |"
    yield "|--:|--:|---|--:|--:|--:|--:|--:|"
    for rooms, n in sizes:
        keys = list(routing_keys(rooms))
        for name, rings in KINDS.items():
            less, now, more = ([*map(rings(range(1, size + 1)).replica, keys)] for size in (n - 1, n, n + 1))
            shares = (moved(now, more), 1 / (n + 1), moved(now, less), 1 / n)
            cells = [f"{rooms:,}", str(n), name, f"{balance(now):.3f}", *(f"{share:.2%}" for share in shares)]
            yield "| " + " | ".join(cells) + " |"


def _nginx(numbers: Sequence[int]) -> Ring:
    return nginx({n: f"10.0.{n // 256}.{n % 256}:8000" for n in numbers})


KINDS: Final[dict[str, Rings]] = {"HAProxy": haproxy, "nginx": _nginx}


def main() -> None:
    """Print both tables."""
    sizes = [(30_000, 3), (100_000, 10), (1_000_000, 110)]
    lines = list(growth(sizes))
    days = Days()
    found = lost(days, haproxy)
    lines += ["", f"{days}", f"{found}: {(found.failed + found.stranded) / found.opened:.3%} ended early"]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

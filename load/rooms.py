"""Rooms of a server under load: opened by strangers, kept in use, and what an idle one costs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import trio
from bench.http1 import BrokenResponseError, Connection
from bench.servers import processor_s

from . import wire
from .process import Target, visit
from .report import MARGIN_MB

MEMORY_KB = 150.0
"""What an idle room may cost."""

OPEN_MS = 5.0
"""What opening a room may take of the server's processor, which is what the wait depends on least of other work."""

_AT_ONCE = 8
# Beyond the addresses of the clients of a flood.
_FIRST = 1 << 21
# Each has nine entries of the hundred that a room keeps here. Its judge reads them all and keeps what it knows of the
# newest twenty calls, and of the hundred entries.
_CALLS, _READ_EACH = 40, 10
_REFUSED_S = 20
_KB = 1e3
_VISITS_PER_SECOND = 20
_FIRST_S, _THERE_S = 3.0, 10.0
# To open a room takes more.
_FASTEST_S = 0.0015


@dataclass(frozen=True, slots=True)
class Opened:
    """Rooms that were opened: their paths, such as `/r/ROOM`, and what one cost.

    `wait_ms` and `wait_p99_ms` are the times to the answer that opens a room, with some others being opened;
    `processor_ms` is of the server, with the request that makes the id.
    """

    paths: Sequence[str]
    wait_ms: float
    wait_p99_ms: float
    processor_ms: float
    memory_kb: float

    def line(self) -> str:
        """The figures as a sentence."""
        return (
            f"{len(self.paths):,} rooms: {self.memory_kb:.0f} kB each, opened {_AT_ONCE} at a time in "
            f"{self.wait_ms:.1f} ms (p50) and {self.wait_p99_ms:.1f} ms (p99); the processor took "
            f"{self.processor_ms:.1f} ms for each"
        )

    def faults(self) -> Iterator[str]:
        """Each bound that is not kept, as a sentence."""
        if self.memory_kb > MEMORY_KB:
            yield f"a room costs {self.memory_kb:.0f} kB; the aim is {MEMORY_KB:g} kB"
        if self.processor_ms > OPEN_MS:
            yield f"opening a room takes {self.processor_ms:.1f} ms of the processor; the aim is {OPEN_MS:g} ms"


async def opened(server: Target, count: int) -> Opened:
    """Open so many rooms, each as another client. Raises `BrokenResponseError` if one is refused."""
    paths: list[str] = []
    waits_ms: list[float] = []
    clients = iter(range(_FIRST, _FIRST + count))

    async def worker() -> None:
        async with Connection(server.port) as connection:
            for number in clients:
                path, wait_ms = await _opened(connection, wire.Client.numbered(number))
                paths.append(path)
                waits_ms.append(wait_ms)

    before, _ = await server.figures()
    began_s = processor_s(server.process.pid)
    async with trio.open_nursery() as nursery:
        for _ in range(_AT_ONCE):
            nursery.start_soon(worker)
    took_s = processor_s(server.process.pid) - began_s
    after, _ = await server.figures()
    memory_kb = (after - before) / _KB / count
    return Opened(paths, percentile(waits_ms, 50), percentile(waits_ms, 99), took_s / count * 1e3, memory_kb)


def percentile(values: Sequence[float], percent: float) -> float:
    """0 without values."""
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))] if values else 0.0


async def ended(server: Target, paths: Sequence[str]) -> None:
    """End these rooms, each as its owner. Raises `BrokenResponseError` if one does not end."""
    left = iter(enumerate(paths, _FIRST))

    async def worker() -> None:
        async with Connection(server.port) as connection:
            for number, path in left:
                head, _ = await connection.exchange(
                    wire.request("DELETE", wire.Client.numbered(number), {}, f"{path}/api/room")
                )
                if head.status != 204:
                    raise BrokenResponseError(f"a room does not end: {head.status}")

    async with trio.open_nursery() as nursery:
        for _ in range(_AT_ONCE):
            nursery.start_soon(worker)


async def read_by_judges(server: Target, paths: Sequence[str]) -> None:
    """Have the judge of each of these rooms read its whole log. Raises `BrokenResponseError` if one does not.

    A judge reads in spare time and keeps 3.5 kB of each call: what it reads during a flood would look like a leak.
    """
    left = iter(enumerate(paths, _FIRST))

    async def worker() -> None:
        async with Connection(server.port) as connection:
            for number, path in left:
                await _read_by_judge(connection, wire.Client.numbered(number, path))

    async with trio.open_nursery() as nursery:
        for _ in range(_AT_ONCE):
            nursery.start_soon(worker)


async def _read_by_judge(connection: Connection, client: wire.Client) -> None:
    status = 429
    # The room of a flood may have used up its rate, which comes back within six seconds.
    for _ in range(_REFUSED_S):
        head, _ = await connection.exchange(wire.request("GET", client, {}, "/api/judge?verdict=FAIL"))
        status = head.status
        if status != 429:
            break
        await trio.sleep(1)
    if status != 200:
        raise BrokenResponseError(f"a room has no report: {status}")


@dataclass(frozen=True, slots=True)
class Idle:
    """Rooms that nobody uses: what they cost, and how long calls in some others waited beside them.

    `opening_ms` is of calls while they were opened, `there_ms` while they were there. `memory_mb` is before them, with
    them, after their end, and with as many others then: Python keeps what it has, for the next ones.
    """

    rooms: Opened
    opening_ms: Sequence[float]
    there_ms: Sequence[float]
    failed: int
    memory_mb: tuple[float, float, float, float]

    def lines(self) -> Iterator[str]:
        """The figures as sentences."""
        yield self.rooms.line()
        when = {"while they were opened": self.opening_ms, "while they were there": self.there_ms}
        for what, late_ms in when.items():
            yield (
                f"{len(late_ms):,} calls in other rooms {what}: answered in {percentile(late_ms, 50):.0f} ms (p50), "
                f"{percentile(late_ms, 99):.0f} ms (p99)"
            )
        before, there, after, again = self.memory_mb
        yield (
            f"Memory before them {before:.0f} MB, with them {there:.0f} MB, after their end {after:.0f} MB, "
            f"with as many others then {again:.0f} MB"
        )

    def faults(self) -> Iterator[str]:
        """Each bound that is not kept, as a sentence."""
        yield from self.rooms.faults()
        _, there, _, again = self.memory_mb
        if again > there + MARGIN_MB:
            yield f"rooms that have ended leave {again - there:.0f} MB that the next ones cannot use"
        if self.failed:
            yield f"{self.failed} calls in other rooms failed beside idle ones"


async def idle(server: Target, count: int, others: Sequence[str]) -> Idle:
    """Open so many rooms and end them, with calls in the rooms `others` at even intervals."""
    found: dict[str, dict[str, Any]] = {}

    async def visited(when: str, seconds: float) -> None:
        found[when] = await visit(server.port, seconds, _VISITS_PER_SECOND, others)

    # The first calls load what all rooms share, and the first ones of each room something of its own.
    await visited("first", _FIRST_S)
    memory_mb = [await _memory_mb(server)]
    async with trio.open_nursery() as nursery:
        # Over before the last room opens.
        nursery.start_soon(visited, "opening", max(1.0, count * _FASTEST_S))
        rooms = await opened(server, count)
    await visited("there", _THERE_S)
    memory_mb.append(await _memory_mb(server))
    await ended(server, rooms.paths)
    memory_mb.append(await _memory_mb(server))
    await opened(server, count)
    before, there, after, again = *memory_mb, await _memory_mb(server)
    failed = sum(sum(each["failed"].values()) for each in found.values())
    opening_ms, there_ms = (found[when]["late_ms"] for when in ("opening", "there"))
    return Idle(rooms, opening_ms, there_ms, failed, (before, there, after, again))


async def _memory_mb(server: Target) -> float:
    memory, _ = await server.figures()
    return memory / 1e6


async def _opened(connection: Connection, client: wire.Client) -> tuple[str, float]:
    head, body = await connection.exchange(wire.new_room(client))
    if head.status != 201:
        raise BrokenResponseError(f"no room: {head.status} {body[:300]!r}")
    path = room_path(body)
    began = trio.current_time()
    head, body = await connection.exchange(wire.request("GET", client, {}, f"{path}/api/room"))
    if head.status != 200:
        raise BrokenResponseError(f"a room does not open: {head.status} {body[:300]!r}")
    return path, (trio.current_time() - began) * 1e3


def room_path(made: bytes) -> str:
    """`/r/ROOM`, of the answer to `POST /api/rooms`."""
    return str(urlsplit(json.loads(made)["room"]).path.rstrip("/"))


@asynccontextmanager
async def in_use(server: Target, count: int) -> AsyncIterator[Sequence[str]]:
    """So many rooms, with an open subscription in each while the block runs, so that none ends; gives their paths.

    The first is for floods. Each has had calls that fill its log, by the client that calls there beside the floods:
    otherwise the filling of the log, and of what the judge keeps of that client, would look like a leak.
    """
    paths = [""] * count
    places = iter(range(count))

    async def worker(stack: AsyncExitStack) -> None:
        for place in places:
            connection = await stack.enter_async_context(Connection(server.port))
            paths[place] = await _used(server, connection, place)

    async with AsyncExitStack() as stack:
        async with trio.open_nursery() as nursery:
            for _ in range(_AT_ONCE):
                nursery.start_soon(worker, stack)
        yield paths


async def _used(server: Target, connection: Connection, place: int) -> str:
    """The path of a new room, with a full log; the connection has a subscription then. Raises `BrokenResponseError`."""
    path, _ = await _opened(connection, wire.Client.numbered(_FIRST + place))
    client = wire.Client.numbered(max(0, place - 1), path)
    for id in range(_CALLS):
        # A connection of its own, as the client beside the floods does it: each has its place in what the judge keeps.
        async with Connection(server.port) as calling:
            await calling.exchange(wire.modern("tools/call", {"name": "simple_tool", "arguments": {}}, client, id))
        if id % _READ_EACH == 0:
            await _read_by_judge(connection, client)
    listening = {"notifications": {"toolsListChanged": True}}
    head = await connection.open(wire.modern("subscriptions/listen", listening, client, 1))
    if head.status != 200:
        raise BrokenResponseError(f"a subscription was answered {head.status}")
    return path

"""Rooms of a server under load: opened by strangers, kept in use, and what an idle one costs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from statistics import median
from urllib.parse import urlsplit

import trio
from bench.http1 import BrokenResponseError, Connection
from bench.servers import processor_s

from . import wire
from .process import Target

MEMORY_KB = 150.0
"""What an idle room may cost."""

OPEN_MS = 5.0
"""What opening a room may take of the server's processor, which is what the wait depends on least of other work."""

_AT_ONCE = 8
# Beyond the addresses of the clients of a flood.
_FIRST = 1 << 21
# Each has some eight entries of the hundred that a room keeps here.
_CALLS = 15
_KB = 1e3


@dataclass(frozen=True, slots=True)
class Opened:
    """Rooms that were opened: their paths, such as `/r/ROOM`, and what one cost.

    `wait_ms` is the median time to the answer that opens a room, with some others being opened; `processor_ms` is of
    the server, with the request that makes the id.
    """

    paths: Sequence[str]
    wait_ms: float
    processor_ms: float
    memory_kb: float

    def line(self) -> str:
        """The figures as a sentence."""
        return (
            f"{len(self.paths):,} rooms: {self.memory_kb:.0f} kB each, opened in {self.wait_ms:.1f} ms (median), "
            f"of which the processor took {self.processor_ms:.1f} ms"
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
    return Opened(paths, median(waits_ms), took_s / count * 1e3, (after - before) / _KB / count)


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

    Each has had calls that fill its log: otherwise the filling would look like a leak.
    """
    paths: list[str] = []
    numbers = iter(range(_FIRST, _FIRST + count))

    async def worker(stack: AsyncExitStack) -> None:
        for number in numbers:
            connection = await stack.enter_async_context(Connection(server.port))
            paths.append(await _used(connection, number))

    async with AsyncExitStack() as stack:
        async with trio.open_nursery() as nursery:
            for _ in range(_AT_ONCE):
                nursery.start_soon(worker, stack)
        yield paths


async def _used(connection: Connection, number: int) -> str:
    """The path of a new room, with a full log; the connection has a subscription then. Raises `BrokenResponseError`."""
    path, _ = await _opened(connection, wire.Client.numbered(number))
    client = wire.Client.numbered(number, path)
    for id in range(_CALLS):
        await connection.exchange(wire.modern("tools/call", {"name": "simple_tool", "arguments": {}}, client, id))
    listening = {"notifications": {"toolsListChanged": True}}
    head = await connection.open(wire.modern("subscriptions/listen", listening, client, 1))
    if head.status != 200:
        raise BrokenResponseError(f"a subscription was answered {head.status}")
    return path

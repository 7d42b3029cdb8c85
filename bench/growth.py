"""What a call costs while the server holds more and more: sessions, entries of the event log, dashboards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from . import tools
from .client import open_client
from .feed import readers
from .http1 import Connection
from .servers import Cores, Running, Server, running

_CLIENTS = 32


@dataclass(frozen=True, slots=True)
class Growing:
    """How many there are of each, and how long the calls beside them last."""

    sessions: tuple[int, ...] = (10, 100, 1000, 10_000)
    entries: tuple[int, ...] = (100, 1000, 10_000, 100_000)
    dashboards: tuple[int, ...] = (1, 5, 10, 20)
    window_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Growth:
    """Microseconds of processor a call, by how many there are."""

    sessions: dict[int, float] = field(default_factory=dict)
    entries: dict[int, float] = field(default_factory=dict)
    dashboards: dict[int, float] = field(default_factory=dict)


async def grown(server: Server, cores: Cores, shape: Growing) -> Growth:
    """Measure one after the other. Raises `WrongAnswerError`."""
    found = Growth()
    async with running(server, "growth", cores) as process:
        opened = 0
        for count in shape.sessions:
            await _open_sessions(process, count - opened)
            opened = count
            found.sessions[count] = await _cost(process, shape)
    for count in shape.entries:
        async with _with_entries(server, cores, count) as process:
            # Seven entries a call: this many calls fill the log.
            await tools.calls(process, _CLIENTS, warm_up_s=1, window_s=1 + count / 7000)
            found.entries[count] = await _cost(process, shape)
    async with running(server, "growth", cores) as process:
        for count in shape.dashboards:
            async with readers(process, count, 0):
                found.dashboards[count] = await _cost(process, shape)
    return found


async def _cost(process: Running, shape: Growing) -> float:
    return (await tools.calls(process, _CLIENTS, warm_up_s=1, window_s=shape.window_s)).processor_us


async def _open_sessions(process: Running, count: int) -> None:
    async with Connection(process.port) as connection:
        for _ in range(count):
            await open_client(connection, process.port, "legacy")


@asynccontextmanager
async def _with_entries(server: Server, cores: Cores, count: int) -> AsyncIterator[Running]:
    sized = ("--event-log-events", str(count), "--event-log-bytes", str(1024 * 1024 * 1024))
    async with running(replace(server, options={"growth": sized}), "growth", cores) as process:
        yield process

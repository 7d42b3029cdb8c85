"""What is measured, and how: calls per second, many open streams, cancellation. Each on a server that runs already."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import trio

from .client import FIRST_ID, Session, Tool, WrongAnswerError, call_json, get_json, numbered, open_session
from .http1 import Connection
from .servers import Running


def percentile(values: list[float], percent: float) -> float:
    """The nearest-rank percentile of sorted values."""
    return values[min(len(values) - 1, int(len(values) * percent / 100))]


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls per second, how long one took (milliseconds, sorted), and what one took of the server's processor."""

    per_second: float
    latencies: list[float]
    processor_us: float


@dataclass(slots=True)
class _Window:
    """Collects the calls that end while it is open. With a `limit`, it is over after so many."""

    limit: int | None = None
    latencies: list[float] = field(default_factory=list)
    open: bool = False
    over: bool = False

    def note(self, latency_ms: float) -> None:
        """A call has ended."""
        if self.open:
            self.latencies.append(latency_ms)
        self.over = self.over or len(self.latencies) == self.limit


async def calls(running: Running, concurrency: int, *, warm_up_s: float, window_s: float) -> Calls:
    """So many clients, each with a session and a connection of its own, call again as soon as they are answered."""
    window = _Window()
    async with _clients(running, concurrency) as clients, trio.open_nursery() as nursery:
        for connection, session in clients:
            nursery.start_soon(_call_again, connection, session, running.server.echo, window)
        await trio.sleep(warm_up_s)
        window.open, start, cpu_before = True, time.perf_counter(), running.cpu_s()
        await trio.sleep(window_s)
        window.open, elapsed, cpu = False, time.perf_counter() - start, running.cpu_s() - cpu_before
        window.over = True
    count = len(window.latencies)
    return Calls(count / elapsed, sorted(window.latencies), cpu / max(1, count) * 1e6)


@asynccontextmanager
async def _clients(running: Running, count: int) -> AsyncIterator[list[tuple[Connection, Session]]]:
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(count):
            connection = await stack.enter_async_context(Connection(running.port))
            clients.append((connection, await open_session(connection, running.port)))
        yield clients


async def _call_again(connection: Connection, session: Session, tool: Tool, window: _Window) -> None:
    request, id = session.calls(tool), FIRST_ID
    while not window.over:
        before = time.perf_counter()
        head, body = await connection.exchange(numbered(request, id))
        window.note((time.perf_counter() - before) * 1000)
        if head.status != 200 or len(body) < 1024 or b'"result"' not in body:
            raise WrongAnswerError(f"{tool.name} was answered {head.status} {body[:300]!r}")
        id += 1


async def _warm_up(running: Running, total: int) -> None:
    """So many calls, by 16 clients: everything is imported, and every bounded log is as full as it gets."""
    window = _Window(limit=total, open=True)
    async with _clients(running, 16) as clients, trio.open_nursery() as nursery:
        for connection, session in clients:
            nursery.start_soon(_call_again, connection, session, running.server.echo, window)


@dataclass(frozen=True, slots=True)
class Shape:
    """Streams that are open at once: how many, opened how fast, how many messages each and how far apart."""

    streams: int = 1000
    streams_per_session: int = 50
    opened_per_second: float = 250
    messages: int = 60
    step_ms: int = 250
    warm_up_calls: int = 3000

    @property
    def opening_s(self) -> float:
        """From the first stream's opening to the last one's."""
        return self.streams / self.opened_per_second

    @property
    def lasts_s(self) -> float:
        """From the first stream's opening to the last one's end, on a server that is never late."""
        return self.opening_s + self.messages * self.step_ms / 1000


@dataclass(frozen=True, slots=True)
class Streams:
    """How late messages were (milliseconds, sorted), what a stream cost in memory, processor use (0 to 1).

    `missing`: messages that had not come when the time was up, twice what a punctual server needs. `open_bytes`: each
    stream's share of what the server grew by until all were open; `most_bytes`: until its worst moment, which for a
    server that keeps messages for resumption is near the end.
    """

    lateness: list[float]
    missing: int
    open_bytes: float
    most_bytes: float
    base_bytes: int
    cpu: float


_STEP = re.compile(rb'"progress":(\d+)[,}]')
# Longer than what the expression matches, so that a step cut in two by a read is found with the next read.
_TAIL = 32


class _Reader:
    """Reads one stream and notes when each message came, minus when it was due."""

    def __init__(self, shape: Shape, session: Session, number: int) -> None:
        tool = Tool("progress", {"steps": shape.messages, "step_ms": shape.step_ms})
        self._shape = shape
        self._request = session.call(tool, FIRST_ID + number, token=True)
        self._opens_after_s = number / shape.opened_per_second
        self._offsets: list[float] = []

    async def run(self, port: int) -> None:
        """Open the stream when its turn comes, and read it to its end or until it breaks."""
        await trio.sleep(self._opens_after_s)
        async with Connection(port) as connection:
            await connection.open(self._request)
            tail = b""
            while len(self._offsets) < self._shape.messages and (part := await connection.part()):
                tail = self._note(tail + part, time.perf_counter() * 1000)

    def _note(self, data: bytes, now: float) -> bytes:
        end = 0
        for found in _STEP.finditer(data):
            self._offsets.append(now - int(found[1]) * self._shape.step_ms)
            end = found.end()
        return data[max(end, len(data) - _TAIL) :]

    def lateness(self) -> list[float]:
        """Milliseconds, for each message that came.

        The message that was the least late says when the stream's clock started: a late first one flatters nothing.
        """
        start = min(self._offsets, default=0.0)
        return [offset - start for offset in self._offsets]


@dataclass(slots=True)
class _Growth:
    """What a server grew to: `opened` when all streams had been opened, `most` at any sampled moment."""

    opened: int
    most: int

    async def watch(self, running: Running, opening_s: float) -> None:
        """Sample four times a second, until cancelled."""
        end = trio.current_time() + opening_s
        while True:
            now = running.memory()
            self.most = max(self.most, now)
            if trio.current_time() < end:
                self.opened = now
            await trio.sleep(0.25)


async def streams(running: Running, shape: Shape) -> Streams:
    """Open the streams one after the other and read them all to their ends."""
    await _warm_up(running, shape.warm_up_calls)
    base, cpu_before, start = running.memory(), running.cpu_s(), trio.current_time()
    grown = _Growth(base, base)
    async with _clients(running, -(-shape.streams // shape.streams_per_session)) as clients:
        readers = [_Reader(shape, clients[n // shape.streams_per_session][1], n) for n in range(shape.streams)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(grown.watch, running, shape.opening_s + 0.5)
            with trio.move_on_after(2 * shape.lasts_s):
                await _read_all(running.port, readers)
            nursery.cancel_scope.cancel()
    cpu = (running.cpu_s() - cpu_before) / (trio.current_time() - start)
    lateness = sorted(late for reader in readers for late in reader.lateness())
    missing = shape.streams * shape.messages - len(lateness)
    opened, most = (grown.opened - base) / shape.streams, (grown.most - base) / shape.streams
    return Streams(lateness, missing, opened, most, base, cpu)


async def _read_all(port: int, readers: list[_Reader]) -> None:
    async with trio.open_nursery() as nursery:
        for reader in readers:
            nursery.start_soon(reader.run, port)


@dataclass(frozen=True, slots=True)
class Cancellations:
    """Milliseconds, sorted: from the client's sending the notification until the scope of the tool was gone.

    `inside`: the part of it between the server's taking the notification and the end of the scope, where it tells.
    """

    total: list[float]
    inside: list[float]


async def cancellations(running: Running, count: int, busy_clients: int) -> Cancellations:
    """Cancel so many calls, one after the other, while `busy_clients` others call again and again."""
    window = _Window()
    async with _clients(running, 1 + busy_clients) as clients:
        (connection, session), *others = clients
        async with trio.open_nursery() as nursery:
            for other in others:
                nursery.start_soon(_call_again, *other, running.server.echo, window)
            sent = [await _cancel_one(running, connection, session, FIRST_ID + n) for n in range(count)]
            window.over = True
        if running.server.audited:
            return await _audited(running, sent)
        ended = await call_json(connection, session, Tool("ended", {}), FIRST_ID + count)
    total = [(ended[str(FIRST_ID + n)] - at) * 1000 for n, at in enumerate(sent)]
    return Cancellations(sorted(total), [])


async def _cancel_one(running: Running, control: Connection, session: Session, id: int) -> float:
    """Start a call and cancel it; returns when the notification was sent, in seconds by the wall clock."""
    async with Connection(running.port) as connection:
        await connection.open(session.call(running.server.wait, id, token=True))
        await connection.part()
        sent = time.time()
        head, body = await control.exchange(session.cancel(id))
        if head.status != 202:
            raise WrongAnswerError(f"the cancellation was answered {head.status} {body[:300]!r}")
        # Until the server ends the stream; one that leaves it open has had its time.
        with trio.move_on_after(0.05):
            while await connection.part():
                pass
    return sent


async def _audited(running: Running, sent: list[float]) -> Cancellations:
    """Read the audit: the newest of its cancelled calls are these, newest first."""
    page = await get_json(running.port, "/api/calls?limit=100000")
    mine = [row for row in page["calls"] if row["cancelled_by"] == "notification"][: len(sent)][::-1]
    ends = [row["started_at"] + row["duration_ms"] / 1000 for row in mine]
    total = [(end - at) * 1000 for end, at in zip(ends, sent, strict=True)]
    return Cancellations(sorted(total), sorted(row["cancel_latency_ms"] for row in mine))

"""What is measured of streams: how late their messages are, cancellation, subscriptions. On a running server."""

from __future__ import annotations

import math
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import trio

from . import tools
from .client import (
    FIRST_ID,
    Client,
    Session,
    Sessionless,
    Tool,
    WrongAnswerError,
    call_json,
    get_json,
    open_client,
)
from .http1 import Connection
from .servers import CLOCK_URI, TICK_S, Running


def percentile(values: list[float], percent: float) -> float:
    """The nearest-rank percentile of sorted values."""
    return values[min(len(values) - 1, int(len(values) * percent / 100))]


@asynccontextmanager
async def _clients(running: Running, count: int) -> AsyncIterator[list[tuple[Connection, Client]]]:
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(count):
            connection = await stack.enter_async_context(Connection(running.port))
            clients.append((connection, await open_client(connection, running.port, running.server.era)))
        yield clients


async def _open_events(connection: Connection, request: bytes) -> None:
    head = await connection.open(request)
    if head.status != 200 or not (head.get(b"content-type") or b"").startswith(b"text/event-stream"):
        raise WrongAnswerError(f"no stream was opened: {head.raw[:300]!r}")


class _Scanner:
    """Finds what an expression matches in what arrives, also when a read cuts it in two."""

    def __init__(self, wanted: re.Pattern[bytes], longest: int) -> None:
        self._wanted = wanted
        self._longest = longest
        self._rest = b""

    def find(self, part: bytes) -> Iterator[bytes]:
        """The first group of each match that ends in this part; none may be longer than `longest`."""
        data, end = self._rest + part, 0
        for found in self._wanted.finditer(data):
            end = found.end()
            yield found[1]
        self._rest = data[max(end, len(data) - self._longest) :]


@dataclass(frozen=True, slots=True)
class Shape:
    """Streams that are open at once: how many, opened how fast, how many messages each and how far apart."""

    streams: int = 1000
    streams_per_session: int = 50
    opened_per_second: float = 250
    messages: int = 60
    step_ms: int = 250
    warm_up_s: float = 3

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
    """How late messages were (milliseconds, sorted), what a stream cost in memory, processor use (0 to 1, per message).

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
    message_us: float


_STEP = re.compile(rb'"progress":(\d+)[,}]')


class _Reader:
    """Reads one stream and notes when each message came, minus when it was due."""

    def __init__(self, shape: Shape, client: Client, number: int) -> None:
        tool = Tool("progress", {"steps": shape.messages, "step_ms": shape.step_ms})
        self._shape = shape
        self._request = client.call(tool, FIRST_ID + number, token=True)
        self._opens_after_s = number / shape.opened_per_second
        self._offsets: list[float] = []

    async def run(self, port: int) -> None:
        """Open the stream when its turn comes, and read it to its end or until it breaks: then messages are missing."""
        await trio.sleep(self._opens_after_s)
        with suppress(OSError):
            async with Connection(port) as connection:
                await _open_events(connection, self._request)
                steps = _Scanner(_STEP, 32)
                while len(self._offsets) < self._shape.messages and (part := await connection.part()):
                    now = time.perf_counter() * 1000
                    self._offsets += [now - int(step) * self._shape.step_ms for step in steps.find(part)]

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
    await tools.calls(running, 16, warm_up_s=1, window_s=shape.warm_up_s)
    base, cpu_before, start = running.memory(), running.cpu_s(), trio.current_time()
    grown = _Growth(base, base)
    async with _clients(running, -(-shape.streams // shape.streams_per_session)) as clients:
        readers = [_Reader(shape, clients[n // shape.streams_per_session][1], n) for n in range(shape.streams)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(grown.watch, running, shape.opening_s + 0.5)
            with trio.move_on_after(2 * shape.lasts_s):
                await _read_all(running.port, readers)
            nursery.cancel_scope.cancel()
    cpu_s, elapsed = running.cpu_s() - cpu_before, trio.current_time() - start
    lateness = sorted(late for reader in readers for late in reader.lateness())
    missing = shape.streams * shape.messages - len(lateness)
    opened, most = (grown.opened - base) / shape.streams, (grown.most - base) / shape.streams
    return Streams(lateness, missing, opened, most, base, cpu_s / elapsed, cpu_s / max(1, len(lateness)) * 1e6)


async def _read_all(port: int, readers: list[_Reader]) -> None:
    async with trio.open_nursery() as nursery:
        for reader in readers:
            nursery.start_soon(reader.run, port)


_ENDED_S = 10.0


@dataclass(frozen=True, slots=True)
class Cancellations:
    """Milliseconds, sorted: from the client's sending the notification, or closing, until the tool's scope was gone.

    `inside`: the part of it between the server's taking notice and the end of the scope, where it tells.
    """

    total: list[float]
    inside: list[float]


async def cancellations(running: Running, count: int, busy_clients: int) -> Cancellations:
    """Cancel so many calls, one after the other, while `busy_clients` others call again and again."""
    async with _clients(running, 1) as clients:
        ((connection, client),) = clients
        async with tools.calling(running, busy_clients):
            sent = [await _cancel_one(running, connection, client, FIRST_ID + n) for n in range(count)]
        if running.server.audited:
            return await _audited(running, sent)
        return await _told(connection, client, sent)


async def _cancel_one(running: Running, control: Connection, client: Client, id: int) -> float:
    """Start a call and cancel it; returns when the client did so, in seconds by the wall clock."""
    async with Connection(running.port) as connection:
        await _open_events(connection, client.call(running.server.wait, id, token=True))
        await connection.part()
        if isinstance(client, Session):
            return await _cancel_by_notification(connection, control, client, id)
        sent = time.time()
    # Nobody tells the client that the call is over, and the next one is not to come together with its end.
    await trio.sleep(0.005)
    return sent


async def _cancel_by_notification(connection: Connection, control: Connection, session: Session, id: int) -> float:
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
    """Read the audit: the newest calls of the tool that waits are these, newest first. Raises `WrongAnswerError`."""
    wanted = "disconnect" if running.server.era == "modern" else "notification"
    rows: list[dict[str, Any]] = []
    with trio.fail_after(_ENDED_S):
        while len(rows) < len(sent) or any(row["duration_ms"] is None for row in rows):
            page = await get_json(running.port, f"/api/calls?limit={len(sent)}&tool={running.server.wait.name}")
            rows = page["calls"][::-1]
    if other := {row["cancelled_by"] for row in rows} - {wanted}:
        raise WrongAnswerError(f"calls that were cancelled by {wanted} stand in the audit as cancelled by {other}")
    ends = [row["started_at"] + row["duration_ms"] / 1000 for row in rows]
    total = [(end - at) * 1000 for end, at in zip(ends, sent, strict=True)]
    return Cancellations(sorted(total), sorted(row["cancel_latency_ms"] for row in rows))


async def _told(connection: Connection, client: Client, sent: list[float]) -> Cancellations:
    """Ask the tool `ended`, until it knows of the end of each call: what it said of an earlier one does not count."""
    total = [-1.0]
    with trio.fail_after(_ENDED_S):
        while min(total) < 0:
            ended = await call_json(connection, client, Tool("ended", {}), FIRST_ID + len(sent))
            total = [(ended.get(str(FIRST_ID + n), 0) - at) * 1000 for n, at in enumerate(sent)]
    return Cancellations(sorted(total), [])


@dataclass(frozen=True, slots=True)
class Listening:
    """Subscriptions that are open at once, all on the resource that ticks: how many, opened how fast, for how long.

    As many as are opened between two ticks, so that the opening makes no message late.
    """

    subscriptions: int = 400
    opened_per_second: float = 250
    ticks: int = 5
    warm_up_s: float = 3

    @property
    def opening_s(self) -> float:
        """From the first subscription's opening to the last one's."""
        return self.subscriptions / self.opened_per_second


class _Countdown:
    """Tells when so many others have come to a point."""

    def __init__(self, count: int) -> None:
        self._left = count
        self.over = trio.Event()

    def one(self) -> None:
        """Another one is there."""
        self._left -= 1
        if not self._left:
            self.over.set()


_HEARD = re.compile(rb'"notifications/(subscriptions/acknowledged|resources/updated)"')


class _Listener:
    """Reads one subscription and notes when each message came, by the wall clock, as the ticks are."""

    def __init__(self, shape: Listening, number: int) -> None:
        self._ticks = shape.ticks
        self._id = FIRST_ID + number
        self._opens_after_s = number / shape.opened_per_second
        self._acknowledged = 0.0
        self._arrivals: list[float] = []

    async def run(self, port: int, opened: _Countdown, complete: _Countdown) -> None:
        """Open the subscription when its turn comes, and read it until cancelled: closing would be work, too."""
        await trio.sleep(self._opens_after_s)
        async with Connection(port) as connection:
            await _open_events(connection, Sessionless(port).listen(CLOCK_URI, self._id))
            messages = _Scanner(_HEARD, 64)
            while part := await connection.part():
                now = time.time()
                for method in messages.find(part):
                    self._note(method, now, opened, complete)
        raise WrongAnswerError("a subscription was ended by the server")

    def _note(self, method: bytes, now: float, opened: _Countdown, complete: _Countdown) -> None:
        if not self._acknowledged:
            if method != b"subscriptions/acknowledged":
                raise WrongAnswerError("a subscription was not acknowledged by its first message")
            self._acknowledged = now
            opened.one()
        elif len(self._arrivals) < self._ticks:
            self._arrivals.append(now)
            if len(self._arrivals) == self._ticks:
                complete.one()

    def lateness(self) -> list[float]:
        """Milliseconds, for each message that came, which is taken for the one of the next tick.

        So a tick that was left out does not hide: all after it count as late by one more.
        """
        first = math.ceil(self._acknowledged / TICK_S)
        # The acknowledgement left before a tick and was read after it.
        if self._arrivals and self._arrivals[0] < (first - 0.5) * TICK_S:
            first -= 1
        return [(at - (first + n) * TICK_S) * 1000 for n, at in enumerate(self._arrivals)]


async def listens(running: Running, shape: Listening) -> Streams:
    """Open subscriptions after a tick, then read them all for some ticks. The processor counts once all are open."""
    await tools.calls(running, 16, warm_up_s=1, window_s=shape.warm_up_s)
    base, listeners = running.memory(), [_Listener(shape, number) for number in range(shape.subscriptions)]
    grown, opened, complete = _Growth(base, base), _Countdown(len(listeners)), _Countdown(len(listeners))
    await trio.sleep(TICK_S - time.time() % TICK_S + 0.1)
    async with trio.open_nursery() as nursery:
        # Until shortly before the first tick that counts.
        nursery.start_soon(grown.watch, running, TICK_S - 0.2)
        for listener in listeners:
            nursery.start_soon(listener.run, running.port, opened, complete)
        with trio.fail_after(shape.opening_s + 10):
            await opened.over.wait()
        start, cpu_before = trio.current_time(), running.cpu_s()
        early = sum(len(listener.lateness()) for listener in listeners)
        with trio.move_on_after(2 * shape.ticks * TICK_S):
            await complete.over.wait()
        cpu_s, elapsed = running.cpu_s() - cpu_before, trio.current_time() - start
        nursery.cancel_scope.cancel()
    lateness = sorted(late for listener in listeners for late in listener.lateness())
    missing, count = shape.subscriptions * shape.ticks - len(lateness), len(lateness) - early
    at_first, most = (grown.opened - base) / shape.subscriptions, (grown.most - base) / shape.subscriptions
    return Streams(lateness, missing, at_first, most, base, cpu_s / elapsed, cpu_s / max(1, count) * 1e6)

"""What follows the log: it keeps up by itself, catches up when asked, counts what it missed, and disturbs nobody."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from probe.engine.observer import Observer
from probe.observe.events import SessionOpened
from probe.observe.log import EventLog
from probe.observe.records import CallRecords
from probe.settings import Limits

from ..support.probe import running


def make(most: int = 20_000) -> tuple[Observer, EventLog]:
    log = EventLog(lambda: (0.0, 0.0), max_events=most, max_bytes=10**9)
    return Observer(log, CallRecords(50), Limits(call_records=50)), log


def opened(log: EventLog, count: int) -> None:
    for number in range(count):
        log.append(SessionOpened(f"s{log.last}-{number}", "id", "2025-11-25", "n", "v", b"{}"))


async def test_it_follows_by_itself(autojump_clock: MockClock) -> None:
    observer, log = make()
    async with trio.open_nursery() as nursery:
        await nursery.start(observer.serve)
        for _ in range(3):
            opened(log, 600)
            await trio.sleep(1)
            assert len(observer.tables.all("sessions")) == min(log.last, 2000)
        nursery.cancel_scope.cancel()
    assert observer.missed == 0


async def test_whoever_looks_catches_up_first(autojump_clock: MockClock) -> None:
    observer, log = make()
    async with trio.open_nursery() as nursery:
        await nursery.start(observer.serve)
        opened(log, 1)
        await trio.sleep(0.01)
        opened(log, 700)
        observer.catch_up()
        assert len(observer.tables.all("sessions")) == 701
        version = observer.tables.version
        observer.catch_up()
        await trio.sleep(1)
        assert observer.tables.version == version, "nothing is taken twice"
        nursery.cancel_scope.cancel()


async def test_what_was_pushed_out_before_it_came_is_counted() -> None:
    observer, log = make(most=100)
    opened(log, 250)
    observer.catch_up()
    assert (observer.missed, len(observer.tables.all("sessions"))) == (150, 100)
    opened(log, 50)
    observer.catch_up()
    assert (observer.missed, len(observer.tables.all("sessions"))) == (150, 150)


async def test_others_run_while_it_follows_a_flood(autojump_clock: MockClock) -> None:
    observer, log = make()
    opened(log, 10_000)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while len(observer.tables.all("sessions")) < 2000:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(observer.serve)
        with trio.fail_after(5):
            await other()
        nursery.cancel_scope.cancel()
    assert turns >= 2000 // 250


async def test_virtual_time_stands_still_for_it(autojump_clock: MockClock) -> None:
    """What takes three seconds takes three seconds, and nothing is due once all is quiet."""
    async with running() as probe:
        client = probe.modern()
        before = trio.current_time()
        arguments = {"steps": 3, "step_ms": 1000}
        await client.call("tools/call", {"name": "progress", "arguments": arguments}, meta={"progressToken": 0})
        assert trio.current_time() - before == pytest.approx(3, abs=0.001)
        await trio.sleep(1)
        idle = trio.lowlevel.current_statistics().seconds_to_next_deadline
        assert idle > 1

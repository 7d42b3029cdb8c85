"""What follows the log: it keeps up by itself, catches up when asked, counts what it missed, and disturbs nobody."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from probe.engine.observer import Observer
from probe.observe.events import CallProgressed, CallStarted, MessageReceived, SessionOpened
from probe.observe.log import Entry, EventLog
from probe.observe.records import CallRecords
from probe.settings import Limits

from ..support.probe import running
from ..support.shown import version_of


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
        version = version_of(observer.tables)
        observer.catch_up()
        await trio.sleep(1)
        assert version_of(observer.tables) == version, "nothing is taken twice"
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


class Followed:
    """What a follower was told."""

    def __init__(self, poison: int | None = None) -> None:
        self.taken: list[int] = []
        self.gaps: list[tuple[int, int]] = []
        self._poison = poison

    def take(self, calls: Sequence[str], entry: Entry) -> None:
        if entry.seq == self._poison:
            raise KeyError(entry.seq)
        self.taken.append(entry.seq)

    def missed(self, first: int, last: int) -> None:
        self.gaps.append((first, last))


def progressed(log: EventLog, count: int) -> None:
    for _ in range(count):
        log.append(CallProgressed("c1", "s1", None, 1, None, None))


async def test_what_was_missed_is_missing_in_the_evidence_and_told() -> None:
    observer, log = make(most=100)
    followed = Followed()
    observer.follow(followed)
    log.append(CallStarted("c1", 1, "s1", None, 1, "tools/call", "tool", None))
    observer.catch_up()
    assert observer.evidence.complete("c1")
    progressed(log, 150)
    observer.catch_up()
    assert (followed.gaps, observer.missed) == ([(2, 51)], 50)
    assert followed.taken == [1, *range(52, 152)]
    assert not observer.evidence.complete("c1")


async def test_an_entry_that_cannot_be_taken_costs_evidence_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    observer, log = make()
    followed = Followed(poison=3)
    observer.follow(followed)
    log.append(CallStarted("c1", 1, "s1", None, 1, "tools/call", "tool", None))
    progressed(log, 3)
    observer.catch_up()
    assert (followed.taken, followed.gaps, observer.missed) == ([1, 2, 4], [(3, 3)], 1)
    assert not observer.evidence.complete("c1")
    assert "the entry 3 of the log" in caplog.text


async def test_no_entry_is_taken_twice_though_one_ends_the_observer() -> None:
    observer, log = make()

    class Fatal(Followed):
        def take(self, calls: Sequence[str], entry: Entry) -> None:
            super().take(calls, entry)
            if entry.seq == 2:
                raise KeyboardInterrupt

    followed = Fatal()
    observer.follow(followed)
    log.append(CallStarted("c1", 1, "s1", None, 1, "tools/call", "tool", None))
    progressed(log, 3)
    with pytest.raises(KeyboardInterrupt):
        observer.catch_up()
    observer.catch_up()
    assert followed.taken == [1, 2, 3, 4]


async def test_large_entries_are_taken_a_few_at_a_time() -> None:
    observer, log = make()
    for _ in range(20):
        log.append(MessageReceived(1, None, None, "request", "x", 1, b"x" * 600_000))
    with trio.testing.assert_checkpoints():
        await observer.reach(4)
    assert observer._position <= 6

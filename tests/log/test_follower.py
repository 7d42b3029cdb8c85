"""Whoever follows the log keeps up by itself, catches up when asked, is told what it missed, and disturbs nobody."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from trio.testing import MockClock, assert_checkpoints

from probe.core.budgets import SharedBytes
from probe.log.event_log import Entry, EventLog
from probe.log.events import MessageReceived, ServerState
from probe.log.follower import LogFollower

from ..support.passes import within_passes

MIB = 1024 * 1024


class Reader:
    """What a follower was given. It raises `raises` for the entry `poison`."""

    def __init__(self, most: int = 20_000, poison: int | None = None, raises: type[BaseException] = KeyError) -> None:
        self.log = EventLog(lambda: (0.0, 0.0), max_events=most, max_bytes=10**9)
        self.taken: list[int] = []
        self.gaps: list[tuple[int, int]] = []
        self.follower = LogFollower(self.log, self.take, lambda first, last: self.gaps.append((first, last)))
        self._poison = poison
        self._raises = raises

    def take(self, entry: Entry) -> None:
        if entry.seq == self._poison:
            self._poison = None
            raise self._raises(entry.seq)
        self.taken.append(entry.seq)

    def fill(self, count: int) -> None:
        for _ in range(count):
            self.log.append(ServerState("ready"))


async def test_it_follows_by_itself(autojump_clock: MockClock) -> None:
    reader = Reader()
    async with trio.open_nursery() as nursery:
        await nursery.start(reader.follower.serve)
        for _ in range(3):
            reader.fill(600)
            await trio.sleep(1)
            assert reader.taken == list(range(1, reader.log.last + 1))
        nursery.cancel_scope.cancel()
    assert (reader.follower.missed_entries, reader.gaps) == (0, [])


async def test_between_two_looks_is_the_interval(autojump_clock: MockClock) -> None:
    reader = Reader()
    follower = LogFollower(reader.log, reader.take, lambda first, last: None)
    async with trio.open_nursery() as nursery:
        await nursery.start(follower.serve, 0.01)
        for taken in (1, 2, 2):
            reader.fill(1)
            await trio.sleep(0.006)
            assert len(reader.taken) == taken
        nursery.cancel_scope.cancel()


async def test_what_was_taken_to_catch_up_is_not_taken_again(autojump_clock: MockClock) -> None:
    reader = Reader()
    async with trio.open_nursery() as nursery:
        await nursery.start(reader.follower.serve)
        reader.fill(1)
        await trio.sleep(0.01)
        reader.fill(700)
        reader.follower.catch_up()
        assert reader.taken == list(range(1, 702))
        await trio.sleep(1)
        assert reader.taken == list(range(1, 702))
        nursery.cancel_scope.cancel()


def test_it_begins_where_it_is_told_to() -> None:
    reader = Reader()
    reader.fill(5)
    taken: list[int] = []
    follower = LogFollower(reader.log, lambda entry: taken.append(entry.seq), lambda first, last: None, after=3)
    follower.catch_up()
    assert taken == [4, 5]


def test_what_was_pushed_out_before_it_came_is_missed() -> None:
    reader = Reader(most=100)
    reader.fill(250)
    reader.follower.catch_up()
    assert (reader.gaps, reader.follower.missed_entries) == ([(1, 150)], 150)
    assert reader.taken == list(range(151, 251))
    reader.fill(50)
    reader.follower.catch_up()
    assert (reader.gaps, len(reader.taken)) == ([(1, 150)], 150)


@pytest.mark.parametrize("defect", [KeyError, StopIteration])
def test_an_entry_that_cannot_be_taken_is_missed_and_logged(
    defect: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    reader = Reader(poison=3, raises=defect)
    reader.fill(4)
    reader.follower.catch_up()
    assert (reader.taken, reader.gaps, reader.follower.missed_entries) == ([1, 2, 4], [(3, 3)], 1)
    assert "entry 3 of the event log" in caplog.text


def test_a_defect_before_a_piece_is_logged_and_its_entries_are_taken(caplog: pytest.LogCaptureFixture) -> None:
    reader, begun = Reader(), list[int]()

    def begin() -> None:
        begun.append(len(reader.taken))
        raise StopIteration

    follower = LogFollower(reader.log, reader.take, lambda first, last: None, begin=begin)
    reader.fill(150)
    follower.catch_up()
    assert (begun, reader.taken, follower.missed_entries) == ([0, 100], list(range(1, 151)), 0)
    assert "StopIteration" in caplog.text


def test_no_entry_is_taken_twice_though_one_ends_the_follower() -> None:
    reader = Reader(poison=2, raises=KeyboardInterrupt)
    reader.fill(4)
    with pytest.raises(KeyboardInterrupt):
        reader.follower.catch_up()
    reader.follower.catch_up()
    assert (reader.taken, reader.gaps) == ([1, 3, 4], [])


async def test_others_run_while_it_follows_a_flood(autojump_clock: MockClock) -> None:
    reader = Reader()
    reader.fill(10_000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reader.follower.serve)
        turns = await within_passes(lambda: len(reader.taken) >= 10_000)
        nursery.cancel_scope.cancel()
    assert turns >= 10_000 // 250


async def test_large_entries_are_taken_a_few_at_a_time() -> None:
    reader = Reader()
    for _ in range(20):
        reader.log.append(MessageReceived(None, "request", "x", 1, b"x" * 600_000))
    with assert_checkpoints():
        await reader.follower.reach(4)
    assert 4 <= len(reader.taken) <= 6


async def test_it_pauses_behind_each_piece() -> None:
    reader = Reader()
    reader.fill(600)
    seen: list[int] = []

    async def pause() -> None:
        seen.append(len(reader.taken))

    follower = LogFollower(reader.log, reader.take, lambda first, last: None, pause=pause)
    await follower.reach(reader.log.last)
    assert seen == [100, 200, 300, 400, 500, 600]


@pytest.mark.parametrize("comes", [False, True], ids=["quiet", "one entry comes in between"])
async def test_pieces_begin_for_entries_that_a_log_gives_up_for_another(comes: bool, autojump_clock: MockClock) -> None:
    shared, begun = SharedBytes(MIB), list[float]()
    logs = [EventLog(lambda: (0.0, 0.0), max_events=5_000, max_bytes=MIB, shared=shared) for _ in range(4)]
    quiet = logs[0]
    for _ in range(1_000):
        quiet.append(ServerState("ready"))
    follower = LogFollower(
        quiet,
        lambda entry: None,
        lambda first, last: None,
        begin=lambda: begun.append(trio.current_time()),
        pause=partial(trio.sleep, 1),
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(follower.serve)
        await trio.sleep(100)
        assert len(begun) == 10
        for busy in logs[1:] * 50:
            busy.append(ServerState("x" * 10_000))
        given_up = quiet.first - 1
        assert given_up > 300
        await trio.sleep(1.5)
        if comes:
            quiet.append(ServerState("ready"))
        await trio.sleep(100)
        assert len(begun) - 10 in (given_up // 100, given_up // 100 + comes)
        assert begun[-1] > begun[10] + given_up // 100 - 2
        nursery.cancel_scope.cancel()


async def test_no_piece_begins_for_entries_that_were_missed(autojump_clock: MockClock) -> None:
    begun = list[int]()
    log = EventLog(lambda: (0.0, 0.0), max_events=1_000, max_bytes=MIB)
    follower = LogFollower(log, lambda entry: None, lambda first, last: None, begin=lambda: begun.append(log.last))
    async with trio.open_nursery() as nursery:
        await nursery.start(follower.serve)
        for _ in range(50_000):
            log.append(ServerState("ready"))
        await trio.sleep(100)
        assert len(begun) == 10
        nursery.cancel_scope.cancel()

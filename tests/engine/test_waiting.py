"""Waiting without exceptions: sleeping until a moment, and the waker that wakes one task."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock, assert_checkpoints, wait_all_tasks_blocked

from probe.engine.clock import Timer
from probe.engine.streams.stream import Waker


@pytest.fixture(params=["own scope", "shared scope", "unserved"])
async def timer(request: pytest.FixtureRequest) -> AsyncIterator[Timer]:
    """A timer whose sleepers have scopes of their own or share one, and one that nobody serves."""
    timer = Timer(many=1 if request.param == "own scope" else 0)
    async with trio.open_nursery() as nursery:
        if request.param != "unserved":
            await nursery.start(timer.serve)
            await wait_all_tasks_blocked()
        yield timer
        nursery.cancel_scope.cancel()


async def test_a_sleep_ends_at_its_moment_without_an_exception(
    autojump_clock: MockClock, timer: Timer, monkeypatch: pytest.MonkeyPatch
) -> None:
    caught: list[type[BaseException] | None] = []
    leave = trio.CancelScope.__exit__

    def note(scope: trio.CancelScope, kind: type[BaseException] | None, *more: object) -> bool:
        caught.append(kind)
        return leave(scope, kind, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(trio.CancelScope, "__exit__", note)
    before = trio.current_time()
    await timer.sleep_until(before + 5)
    assert trio.current_time() == before + 5
    assert not any(caught)


async def test_a_sleep_until_a_moment_that_has_passed_is_a_checkpoint(autojump_clock: MockClock, timer: Timer) -> None:
    with assert_checkpoints():
        await timer.sleep_until(trio.current_time() - 1)


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 5.0])
async def test_a_cancelled_sleep_is_cancelled_also_where_its_moment_has_come(
    autojump_clock: MockClock, timer: Timer, seconds: float
) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await timer.sleep_until(trio.current_time() + seconds)
        raise AssertionError("the sleep was not cancelled")
    assert scope.cancelled_caught


async def test_a_sleep_that_ends_together_with_the_scope_around_it_is_cancelled(
    autojump_clock: MockClock, timer: Timer
) -> None:
    end = trio.current_time() + 5
    with trio.CancelScope(deadline=end) as scope:
        await timer.sleep_until(end)
        raise AssertionError("the deadline of the scope was missed")
    assert scope.cancelled_caught
    with trio.move_on_at(trio.current_time() + 1) as sooner:
        await timer.sleep_until(trio.current_time() + 5)
    assert (sooner.cancelled_caught, trio.current_time()) == (True, end + 1)


async def test_tasks_sleep_side_by_side_each_to_its_own_moment(autojump_clock: MockClock, timer: Timer) -> None:
    start = trio.current_time()
    woken: list[tuple[float, float]] = []

    async def sleep(*moments: float) -> None:
        for moment in moments:
            await timer.sleep_until(start + moment)
            woken.append((moment, trio.current_time() - start))

    async with trio.open_nursery() as nursery:
        for moments in [(7.0, 9.0), (3.0, 5.0, 6.0), (5.0,), (1.0, 5.0, 9.0), (2.0, 30.0)]:
            nursery.start_soon(sleep, *moments)
    assert sorted(woken) == [(at, at) for at in (1.0, 2.0, 3.0, 5.0, 5.0, 5.0, 6.0, 7.0, 9.0, 9.0, 30.0)]


async def test_a_sleep_that_outlives_the_timer_ends_at_its_moment(autojump_clock: MockClock) -> None:
    timer, start, ends = Timer(many=0), trio.current_time(), list[float]()

    async def sleep(seconds: float) -> None:
        await timer.sleep_until(start + seconds)
        ends.append(trio.current_time() - start)

    async with trio.open_nursery() as sleeping:
        async with trio.open_nursery() as serving:
            await serving.start(timer.serve)
            for seconds in (1.0, 5.0, 7.0):
                sleeping.start_soon(sleep, seconds)
            await trio.sleep(2)
            serving.cancel_scope.cancel()
        assert timer.at(start + 100, lambda: None) is None
    assert ends == [1.0, 5.0, 7.0]


async def test_a_timer_lets_go_of_alarms_that_were_cancelled(autojump_clock: MockClock) -> None:
    timer, rung = Timer(), list[float]()
    async with trio.open_nursery() as nursery:
        await nursery.start(timer.serve)
        await wait_all_tasks_blocked()
        start = trio.current_time()
        timer.at(start + 50, lambda: rung.append(trio.current_time() - start))
        for n in range(10_000):
            alarm = timer.at(start + 100 + n, rung.clear)
            assert alarm is not None
            alarm.cancel()
        assert len(timer) < 2000
        await trio.sleep(20_000)
        nursery.cancel_scope.cancel()
    assert rung == [50]


async def test_a_bell_wakes_who_waits_and_nobody_who_comes_later() -> None:
    waker, woken = Waker(), trio.Event()

    async def wait() -> None:
        await waker.wait()
        woken.set()

    waker.wake()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert not woken.is_set()
        waker.wake()
        waker.wake()
        await woken.wait()


async def test_who_is_cancelled_waits_for_the_bell_no_more() -> None:
    waker = Waker()
    with trio.CancelScope() as scope:
        scope.cancel()
        await waker.wait()
    waker.wake()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waker.wait)
        await wait_all_tasks_blocked()
        waker.wake()

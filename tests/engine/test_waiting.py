"""Waiting without exceptions: sleeping until a moment, and the bell that wakes one task."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, assert_checkpoints, wait_all_tasks_blocked

from probe.engine.clock import sleep_until
from probe.engine.streams.bell import Bell


async def test_a_sleep_ends_at_its_moment_without_an_exception(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    caught: list[type[BaseException] | None] = []
    leave = trio.CancelScope.__exit__

    def note(scope: trio.CancelScope, kind: type[BaseException] | None, *more: object) -> bool:
        caught.append(kind)
        return leave(scope, kind, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(trio.CancelScope, "__exit__", note)
    before = trio.current_time()
    await sleep_until(before + 5)
    assert trio.current_time() == before + 5
    assert caught == [None]


async def test_a_sleep_until_a_moment_that_has_passed_is_a_checkpoint(autojump_clock: MockClock) -> None:
    with assert_checkpoints():
        await sleep_until(trio.current_time() - 1)


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 5.0])
async def test_a_cancelled_sleep_is_cancelled_also_where_its_moment_has_come(
    autojump_clock: MockClock, seconds: float
) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await sleep_until(trio.current_time() + seconds)
        raise AssertionError("the sleep was not cancelled")
    assert scope.cancelled_caught


async def test_a_sleep_that_ends_together_with_the_scope_around_it_is_cancelled(autojump_clock: MockClock) -> None:
    end = trio.current_time() + 5
    with trio.CancelScope(deadline=end) as scope:
        await sleep_until(end)
        raise AssertionError("the deadline of the scope was missed")
    assert scope.cancelled_caught
    with trio.move_on_at(trio.current_time() + 1) as sooner:
        await sleep_until(trio.current_time() + 5)
    assert (sooner.cancelled_caught, trio.current_time()) == (True, end + 1)


async def test_a_bell_wakes_who_waits_and_nobody_who_comes_later() -> None:
    bell, woken = Bell(), trio.Event()

    async def wait() -> None:
        await bell.wait()
        woken.set()

    bell.ring()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert not woken.is_set()
        bell.ring()
        bell.ring()
        await woken.wait()


async def test_who_is_cancelled_waits_for_the_bell_no_more() -> None:
    bell = Bell()
    with trio.CancelScope() as scope:
        scope.cancel()
        await bell.wait()
    bell.ring()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bell.wait)
        await wait_all_tasks_blocked()
        bell.ring()

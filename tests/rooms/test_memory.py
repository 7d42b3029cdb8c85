"""What a room had is free when it has ended, without a pass of the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from .house import Room, house, socket

# An idle room has about 1,000 objects that the collector knows, one with calls many more.
_LEFT = 150


@contextmanager
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def _nothing(room: Room) -> None:
    """Only the request that opens it."""


async def _modern(room: Room) -> None:
    client = room.modern()
    for _ in range(5):
        await client.tool("simple_tool")


async def _legacy(room: Room) -> None:
    client = await room.legacy()
    for _ in range(5):
        await client.tool("simple_tool")


async def _pipe(room: Room) -> None:
    async with socket(room) as client:
        await client.ask("tools/call", {"name": "simple_tool", "arguments": {}})


async def _opened(room: Room, use: Callable[[Room], Awaitable[None]]) -> dict[str, ref[Any]]:
    await use(room)
    # The judge follows the log behind the calls.
    await trio.sleep(60)
    engine = room.engine
    assert engine.judging is not None
    parts = {"engine": engine, "log": engine.log, "views": engine.observer.views, "tables": engine.observer.tables}
    parts |= {"judge": engine.judging._judge, "its views": engine.judging._judge._views}
    return {name: ref(part) for name, part in parts.items()}


@pytest.mark.parametrize("use", [_nothing, _modern, _legacy, _pipe])
async def test_a_room_that_has_ended_leaves_nothing_to_the_collector(
    use: Callable[[Room], Awaitable[None]], autojump_clock: trio.testing.MockClock
) -> None:
    async with house(judge=True, room_idle_s=600) as here:
        # What is loaded or remembered once for all rooms.
        await _opened(await here.open(), use)
        await trio.sleep(2000)
        with without_collector():
            before = len(gc.get_objects())
            parts = await _opened(await here.open(), use)
            await trio.sleep(2000)
            await wait_all_tasks_blocked()
            assert len(here.rooms) == 0
            assert [name for name, part in parts.items() if part() is not None] == []
            assert len(gc.get_objects()) - before < _LEFT


async def test_a_request_that_outlives_its_room_still_has_the_views(autojump_clock: trio.testing.MockClock) -> None:
    async with house() as here:
        opened = await here.open()
        room, request = here.rooms._by_id[opened.id].room, trio.CancelScope()
        room.requests.add(request)
        assert (await opened.ask("DELETE", "/api/room")).status == 204
        assert room.engine.observer.views.last > 0
        room.requests.remove(request)
        room._left.unpark_all()
        await wait_all_tasks_blocked()
        assert not vars(room.engine.observer)


async def test_a_request_that_never_leaves_has_the_views_for_ever(autojump_clock: trio.testing.MockClock) -> None:
    async with house() as here:
        opened = await here.open()
        room = here.rooms._by_id[opened.id].room
        room.requests.add(trio.CancelScope())
        assert (await opened.ask("DELETE", "/api/room")).status == 204
        await trio.sleep(1000)
        assert room.engine.observer.views.last > 0

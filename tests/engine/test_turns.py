"""Long work gives others their turn, by how much of it was done."""

from __future__ import annotations

import trio

from probe.engine.call_store import search
from probe.observe.call_filter import CallFilter

from ..observe.calls import record


async def test_a_search_inside_records_lets_others_run_by_the_size_of_arguments_and_results() -> None:
    """Both together are enough for a turn, and neither is alone."""
    half = b'"' + b"x" * 40_000 + b'"'
    records = [record(number, arguments=half, result=half) for number in range(10)]
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        found = await search(records, 0, CallFilter(text="nowhere"), None, 10, 1_000_000)
        nursery.cancel_scope.cancel()
    assert found.rows == []
    assert turns >= len(records) // 2

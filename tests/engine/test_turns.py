"""Long work gives others their turn, by how much of it was done."""

from __future__ import annotations

from probe.engine.audit.call_store import search
from probe.views.search.call_filter import CallFilter

from ..support.passes import counted_passes
from ..views.calls import record


async def test_a_search_inside_records_lets_others_run_by_the_size_of_arguments_and_results() -> None:
    """Both together are enough for a turn, and neither is alone."""
    half = b'"' + b"x" * 40_000 + b'"'
    records = [record(number, arguments=half, result=half) for number in range(10)]
    async with counted_passes() as passes:
        found = await search(records, 0, CallFilter(text="nowhere"), None, 10, 1_000_000)
    assert found.rows == []
    assert passes.count >= len(records) // 2

"""Pages of the log while it grows and forgets: each entry once, or in a gap, in both directions."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from probe.log import query
from probe.log.context import Context
from probe.log.event_log import EventLog
from probe.log.query import EVERYTHING, EventFilter
from probe.settings import Limits
from probe.web.api.events import Scan, backward, forward

from ..support.facts import received
from . import at_most

FILTERS = [EVERYTHING, query.parse([("session", "s1")]), query.parse([("text", "even")])]
STEPS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 30)), min_size=1, max_size=12)


def grow(log: EventLog, count: int) -> None:
    for _ in range(count):
        number = log.last + 1
        fact = received({"even" if number % 2 == 0 else "odd": "x" * (number % 7) * 50})
        log.append(fact, Context(session=f"s{number % 3}"))


def passes(wanted: EventFilter, seq: int) -> bool:
    return wanted is EVERYTHING or (seq % 3 == 1 if wanted is FILTERS[1] else seq % 2 == 0)


async def paged(
    log: EventLog, wanted: EventFilter, limit: int, scan: int, steps: list[tuple[int, int]], *, newest_first: bool
) -> tuple[list[int], list[int]]:
    """The numbers that the pages gave and those that they called lost. The log grows between and during pages."""
    limits = Limits(api_scan=scan, api_page_bytes=64 * 1024)
    at = log.last + 1 if newest_first else 0
    got: list[int] = []
    lost: list[int] = []
    growth = iter(steps)
    for _ in range(2000):
        during, turns = next(growth, (0, 1))
        page = Scan(wanted, limit, limits)

        async def disturb(during: int = during, turns: int = turns) -> None:
            for _ in range(turns):
                await trio.lowlevel.checkpoint()
            grow(log, during)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(disturb)
            rows = [row async for row in (backward if newest_first else forward)(log, page, at)]
        numbers = [query.from_json(row)["seq"] for row in rows]
        assert len(numbers) <= limit
        assert page.looked <= scan
        got += numbers
        if page.gap is not None:
            lost += range(page.gap.first, page.gap.last + 1)
        if page.next is None or (page.next == at and not during):
            return got, lost
        at = page.next
    raise AssertionError("the pages never end")


@at_most(600)
@given(
    kept=st.integers(100, 150),
    begin=st.integers(0, 300),
    wanted=st.sampled_from(FILTERS),
    limit=st.integers(1, 40),
    scan=st.integers(100, 130),
    steps=STEPS,
)
@pytest.mark.parametrize("newest_first", [False, True])
def test_each_entry_comes_once_or_is_called_lost(
    newest_first: bool,
    kept: int,
    begin: int,
    wanted: EventFilter,
    limit: int,
    scan: int,
    steps: list[tuple[int, int]],
) -> None:
    log = EventLog(lambda: (0.0, 0.0), max_events=kept, max_bytes=10**9)
    grow(log, begin)
    got, lost = trio.run(lambda: paged(log, wanted, limit, scan, steps, newest_first=newest_first))
    end = begin if newest_first else log.last
    assert got == sorted(got, reverse=newest_first)
    assert not set(got) & set(lost), "what was given is not lost"
    assert len({*got, *lost}) == len(got) + len(lost), "nothing twice"
    missing = {seq for seq in range(1, end + 1) if passes(wanted, seq)} - {*got, *lost}
    assert not missing
    assert all(passes(wanted, seq) for seq in got)

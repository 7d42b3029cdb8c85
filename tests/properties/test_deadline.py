"""Progress and silence in any order: the deadline that passes is the right one, at the right time, and never earlier.

All times are multiples of an eighth of a second, so that sums are exact and ties happen.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from probe.core.call import Deadlines

eighths = st.integers(0, 400).map(lambda count: count / 8)
lengths = st.integers(1, 400).map(lambda count: count / 8)
silences = st.lists(st.integers(0, 40).map(lambda count: count / 8), max_size=40)


def expected(idle_s: float, ceiling_s: float, reports: list[float]) -> tuple[str, float, int]:
    """Which deadline passes, when, and after how many reports; from the silences alone. Times count from the start."""
    alive_at, count = 0.0, 0
    for at in reports:
        if at - alive_at >= idle_s or at >= ceiling_s:
            break
        alive_at, count = at, count + 1
    idle_at = alive_at + idle_s
    return ("idle", idle_at, count) if idle_at < ceiling_s else ("ceiling", ceiling_s, count)


@given(start=eighths, idle_s=lengths, ceiling_s=lengths, silence=silences)
def test_the_right_deadline_passes_at_the_right_time(
    start: float, idle_s: float, ceiling_s: float, silence: list[float]
) -> None:
    reports = list(accumulate(silence))
    state = Deadlines.start(start, idle_s=idle_s, ceiling_s=ceiling_s)
    for at in reports:
        state, _ = state.progress(start + at)
    which, after, count = expected(idle_s, ceiling_s, reports)
    assert (state.which, state.at, state.progress_count) == (which, start + after, count)
    _, numbers = state.error(state.at)
    assert (numbers["deadline"], numbers["elapsedMs"], numbers["progressCount"]) == (which, round(after * 1000), count)


@given(start=eighths, idle_s=lengths, ceiling_s=lengths, times=st.lists(eighths, max_size=40))
def test_nothing_shortens_a_deadline(start: float, idle_s: float, ceiling_s: float, times: list[float]) -> None:
    """Whatever the clock says: the times need not even be in order."""
    state = Deadlines.start(start, idle_s=idle_s, ceiling_s=ceiling_s)
    for now in times:
        before, late = state, now >= state.at
        state, _ = state.progress(now)
        assert state.at >= before.at
        assert state.idle_at >= before.idle_at
        assert (state.started, state.idle_s, state.ceiling_s) == (start, idle_s, ceiling_s)
        assert state.at <= start + ceiling_s
        assert (state == before) == late, "a report changes something exactly where it is in time"


@given(idle_s=lengths, silence=silences)
def test_extensions_are_noted_at_once_and_then_sparingly(idle_s: float, silence: list[float]) -> None:
    state = Deadlines.start(0.0, idle_s=idle_s, ceiling_s=1e6)
    noted, in_time = [], []
    for now in accumulate(silence):
        before = state.progress_count
        state, news = state.progress(now)
        in_time += [now] * (state.progress_count - before)
        noted += [now] if news else []
    assert noted[:1] == in_time[:1], "the first report is noted"
    assert all(later - earlier >= 1 for earlier, later in pairwise(noted))
    quiet = [now for now in in_time if not any(now - 1 < at <= now for at in noted)]
    assert quiet == [], "a report a second after the last note is noted"

"""The two deadlines of a dispatch (product contract, section 7)."""

from __future__ import annotations

import math

import pytest

from probe.core.call import Deadlines

START = Deadlines.start(100.0, idle_s=30.0, ceiling_s=300.0)


def after(deadlines: Deadlines, *times: float) -> Deadlines:
    """The state after reports at these times."""
    for now in times:
        deadlines, _ = deadlines.progress(now)
    return deadlines


def test_both_run_from_the_start() -> None:
    assert Deadlines(started=100.0, idle_s=30.0, ceiling_s=300.0, idle_at=130.0, progress_count=0) == START
    assert (START.at, START.at_ms, START.which) == (130.0, 30_000, "idle")
    assert (START.idle_ms, START.ceiling_ms) == (30_000, 300_000)


def test_progress_moves_the_idle_deadline_and_nothing_else() -> None:
    moved = after(START, 120.0)
    assert Deadlines(100.0, 30.0, 300.0, 150.0, 1, noted_at=120.0) == moved
    assert (moved.at, moved.at_ms, moved.which) == (150.0, 50_000, "idle")


def test_nothing_moves_the_ceiling() -> None:
    late = after(START, *range(125, 400, 25), 399.0)
    assert (late.at, late.which) == (400.0, "ceiling")


def test_progress_never_shortens_a_deadline() -> None:
    moved = after(START, 120.0, 110.0)
    assert (moved.idle_at, moved.progress_count) == (150.0, 2)


@pytest.mark.parametrize("now", [130.0, 131.0, 1000.0])
def test_a_report_that_comes_when_the_deadline_has_passed_changes_nothing(now: float) -> None:
    """Also at that very moment; just before, it keeps the call alive."""
    assert START.progress(now) == (START, False)
    assert after(START, math.nextafter(130.0, 0)).at == pytest.approx(160.0)


def test_no_report_keeps_a_call_alive_at_its_ceiling() -> None:
    short = Deadlines.start(0.0, idle_s=30.0, ceiling_s=10.0)
    assert short.progress(10.0) == (short, False)
    moved = after(short, 9.0)
    assert (moved.at, moved.which, moved.progress_count) == (10.0, "ceiling", 1)


@pytest.mark.parametrize(
    ("idle_s", "ceiling_s", "which", "at"),
    [(30.0, 300.0, "idle", 130.0), (300.0, 30.0, "ceiling", 130.0), (30.0, 30.0, "ceiling", 130.0)],
)
def test_the_earlier_one_counts(idle_s: float, ceiling_s: float, which: str, at: float) -> None:
    deadlines = Deadlines.start(100.0, idle_s=idle_s, ceiling_s=ceiling_s)
    assert (deadlines.which, deadlines.at) == (which, at)


def test_a_tie_after_progress_is_the_ceiling() -> None:
    assert after(START, *range(110, 371, 20)).which == "ceiling"


def test_the_first_extension_is_noted_and_then_one_a_second() -> None:
    deadlines, noted = START, []
    for now in (100.0, 100.2, 100.999, 101.0, 101.5, 110.0, 110.9, 111.0):
        deadlines, news = deadlines.progress(now)
        noted += [(now, deadlines.progress_count)] if news else []
    assert noted == [(100.0, 1), (101.0, 4), (110.0, 6), (111.0, 8)]


def test_the_error_names_the_deadline_and_carries_the_numbers() -> None:
    sentence, numbers = after(START, 110.0).error(140.0)
    assert "idle" in sentence
    assert "30 s" in sentence
    assert numbers == {"deadline": "idle", "elapsedMs": 40000, "idleMs": 30000, "ceilingMs": 300000, "progressCount": 1}
    sentence, numbers = Deadlines.start(100.0, idle_s=30.0, ceiling_s=2.5).error(102.5)
    assert "ceiling" in sentence
    assert "2.5 s" in sentence
    assert numbers == {"deadline": "ceiling", "elapsedMs": 2500, "idleMs": 30000, "ceilingMs": 2500, "progressCount": 0}

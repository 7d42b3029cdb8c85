"""The two deadlines of a dispatch (product contract, section 7)."""

from __future__ import annotations

import pytest

from probe.core.deadline import Deadlines

START = Deadlines.start(100.0, idle_s=30.0, ceiling_s=300.0)


def test_both_run_from_the_start() -> None:
    assert Deadlines(started=100.0, idle_s=30.0, ceiling_s=300.0, idle_at=130.0, progress_count=0) == START
    assert (START.at, START.which) == (130.0, "idle")


def test_progress_moves_the_idle_deadline_and_nothing_else() -> None:
    moved = START.progress(120.0)
    assert Deadlines(100.0, 30.0, 300.0, 150.0, 1) == moved
    assert (moved.at, moved.which) == (150.0, "idle")


def test_nothing_moves_the_ceiling() -> None:
    late = START.progress(399.0)
    assert (late.at, late.which) == (400.0, "ceiling")


def test_progress_never_shortens_a_deadline() -> None:
    moved = START.progress(120.0)
    assert moved.progress(110.0) == Deadlines(100.0, 30.0, 300.0, 150.0, 2)


@pytest.mark.parametrize(
    ("idle_s", "ceiling_s", "which", "at"),
    [(30.0, 300.0, "idle", 130.0), (300.0, 30.0, "ceiling", 130.0), (30.0, 30.0, "ceiling", 130.0)],
)
def test_the_earlier_one_counts(idle_s: float, ceiling_s: float, which: str, at: float) -> None:
    deadlines = Deadlines.start(100.0, idle_s=idle_s, ceiling_s=ceiling_s)
    assert (deadlines.which, deadlines.at) == (which, at)


def test_the_error_names_the_deadline_and_carries_the_numbers() -> None:
    sentence, numbers = START.progress(110.0).error(140.0)
    assert "idle" in sentence
    assert "30 s" in sentence
    assert numbers == {"deadline": "idle", "elapsedMs": 40000, "idleMs": 30000, "ceilingMs": 300000, "progressCount": 1}
    sentence, numbers = Deadlines.start(100.0, idle_s=30.0, ceiling_s=2.5).error(102.5)
    assert "ceiling" in sentence
    assert "2.5 s" in sentence
    assert numbers == {"deadline": "ceiling", "elapsedMs": 2500, "idleMs": 30000, "ceilingMs": 2500, "progressCount": 0}

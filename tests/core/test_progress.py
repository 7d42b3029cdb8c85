"""The progress gate: what passes, what waits, what is refused (product contract, section 4)."""

from __future__ import annotations

import math
import sys

import pytest

from probe.core.call import ProgressGate, Report

COUNTERS = ("reported", "emitted", "coalesced", "invalid", "late")


def gate(rate: float = 10.0, burst: int = 2, now: float = 0.0) -> ProgressGate:
    return ProgressGate(rate, burst, now)


def counts(gate: ProgressGate) -> dict[str, int]:
    return {name: getattr(gate, name) for name in COUNTERS if getattr(gate, name)}


def test_a_report_within_the_burst_passes_at_once() -> None:
    it = gate()
    assert it.report(Report(1, 3, "one"), 0.0) == Report(1, 3, "one")
    assert it.report(Report(2, 3, "two"), 0.0) == Report(2, 3, "two")
    assert (counts(it), it.due) == ({"reported": 2, "emitted": 2}, None)


def test_a_report_that_comes_too_early_waits_for_its_time() -> None:
    it = gate(burst=1)
    it.report(Report(1), 0.0)
    assert it.report(Report(2), 0.02) is None
    assert it.due == pytest.approx(0.1)
    assert it.take(0.09) is None
    assert it.take(it.due) == Report(2)
    assert (counts(it), it.due) == ({"reported": 2, "emitted": 2}, None)


def test_the_latest_of_the_waiting_reports_wins() -> None:
    it = gate(burst=1)
    it.report(Report(1), 0.0)
    for step in (2, 3, 4):
        assert it.report(Report(step), 0.01) is None
    assert it.take(0.1) == Report(4)
    assert counts(it) == {"reported": 4, "emitted": 2, "coalesced": 2}


def test_a_report_at_its_time_takes_the_place_of_the_one_that_waits() -> None:
    it = gate(burst=1)
    it.report(Report(1), 0.0)
    it.report(Report(2), 0.01)
    assert it.report(Report(3), 0.5) == Report(3)
    assert (counts(it), it.due) == ({"reported": 3, "emitted": 2, "coalesced": 1}, None)


def test_the_last_report_is_never_lost() -> None:
    it = gate(burst=1)
    it.report(Report(1), 0.0)
    it.report(Report(2), 0.01)
    assert it.flush() == Report(2)
    assert it.flush() is None
    assert counts(it) == {"reported": 2, "emitted": 2}


def test_nothing_passes_after_the_end() -> None:
    """2025-11-25 basic/utilities/progress: "Progress notifications MUST stop after completion"."""
    it = gate(burst=1)
    it.report(Report(1), 0.0)
    it.report(Report(2), 0.01)
    it.stop()
    assert (it.due, it.flush(), it.take(5.0)) == (None, None, None)
    assert it.report(Report(3), 5.0) is None
    assert (counts(it), it.latest) == ({"reported": 2, "emitted": 1, "late": 1}, Report(2))


def test_the_largest_double_is_a_report() -> None:
    it, most = gate(burst=9), Report(sys.float_info.max, sys.float_info.max)
    assert it.report(most, 0.0) == most


@pytest.mark.parametrize(
    "report",
    [
        Report(5),
        Report(4.999),
        Report(-6),
        Report(math.nan),
        Report(math.inf),
        Report(-math.inf),
        Report(6, math.nan),
        Report(6, math.inf),
        # No double, so many clients could not read it; and not a reason to break the call either.
        Report(10**400),
        Report(6, 10**400),
    ],
    ids=str,
)
def test_a_report_that_does_not_increase_or_is_no_finite_number_is_counted_and_nothing_else(report: Report) -> None:
    """2025-11-25 basic/utilities/progress: "The progress value MUST increase with each notification"."""
    it = gate(burst=9)
    it.report(Report(5, 10), 0.0)
    before = {**vars(it), "invalid": 1}
    assert it.report(report, 1.0) is None
    assert vars(it) == before


def test_a_refused_report_does_not_replace_the_one_that_waits() -> None:
    it = gate(burst=1)
    it.report(Report(1), 0.0)
    it.report(Report(3), 0.01)
    it.report(Report(2), 0.02)
    assert it.take(1.0) == Report(3)


def test_zero_negative_and_fractional_values_are_progress() -> None:
    """Only increasing is asked for: "The progress and the total values MAY be floating point"."""
    it = gate(burst=9)
    passed = [it.report(Report(value), 0.0) for value in (-1, 0, 0.5, 0.75, 1)]
    assert [report.progress for report in passed if report] == [-1, 0, 0.5, 0.75, 1]


def test_silence_never_saves_up_more_than_the_burst() -> None:
    it = gate(burst=2)
    passed = [it.report(Report(step), 1000.0) for step in range(1, 5)]
    assert [report is not None for report in passed] == [True, True, False, False]

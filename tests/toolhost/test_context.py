"""The context by itself: what reports are valid, and that nothing that is passed can break a handler."""

from __future__ import annotations

import logging
import math
import threading
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.toolhost import DispatchCancelledError, Report, ToolContext


def test_a_bare_context_does_nothing() -> None:
    context = ToolContext()
    context.report_progress(1, 2, "half")
    context.check_cancelled()
    assert (context.cancelled, context.latest, context.invalid) == (False, Report(1, 2, "half"), 0)


def test_a_test_is_handed_each_report() -> None:
    reports: list[Report] = []
    context = ToolContext(reports.append)
    context.report_progress(1, 3)
    context.report_progress(2.5, total=3, message="nearly")
    assert reports == [Report(1, 3), Report(2.5, 3, "nearly")]


def test_a_test_can_cancel() -> None:
    cancelled = False
    context = ToolContext(cancelled=lambda: cancelled)
    context.check_cancelled()
    cancelled = True
    assert context.cancelled
    with pytest.raises(DispatchCancelledError):
        context.check_cancelled()


def test_without_progress_the_report_counts_on_and_has_no_total() -> None:
    reports: list[Report] = []
    context = ToolContext(reports.append)
    context.report_progress()
    context.report_progress(message="still here", total=9)
    context.report_progress(7.5, 9)
    context.report_progress()
    assert reports == [Report(1), Report(2, None, "still here"), Report(7.5, 9), Report(8.5)]


BAD: list[tuple[Any, ...]] = [
    (math.nan,),
    (math.inf,),
    (-math.inf,),
    (10**400,),
    (True,),
    ("2",),
    (Decimal(2),),
    (object(),),
    (2, math.nan),
    (2, "3"),
    (2, None, 3),
    (2, None, b"x"),
    (2, None, "\ud800"),
    (Fraction(10**400, 3),),
]


@pytest.mark.parametrize("values", BAD)
def test_what_is_no_report_is_counted_and_logged_once(
    values: tuple[Any, ...], caplog: pytest.LogCaptureFixture
) -> None:
    reports: list[Report] = []
    context = ToolContext(reports.append)
    context.report_progress(1)
    with caplog.at_level(logging.WARNING, "probe.toolhost"):
        context.report_progress(*values)
        context.report_progress(*values)
    assert (reports, context.invalid, len(caplog.records)) == ([Report(1)], 2, 1)
    # and it does not harm the next
    context.report_progress(2)
    assert reports[-1] == Report(2)


def test_something_that_cannot_even_be_shown() -> None:
    class Spiteful:
        def __repr__(self) -> str:
            raise RuntimeError

        __str__ = __repr__

    context = ToolContext()
    context.report_progress(Spiteful(), Spiteful(), Spiteful())  # type: ignore[arg-type]
    assert context.invalid == 1


@pytest.mark.parametrize(("first", "second"), [(2, 2), (2, 1), (0.5, 0.5), (1, -5)])
def test_progress_that_does_not_increase_is_not_sent(first: float, second: float) -> None:
    reports: list[Report] = []
    context = ToolContext(reports.append)
    context.report_progress(first)
    context.report_progress(second)
    assert (reports, context.invalid) == ([Report(first)], 1)


def test_a_long_message_is_cut() -> None:
    context = ToolContext()
    context.report_progress(1, message="x" * 5000)
    assert context.latest is not None
    assert context.latest.message == "x" * 1000 + "…"


def test_numbers_of_other_libraries_become_numbers_of_json() -> None:
    reports: list[Report] = []
    ToolContext(reports.append).report_progress(Fraction(1, 2), Fraction(4))  # type: ignore[arg-type]
    assert reports == [Report(0.5, 4)]
    assert [type(reports[0].progress), type(reports[0].total)] == [float, float]


NUMBERS = st.none() | st.integers() | st.floats() | st.text() | st.booleans()


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.none() | st.text() | st.integers()), max_size=20))
def test_whatever_is_passed_what_comes_out_increases(calls: list[tuple[Any, Any, Any]]) -> None:
    reports: list[Report] = []
    context = ToolContext(reports.append)
    for call in calls:
        context.report_progress(*call)
    assert len(reports) + context.invalid == len(calls)
    values = [report.progress for report in reports]
    assert all(a < b for a, b in pairwise(values))
    for report in reports:
        assert all(math.isfinite(number) for number in (report.progress, report.total or 0))


def test_reports_of_many_threads_arrive_in_order() -> None:
    reports: list[Report] = []
    context = ToolContext(reports.append)

    def work() -> None:
        for _ in range(200):
            context.report_progress()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [report.progress for report in reports] == list(range(1, 801))


def test_on_report_may_report_itself() -> None:
    seen: list[float] = []

    def on_report(report: Report) -> None:
        seen.append(report.progress)
        if report.progress < 3:
            context.report_progress()

    context = ToolContext(on_report)
    context.report_progress()
    assert seen == [1, 2, 3]

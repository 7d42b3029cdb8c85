"""The progress gate: what passes increases, keeps to the rate, stops at the end, and the last is never lost."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from probe.core.call import ProgressGate, Report

from . import steps

numbers = st.integers(-5, 40) | st.floats(-5, 40) | st.sampled_from([math.nan, math.inf, -math.inf, 10**400])


class Gate(RuleBasedStateMachine):
    """The model: the valid reports and the ones that passed, with their times."""

    @initialize(
        rate=st.sampled_from([1.0, 3.0, 7.0, 100.0, 1e6]),
        burst=st.integers(1, 5),
        # trio's clock begins at a random moment that may be weeks.
        now=st.floats(0, 2e6),
    )
    def begins(self, rate: float, burst: int, now: float) -> None:
        self.rate, self.burst, self.now = rate, burst, now
        self.gate = ProgressGate(rate, burst, now)
        self.valid: list[Report] = []
        self.passed: list[Report] = []
        self.paced: list[float] = []
        self.flushed = self.stopped = False
        self.refused = self.late = 0

    def passes(self, report: Report | None, *, paced: bool = True) -> None:
        """Take what the gate let through."""
        if report is not None:
            assert not self.stopped
            self.passed.append(report)
            self.paced += [self.now] * paced

    @rule(fraction=st.floats(0, 3))
    def time_passes(self, fraction: float) -> None:
        self.now += fraction / self.rate

    @rule(progress=numbers, total=st.none() | numbers)
    def something_is_reported(self, progress: float, total: float | None) -> None:
        report = Report(progress, total)
        finite = all(abs(value) < 1e300 for value in (progress, total) if value is not None)
        passed = self.gate.report(report, self.now)
        if self.stopped:
            self.late += 1
        elif finite and (not self.valid or progress > self.valid[-1].progress):
            self.valid.append(report)
        else:
            self.refused += 1
            assert passed is None
        self.passes(passed)

    @rule()
    def the_next_step_is_reported(self) -> None:
        self.something_is_reported(self.valid[-1].progress + 1 if self.valid else 0, None)

    @precondition(lambda self: self.gate.due is not None)
    @rule()
    def the_one_that_waits_is_sent_when_its_time_has_come(self) -> None:
        """Whoever sleeps until `due` finds the report ready: looking again at the same moment would never end."""
        due = self.gate.due
        assert due is not None
        self.now = max(self.now, due)
        report = self.gate.take(self.now)
        assert report is not None
        self.passes(report)

    @rule()
    def somebody_looks_at_any_time(self) -> None:
        due = self.gate.due
        report = self.gate.take(self.now)
        assert (report is not None) == (due is not None and due <= self.now)
        self.passes(report)

    @rule()
    def the_last_one_is_sent(self) -> None:
        self.passes(self.gate.flush(), paced=False)

    @rule()
    def the_work_ends(self) -> None:
        self.the_last_one_is_sent()
        self.gate.stop()
        self.stopped = True
        if self.valid:
            assert self.passed[-1] == self.valid[-1], "the last valid report is never lost"

    @invariant()
    def what_passes_increases_and_was_reported(self) -> None:
        assert all(one.progress < two.progress for one, two in pairwise(self.passed))
        assert all(report in self.valid for report in self.passed)

    @invariant()
    def the_rate_is_kept(self) -> None:
        """In any stretch of time: the burst and what the rate allows, except for the last one before the end."""
        end = len(self.paced)
        rounding = 1e-6 + 4 * end * math.ulp(self.now) * self.rate
        for first in range(end):
            stretch = self.paced[-1] - self.paced[first]
            assert end - first <= self.burst + stretch * self.rate + rounding

    @invariant()
    def what_waits_has_a_time_and_nothing_else_has(self) -> None:
        waits = bool(self.valid) and not self.stopped and (not self.passed or self.passed[-1] != self.valid[-1])
        assert (self.gate.due is not None) == waits

    @invariant()
    def every_report_is_counted_once(self) -> None:
        gate = self.gate
        assert (gate.reported, gate.invalid, gate.late) == (len(self.valid), self.refused, self.late)
        assert gate.emitted == len(self.passed)
        assert gate.reported == gate.emitted + gate.coalesced + (gate.due is not None)
        assert gate.latest == (self.valid[-1] if self.valid else None)


TestGate = Gate.TestCase
TestGate.settings = steps(20)

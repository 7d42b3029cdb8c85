"""A call, its handler, its deadline and whoever wants it stopped: exactly one of them wins, whatever the order."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.core.call import CallMachine, CallState, CallViolationError, Cause, Deadlines, ProgressGate, Report
from probe.engine.calls.outcome import Outcome
from probe.engine.calls.scope import CallScope, run
from probe.engine.catalogue.tool import ToolResult, content
from probe.engine.clock import Clock
from probe.log.context import Recorder
from probe.log.event_log import EventLog
from probe.log.events import CallCancelled, DispatchExpired, DispatchExtended, DispatchSettled, Event

from ..support.facts import started
from . import steps

TOLD = {Cause.DEADLINE, Cause.SHUTDOWN}


class CallStory(RuleBasedStateMachine):
    """The model: the first cause before the end, and whether the end has come."""

    def __init__(self) -> None:
        super().__init__()
        self.call = CallMachine()
        self.now = 0.0
        self.cause: Cause | None = None
        self.cancelled_at: float | None = None
        self.answers: list[bool] = []

    @rule(seconds=st.floats(0, 100))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(cause=st.sampled_from(Cause), reason=st.none() | st.text(max_size=3))
    def somebody_wants_it_stopped(self, cause: Cause, reason: str | None) -> None:
        heard = self.call.cancel(cause, self.now, reason)
        assert heard == (self.cause is None and not self.answers), "the first cause wins, and none after the end"
        if heard:
            self.cause, self.cancelled_at = cause, self.now

    @rule(ago=st.floats(0, 100))
    def the_deadline_is_found_to_have_passed(self, ago: float) -> None:
        at = max(0.0, self.now - ago)
        if self.call.cancel(Cause.DEADLINE, at):
            self.cause, self.cancelled_at = Cause.DEADLINE, at

    @rule()
    def the_work_is_over(self) -> None:
        try:
            self.answers.append(self.call.settle(self.now))
        except CallViolationError:
            assert self.answers, "the end comes once, and then it can always come"
        else:
            assert len(self.answers) == 1

    @invariant()
    def there_is_exactly_one_of_answer_and_silent_cancellation(self) -> None:
        if self.answers:
            silenced = self.cause is not None and self.cause not in TOLD
            assert self.answers == [not silenced]
            assert self.call.state is (CallState.SILENT if silenced else CallState.ANSWERED)

    @invariant()
    def the_first_cause_stays(self) -> None:
        assert (self.call.cause, self.call.cancelled_at) == (self.cause, self.cancelled_at)

    @invariant()
    def it_has_ended_exactly_when_its_work_is_over(self) -> None:
        assert self.call.settled == bool(self.answers) == (self.call.settled_at is not None)


TestCall = CallStory.TestCase
TestCall.settings = steps(10)


# The same with trio's scope and the deadlines of a running call. The times never meet: steps are made at tenths.

IDLE_S, CEILING_S = 10.013, 25.017
SILENT = {*Cause} - TOLD


@dataclass
class Model:
    """What must come of a call whose work takes `linger` seconds to stop, shielded from everything."""

    linger: float
    idle_at: float = IDLE_S
    cause: Cause | None = None
    caused_at: float | None = None
    ends_at: float = math.inf
    extended_ms: list[int] = field(default_factory=list)
    noted_at: float = -math.inf

    def report(self, now: float) -> None:
        """A valid report in time; what of it the log tells."""
        self.idle_at = max(self.idle_at, now + IDLE_S)
        if now >= self.noted_at + 1:
            self.noted_at = now
            self.extended_ms.append(round(min(self.idle_at, CEILING_S) * 1000))

    def advance(self, now: float) -> None:
        """The deadline wins from the moment when it passes, unless somebody came first or the work was over."""
        at = min(self.idle_at, CEILING_S)
        if at <= now and at < self.ends_at:
            self.stop(Cause.DEADLINE, at)

    def stop(self, cause: Cause, at: float) -> bool:
        """Whether this is what stops the call."""
        first = self.cause is None and at < self.ends_at
        if first:
            self.cause, self.caused_at = cause, at
            self.finish(at)
        return first

    def finish(self, at: float) -> None:
        self.ends_at = min(self.ends_at, at + self.linger)

    def heard(self, now: float) -> bool:
        return self.cause is None and now < self.ends_at


moves = st.one_of(
    st.sampled_from(["progress", "speak", "finish"]),
    st.sampled_from([Cause.NOTIFICATION, Cause.DISCONNECT, Cause.SHUTDOWN]),
    st.sampled_from([0.3, 1.7, 4.1, 9.9]),
    st.sampled_from([4.1, 9.9]),
)


@given(story=st.lists(moves, max_size=15), linger=st.sampled_from([0.0, 3.0071, 8.0071]), timed=st.booleans())
@example(story=["finish", "progress"], linger=0.0, timed=True)
@example(story=["progress", 4.1, "progress", 4.1, "progress", 9.9], linger=0.0, timed=True)
def test_a_deadline_wins_from_the_moment_when_it_passes(
    story: list[str | Cause | float], linger: float, timed: bool
) -> None:
    trio.run(_tell, story, linger, timed, clock=MockClock(autojump_threshold=0))


async def _tell(story: list[str | Cause | float], linger: float, timed: bool) -> None:
    """With `timed` something serves the timer of the clock, as in an engine that has not ended."""
    clock, model, finish = Clock(trio.current_time()), Model(linger), trio.Event()
    log = EventLog(clock.both, max_events=1000, max_bytes=10**9)
    call = CallScope(Recorder(log).bind(call="c1"), started(), clock)
    call.dispatch(Deadlines.start(0.0, idle_s=IDLE_S, ceiling_s=CEILING_S), ProgressGate(1, 1, 0.0))
    answers: list[Outcome | None] = []

    async def work() -> ToolResult:
        try:
            await finish.wait()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(linger)
        return content([])

    async def live() -> None:
        answers.append(call.settle(await run(call, work, trio.sleep_forever)))

    async with trio.open_nursery() as around:
        if timed:
            await around.start(clock.timer.serve)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(live)
            for move in [*story, "finish", 0.3]:
                await wait_all_tasks_blocked()
                await _make(move, call, model, finish)
        around.cancel_scope.cancel()
    model.advance(math.inf)
    (answer,) = answers
    assert (call.machine.cause, call.machine.cancelled_at) == (model.cause, model.caused_at)
    # The clock and the model add the same seconds in another order.
    assert call.machine.settled_at == pytest.approx(model.ends_at, abs=1e-9)
    assert (answer is None) == (model.cause in SILENT)
    events = [entry.fact for entry in log.since(0, 1000).entries]
    told = [event for event in events if isinstance(event, CallCancelled)]
    assert [event.by for event in told if event.effect] == ([] if model.cause is None else [model.cause.value])
    _check_dispatch(events, model)


def _check_dispatch(events: list[Event], model: Model) -> None:
    """The log tells the same story of the two deadlines."""
    extended = [event.due_ms for event in events if isinstance(event, DispatchExtended)]
    assert extended == model.extended_ms
    expired = [(event.deadline, event.elapsed_ms) for event in events if isinstance(event, DispatchExpired)]
    ceiling = model.idle_at >= CEILING_S
    passed = "ceiling" if ceiling else "idle", round(min(model.idle_at, CEILING_S) * 1000)
    assert expired == ([passed] if model.cause is Cause.DEADLINE else [])
    assert sum(isinstance(event, DispatchSettled) for event in events) == 1


async def _make(move: str | Cause | float, call: CallScope, model: Model, finish: trio.Event) -> None:
    if isinstance(move, float):
        await trio.sleep(move)
        return
    now = trio.current_time()
    model.advance(now)
    if isinstance(move, Cause):
        assert call.cancel(move) == model.stop(move, now)
    elif move == "speak":
        assert (not call.is_over) == model.heard(now)
    elif move == "progress":
        if not call.is_over:
            call.progressed(Report(1), 0, now)
        if model.heard(now):
            model.report(now)
    else:
        finish.set()
        model.finish(now)

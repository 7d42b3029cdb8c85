"""A call, its handler and whoever wants it stopped: exactly one of them wins, whatever the order."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from probe.core.call import Call, CallViolationError, Cause, State

from . import steps

TOLD = {Cause.DEADLINE, Cause.SHUTDOWN}


class CallMachine(RuleBasedStateMachine):
    """The model: the first cause before the end, and whether the end has come."""

    def __init__(self) -> None:
        super().__init__()
        self.call = Call()
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
            assert self.call.state is (State.SILENT if silenced else State.ANSWERED)

    @invariant()
    def the_first_cause_stays(self) -> None:
        assert (self.call.cause, self.call.cancelled_at) == (self.cause, self.cancelled_at)

    @invariant()
    def it_has_ended_exactly_when_its_work_is_over(self) -> None:
        assert self.call.settled == bool(self.answers) == (self.call.settled_at is not None)


TestCall = CallMachine.TestCase
TestCall.settings = steps(10)

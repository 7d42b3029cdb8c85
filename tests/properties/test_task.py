"""A task: any inputs in any order; final states are final."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from probe.core.task import Status, TaskInput, TaskMachine, TaskViolationError

from . import steps

FINAL = {Status.COMPLETED, Status.FAILED, Status.CANCELLED}
ENDS = {TaskInput.COMPLETE: Status.COMPLETED, TaskInput.FAIL: Status.FAILED, TaskInput.CANCEL: Status.CANCELLED}


class Tasks(RuleBasedStateMachine):
    """The model: what has happened so far, and the end, once there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.task = TaskMachine(1000.0, "created")
        self.final: Status | None = None
        self.message: str | None = "created"
        self.asked = False
        self.clock = 1000.0

    @rule(seconds=st.floats(-10, 100))
    def the_clock_moves(self, seconds: float) -> None:
        self.clock += seconds

    @rule(event=st.sampled_from(TaskInput), message=st.none() | st.text(max_size=3))
    def something_happens(self, event: TaskInput, message: str | None) -> None:
        before, updated = dict(vars(self.task)), self.task.updated_at
        allowed = self.task.allows(event)
        try:
            self.task.move(event, self.clock, message)
        except TaskViolationError:
            assert not allowed
            assert dict(vars(self.task)) == before
            return
        assert allowed
        assert self.final is None, "a final status never changes"
        self.message, self.final = message, ENDS.get(event)
        self.asked = event in (TaskInput.ASK, TaskInput.ANSWER)
        assert self.task.updated_at >= updated

    @precondition(lambda self: self.final is None)
    @rule(event=st.sampled_from([TaskInput.COMPLETE, TaskInput.FAIL, TaskInput.CANCEL]))
    def a_living_task_can_always_end(self, event: TaskInput) -> None:
        assert self.task.allows(event)

    @invariant()
    def the_status_is_what_happened(self) -> None:
        living = Status.INPUT_REQUIRED if self.asked else Status.WORKING
        assert self.task.status is (self.final or living)
        assert self.task.terminal == (self.task.status in FINAL)
        assert self.task.message == self.message

    @invariant()
    def times_are_in_order(self) -> None:
        assert self.task.created_at == 1000.0 <= self.task.updated_at


TestTask = Tasks.TestCase
TestTask.settings = steps(10)

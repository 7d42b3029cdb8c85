"""The task diagram, the same in both eras; what a state means to a client differs and is the codec's business.

2025-11-25 basic/utilities/tasks, "Task Status Lifecycle":

    working         -> input_required | completed | failed | cancelled   (and: working with a new message)
    input_required  -> working | completed | failed | cancelled   (and: input_required with other questions)
    completed, failed, cancelled are final: "MUST NOT transition to any other status"
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum, auto


class Status(StrEnum):
    """The wire values."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


class Input(Enum):
    """The inputs of a task's machine."""

    NOTE = auto()
    ASK = auto()
    ANSWER = auto()
    RESUME = auto()
    COMPLETE = auto()
    FAIL = auto()
    CANCEL = auto()


class TaskViolationError(RuntimeError):
    """The table has no row for this input in this state."""


_TRANSITIONS: Mapping[tuple[Status, Input], Status] = {
    (Status.WORKING, Input.NOTE): Status.WORKING,
    (Status.WORKING, Input.ASK): Status.INPUT_REQUIRED,
    (Status.WORKING, Input.COMPLETE): Status.COMPLETED,
    (Status.WORKING, Input.FAIL): Status.FAILED,
    (Status.WORKING, Input.CANCEL): Status.CANCELLED,
    (Status.INPUT_REQUIRED, Input.ASK): Status.INPUT_REQUIRED,
    (Status.INPUT_REQUIRED, Input.ANSWER): Status.INPUT_REQUIRED,
    (Status.INPUT_REQUIRED, Input.RESUME): Status.WORKING,
    (Status.INPUT_REQUIRED, Input.COMPLETE): Status.COMPLETED,
    (Status.INPUT_REQUIRED, Input.FAIL): Status.FAILED,
    (Status.INPUT_REQUIRED, Input.CANCEL): Status.CANCELLED,
}


class TaskMachine:
    """One task: its status, the message beside it, and when they changed (seconds since the epoch)."""

    def __init__(self, created_at: float, message: str | None = None) -> None:
        self.status = Status.WORKING
        self.message = message
        self.created_at = self.updated_at = created_at

    @property
    def terminal(self) -> bool:
        """Whether the status is final."""
        return self.status in TERMINAL

    def allows(self, event: Input) -> bool:
        """Whether the table has a row."""
        return (self.status, event) in _TRANSITIONS

    def move(self, event: Input, now: float, message: str | None = None) -> None:
        """Change status and message. Raises `TaskViolationError` where the table has no row; then nothing changed."""
        try:
            self.status = _TRANSITIONS[self.status, event]
        except KeyError:
            raise TaskViolationError(f"task cannot {event.name} in status {self.status}") from None
        self.message = message
        self.updated_at = max(self.updated_at, now)

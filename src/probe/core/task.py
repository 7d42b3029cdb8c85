"""A task: its status, the same diagram in both eras, and the questions that its client answers by `tasks/update`.

2025-11-25 basic/utilities/tasks, "Task Status Lifecycle":

    working         -> input_required | completed | failed | cancelled   (and: working with a new message)
    input_required  -> working | completed | failed | cancelled   (and: input_required with other questions)
    completed, failed, cancelled are final: "MUST NOT transition to any other status"

a key          ask            update                                                        withdraw
    never used     outstanding    ignored: "keys that were never issued"                        -
    outstanding    violation      answered                                                      withdrawn
    answered       violation      ignored: "keys that have already been answered"               answered
    withdrawn      violation      ignored: "keys whose corresponding request has been superseded"   withdrawn

Tasks extension, Task Update Requests: "Each request key in `inputRequests` MUST be unique over the lifetime of a single
task".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, StrEnum, auto

from ..wire.jsonrpc import Json


class Status(StrEnum):
    """The wire values."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


class TaskInput(Enum):
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


_TRANSITIONS: Mapping[tuple[Status, TaskInput], Status] = {
    (Status.WORKING, TaskInput.NOTE): Status.WORKING,
    (Status.WORKING, TaskInput.ASK): Status.INPUT_REQUIRED,
    (Status.WORKING, TaskInput.COMPLETE): Status.COMPLETED,
    (Status.WORKING, TaskInput.FAIL): Status.FAILED,
    (Status.WORKING, TaskInput.CANCEL): Status.CANCELLED,
    (Status.INPUT_REQUIRED, TaskInput.ASK): Status.INPUT_REQUIRED,
    (Status.INPUT_REQUIRED, TaskInput.ANSWER): Status.INPUT_REQUIRED,
    (Status.INPUT_REQUIRED, TaskInput.RESUME): Status.WORKING,
    (Status.INPUT_REQUIRED, TaskInput.COMPLETE): Status.COMPLETED,
    (Status.INPUT_REQUIRED, TaskInput.FAIL): Status.FAILED,
    (Status.INPUT_REQUIRED, TaskInput.CANCEL): Status.CANCELLED,
}


class TaskMachine:
    """One task: its status, the message beside it, and when they changed (seconds since the epoch)."""

    def __init__(self, created_at: float, message: str | None = None) -> None:
        self.status = Status.WORKING
        self.message = message
        self.created_at = self.updated_at = created_at

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL

    def allows(self, event: TaskInput) -> bool:
        return (self.status, event) in _TRANSITIONS

    def move(self, event: TaskInput, now: float, message: str | None = None) -> None:
        """Change status and message. Raises `TaskViolationError` where the table has no row; then nothing changed."""
        try:
            self.status = _TRANSITIONS[self.status, event]
        except KeyError:
            raise TaskViolationError(f"task cannot {event.name} in status {self.status}") from None
        self.message = message
        self.updated_at = max(self.updated_at, now)


class TaskInputsViolationError(RuntimeError):
    """A key was used for a second question: a defect of this server, never of a client."""


class TaskInputs:
    """The questions of a task, and their answers."""

    def __init__(self) -> None:
        self._outstanding: dict[str, Json] = {}
        self._answers: dict[str, Json] = {}
        self._withdrawn: set[str] = set()

    @property
    def outstanding(self) -> Mapping[str, Json]:
        """The requests without an answer, by key, in the order in which they were asked."""
        return dict(self._outstanding)

    def ask(self, requests: Mapping[str, Json]) -> None:
        """Ask questions. Raises `TaskInputsViolationError` for a key used before; then none is asked."""
        used = sorted(requests.keys() & (self._outstanding.keys() | self._answers.keys() | self._withdrawn))
        if used:
            raise TaskInputsViolationError(f"the task has asked under {', '.join(used)} before")
        self._outstanding.update(requests)

    def update(self, responses: Mapping[str, Json]) -> int:
        """Take the answers to outstanding questions and ignore others; returns how many were taken."""
        taken = [key for key in responses if key in self._outstanding]
        for key in taken:
            del self._outstanding[key]
            self._answers[key] = responses[key]
        return len(taken)

    def withdraw(self, keys: Iterable[str]) -> int:
        """Forget these questions; returns the number of those without an answer."""
        given_up = [key for key in keys if key in self._outstanding]
        for key in given_up:
            del self._outstanding[key]
            self._withdrawn.add(key)
        return len(given_up)

    def answers(self, keys: Iterable[str]) -> Mapping[str, Json] | None:
        """None while one of the answers is missing."""
        wanted = list(keys)
        return {key: self._answers[key] for key in wanted} if all(key in self._answers for key in wanted) else None

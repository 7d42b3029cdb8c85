"""The task diagram: every input in every status, against 2025-11-25 basic/utilities/tasks, "Task Status Lifecycle"."""

from __future__ import annotations

from typing import Any

import pytest

from probe.core.task import TERMINAL, Status, TaskInput, TaskMachine, TaskViolationError

# 2025-11-25 basic/utilities/tasks, Task Status Lifecycle: what "working" and "input_required" may move to.
TABLE = {
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
EVERY = [(status, event) for status in Status for event in TaskInput]

_PATHS = {
    Status.WORKING: [],
    Status.INPUT_REQUIRED: [TaskInput.ASK],
    Status.COMPLETED: [TaskInput.COMPLETE],
    Status.FAILED: [TaskInput.FAIL],
    Status.CANCELLED: [TaskInput.CANCEL],
}


def reach(status: Status) -> TaskMachine:
    """A task in a status; its last change was at 200, with the message "before"."""
    task = TaskMachine(100.0, "before")
    for event in _PATHS[status]:
        task.move(event, 200.0, "before")
    assert task.status is status
    return task


def facts(task: TaskMachine) -> dict[str, Any]:
    return dict(vars(task))


@pytest.mark.proves("2025-11-25/tasks/10")
def test_a_task_begins_working() -> None:
    expected = {"status": Status.WORKING, "message": "hello", "created_at": 100.0, "updated_at": 100.0}
    assert facts(TaskMachine(100.0, "hello")) == expected


def test_the_wire_values_are_those_of_the_protocol() -> None:
    assert {status.value for status in Status} == {"working", "input_required", "completed", "failed", "cancelled"}


@pytest.mark.proves("2025-11-25/tasks/11")
@pytest.mark.parametrize(("status", "event"), TABLE)
def test_a_row_of_the_table_moves(status: Status, event: TaskInput) -> None:
    task = reach(status)
    assert task.allows(event)
    before = facts(task)
    task.move(event, 300.0, "after")
    assert facts(task) == {**before, "status": TABLE[status, event], "message": "after", "updated_at": 300.0}


@pytest.mark.proves("2025-11-25/tasks/11", "2025-11-25/tasks/12")
@pytest.mark.parametrize(("status", "event"), [pair for pair in EVERY if pair not in TABLE])
def test_a_missing_row_raises_and_changes_nothing(status: Status, event: TaskInput) -> None:
    task = reach(status)
    assert not task.allows(event)
    before = facts(task)
    with pytest.raises(TaskViolationError, match=f"cannot {event.name} in status {status}"):
        task.move(event, 300.0, "after")
    assert facts(task) == before


@pytest.mark.proves("2025-11-25/tasks/12")
@pytest.mark.parametrize("status", Status)
def test_terminal_is_what_nothing_leaves(status: Status) -> None:
    task = reach(status)
    assert task.terminal == (status in TERMINAL)
    assert task.terminal == (not any(task.allows(event) for event in TaskInput))


def test_a_change_without_a_message_takes_the_old_one_away() -> None:
    task = reach(Status.WORKING)
    task.move(TaskInput.NOTE, 300.0)
    assert task.message is None


def test_updated_at_never_goes_back() -> None:
    task = reach(Status.INPUT_REQUIRED)
    task.move(TaskInput.RESUME, 150.0)
    assert task.updated_at == 200.0

"""Tasks as the tasks extension tells them: `tasks/get`, `tasks/update`, `tasks/cancel`, `notifications/tasks`.

There is no session, so a task belongs to whoever knows its id ("A server MAY use task IDs as bearer tokens"); the ids
are unguessable, and a legacy session's tasks are not found here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.call import Cause
from ...core.subscription import Change
from ...core.task import Input, Status
from ...settings import Settings
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, clip
from ...wire.v2026.codec import describe_task, detailed_task, modern_error
from ...wire.v2026.registry import TaskParams, UpdateTaskParams
from ..calls import CallScope
from ..clock import iso
from ..context import Context
from ..interactions import Interactions
from ..outcome import Outcome
from ..tasks import Task, TaskService, said
from ..tool import Tool
from ..tool_runs import ToolRuns, tool_work
from .channels import TaskChannel
from .incoming import Incoming
from .listeners import Listener, Listeners
from .rounds import Rounds, check_answers

OWNER = "modern"
"""The owner of every modern task; the label of a session is another word."""


class TaskDesk:
    """Where modern clients get tasks, ask for them, answer and cancel them."""

    def __init__(
        self,
        tasks: TaskService,
        settings: Settings,
        listeners: Listeners,
        interactions: Interactions,
        runs: ToolRuns,
    ) -> None:
        self.tasks = tasks
        self._settings = settings
        self._listeners = listeners
        self._interactions = interactions
        self._runs = runs

    def create(
        self,
        incoming: Incoming,
        tool: Tool,
        call: CallScope,
        arguments: Mapping[str, Any],
        answers: Mapping[str, Json],
        rounds: Rounds,
    ) -> Json:
        """Store the task, have it started, and describe it for the `CreateTaskResult`.

        "A server MUST NOT return `CreateTaskResult` until the task is durably created".
        """

        def context(task: Task) -> Context:
            channel = TaskChannel(
                task, self.tasks, incoming, rounds, self._listeners, self._interactions, self._settings
            )
            # The extension has no progress notifications, so a token would have nothing to name.
            return self._runs.context(call, channel, arguments, None, answers)

        task = self.tasks.create(
            id=call.facts.task or "",
            owner=OWNER,
            holder=incoming.source.holder,
            tool=tool.name,
            ttl_ms=self.tasks.ttl(None),
            call=call,
            announce=lambda: self._announce(task),
            ending=ending,
            context=context,
            work=tool_work(tool),
            message="The task has begun.",
        )
        return self._describe(task)

    def get(self, params: TaskParams) -> Json:
        """`tasks/get`: a `DetailedTask`."""
        return self.detailed(self._find(params.task_id))

    def update(self, params: UpdateTaskParams) -> Json:
        """`tasks/update`: take the answers to what is outstanding; an answer that does not fit takes none of them."""
        task = self._find(params.task_id)
        if not task.machine.terminal:
            asked = {key: ask["method"] for key, ask in task.inputs.outstanding.items()}
            check_answers(asked, params.input_responses)
            self.tasks.answered(task, task.inputs.update(params.input_responses))
        return {}

    def cancel(self, params: TaskParams) -> Json:
        """`tasks/cancel`: an empty acknowledgement, whatever the task's status."""
        task = self._find(params.task_id)
        if not task.machine.terminal:
            self.tasks.cancel(task, Cause.TASKS_CANCEL, "The task was cancelled by request.")
        return {}

    def knows(self, id: str) -> bool:
        """Whether an id names a task."""
        return self.tasks.find(id, OWNER) is not None

    def detailed(self, task: Task) -> Json:
        """The task with what its status inlines."""
        return detailed_task(self._describe(task), _detail(task))

    def publish(self, id: str, listener: Listener) -> None:
        """Tell one subscription how a task stands now."""
        task = self.tasks.find(id, OWNER)
        if task is not None:
            self._listeners.offer(listener, Change("task", id), self.detailed(task))

    def _announce(self, task: Task) -> None:
        self._listeners.publish(Change("task", task.id), lambda: self.detailed(task))

    def _find(self, task_id: str) -> Task:
        task = self.tasks.find(task_id, OWNER)
        if task is None:
            raise McpError(Code.INVALID_PARAMS, f"Task not found: {clip(task_id)} is unknown or has expired")
        return task

    def _describe(self, task: Task) -> Json:
        machine = task.machine
        return describe_task(
            id=task.id,
            status=machine.status.value,
            message=machine.message,
            created_at=iso(machine.created_at),
            updated_at=iso(machine.updated_at),
            ttl_ms=task.ttl_ms,
            poll_ms=self._settings.task_poll_ms,
        )


def _detail(task: Task) -> Json | None:
    match task.machine.status:
        case Status.INPUT_REQUIRED:
            return dict(task.inputs.outstanding)
        case Status.COMPLETED:
            assert task.outcome is not None, "a task completes with its outcome"
            return task.outcome.result or {}
        case Status.FAILED:
            assert task.outcome is not None, "a task fails with its outcome"
            error = task.outcome.error or McpError(Code.INTERNAL_ERROR, "Internal error")
            return modern_error(error.body())
        case _:
            return None


def ending(outcome: Outcome) -> tuple[Input, str]:
    """What an outcome makes of a task.

    Tasks extension, Task Execution Errors: "The `failed` status MUST NOT be used to represent non-JSON-RPC errors, such
    as a tool result that completed with `isError: true`."
    """
    match outcome.kind:
        case "completed":
            return Input.COMPLETE, "The task is completed."
        case "tool_error":
            return Input.COMPLETE, said(outcome)
        case "given_up":
            return Input.CANCEL, said(outcome)
        case _:
            return Input.FAIL, said(outcome)

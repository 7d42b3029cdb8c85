"""Tasks of the tasks extension: `tasks/get`, `tasks/update`, `tasks/cancel`, `notifications/tasks`.

There is no session, so any client that knows the id of a task may use it ("A server MAY use task IDs as bearer
tokens"). The ids cannot be guessed.
"""

from __future__ import annotations

from ...core.call import Cause
from ...core.subscription import Change
from ...core.task import Status, TaskInput
from ...log.context import Recorder
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, clip
from ...wire.v2026.codec import TaskTimes, describe_task, detailed_task, modern_error
from ...wire.v2026.registry import TaskParams, UpdateTaskParams
from ..calls.context import ToolContext
from ..calls.outcome import Outcome
from ..calls.scope import CallScope
from ..calls.tool_runs import ToolRuns, tool_work
from ..catalogue.tool import Tool
from ..clock import iso
from ..services import Services
from ..tasks import Task, TaskPlan, TaskService, failure_text
from .channels import ModernTaskChannel
from .listeners import Listener, Listeners
from .rounds import Admitted, Incoming, check_answers

OWNER = "modern"
"""The owner of every modern task; no session has this label."""


class ModernTaskMethods:
    """The methods of tasks in the modern era: get, update and cancel."""

    def __init__(self, services: Services, tasks: TaskService, listeners: Listeners, runs: ToolRuns) -> None:
        self.tasks = tasks
        self._services = services
        self._settings = services.settings
        self._listeners = listeners
        self._runs = runs

    def create(self, incoming: Incoming, tool: Tool, admitted: Admitted, call: CallScope) -> Json:
        """Store the task, have it started, and describe it for the `CreateTaskResult`.

        "A server MUST NOT return `CreateTaskResult` until the task is durably created".
        """

        def context(task: Task) -> ToolContext:
            channel = ModernTaskChannel(task, self.tasks, incoming, admitted.rounds, self._listeners, self._services)
            # The extension has no progress notifications, so the token is dropped. Without a token, `ToolContext` gives
            # each report to `show_progress` of the channel, which sets the status message.
            return self._runs.context(call, channel, admitted.arguments, None, admitted.answers)

        plan = TaskPlan(
            owner=OWNER,
            holder=incoming.context.holder,
            tool=tool.name,
            ttl_ms=self.tasks.ttl(None),
            message="The task has begun.",
            announce=self._announce,
            ending=ending,
            context=context,
            work=tool_work(tool),
        )
        return self._describe(self.tasks.create(call, plan))

    def get(self, incoming: Incoming, params: TaskParams) -> Json:
        """`tasks/get`: a `DetailedTask`."""
        return self.detailed(self._found(incoming, params.task_id))

    def update(self, incoming: Incoming, params: UpdateTaskParams) -> Json:
        """`tasks/update`: take the answers to open questions, all of them or, if one has the wrong form, none."""
        task = self._found(incoming, params.task_id)
        if not task.machine.terminal:
            asked = {key: ask["method"] for key, ask in task.inputs.outstanding.items()}
            check_answers(asked, params.input_responses)
            self.tasks.answered(task, task.inputs.update(params.input_responses), incoming.context.recorder)
        return {}

    def cancel(self, incoming: Incoming, params: TaskParams) -> Json:
        """`tasks/cancel`: an empty acknowledgement for any status of the task."""
        task = self._found(incoming, params.task_id)
        if not task.machine.terminal:
            message = "The task was cancelled by request."
            self.tasks.cancel(task, Cause.TASKS_CANCEL, message, incoming.context.recorder)
        return {}

    def knows(self, id: str) -> bool:
        """True if an id names a task."""
        return self.tasks.find(id, OWNER) is not None

    def detailed(self, task: Task) -> Json:
        return detailed_task(self._describe(task), _detail(task))

    def publish(self, id: str, listener: Listener) -> None:
        """Notify one subscription of the present state of a task."""
        task = self.tasks.find(id, OWNER)
        if task is not None:
            recorder = task.call.recorder.caused_by(listener.call.recorder.cause)
            self._listeners.offer(listener, Change("task", id), self.detailed(task), recorder)

    def _announce(self, task: Task, recorder: Recorder) -> None:
        self._listeners.publish(Change("task", task.id), lambda: self.detailed(task), recorder)

    def _found(self, incoming: Incoming, task_id: str) -> Task:
        task = self.tasks.find(task_id, OWNER)
        if task is None:
            raise McpError(Code.INVALID_PARAMS, f"Task not found: {clip(task_id)} is unknown or has expired")
        incoming.context.concerns(task.call.recorder)
        return task

    def _describe(self, task: Task) -> Json:
        machine = task.machine
        created, updated = iso(machine.created_at), iso(machine.updated_at)
        times = TaskTimes(created, updated, task.ttl_ms, self._settings.task_poll_ms)
        return describe_task(task.id, machine.status.value, machine.message, times)


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


def ending(outcome: Outcome) -> tuple[TaskInput, str]:
    """The step of a task's machine that an outcome causes.

    Tasks extension, Task Execution Errors: "The `failed` status MUST NOT be used to represent non-JSON-RPC errors, such
    as a tool result that completed with `isError: true`."
    """
    match outcome.kind:
        case "completed":
            return TaskInput.COMPLETE, "The task is completed."
        case "tool_error":
            return TaskInput.COMPLETE, failure_text(outcome)
        case "given_up":
            return TaskInput.CANCEL, failure_text(outcome)
        case _:
            return TaskInput.FAIL, failure_text(outcome)

"""Tasks of 2025-11-25: handles, `tasks/get`, `tasks/result`, `tasks/list`, `tasks/cancel`, notifications."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...core.call import Cause
from ...core.task import TaskInput
from ...log.context import Recorder
from ...wire.client_messages import CancelTaskRequestParams, GetTaskRequestParams, PaginatedRequestParams
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, clip, notification
from ..calls.context import ToolContext
from ..calls.outcome import Outcome
from ..calls.request_context import RequestContext
from ..calls.scope import CallScope
from ..calls.tool_runs import ToolRuns, tool_work
from ..catalogue.offers import cursor, position
from ..catalogue.tool import Tool
from ..clock import iso
from ..services import Services
from ..sessions import Session
from ..streams.sending import drop, send
from ..streams.stream import Stream
from ..tasks import Task, TaskPlan, TaskService, failure_text
from .channels import RELATED_TASK, LegacyTaskChannel, TaskRoutes

IMMEDIATE_RESPONSE = "io.modelcontextprotocol/model-immediate-response"


class LegacyTaskMethods:
    """The methods of tasks in the legacy era: create, get, list, result and cancel."""

    def __init__(self, services: Services, tasks: TaskService, runs: ToolRuns) -> None:
        self.tasks = tasks
        self._runs = runs
        self._settings = services.settings
        self._routes = TaskRoutes()

    def create(
        self, session: Session, tool: Tool, arguments: Mapping[str, Any], ttl: int | None, call: CallScope
    ) -> Json:
        """Store the task, have it started, and return its handle, a `CreateTaskResult`."""

        def context(task: Task) -> ToolContext:
            channel = LegacyTaskChannel(session, self._settings, task, self.tasks, self._routes)
            return self._runs.context(call, channel, arguments, call.progress_token, {})

        plan = TaskPlan(
            owner=session.label,
            holder=session.holder,
            tool=tool.name,
            ttl_ms=self.tasks.ttl(ttl),
            message="The task has begun.",
            announce=partial(self._announce, session),
            ending=ending,
            context=context,
            work=tool_work(tool),
        )
        task = self.tasks.create(call, plan)
        text = f"{tool.title} is running as task {task.id}. Its result will follow; you can go on meanwhile."
        meta = {RELATED_TASK: {"taskId": task.id}, IMMEDIATE_RESPONSE: text}
        return {"task": self._describe(task), "_meta": meta}

    def get(self, session: Session, params: GetTaskRequestParams, context: RequestContext) -> Json:
        """`tasks/get`."""
        task = self._find(session, params.task_id)
        context.concerns(task.call.recorder)
        return self._describe(task)

    def list(self, session: Session, params: PaginatedRequestParams) -> Json:
        """`tasks/list`: the session's own tasks, oldest first. A cursor stays valid when earlier tasks expire."""
        after, size = position("tasks", params.cursor), self._settings.page_size
        rest = [task for task in self.tasks.of(session.label) if task.ordinal > after]
        page: Json = {"tasks": [self._describe(task) for task in rest[:size]]}
        return page if len(rest) <= size else {**page, "nextCursor": cursor("tasks", rest[size - 1].ordinal)}

    def cancel(self, session: Session, params: CancelTaskRequestParams, context: RequestContext) -> Json:
        """`tasks/cancel`: the status is `cancelled` before this returns."""
        task = self._find(session, params.task_id)
        context.concerns(task.call.recorder)
        if task.machine.terminal:
            status = task.machine.status
            raise McpError(Code.INVALID_PARAMS, f"Cannot cancel task: already in terminal status '{status}'")
        self.tasks.cancel(task, Cause.TASKS_CANCEL, "The task was cancelled by request.", context.recorder)
        return self._describe(task)

    async def result(self, session: Session, task_id: str, stream: Stream) -> Json:
        """`tasks/result`: wait for the terminal status, then return exactly what the call would have returned."""
        task = self._find(session, task_id)
        self._routes.open(task.id, stream)
        # The connection reads the stream already, but the task's questions may go there only from now on.
        session.reader_attached()
        try:
            await task.wait_terminal()
        finally:
            self._routes.close(task.id, stream)
        return self._payload(task)

    def _payload(self, task: Task) -> Json:
        related = {RELATED_TASK: {"taskId": task.id}}
        if task.call.machine.cause is Cause.TTL:
            raise _not_found(task.id)
        if task.outcome is None or task.outcome.kind == "given_up":
            raise McpError(Code.TASK_CANCELLED, task.machine.message or "cancelled", {"_meta": related})
        if task.outcome.error is not None:
            raise task.outcome.error
        result = task.outcome.result or {}
        return {**result, "_meta": {**result.get("_meta", {}), **related}}

    def _announce(self, session: Session, task: Task, recorder: Recorder) -> None:
        """Send a change of status, on one stream.

        2025-11-25 basic/utilities/tasks: the notification "SHOULD NOT include the related-task metadata".
        """
        message = notification("notifications/tasks/status", self._describe(task))
        stream = self._routes.best(task.id, session)
        if stream is None or stream.replay.closed:
            drop(recorder, message, "no stream is open")
        else:
            send(recorder, stream, message)

    def _find(self, session: Session, task_id: str) -> Task:
        task = self.tasks.find(task_id, session.label)
        if task is None:
            raise _not_found(task_id)
        return task

    def _describe(self, task: Task) -> Json:
        machine = task.machine
        described: Json = {"taskId": task.id, "status": machine.status.value}
        if machine.message is not None:
            described["statusMessage"] = machine.message
        return {
            **described,
            "createdAt": iso(machine.created_at),
            "lastUpdatedAt": iso(machine.updated_at),
            "ttl": task.ttl_ms,
            "pollInterval": self._settings.task_poll_ms,
        }


def _not_found(task_id: str) -> McpError:
    return McpError(Code.INVALID_PARAMS, f"Task not found: {clip(task_id)} is unknown, expired, or another session's")


def ending(outcome: Outcome) -> tuple[TaskInput, str]:
    """The step of a task's machine that an outcome causes.

    2025-11-25 basic/utilities/tasks, `failed`: "For tool calls specifically, this includes cases where the tool call
    result has `isError` set to true."
    """
    if outcome.kind == "completed":
        return TaskInput.COMPLETE, "The task is completed."
    return TaskInput.CANCEL if outcome.kind == "given_up" else TaskInput.FAIL, failure_text(outcome)

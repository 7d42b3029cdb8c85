"""`tools/call` and tasks of the legacy era. A call is answered at once, runs on a stream, or becomes a task.

the tool                     without `task`                 with `task` (2025-11-25)
taskSupport absent           runs                           -32601
taskSupport "required"       -32601                         a handle, at once
taskSupport "optional"       runs                           a handle, at once
before 2025-11-25            runs, unless "required"        `task` is ignored
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...core.call import Cause
from ...core.task import TaskInput
from ...log.context import Recorder
from ...wire.client_messages import (
    CallToolRequestParams,
    CancelTaskRequestParams,
    GetTaskRequestParams,
    PaginatedRequestParams,
    TaskMetadata,
)
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, ProgressToken, Request, clip, id_length, is_id, notification
from ...wire.revisions import V2025_11_25
from ...wire.v2025.registry import offers, task_request
from ..calls.context import ToolContext
from ..calls.outcome import Outcome
from ..calls.scope import CallScope
from ..calls.tool_runs import Start, ToolCallRequest, ToolPlan, ToolRuns, tool_work
from ..catalogue.offers import cursor, position
from ..catalogue.tool import ArgumentsError, Tool, ToolFailureError
from ..clock import iso
from ..messages import RequestContext
from ..services import Services
from ..sessions import Session
from ..streams.stream import NO_STREAM, Stream, drop, send
from ..tasks import Task, TaskPlan, TaskService, failure_text
from .channels import RELATED_TASK, LegacyCallChannel, LegacyTaskChannel, TaskRoutes

IMMEDIATE_RESPONSE = "io.modelcontextprotocol/model-immediate-response"


class LegacyTools:
    """`tools/call`, and the methods of tasks in the legacy era."""

    def __init__(self, services: Services, tasks: TaskService, runs: ToolRuns) -> None:
        self.tasks = tasks
        self._runs = runs
        self._settings = services.settings
        self._limits = services.limits
        self._routes = TaskRoutes()

    def call(
        self, session: Session, request: Request, params: CallToolRequestParams, context: RequestContext
    ) -> Outcome | Start:
        offer = session.offer
        token = progress_token(request.params, self._limits.max_id_length)
        task = task_request(params, offer.revision)
        asked = ToolCallRequest(request.id, params.name, params.arguments or {}, token)
        self._note_token(session, token, context)
        return self._runs.call(context, offer, asked, partial(self._judge, session, asked, task, context))

    def _judge(
        self, session: Session, asked: ToolCallRequest, task: TaskMetadata | None, context: RequestContext
    ) -> ToolPlan:
        revision, tool = session.machine.revision, session.offer.tool(asked.tool)
        _check_task_support(tool, task is not None, revision)
        _check_capabilities(tool, session)
        try:
            arguments = tool.read_arguments(asked.arguments)
        except ArgumentsError as error:
            # 2025-11-25 server/tools: input validation errors are tool errors. A task's only result is its handle.
            if task is not None or revision < V2025_11_25:
                raise McpError(Code.INVALID_PARAMS, f"Invalid params: {error}") from None
            raise ToolFailureError(f"Invalid arguments: {error}") from None
        channel = partial(LegacyCallChannel, session, self._settings)
        if task is None:
            return ToolPlan(tool, arguments, {}, channel)
        self.tasks.check_room(session.label, context)
        return ToolPlan(tool, arguments, {}, channel, partial(self._create, session, tool, arguments, task.ttl))

    def _note_token(self, session: Session, token: ProgressToken | None, context: RequestContext) -> None:
        if token is None:
            return
        used = [call.progress_token for call in session.calls.values()]
        if any(token == other and type(token) is type(other) for other in used):
            clause = "2025-11-25 basic/utilities/progress: tokens MUST be unique across all active requests"
            context.misuse("progress token in use", clause, f"token {token!r}")

    def _create(
        self, session: Session, tool: Tool, arguments: Mapping[str, Any], ttl: int | None, call: CallScope
    ) -> Json:
        def context(task: Task) -> ToolContext:
            channel = LegacyTaskChannel(session, self._settings, call, task, self.tasks, self._routes)
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
        task = self._find(session, params.task_id)
        context.concerns(task.call.recorder)
        return self._describe(task)

    def list(self, session: Session, params: PaginatedRequestParams) -> Json:
        """The session's own tasks, oldest first. A cursor stays valid when earlier tasks expire."""
        after, size = position("tasks", params.cursor), self._settings.page_size
        rest = [task for task in self.tasks.of(session.label) if task.ordinal > after]
        page: Json = {"tasks": [self._describe(task) for task in rest[:size]]}
        return page if len(rest) <= size else {**page, "nextCursor": cursor("tasks", rest[size - 1].ordinal)}

    def cancel(self, session: Session, params: CancelTaskRequestParams, context: RequestContext) -> Json:
        """The status is `cancelled` before this returns."""
        task = self._find(session, params.task_id)
        context.concerns(task.call.recorder)
        if task.machine.terminal:
            status = task.machine.status
            raise McpError(Code.INVALID_PARAMS, f"Cannot cancel task: already in terminal status '{status}'")
        self.tasks.cancel(task, Cause.TASKS_CANCEL, "The task was cancelled by request.", context.recorder)
        return self._describe(task)

    async def result(self, session: Session, task_id: str, stream: Stream) -> Json:
        """Wait for the terminal status, then return exactly what the call would have returned."""
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
        """2025-11-25 basic/utilities/tasks: the notification "SHOULD NOT include the related-task metadata"."""
        message = notification("notifications/tasks/status", self._describe(task))
        stream = self._routes.best(task.id, session)
        if stream is None or stream.replay.closed:
            drop(recorder, message, NO_STREAM if stream is None else "the stream has ended")
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
            "ttl": task.plan.ttl_ms,
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


def progress_token(params: Mapping[str, Any] | None, max_length: int) -> ProgressToken | None:
    """The token of a request; 0 and "" are tokens. Raises `McpError` for a token of another type, or a too long one."""
    meta = (params or {}).get("_meta")
    if not isinstance(meta, Mapping) or "progressToken" not in meta:
        return None
    token = meta["progressToken"]
    if not is_id(token):
        raise McpError(Code.INVALID_PARAMS, "Invalid params: params._meta.progressToken must be a string or an integer")
    if id_length(token) > max_length:
        why = f"Invalid params: params._meta.progressToken is longer than {max_length} characters (max_id_length)"
        raise McpError(Code.INVALID_PARAMS, why)
    return token


def _check_task_support(tool: Tool, as_task: bool, revision: str) -> None:
    if as_task and tool.task_support == "forbidden":
        raise McpError(Code.METHOD_NOT_FOUND, f"Tool {tool.name} cannot run as a task; call it without params.task")
    if not as_task and tool.task_support == "required":
        way = "call it with params.task" if revision >= V2025_11_25 else f"revision {revision} has no tasks"
        raise McpError(Code.METHOD_NOT_FOUND, f"Tool {tool.name} only runs as a task; {way}")


def _check_capabilities(tool: Tool, session: Session) -> None:
    machine = session.machine
    tool.check_revision(machine.revision)
    missing = [name for name in tool.requires if not offers(machine.capabilities, machine.revision, name)]
    if missing:
        needed: Json = {"requiredCapabilities": {name: {} for name in missing}}
        raise McpError(
            Code.INVALID_PARAMS,
            f"Tool {tool.name} asks the client, which did not declare the capability {', '.join(missing)}",
            needed,
        )

"""`tools/call` and tasks of the legacy era, and their channels to the client.

    the tool                     without `task`                 with `task` (2025-11-25)
    taskSupport absent           runs                           -32601
    taskSupport "required"       -32601                         a handle, at once
    taskSupport "optional"       runs                           a handle, at once
    before 2025-11-25            runs, unless "required"        `task` is ignored

A call sends its messages on the stream of its own response. Those of a task go to the open `tasks/result` stream of the
task, else to the session's GET stream. Each message goes on exactly one stream (2025-11-25 basic/transports, Multiple
Connections: the server "MUST NOT broadcast the same message across multiple streams").
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import trio

from ...core.call import Cause
from ...core.session import SessionState
from ...core.task import TaskInput
from ...log.context import Recorder
from ...log.events import ClientMisuse
from ...settings import Settings
from ...wire.client_messages import (
    CallToolRequestParams,
    CancelTaskRequestParams,
    GetTaskRequestParams,
    PaginatedRequestParams,
    TaskMetadata,
)
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, ProgressToken, Request, RequestId, clip, id_length, is_id, notification, request
from ...wire.revisions import V2025_11_25
from ...wire.v2025.registry import SERVER_REQUESTS, client_result, offers, task_request
from ...wire.v2026.meta import required_capabilities
from ..calls.context import LEVELS, Channel, ToolContext
from ..calls.outcome import Outcome
from ..calls.scope import CallScope
from ..calls.tool_runs import Start, ToolCallRequest, ToolPlan, ToolRuns
from ..catalogue.offers import cursor, position
from ..catalogue.tool import ArgumentsError, Ask, ClientRequestError, ListKind, LogLevel, Tool, ToolFailureError
from ..clock import iso
from ..messages import RequestContext
from ..services import ConfirmationPage, Services
from ..sessions import ClientAnswer, Session
from ..streams.draft_streams import ToolStream
from ..streams.stream import NO_STREAM, Stream, drop, send
from ..tasks import Task, TaskPlan, TaskService, failure_text

RELATED_TASK = "io.modelcontextprotocol/related-task"


def announce(session: Session, changed: ListKind, recorder: Recorder) -> None:
    """Notify a session of a changed list. This goes on the GET stream, since it belongs to no request."""
    message, stream = notification(f"notifications/{changed}/list_changed", None), session.standalone
    if stream is None or stream.replay.closed:
        drop(recorder, message, NO_STREAM if stream is None else "the session has ended")
    else:
        send(recorder, stream, message)


@dataclass(eq=False)
class _LegacyChannel(Channel):
    session: Session
    settings: Settings
    call: CallScope

    def declares(self, method: str) -> bool:
        machine, row = self.session.machine, SERVER_REQUESTS[method]
        capable = row.capability is None or offers(machine.capabilities, machine.revision, row.capability)
        return capable and row.since <= machine.revision

    @contextmanager
    def open_page(self, key: str) -> Iterator[ConfirmationPage]:
        session = self.session
        id = session.interactions.open(session.origin, session.holder, self.call.recorder)
        try:
            yield session.interactions.page(id, session.origin, elicitationId=id)
        finally:
            session.interactions.answer(id)

    async def wait_confirmed(self, page: ConfirmationPage) -> None:
        """Wait, and then notify the client: "Servers MAY send a `notifications/elicitation/complete` notification"."""
        await self.session.interactions.wait_confirmed(page, self.settings.client_request_s)
        self.notify("notifications/elicitation/complete", {**page.named})

    def announce(self, changed: ListKind) -> None:
        announce(self.session, changed, self.call.recorder)

    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """Send the questions one after the other: most people can look at one form at a time."""
        return {key: await self.ask_one(ask.method, self._params(key, ask)) for key, ask in asks.items()}

    def _params(self, key: str, ask: Ask) -> Json:
        if not ask.progress:
            return ask.params
        # 2025-11-25 basic/utilities/progress: tokens "MUST be unique across all active requests".
        token = f"{self.call.recorder.context.call}-{key}"
        return {**ask.params, "_meta": {"progressToken": token}}

    @abstractmethod
    async def ask_one(self, method: str, params: Json) -> Json: ...

    def wants_log(self, level: LogLevel) -> bool:
        return LEVELS.index(level) >= LEVELS.index(self.session.log_level)

    async def _ask(self, stream: Stream, method: str, params: Json, meta: Json) -> ClientAnswer:
        settings, session = self.settings, self.session
        person = method in ("sampling/createMessage", "elicitation/create")
        sent = {**params, "_meta": {**params.get("_meta", {}), **meta}} if meta else params

        def put(id: RequestId) -> Recorder | None:
            return self._emit(stream, request(id, method, sent))

        def withdraw(id: RequestId, reason: str) -> None:
            params = {"requestId": id, "reason": reason}
            shown = {**params, "_meta": meta} if meta else params
            self._emit(stream, notification("notifications/cancelled", shown), by_work=False)

        timeout_s = settings.client_request_s if person else settings.client_ping_s
        # On a resumable stream, the answer may come in another session than the question.
        questions = stream.questions if isinstance(stream, ToolStream) else session.client_requests
        answer = await questions.ask(method, put, withdraw, timeout_s)
        fault = client_result(method, answer.result)
        if fault is not None:
            clause = f"{session.machine.revision} schema, {method}"
            answer.recorder.append(ClientMisuse("malformed result", clause, fault))
            raise ClientRequestError(f"The client's answer to {method} is malformed: {fault}")
        return answer

    def _check(self, method: str, mode: Any) -> None:
        machine = self.session.machine
        if machine.state is SessionState.NEGOTIATED:
            # 2025-11-25 basic/lifecycle: the server SHOULD NOT send requests other than pings before this notification.
            raise ClientRequestError("The client has not sent notifications/initialized, so it cannot be asked")
        row = SERVER_REQUESTS[method]
        if row.since > machine.revision:
            raise ClientRequestError(f"Revision {machine.revision} has no {method}")
        capability = "elicitation.url" if mode == "url" else row.capability
        if capability is not None and not offers(machine.capabilities, machine.revision, capability):
            raise ClientRequestError(f"The client did not declare the {capability} capability")

    def _emit(self, stream: Stream, message: Json, *, by_work: bool = True) -> Recorder | None:
        return self.call.emit(stream, message, by_work=by_work)


@dataclass(eq=False)
class LegacyCallChannel(_LegacyChannel):
    """The channel of a `tools/call`: all messages go on the stream of its response."""

    stream: Stream

    def notify(self, method: str, params: Json) -> bool:
        return self.call.emit(self.stream, notification(method, params)) is not None

    async def ask_one(self, method: str, params: Json) -> Json:
        self._check(method, params.get("mode"))
        return (await self._ask(self.stream, method, params, {})).result

    def stop_comments(self) -> None:
        self.stream.comments = False

    def hang_up(self) -> None:
        if not self.session.piped:
            self.stream.hang_up()


class TaskRoutes:
    """The open `tasks/result` streams of each task of one engine."""

    def __init__(self) -> None:
        self._open: dict[str, list[Stream]] = {}

    def open(self, task: str, stream: Stream) -> None:
        self._open.setdefault(task, []).append(stream)

    def close(self, task: str, stream: Stream) -> None:
        streams = self._open[task]
        streams.remove(stream)
        if not streams:
            del self._open[task]

    def live(self, task: str, session: Session) -> Stream | None:
        candidates: list[Any] = [*reversed(self._open.get(task, ())), session.standalone]
        return next((stream for stream in candidates if stream is not None and stream.reader is not None), None)

    def best(self, task: str, session: Session) -> Stream | None:
        """A stream with a connection, else a resumable one; None if the client never opened any."""
        waiting = self._open.get(task, ())
        return self.live(task, session) or (waiting[-1] if waiting else session.standalone)


@dataclass(eq=False)
class LegacyTaskChannel(_LegacyChannel):
    """The channel of a task. Each message has the related-task metadata, except the status itself."""

    task: Task
    tasks: TaskService
    routes: TaskRoutes

    @property
    def _meta(self) -> Json:
        return {RELATED_TASK: {"taskId": self.task.id}}

    def notify(self, method: str, params: Json) -> bool:
        message = notification(method, {**params, "_meta": self._meta})
        stream = self.routes.best(self.task.id, self.session)
        if stream is not None and not self.task.machine.terminal:
            return self._emit(stream, message) is not None
        drop(self.call.recorder, message, NO_STREAM if stream is None else "the task has ended")
        return False

    def set_status(self, message: str) -> None:
        self.tasks.note(self.task, message)

    async def ask_one(self, method: str, params: Json) -> Json:
        """Send a question once the client reads a stream for it; the task is `input_required` meanwhile."""
        self._check(method, params.get("mode"))
        task, session = self.task, self.session
        self.tasks.ask(task, f"Input required: {params.get('message', method)}")
        answer: ClientAnswer | None = None
        try:
            while (stream := self.routes.live(task.id, session)) is None:
                await session.wait_reader()
            # A reader may arrive in the same moment in which the task is cancelled.
            await trio.lowlevel.checkpoint_if_cancelled()
            answer = await self._ask(stream, method, params, self._meta)
            return answer.result
        finally:
            self.tasks.answered(task, by=None if answer is None else answer.recorder)

    def _emit(self, stream: Stream, message: Json, *, by_work: bool = True) -> Recorder | None:
        if stream.replay.closed:
            drop(self.call.recorder, message, "the stream has ended")
            return None
        return super()._emit(stream, message, by_work=by_work)


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
        if token is not None and any(
            token == call.progress_token and type(token) is type(call.progress_token) for call in session.calls.values()
        ):
            clause = "2025-11-25 basic/utilities/progress: tokens MUST be unique across all active requests"
            context.misuse("progress token in use", clause, f"token {token!r}")
        return self._runs.call(context, offer, asked, partial(self._judge, session, asked, task, context))

    def _judge(
        self, session: Session, asked: ToolCallRequest, task: TaskMetadata | None, context: RequestContext
    ) -> ToolPlan:
        revision, tool = session.machine.revision, session.offer.tool(asked.tool)
        _check_callable(tool, session, as_task=task is not None)
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

    def _create(
        self, session: Session, tool: Tool, arguments: Mapping[str, Any], ttl: int | None, call: CallScope
    ) -> Json:
        def context(task: Task) -> ToolContext:
            channel = LegacyTaskChannel(session, self._settings, call, task, self.tasks, self._routes)
            return self._runs.context(call, channel, arguments, call.progress_token, {})

        plan = TaskPlan(
            owner=session.label,
            holder=session.holder,
            tool=tool,
            ttl_ms=self.tasks.ttl(ttl),
            message="The task has begun.",
            announce=partial(self._announce, session),
            ending=ending,
            context=context,
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
            # Without the task's id: "`tasks/result` MUST return that same JSON-RPC error".
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


def _check_callable(tool: Tool, session: Session, *, as_task: bool) -> None:
    machine, revision = session.machine, session.machine.revision
    if as_task and tool.task_support == "forbidden":
        raise McpError(Code.METHOD_NOT_FOUND, f"Tool {tool.name} cannot run as a task; call it without params.task")
    if not as_task and tool.task_support == "required":
        way = "call it with params.task" if revision >= V2025_11_25 else f"revision {revision} has no tasks"
        raise McpError(Code.METHOD_NOT_FOUND, f"Tool {tool.name} only runs as a task; {way}")
    tool.check_revision(revision)
    missing = [name for name in tool.requires if not offers(machine.capabilities, revision, name)]
    if missing:
        why = f"Tool {tool.name} asks the client, which did not declare the capability {', '.join(missing)}"
        raise McpError(Code.INVALID_PARAMS, why, required_capabilities(missing))

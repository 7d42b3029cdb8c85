"""`tools/call` in the legacy era: answered at once, run as a dispatch on a stream, or made into a task.

the tool                     without `task`                 with `task` (2025-11-25)
taskSupport absent           runs                           -32601
taskSupport "required"       -32601                         a handle, at once
taskSupport "optional"       runs                           a handle, at once
before 2025-11-25            runs, unless "required"        `task` is ignored
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from ...wire.client_messages import CallToolRequestParams
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, ProgressToken, Request, id_length, is_id
from ...wire.revisions import V2025_11_25
from ...wire.v2025.registry import offers, task_request
from ..calls.outcome import Outcome
from ..calls.request_context import RequestContext
from ..calls.scope import CallScope
from ..calls.tool_runs import Begun, Start, ToolCallRequest, ToolRuns
from ..catalogue.params import ArgumentsError
from ..catalogue.tool import Tool, ToolResult, failure
from ..services import Services
from ..sessions import Session
from ..streams.stream import Stream
from ..tasks import TaskService
from .channels import LegacyCallChannel

CreateTask: TypeAlias = Callable[[Session, Tool, CallScope, Mapping[str, Any], int | None], Json]
"""Makes a task of a call with these arguments and the client's `ttl`; returns its `CreateTaskResult`."""


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


class LegacyToolCalls:
    """The `tools/call` handler of one engine."""

    def __init__(self, services: Services, tasks: TaskService, create_task: CreateTask, runs: ToolRuns) -> None:
        self._services = services
        self._tasks = tasks
        self._create_task = create_task
        self._runs = runs

    def call(
        self, session: Session, request: Request, params: CallToolRequestParams, context: RequestContext
    ) -> Outcome | Start:
        """The outcome, or the start of the work."""
        offer = session.offer
        token = progress_token(request.params, self._services.limits.max_id_length)
        task_params = task_request(params, offer.revision)
        asked = ToolCallRequest(request.id, params.name, params.arguments or {}, token)
        self._note_token(session, token, context)
        try:
            tool = offer.tool(params.name)
        except McpError as unknown:
            return self._runs.refuse(self._runs.open(context, offer, asked), unknown)
        arguments, refusal = self._judge(session, tool, asked.arguments, context, as_task=task_params is not None)
        if refusal is not None:
            return self._runs.refuse(self._runs.open(context, offer, asked), refusal)
        steps_total = None if tool.steps is None else tool.steps(arguments)
        # Only a task that will exist has an id.
        task_id = None if task_params is None else self._tasks.new_id()
        call = self._runs.open(context, offer, asked, task=task_id, steps_total=steps_total)
        if task_params is not None:
            return Outcome("task", self._create_task(session, tool, call, arguments, task_params.ttl))
        if not tool.waits:
            return self._runs.at_once(call, tool, arguments)
        return partial(self._start, session, tool, call, arguments)

    def _start(
        self, session: Session, tool: Tool, call: CallScope, arguments: Mapping[str, Any], stream: Stream
    ) -> Begun:
        channel = LegacyCallChannel(session, call, self._services.settings, stream)
        context = self._runs.context(call, channel, arguments, call.progress_token, {})
        return Begun(call, self._runs.start(call, tool, context))

    def _judge(
        self, session: Session, tool: Tool, sent: Mapping[str, Any], context: RequestContext, *, as_task: bool
    ) -> tuple[dict[str, Any], ToolResult | McpError | None]:
        """The checked arguments, and the reason of a refusal, None if the call may run."""
        revision = session.machine.revision
        try:
            _check_task_support(tool, as_task, revision)
            _check_capabilities(tool, session)
            arguments = tool.read_arguments(sent)
            if as_task:
                self._tasks.check_room(session.label, context)
        except ArgumentsError as error:
            return {}, _arguments_answer(error, revision, as_task)
        except McpError as error:
            return {}, error
        return arguments, None

    def _note_token(self, session: Session, token: ProgressToken | None, context: RequestContext) -> None:
        if token is None:
            return
        used = [call.progress_token for call in session.calls.values()]
        if any(token == other and type(token) is type(other) for other in used):
            clause = "2025-11-25 basic/utilities/progress: tokens MUST be unique across all active requests"
            context.misuse("progress token in use", clause, f"token {token!r}")


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


def _arguments_answer(error: ArgumentsError, revision: str, as_task: bool) -> ToolResult | McpError:
    """2025-11-25 server/tools: input validation errors are tool errors. A task's only result is its handle."""
    if as_task or revision < V2025_11_25:
        return McpError(Code.INVALID_PARAMS, f"Invalid params: {error}")
    return failure(f"Invalid arguments: {error}")

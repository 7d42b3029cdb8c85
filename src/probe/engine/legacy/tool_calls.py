"""`tools/call` in the legacy era: answered at once, run as a dispatch on a stream, or made into a task.

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

from ...wire.client_messages import CallToolRequestParams, TaskMetadata
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, ProgressToken, Request, id_length, is_id
from ...wire.revisions import V2025_11_25
from ...wire.v2025.registry import offers, task_request
from ..calls.outcome import Outcome
from ..calls.request_context import RequestContext
from ..calls.tool_runs import Start, ToolCallRequest, ToolPlan, ToolRuns
from ..catalogue.params import ArgumentsError
from ..catalogue.tool import Tool, ToolFailureError
from ..services import Services
from ..sessions import Session
from .channels import LegacyCallChannel
from .tasks import LegacyTaskMethods


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

    def __init__(self, services: Services, tasks: LegacyTaskMethods, runs: ToolRuns) -> None:
        self._services = services
        self._tasks = tasks
        self._runs = runs

    def call(
        self, session: Session, request: Request, params: CallToolRequestParams, context: RequestContext
    ) -> Outcome | Start:
        """The outcome, or the start of the work."""
        offer = session.offer
        token = progress_token(request.params, self._services.limits.max_id_length)
        task = task_request(params, offer.revision)
        asked = ToolCallRequest(request.id, params.name, params.arguments or {}, token)
        self._note_token(session, token, context)
        return self._runs.call(context, offer, asked, partial(self._judge, session, asked, task, context))

    def _judge(
        self, session: Session, asked: ToolCallRequest, task: TaskMetadata | None, context: RequestContext
    ) -> ToolPlan:
        """The plan of a call that may run. Raises the reason of a refusal."""
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
        channel = partial(LegacyCallChannel, session, self._services.settings)
        if task is None:
            return ToolPlan(tool, arguments, {}, channel)
        self._tasks.tasks.check_room(session.label, context)
        return ToolPlan(tool, arguments, {}, channel, partial(self._tasks.create, session, tool, arguments, task.ttl))

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

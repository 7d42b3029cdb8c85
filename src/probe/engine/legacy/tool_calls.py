"""`tools/call` in the legacy era: answered at once, run as a dispatch on a stream, or made into a task.

the tool                     without `task`                 with `task` (2025-11-25)
taskSupport absent           runs                           -32601
taskSupport "required"       -32601                         a handle, at once
taskSupport "optional"       runs                           a handle, at once
before 2025-11-25            runs, unless "required"        `task` is ignored
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import mcp_types as types

from ...core.deadline import Deadlines
from ...core.progress import ProgressGate
from ...observe import redaction
from ...observe.log import EventLog
from ...observe.records import CallRecord, CallRecords, bounded
from ...settings import Settings
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, ProgressToken, Request, clip, id_length, is_id
from ...wire.revisions import V2025_11_25
from ...wire.v2025.registry import offers, task_wish
from ..calls import CallFacts, CallScope, attempt, run
from ..clock import Clock
from ..context import Context
from ..outbox import Outbox
from ..params import ArgumentsError
from ..sessions import Session
from ..streams import Stream
from ..tool import Tool, ToolResult, failure
from .channels import CallChannel
from .tasks import TaskDesk


@dataclass(frozen=True, slots=True)
class Running:
    """A call that will run in the session's nursery: `work` gives its answer, None for silence."""

    call: CallScope
    work: Callable[[], Awaitable[Json | McpError | None]]


Start = Callable[[Stream], Running]
"""What an asynchronous method gives back: the call begins once it has the stream for its response."""


def progress_token(params: Mapping[str, Any] | None, max_length: int) -> ProgressToken | None:
    """The token of a request; 0 and "" are tokens. Raises `McpError` for one of another type, or too long to keep."""
    meta = (params or {}).get("_meta")
    if not isinstance(meta, Mapping) or "progressToken" not in meta:
        return None
    token = meta["progressToken"]
    if not is_id(token):
        raise McpError(Code.INVALID_PARAMS, "Invalid params: params._meta.progressToken must be a string or an integer")
    if id_length(token) > max_length:
        why = f"Invalid params: params._meta.progressToken is longer than {max_length} characters (max_id_length)"
        raise McpError(Code.INVALID_PARAMS, why)
    return cast("ProgressToken", token)


class ToolCalls:
    """The `tools/call` handler of one engine."""

    def __init__(
        self,
        log: EventLog,
        records: CallRecords,
        clock: Clock,
        settings: Settings,
        outbox: Outbox,
        desk: TaskDesk,
        new_call_id: Callable[[], str],
    ) -> None:
        self._log = log
        self._records = records
        self._clock = clock
        self._settings = settings
        self._outbox = outbox
        self._desk = desk
        self._new_call_id = new_call_id

    def call(self, session: Session, request: Request, params: types.CallToolRequestParams) -> Json | Start:
        """The result, or how to start the work that gives it. Raises `McpError`.

        Every call that names a tool of the selection leaves a record, whatever becomes of it.
        """
        tool = session.catalogue.tools.get(params.name)
        if tool is None:
            raise McpError(Code.INVALID_PARAMS, f"Unknown tool: {clip(params.name)}")
        token = progress_token(request.params, self._settings.limits.max_id_length)
        wish = task_wish(params, session.machine.revision)
        sent = params.arguments or {}
        self._note_token(session, token)
        arguments, refusal = self._judge(session, tool, sent, as_task=wish is not None)
        # Only a task that will exist has an id.
        task_id = self._desk.tasks.new_id() if wish is not None and refusal is None else None
        record = self._record(session, request, tool, sent, token, task_id)
        facts = CallFacts(record.call, request.id, "tools/call", session.label, task_id)
        call = CallScope(facts, record, self._log, self._clock)
        if refusal is not None:
            return self._refuse(call, refusal)
        if wish is not None:
            return self._desk.create(session, tool, call, self._gate(), arguments, token, wish.ttl)
        if not tool.waits:
            return self._answer_at_once(call, tool, arguments)
        return lambda stream: self._start(session, tool, call, arguments, token, stream)

    def _judge(
        self, session: Session, tool: Tool, sent: Mapping[str, Any], *, as_task: bool
    ) -> tuple[dict[str, Any], ToolResult | McpError | None]:
        """The checked arguments, and why the call is refused; None when it is not."""
        revision = session.machine.revision
        try:
            _check_task_support(tool, as_task, revision)
            _check_capabilities(tool, session)
            arguments = tool.read_arguments(sent)
            if as_task:
                self._desk.tasks.check_room(session.label)
        except ArgumentsError as error:
            return {}, _arguments_answer(error, revision, as_task)
        except McpError as error:
            return {}, error
        return arguments, None

    def _note_token(self, session: Session, token: ProgressToken | None) -> None:
        records = [call.record for call in session.calls.values()]
        used = [record.progress_token for record in records if record is not None]
        if token is not None and any(token == other and type(token) is type(other) for other in used):
            clause = "2025-11-25 basic/utilities/progress: tokens MUST be unique across all active requests"
            session.misuse("progress token in use", clause, f"token {token!r}")

    def _refuse(self, call: CallScope, answer: ToolResult | McpError) -> ToolResult:
        def refuse() -> ToolResult:
            if isinstance(answer, McpError):
                raise answer
            return answer

        call.settle(attempt(refuse))
        return refuse()

    def _answer_at_once(self, call: CallScope, tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
        run_at_once = cast("Callable[[Mapping[str, Any]], ToolResult]", tool.run)
        outcome = call.settle(attempt(lambda: run_at_once(arguments)))
        assert outcome is not None, "nothing can cancel a call that never waits"
        if outcome.error is not None:
            raise outcome.error
        return outcome.result or {}

    def _start(
        self,
        session: Session,
        tool: Tool,
        call: CallScope,
        arguments: Mapping[str, Any],
        token: ProgressToken | None,
        stream: Stream,
    ) -> Running:
        channel = CallChannel(session, call, self._outbox, self._settings, stream)
        context = Context(arguments, token, call, channel, self._gate(), self._clock)
        run_tool = cast("Callable[[Context], Awaitable[ToolResult]]", tool.run)
        call.bound(self._deadlines(tool))

        async def work() -> Json | McpError | None:
            outcome = await run(call, lambda: run_tool(context), context.pump_progress)
            context.finish_progress()
            answer = call.settle(outcome)
            return None if answer is None else answer.error or answer.result

        return Running(call, work)

    def _deadlines(self, tool: Tool) -> Deadlines:
        settings = self._settings
        idle_s, ceiling_s = tool.idle_s or settings.idle_deadline_s, tool.ceiling_s or settings.ceiling_deadline_s
        if tool.asks_client:
            idle_s, ceiling_s = idle_s + settings.client_request_s, ceiling_s + settings.client_request_s
        return Deadlines.start(self._clock.now(), idle_s=idle_s, ceiling_s=ceiling_s)

    def _gate(self) -> ProgressGate:
        limits = self._settings.limits
        return ProgressGate(limits.progress_per_second, limits.progress_burst, self._clock.now())

    def _record(
        self,
        session: Session,
        request: Request,
        tool: Tool,
        arguments: Mapping[str, Any],
        token: ProgressToken | None,
        task_id: str | None,
    ) -> CallRecord:
        client = session.client
        record = CallRecord(
            call=self._new_call_id(),
            tool=tool.name,
            toolset=session.catalogue.toolset_of[tool.name],
            arguments=bounded(redaction.message(dict(arguments)), self._settings.limits.record_argument_bytes),
            era="legacy",
            revision=session.machine.revision,
            transport="http",
            session=session.label,
            client_name=str(client.get("name", "")),
            client_version=str(client.get("version", "")),
            request_id=request.id,
            progress_token=token,
            task=task_id,
            started_at=self._clock.wall(),
        )
        self._records.add(record)
        return record


def _check_task_support(tool: Tool, as_task: bool, revision: str) -> None:
    if as_task and tool.task_support == "forbidden":
        raise McpError(Code.METHOD_NOT_FOUND, f"Tool {tool.name} cannot run as a task; call it without params.task")
    if not as_task and tool.task_support == "required":
        way = "call it with params.task" if revision >= V2025_11_25 else f"revision {revision} has no tasks"
        raise McpError(Code.METHOD_NOT_FOUND, f"Tool {tool.name} only runs as a task; {way}")


def _check_capabilities(tool: Tool, session: Session) -> None:
    machine = session.machine
    if tool.since > machine.revision:
        why = f"Tool {tool.name} needs revision {tool.since}; this session speaks {machine.revision}"
        raise McpError(Code.INVALID_PARAMS, why)
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

"""`tools/call` in the modern era: the server decides what becomes of it.

the tool                     with the tasks extension        without it
taskSupport absent           runs                            runs
taskSupport "required"       a task                          -32021
taskSupport "optional"       a task                          runs

Before any of these its `inputs` are asked (tasks extension, Task Creation: servers "SHOULD resolve all MRTR exchanges
synchronously before responding with a `CreateTaskResult`").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...settings import Settings
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, ProgressToken, clip
from ...wire.v2026.meta import TASKS_EXTENSION, RequestMeta, required_capabilities
from ...wire.v2026.registry import CallToolParams, offers
from ..calls import CallScope
from ..interactions import Interactions
from ..outbox import Outbox
from ..outcome import Outcome
from ..params import ArgumentsError
from ..streams import Stream
from ..tool import InputRequiredError, Tool, ToolResult, failure
from ..tool_runs import Caller, Running, Start, ToolRuns
from .channels import CallChannel
from .incoming import Incoming
from .listeners import Listeners
from .rounds import Rounds, RoundTrips
from .tasks import TaskDesk

_REQUESTS: Mapping[str, tuple[str, str]] = {
    "elicitation": ("elicitation/create", "form"),
    "elicitation.url": ("elicitation/create", "url"),
    "sampling": ("sampling/createMessage", ""),
    "roots": ("roots/list", ""),
}
"""The request that a client capability stands for, and its mode."""


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A call that will run: its checked arguments, and what the client was asked before."""

    arguments: Mapping[str, Any]
    answers: Mapping[str, Json]
    rounds: Rounds


class ToolCalls:
    """The `tools/call` handler of one engine."""

    def __init__(
        self,
        settings: Settings,
        outbox: Outbox,
        listeners: Listeners,
        interactions: Interactions,
        desk: TaskDesk,
        trips: RoundTrips,
        runs: ToolRuns,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._listeners = listeners
        self._interactions = interactions
        self._desk = desk
        self._trips = trips
        self._runs = runs

    def call(self, incoming: Incoming, params: CallToolParams) -> Outcome | Start:
        """The outcome, or how to start the work that gives it."""
        offer, meta = incoming.offer, incoming.meta
        caller, token, sent = _caller(incoming), meta.progress_token, params.arguments or {}
        try:
            tool = offer.tool(params.name)
        except McpError as unknown:
            return self._runs.refuse(
                self._runs.open(caller, offer, params.name, incoming.request.id, sent, token, None), unknown
            )
        as_task = tool.task_support != "forbidden" and meta.tasks
        admitted = self._judge(incoming, tool, sent, as_task=as_task)
        # Only a task that will exist has an id.
        task_id = self._desk.tasks.new_id() if as_task and isinstance(admitted, _Admitted) else None
        call = self._runs.open(caller, offer, tool.name, incoming.request.id, sent, token, task_id)
        if not isinstance(admitted, _Admitted):
            return self._runs.refuse(call, admitted)
        self._runs.admit(call, tool, admitted.arguments)
        if as_task:
            task = self._desk.create(
                incoming, tool, call, admitted.arguments, admitted.answers, admitted.rounds
            )
            return Outcome("task", task, call=call)
        if not tool.waits:
            return self._runs.at_once(call, tool, admitted.arguments)
        return lambda stream: self._start(incoming, tool, call, admitted, token, stream)

    def _judge(
        self, incoming: Incoming, tool: Tool, sent: Mapping[str, Any], *, as_task: bool
    ) -> _Admitted | ToolResult | Exception:
        """What the call runs with, or why it does not."""
        try:
            tool.check_revision(incoming.offer.revision)
            _check_capabilities(tool, incoming.meta)
            arguments = tool.read_arguments(sent)
            rounds = self._trips.open(incoming)
            answers = rounds.answers(tool.inputs)
            if as_task:
                self._desk.tasks.check_room(None, incoming.source.holder)
        except ArgumentsError as error:
            return failure(f"Invalid arguments: {error}")
        except (McpError, InputRequiredError) as error:
            return error
        return _Admitted(arguments, answers, rounds)

    def _start(
        self,
        incoming: Incoming,
        tool: Tool,
        call: CallScope,
        admitted: _Admitted,
        token: ProgressToken | None,
        stream: Stream,
    ) -> Running:
        channel = CallChannel(
            call,
            stream,
            self._outbox,
            incoming,
            admitted.rounds,
            self._listeners,
            self._interactions,
            self._settings,
        )
        context = self._runs.context(call, channel, admitted.arguments, token, admitted.answers)
        return Running(call, self._runs.start(call, tool, context))


def _caller(incoming: Incoming) -> Caller:
    info, source = incoming.meta.client_info or {}, incoming.source
    name, version = clip(str(info.get("name", ""))), clip(str(info.get("version", "")))
    return Caller("modern", source.transport, source.exchange, source.client, name, version)


def _check_capabilities(tool: Tool, meta: RequestMeta) -> None:
    """Raise `McpError` -32021 where the tool needs what this very request does not declare."""
    missing = [name for name in tool.requires if not offers(meta.capabilities, *_REQUESTS[name])]
    if tool.task_support == "required" and not meta.tasks:
        missing.append(TASKS_EXTENSION)
    if missing:
        why = f"Missing required client capability: tool {tool.name} needs {', '.join(missing)}"
        raise McpError(Code.MISSING_CLIENT_CAPABILITY, why, required_capabilities(missing))

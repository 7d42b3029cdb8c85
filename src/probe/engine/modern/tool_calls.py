"""`tools/call` in the modern era: the server decides what becomes of it.

the tool                     with the tasks extension        without it
taskSupport absent           runs                            runs
taskSupport "required"       a task                          -32021
taskSupport "optional"       a task                          runs

Before any of these its `inputs` are asked (tasks extension, Task Creation: servers "SHOULD resolve all MRTR exchanges
synchronously before responding with a `CreateTaskResult`").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json
from ...wire.v2026.meta import TASKS_EXTENSION, RequestMeta, required_capabilities
from ...wire.v2026.registry import CallToolParams, offers
from ..calls.outcome import Outcome
from ..calls.scope import CallScope
from ..calls.tool_runs import Begun, Start, ToolCallRequest, ToolRuns
from ..catalogue.params import ArgumentsError
from ..catalogue.tool import InputRequiredError, Tool, ToolResult, failure
from ..services import Services
from ..streams.stream import Stream
from ..tasks import TaskService
from .channels import ModernCallChannel
from .listeners import Listeners
from .rounds import Admitted, Incoming, RoundTrips

CreateTask: TypeAlias = Callable[[Incoming, Tool, CallScope, Admitted], Json]
"""Makes a task of a call, and describes it for the `CreateTaskResult`."""

_REQUESTS: Mapping[str, tuple[str, str]] = {
    "elicitation": ("elicitation/create", "form"),
    "elicitation.url": ("elicitation/create", "url"),
    "sampling": ("sampling/createMessage", ""),
    "roots": ("roots/list", ""),
}
"""The request that a client capability stands for, and its mode."""


class ModernToolCalls:
    """The `tools/call` handler of one engine."""

    def __init__(
        self,
        services: Services,
        listeners: Listeners,
        tasks: TaskService,
        create_task: CreateTask,
        trips: RoundTrips,
        runs: ToolRuns,
    ) -> None:
        self._services = services
        self._listeners = listeners
        self._tasks = tasks
        self._create_task = create_task
        self._trips = trips
        self._runs = runs

    def call(self, incoming: Incoming, params: CallToolParams) -> Outcome | Start:
        """The outcome, or the start of the work."""
        offer, meta, context = incoming.offer, incoming.meta, incoming.context
        asked = ToolCallRequest(incoming.request.id, params.name, params.arguments or {}, meta.progress_token)
        try:
            tool = offer.tool(params.name)
        except McpError as unknown:
            return self._runs.refuse(self._runs.open(context, offer, asked), unknown)
        as_task = tool.task_support != "forbidden" and meta.tasks
        admitted = self._judge(incoming, tool, asked.arguments, as_task=as_task)
        if not isinstance(admitted, Admitted):
            return self._runs.refuse(self._runs.open(context, offer, asked), admitted)
        steps_total = None if tool.steps is None else tool.steps(admitted.arguments)
        # Without a refusal, the call becomes a task, with an id.
        task_id = self._tasks.new_id() if as_task else None
        call = self._runs.open(context, offer, asked, task=task_id, steps_total=steps_total)
        if as_task:
            return Outcome("task", self._create_task(incoming, tool, call, admitted))
        if not tool.waits:
            return self._runs.at_once(call, tool, admitted.arguments)
        return lambda stream: self._start(incoming, tool, call, admitted, stream)

    def _judge(
        self, incoming: Incoming, tool: Tool, sent: Mapping[str, Any], *, as_task: bool
    ) -> Admitted | ToolResult | Exception:
        """The arguments and answers of a call that runs, or the reason of its refusal."""
        try:
            tool.check_revision(incoming.offer.revision)
            _check_capabilities(tool, incoming.meta)
            arguments = tool.read_arguments(sent)
            rounds = self._trips.open(incoming)
            answers = rounds.answers(tool.inputs)
            if as_task:
                self._tasks.check_room(None, incoming.context)
        except ArgumentsError as error:
            return failure(f"Invalid arguments: {error}")
        except (McpError, InputRequiredError) as error:
            return error
        return Admitted(arguments, answers, rounds)

    def _start(self, incoming: Incoming, tool: Tool, call: CallScope, admitted: Admitted, stream: Stream) -> Begun:
        channel = ModernCallChannel(call, stream, incoming, admitted.rounds, self._listeners, self._services)
        context = self._runs.context(call, channel, admitted.arguments, call.progress_token, admitted.answers)
        return Begun(call, self._runs.start(call, tool, context))


def _check_capabilities(tool: Tool, meta: RequestMeta) -> None:
    """Raise `McpError` -32021 if the tool needs a capability that this request does not declare."""
    missing = [name for name in tool.requires if not offers(meta.capabilities, *_REQUESTS[name])]
    if tool.task_support == "required" and not meta.tasks:
        missing.append(TASKS_EXTENSION)
    if missing:
        why = f"Missing required client capability: tool {tool.name} needs {', '.join(missing)}"
        raise McpError(Code.MISSING_CLIENT_CAPABILITY, why, required_capabilities(missing))

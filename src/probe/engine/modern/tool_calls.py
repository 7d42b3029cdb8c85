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
from functools import partial

from ...wire.errors import Code, McpError
from ...wire.v2026.meta import TASKS_EXTENSION, RequestMeta, required_capabilities
from ...wire.v2026.registry import CallToolParams, offers
from ..calls.outcome import Outcome
from ..calls.scope import CallScope
from ..calls.tool_runs import Start, ToolCallRequest, ToolPlan, ToolRuns
from ..catalogue.params import ArgumentsError
from ..catalogue.tool import Tool, ToolFailureError
from ..services import Services
from ..streams.stream import Stream
from .channels import ModernCallChannel
from .listeners import Listeners
from .rounds import Admitted, Incoming, RoundTrips
from .tasks import ModernTaskMethods

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
        tasks: ModernTaskMethods,
        trips: RoundTrips,
        runs: ToolRuns,
    ) -> None:
        self._services = services
        self._listeners = listeners
        self._tasks = tasks
        self._trips = trips
        self._runs = runs

    def call(self, incoming: Incoming, params: CallToolParams) -> Outcome | Start:
        """The outcome, or the start of the work."""
        asked = ToolCallRequest(incoming.request.id, params.name, params.arguments or {}, incoming.meta.progress_token)
        return self._runs.call(incoming.context, incoming.offer, asked, partial(self._judge, incoming, asked))

    def _judge(self, incoming: Incoming, asked: ToolCallRequest) -> ToolPlan:
        """The plan of a call that may run. Raises the reason of a refusal, or the questions before the work."""
        offer, meta = incoming.offer, incoming.meta
        tool = offer.tool(asked.tool)
        tool.check_revision(offer.revision)
        _check_capabilities(tool, meta)
        try:
            arguments = tool.read_arguments(asked.arguments)
        except ArgumentsError as error:
            raise ToolFailureError(f"Invalid arguments: {error}") from None
        rounds = self._trips.open(incoming)
        answers = rounds.answers(tool.inputs)

        def channel(call: CallScope, stream: Stream) -> ModernCallChannel:
            return ModernCallChannel(call, stream, incoming, rounds, self._listeners, self._services)

        if tool.task_support == "forbidden" or not meta.tasks:
            return ToolPlan(tool, arguments, answers, channel)
        self._tasks.tasks.check_room(None, incoming.context)
        return ToolPlan(
            tool,
            arguments,
            answers,
            channel,
            partial(self._tasks.create, incoming, tool, Admitted(arguments, answers, rounds)),
        )


def _check_capabilities(tool: Tool, meta: RequestMeta) -> None:
    """Raise `McpError` -32021 if the tool needs a capability that this request does not declare."""
    missing = [name for name in tool.requires if not offers(meta.capabilities, *_REQUESTS[name])]
    if tool.task_support == "required" and not meta.tasks:
        missing.append(TASKS_EXTENSION)
    if missing:
        why = f"Missing required client capability: tool {tool.name} needs {', '.join(missing)}"
        raise McpError(Code.MISSING_CLIENT_CAPABILITY, why, required_capabilities(missing))

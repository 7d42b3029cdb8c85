"""Runs of tools and of other requests that wait: their deadlines, context and one answer. The same for both eras.

    running     the owner awaits `RunningRequest.run`, which awaits the work
    answered    the work has ended, or `CallScope.give_up` came first: the outcome is sent, or no answer if it is None
    closed      all that the request held is free, and its stream takes no more messages

Answering and closing are one step, without a checkpoint between them. If the owner is cancelled, the request is closed
without an answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, TypeAlias

from msgspec import Struct

from ...core.call import Deadlines, ProgressGate
from ...core.callbacks import nothing
from ...log.context import Recorder
from ...log.events import CallStarted, DispatchSent
from ...log.redaction import bounded
from ...wire.jsonrpc import Json, ProgressToken, Request, RequestId, clip
from ..catalogue.offers import Offer
from ..catalogue.tool import Seconds, Tool
from ..messages import RequestContext
from ..services import Services
from ..streams.stream import Stream
from .context import Channel, ToolContext
from .outcome import Outcome, attempt_tool, handled
from .scope import CallScope, run

Work: TypeAlias = Callable[[], Awaitable[Outcome | None]]
"""Work to await once. Returns its settled outcome, None for no answer."""


Start: TypeAlias = Callable[[Stream], tuple[CallScope, Work]]
"""A method that waits returns it: called with the stream for its response, it begins a call and returns its work."""


class RunningRequest:
    """A request on its stream. `answer` sends its outcome; `close` is called once, after that. Neither waits."""

    def __init__(
        self,
        call: CallScope,
        work: Work,
        stream: Stream,
        answer: Callable[[Outcome], None],
        close: Callable[[], None],
    ) -> None:
        self.call = call
        self.stream = stream
        self._work = work
        self._answer = answer
        self._close = close
        self._closed = False
        self.call.answer = self._end

    async def run(self) -> None:
        """Do the work, answer the request and close it. Awaited once, by its owner."""
        try:
            self._end(await self._work())
        finally:
            self._close_once()

    def _end(self, outcome: Outcome | None) -> None:
        # The request was given up and answered.
        if self._closed:
            return
        if outcome is None:
            self.stream.unanswered = True
        else:
            self._answer(outcome)
        self._close_once()

    def _close_once(self) -> None:
        if not self._closed:
            self._closed = True
            close = self._close
            # Both refer to the request: a cycle, which the garbage collector would free much later.
            self._answer, self._close = nothing, nothing
            close()


class ToolCallRequest(Struct, frozen=True):
    """A `tools/call` as it was sent. Its tool may not exist, and its arguments may not fit."""

    request_id: RequestId
    tool: str
    arguments: Mapping[str, Any]
    token: ProgressToken | None


class ToolPlan(Struct, frozen=True):
    """A tool call that may run: its checked arguments, and the answers to the tool's `inputs`.

    `channel` makes its way to the client, for a call that runs on a stream. `create_task` makes it a task instead, and
    returns the `CreateTaskResult`.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    answers: Mapping[str, Json]
    channel: Callable[[CallScope, Stream], Channel]
    create_task: Callable[[CallScope], Json] | None = None


class ToolRuns:
    """Refuses and runs the tool calls of one engine, in either era."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._clock = services.clock
        self._settings = services.settings
        self.new_task_id = services.new_id
        self._numbers = count(1)

    def announce(self, context: RequestContext) -> Recorder:
        """The recorder of facts before the call that this request will begin, such as its new draft stream."""
        context.call = self.new_id()
        return context.recorder.bind(call=context.call)

    def call(
        self, context: RequestContext, offer: Offer, asked: ToolCallRequest, judge: Callable[[], ToolPlan]
    ) -> Outcome | Start:
        """The outcome of a tool call, or the start of its work. `judge` raises the reason of a refusal.

        Each call has a `call.started`, also if it is refused.
        """
        plan = handled(judge)
        if isinstance(plan, Outcome):
            return _settled(self._open(context, offer, asked), plan)
        tool = plan.tool
        steps_total = None if tool.steps is None else tool.steps(plan.arguments)
        task = None if plan.create_task is None else self.new_task_id()
        call = self._open(context, offer, asked, task, steps_total)
        if plan.create_task is not None:
            return Outcome("task", plan.create_task(call))
        if not tool.waits:
            return _settled(call, attempt_tool(tool.run_at_once, plan.arguments))
        return partial(self._begin, call, plan)

    def _open(
        self,
        context: RequestContext,
        offer: Offer,
        asked: ToolCallRequest,
        task: str | None = None,
        steps_total: float | None = None,
    ) -> CallScope:
        limits, tool = self._services.limits, asked.tool
        started = CallStarted(
            request_id=asked.request_id,
            method="tools/call",
            tool=clip(tool),
            progress_token=asked.token,
            toolset=offer.toolset(tool),
            **_sender(context, offer),
            steps_total=steps_total,
            arguments=bounded(dict(asked.arguments), limits.record_argument_bytes),
        )
        # The answer to the request is about this call, too.
        context.recorder = context.recorder.bind(call=context.call or self.new_id(), task=task)
        return CallScope(context.recorder, started, self._clock, limits.record_result_bytes)

    def open_plain(self, context: RequestContext, request: Request, offer: Offer) -> CallScope:
        started = CallStarted(
            request_id=request.id,
            method=request.method,
            tool=None,
            progress_token=None,
            toolset="",
            **_sender(context, offer),
            steps_total=None,
            arguments=b"null",
        )
        return CallScope(context.recorder.bind(call=self.new_id(), task=None), started, self._clock)

    def new_id(self) -> str:
        return f"c{next(self._numbers)}"

    def _begin(self, call: CallScope, plan: ToolPlan, stream: Stream) -> tuple[CallScope, Work]:
        tool, settings, arguments = plan.tool, self._settings, plan.arguments
        context = self.context(call, plan.channel(call, stream), arguments, call.progress_token, plan.answers)
        idle_s = _seconds(tool.idle_s, arguments, settings.idle_deadline_s)
        ceiling_s = _seconds(tool.ceiling_s, arguments, settings.ceiling_deadline_s)
        if tool.asks_client:
            idle_s, ceiling_s = idle_s + settings.client_request_s, ceiling_s + settings.client_request_s
        deadlines = Deadlines.start(self._clock.now(), idle_s=idle_s, ceiling_s=ceiling_s)
        call.dispatch(deadlines, context.gate)
        if tool.host is None:
            call.recorder.append(DispatchSent(tool.name, deadlines.idle_ms, deadlines.ceiling_ms))

        async def work() -> Outcome | None:
            outcome = await run(call, partial(tool.run_waiting, context), context.pump_progress)
            context.finish_progress()
            # The call was given up, and so it is settled.
            return None if call.machine.settled else call.settle(outcome)

        return call, work

    def context(
        self,
        call: CallScope,
        channel: Channel,
        arguments: Mapping[str, Any],
        token: ProgressToken | None,
        answers: Mapping[str, Json],
    ) -> ToolContext:
        limits = self._services.limits
        gate = ProgressGate(limits.progress_per_second, limits.progress_burst, self._clock.now())
        return ToolContext(arguments, answers, token, call, channel, gate, self._clock)


def _seconds(own: Seconds | None, arguments: Mapping[str, Any], servers: float) -> float:
    seconds = own(arguments) if callable(own) else own
    return servers if seconds is None else seconds


def _sender(context: RequestContext, offer: Offer) -> dict[str, str]:
    client, era = context.client, "legacy" if offer.legacy else "modern"
    members = {"era": era, "revision": offer.revision, "transport": context.transport}
    return {**members, "client_name": client.name, "client_version": client.version}


def _settled(call: CallScope, outcome: Outcome) -> Outcome:
    settled = call.settle(outcome)
    assert settled is not None, "nothing can cancel a call that never waits"
    return settled

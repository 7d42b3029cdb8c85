"""Running one tool: the record it leaves, its deadlines, its context. What a call may be is for its era to say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from ..core.deadline import Deadlines
from ..core.progress import ProgressGate
from ..observe.events import DispatchSent
from ..observe.log import EventLog
from ..observe.records import CallRecord, CallRecords, bounded
from ..settings import Settings
from ..wire.jsonrpc import Json, ProgressToken, RequestId, clip
from .calls import CallFacts, CallScope, run
from .clock import Clock
from .context import Channel, Context
from .offers import Offer
from .outcome import Outcome, attempt, attempt_tool
from .streams import Stream
from .tool import Seconds, Tool, ToolResult

Work: TypeAlias = Callable[[], Awaitable[Outcome | None]]
"""Work to await once: its settled outcome, None for silence."""


@dataclass(frozen=True, slots=True)
class Running:
    """A request that runs: whoever awaits its work owns it."""

    call: CallScope
    work: Work


Start: TypeAlias = Callable[[Stream], Running]
"""What a method that waits gives back: the call begins once it has the stream for its response."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and by which exchange, as the record shows it."""

    era: str
    transport: str
    exchange: int
    session: str | None
    name: str
    version: str


class ToolRuns:
    """Opens, refuses and runs the tool calls of one engine, in either era."""

    def __init__(
        self,
        log: EventLog,
        records: CallRecords,
        clock: Clock,
        settings: Settings,
        run: str,
        new_call_id: Callable[[], str],
    ) -> None:
        self._log = log
        self._run = run
        self._records = records
        self._clock = clock
        self._settings = settings
        self._new_call_id = new_call_id

    def open(
        self,
        caller: Caller,
        offer: Offer,
        tool: str,
        request_id: RequestId,
        arguments: Mapping[str, Any],
        token: ProgressToken | None,
        task: str | None,
    ) -> CallScope:
        """A scope with its record: every call leaves one, whatever becomes of it. The tool may not exist."""
        record = CallRecord(
            run=self._run,
            call=self._new_call_id(),
            exchange=caller.exchange,
            tool=clip(tool),
            toolset=offer.toolset(tool),
            arguments=bounded(dict(arguments), self._settings.limits.record_argument_bytes),
            era=caller.era,
            revision=offer.revision,
            transport=caller.transport,
            session=caller.session,
            client_name=caller.name,
            client_version=caller.version,
            request_id=request_id,
            progress_token=token,
            task=task,
            started_at=self._clock.wall(),
            max_result_bytes=self._settings.limits.record_result_bytes,
        )
        self._records.add(record)
        facts = CallFacts(record.call, caller.exchange, request_id, "tools/call", caller.session, task)
        return CallScope(facts, record, self._log, self._clock)

    def admit(self, call: CallScope, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """The call will run with these checked arguments: none of the steps that it counts is done."""
        if call.record is not None and tool.steps is not None:
            call.record.steps_done, call.record.steps_total = 0, tool.steps(arguments)

    def open_plain(self, exchange: int, request_id: RequestId, method: str, session: str | None) -> CallScope:
        """The scope of a request that waits and is no tool call; it leaves no record."""
        facts = CallFacts(self._new_call_id(), exchange, request_id, method, session)
        return CallScope(facts, None, self._log, self._clock)

    def refuse(self, call: CallScope, answer: ToolResult | Exception) -> Outcome:
        """Settle a call whose tool never ran, with a result or with what says why."""

        def refuse() -> ToolResult:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return _told(call, attempt(refuse))

    def at_once(self, call: CallScope, tool: Tool, arguments: Mapping[str, Any]) -> Outcome:
        """Run a tool that never waits."""
        run_at_once = cast("Callable[[Mapping[str, Any]], ToolResult]", tool.run)
        return _told(call, attempt_tool(lambda: run_at_once(arguments)))

    def start(self, call: CallScope, tool: Tool, context: Context) -> Work:
        """Set the deadlines, which count from now, and give back the work."""
        run_tool = tool_work(tool)
        deadlines = self._deadlines(tool, context.arguments)
        call.dispatch(deadlines, context.gate)
        # What a tool host does is sent when its message is.
        if tool.host is None:
            facts = call.facts
            self._log.append(DispatchSent(facts.id, facts.session, tool.name, deadlines.idle_ms, deadlines.ceiling_ms))

        async def work() -> Outcome | None:
            outcome = await run(call, lambda: run_tool(context), context.pump_progress)
            context.finish_progress()
            # Settled before: it was given up.
            return None if call.machine.settled else call.settle(outcome)

        return work

    def context(
        self,
        call: CallScope,
        channel: Channel,
        arguments: Mapping[str, Any],
        token: ProgressToken | None,
        answers: Mapping[str, Json],
    ) -> Context:
        """The context of one call or task."""
        limits = self._settings.limits
        gate = ProgressGate(limits.progress_per_second, limits.progress_burst, self._clock.now())
        return Context(arguments, answers, token, call, channel, gate, self._clock)

    def _deadlines(self, tool: Tool, arguments: Mapping[str, Any]) -> Deadlines:
        settings = self._settings
        idle_s = _seconds(tool.idle_s, arguments, settings.idle_deadline_s)
        ceiling_s = _seconds(tool.ceiling_s, arguments, settings.ceiling_deadline_s)
        if tool.asks_client:
            idle_s, ceiling_s = idle_s + settings.client_request_s, ceiling_s + settings.client_request_s
        return Deadlines.start(self._clock.now(), idle_s=idle_s, ceiling_s=ceiling_s)


def _seconds(own: Seconds | None, arguments: Mapping[str, Any], servers: float) -> float:
    if own is None:
        return servers
    return own(arguments) if callable(own) else own


def handled(handler: Callable[[], Json | Outcome | Start]) -> Outcome | Start:
    """What a method's handler came to: the work it starts, or its outcome, also where it raises."""
    given: list[Outcome | Start] = []

    def handle() -> Json:
        answer = handler()
        if isinstance(answer, dict):
            return answer
        given.append(answer)
        return {}

    outcome = attempt(handle)
    return given[0] if given else outcome


def tool_work(tool: Tool) -> Callable[[Context], Awaitable[ToolResult]]:
    """The coroutine function of a tool that waits."""
    assert tool.waits, f"{tool.name} never waits"
    return cast("Callable[[Context], Awaitable[ToolResult]]", tool.run)


def _told(call: CallScope, outcome: Outcome) -> Outcome:
    settled = call.settle(outcome)
    assert settled is not None, "nothing can cancel a call that never waits"
    return replace(settled, call=call)

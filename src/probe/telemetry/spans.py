"""Requests and their calls, questions and tasks as spans of OpenTelemetry.

    tools/call NAME          SERVER    a request, from when it was read until its answer was made
      tool_host NAME         CLIENT    its dispatch to a tool host
      elicitation/create …   CLIENT    a question to the client
    task NAME                INTERNAL  the work of a task, a child of its request's span, though it ends later

Each is made later from entries of the log with their times, so it takes no time of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, get_current_span, set_span_in_context
from pydantic_core import from_json

from ..log import events
from ..log.bounded import Newest
from .metrics import UNKNOWN, Names
from .requests import (
    KNOWN_METHODS,
    Attributes,
    ObservedCall,
    ObservedRequest,
    Requests,
    RequestStep,
    RequestTarget,
    Source,
    connection,
    failure,
    identity,
    read_target,
)

# Unanswered questions to all clients, and dispatches to hosts: the oldest span makes room without being sent.
_MOST_QUESTIONS: Final = 2000


class Spans:
    """Fed with every step in order by `requests`. `tools` and `prompts` are known names, `source` is their engine.

    `end` gets each complete span with its end in nanoseconds since 1970. It may drop the span for lack of room.
    """

    def __init__(
        self,
        tracer: Tracer,
        requests: Requests,
        tools: Names,
        prompts: Names,
        source: Source,
        end: Callable[[Span, int], None],
    ) -> None:
        self._tracer = tracer
        self._source = source
        self._requests = requests
        self._targets: Mapping[str, Names] = {"gen_ai.tool.name": tools, "gen_ai.prompt.name": prompts}
        self._end = end
        # By the number of the question's entry.
        self._questions: Newest[int, Span] = Newest(_MOST_QUESTIONS)
        self._dispatches: Newest[str, Span] = Newest(_MOST_QUESTIONS)
        self._takers: Mapping[type, Callable[[RequestStep, Any], None]] = {
            events.MessageReceived: self._received,
            events.MessageEmitted: self._emitted,
            events.CallStarted: self._started,
            events.CallProgressed: self._progressed,
            events.CallCancelled: self._cancelled,
            events.CallSettled: self._settled,
            events.DispatchSent: self._sent,
            events.DispatchExpired: self._expired,
            events.DispatchSettled: self._dispatch_over,
        }

    def take(self, step: RequestStep) -> None:
        taker = self._takers.get(type(step.entry.fact))
        if taker is not None:
            taker(step, step.entry.fact)
        for request in step.over:
            self._over(request, step)

    def missed(self, entries: int) -> None:
        """Drop all open spans: an incomplete span is never sent."""
        self._questions.clear()
        self._dispatches.clear()

    def _received(self, step: RequestStep, event: events.MessageReceived) -> None:
        question = None if step.entry.cause is None else self._questions.pop(step.entry.cause, None)
        if question is not None:
            if event.rpc == "error":
                self._fail(question, "_OTHER")
            self._end(question, nanoseconds(step.entry.at))
        if step.begun is not None:
            self._begin(step.begun, read_target(step.begun.method, event.message))

    def _begin(self, request: ObservedRequest, asked: RequestTarget) -> None:
        context, links = self._parent(request, asked)
        method = request.method if request.method in KNOWN_METHODS else UNKNOWN
        few = [str(name) for key, name in asked.target.items() if self._is_known(key, str(name))]
        attributes: Attributes = {
            "mcp.method.name": request.method,
            **({"gen_ai.operation.name": "execute_tool"} if method == "tools/call" else {}),
            **asked.target,
            **connection(request, self._requests.peer(request.session)),
            **identity(request),
        }
        # "SHOULD follow the format `{mcp.method.name} {target}`" with a target of low cardinality.
        name = " ".join([method, *few])
        request.span = self._tracer.start_span(
            name, context, SpanKind.SERVER, self._shown(attributes), links=links, start_time=nanoseconds(request.at)
        )

    def _shown(self, attributes: Attributes) -> Attributes:
        return self._source.shown(attributes) | self._source.attributes

    def _child(
        self, above: Span, step: RequestStep, name: str, attributes: Attributes, kind: SpanKind = SpanKind.CLIENT
    ) -> Span:
        at = nanoseconds(step.entry.at)
        return self._tracer.start_span(name, set_span_in_context(above), kind, self._shown(attributes), start_time=at)

    def _is_known(self, attribute: str, name: str) -> bool:
        names = self._targets.get(attribute)
        return names is not None and names.label(name) == name

    def _over(self, request: ObservedRequest, step: RequestStep) -> None:
        span: Span | None = request.span
        if span is None:
            return
        why = failure(request, step.entry.fact)
        if why is not None:
            self._fail(span, why.type, why.message)
            if why.code is not None:
                span.set_attribute("rpc.response.status_code", str(why.code))
        if request.method == "initialize" and request.session is not None:
            span.set_attribute("mcp.session.id", request.session)
            peer = self._requests.peer(request.session)
            span.set_attribute("mcp.protocol.version", peer.revision if peer else "")
        span.set_attribute("mcp_probe.outcome", request.outcome or UNKNOWN)
        self._end(span, nanoseconds(step.entry.at))

    def _started(self, step: RequestStep, event: events.CallStarted) -> None:
        call, above = step.call, span_of(step.call)
        if call is None or above is None or call.task is None:
            return
        attributes: Attributes = {"gen_ai.tool.name": event.tool or UNKNOWN, "mcp_probe.task": call.task}
        call.span = self._child(above, step, f"task {self._tool(event.tool)}", attributes, SpanKind.INTERNAL)

    def _settled(self, step: RequestStep, event: events.CallSettled) -> None:
        self._dispatch_over(step, event)
        if step.call is not None and step.call.span is not None:
            self._finish(step.call.span, event.outcome, step)

    def _finish(self, span: Span, outcome: str, step: RequestStep) -> None:
        span.set_attribute("mcp_probe.outcome", outcome)
        if outcome not in ("completed", "input_required"):
            self._fail(span, outcome)
        self._end(span, nanoseconds(step.entry.at))

    def _sent(self, step: RequestStep, event: events.DispatchSent) -> None:
        above = span_of(step.call)
        if event.host is None or above is None:
            return
        attributes: Attributes = {
            "gen_ai.tool.name": event.tool,
            "mcp_probe.tool_host": event.host,
            "mcp_probe.idle_ms": event.idle_ms,
            "mcp_probe.ceiling_ms": event.ceiling_ms,
        }
        span = self._child(above, step, f"tool_host {self._tool(event.tool)}", attributes)
        self._dispatches.store(step.entry.context.call or "", span)

    def _tool(self, name: str | None) -> str:
        return self._targets["gen_ai.tool.name"].label(name)

    def _dispatch_over(self, step: RequestStep, event: events.DispatchSettled | events.CallSettled) -> None:
        span = self._dispatches.pop(step.entry.context.call or "", None)
        if span is not None:
            self._finish(span, event.outcome, step)

    def _emitted(self, step: RequestStep, event: events.MessageEmitted) -> None:
        above = span_of(step.call)
        if above is None or not above.is_recording():
            return
        if event.method == "notifications/progress":
            params = from_json(event.message)["params"]
            self._note(above, "progress", step, progress=params.get("progress"), total=params.get("total"))
        elif event.rpc == "request" and event.method is not None:
            attributes: Attributes = {"mcp.method.name": event.method, "jsonrpc.request.id": str(event.id)}
            self._questions.store(step.entry.seq, self._child(above, step, event.method, attributes))

    def _progressed(self, step: RequestStep, event: events.CallProgressed) -> None:
        self._note(span_of(step.call), "progress", step, progress=event.progress, total=event.total)

    def _cancelled(self, step: RequestStep, event: events.CallCancelled) -> None:
        self._note(span_of(step.call), "cancellation", step, by=event.by, reason=event.reason, effect=event.effect)

    def _expired(self, step: RequestStep, event: events.DispatchExpired) -> None:
        self._note(span_of(step.call), "deadline", step, deadline=event.deadline, elapsed_ms=event.elapsed_ms)

    def _parent(self, request: ObservedRequest, asked: RequestTarget) -> tuple[Context, list[Link]]:
        """The trace of a request: that of its `_meta`, else that of the HTTP request, else none.

        "MCP server instrumentation SHOULD, by default, use context extracted from MCP `params._meta` as a parent […]
        and SHOULD link current ambient context, if it's present": the trace of the HTTP head is linked if it is not the
        parent.
        """
        own = self._context(asked.trace)
        around = self._context(request.head.trace if request.head else {})
        ambient = get_current_span(around).get_span_context()
        if not get_current_span(own).get_span_context().is_valid:
            return around, []
        return own, [Link(ambient)] if ambient.is_valid else []

    def _context(self, trace: Mapping[str, str]) -> Context:
        # A client chooses its `tracestate`, which spans have as well.
        return propagate.extract({name: self._source.hide(text) for name, text in trace.items()}, context=Context())

    def _fail(self, span: Span, type: str, message: str | None = None) -> None:
        span.set_attribute("error.type", type)
        span.set_status(Status(StatusCode.ERROR, None if message is None else self._source.hide(message)))

    def _note(self, span: Span | None, name: str, step: RequestStep, **attributes: Any) -> None:
        if span is not None:
            known = {key: value for key, value in attributes.items() if value is not None}
            span.add_event(name, self._source.shown(known), timestamp=nanoseconds(step.entry.at))


def span_of(call: ObservedCall | None) -> Span | None:
    """The parent span of a call: the span of its task, else that of its request."""
    if call is None:
        return None
    span: Span | None = call.span or (call.request.span if call.request else None)
    return span


def nanoseconds(at: float) -> int:
    """Nanoseconds since 1970, of seconds."""
    return round(at * 1e9)

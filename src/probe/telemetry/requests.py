"""Makes requests with a beginning, an outcome and an end from the entries of the log, and their attributes.

    begins   a client's request was read                            MessageReceived
    ends     its answer was made, or could not be sent              MessageEmitted, MessageDropped
             its call has no answer: cancelled, or the client is gone   CallSettled without an answer
             HTTP refused the batch that it is a part of            HttpResponse with a problem

The cause of an answer is the entry of its request. The answer is emitted after the end of its call. The call's outcome
has more detail than the answer, such as `timed_out` for an `isError`, and is kept until then.

Attributes such as `mcp.method.name` are those of "Semantic conventions for Model Context Protocol (MCP)", status
Development, of the repository open-telemetry/semantic-conventions-genai at commit 0393513c, before its first release;
they may still change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from pydantic_core import from_json

from ..core.clients import parts
from ..log import events
from ..log.bounded import Newest
from ..log.event_log import Entry
from ..log.events import MessageEmitted, is_session
from ..views.fold import Views
from ..views.values import Exchange
from ..wire.jsonrpc import RequestId, clip, is_id
from ..wire.revisions import LEGACY, MODERN
from ..wire.v2025.draft_streams import METHODS as STREAM_METHODS
from ..wire.v2025.registry import REQUESTS as LEGACY_REQUESTS
from ..wire.v2026.registry import REQUESTS as MODERN_REQUESTS

KNOWN_METHODS: Final = frozenset({*LEGACY_REQUESTS, *MODERN_REQUESTS, *STREAM_METHODS})
TRACE_MEMBERS: Final = ("traceparent", "tracestate")
"""W3C Trace Context, as headers and, since SEP-414, as members of `params._meta`."""
LONGEST_TRACE: Final = 512
"""Characters. W3C Trace Context section 3.3.1.5: "Vendors SHOULD propagate at least 512 characters"."""

MOST_OPEN: Final = 10_000
"""More of each kind than can be open at a time by default: requests, calls, tasks, streams, connections, questions."""

_REVISIONS: Final = frozenset({*LEGACY, *MODERN})
_PIPES: Final[Mapping[str, str]] = {"w": "websocket", "i": "stdio", "r": "stdio"}


@dataclass(slots=True, eq=False)
class KnownClient:
    """A session, or a modern client. `revision` is empty if this server does not support it."""

    revision: str
    opened: float


@dataclass(slots=True, eq=False)
class Head:
    """The client of an HTTP request, with its port if known, and the trace in the head."""

    version: str
    client: str
    trace: Mapping[str, str]


@dataclass(slots=True, eq=False)
class ObservedRequest:
    """A request of a client. `method` is as it was written, `transport` is `http`, `websocket` or `stdio`.

    The entry `seq` is not kept: its message may be large, and only the log bounds that. `head` is None on a WebSocket
    or standard streams. `outcome` is one of those in docs/telemetry.md once it is over. `span` is for the spans.
    """

    seq: int
    at: float
    mono: float
    method: str
    id: RequestId | None
    session: str | None
    transport: str
    head: Head | None
    tool: str | None = None
    outcome: str | None = None
    span: Any = None

    @property
    def era(self) -> str:
        """`legacy` or `modern`; `unknown` if it was refused before that was known."""
        if self.session is None:
            return "legacy" if self.method == "initialize" else "unknown"
        return "legacy" if events.is_session(self.session) else "modern"


@dataclass(slots=True, eq=False)
class ObservedCall:
    """A running call of a request, or of the task begun by it. `span` is as in `ObservedRequest`."""

    tool: str | None
    task: str | None
    request: ObservedRequest | None
    span: Any = None


@dataclass(slots=True)
class RequestStep:
    """One entry with its effects: the request begun by it, the requests ended by it, and its call."""

    entry: Entry
    begun: ObservedRequest | None = None
    call: ObservedCall | None = None
    over: list[ObservedRequest] = field(default_factory=list)


class Requests:
    """Fed with every entry in order, after `views` have taken it. `in_flight` are the open requests."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self.in_flight: Newest[int, ObservedRequest] = Newest(MOST_OPEN)
        self._calls: Newest[str, ObservedCall] = Newest(MOST_OPEN)
        self._takers: Mapping[type, Callable[[RequestStep, Any], None]] = {
            events.HttpResponse: self._response,
            events.MessageReceived: self._received,
            events.MessageEmitted: self._answered,
            events.MessageDropped: self._answered,
            events.CallStarted: self._started,
            events.CallSettled: self._settled,
        }

    def take(self, entry: Entry) -> RequestStep:
        step = RequestStep(entry, call=self._calls.get(entry.context.call or ""))
        taker = self._takers.get(type(entry.fact))
        if taker is not None:
            taker(step, entry.fact)
        return step

    def missed(self) -> None:
        """Entries are missing, perhaps with the ends of open requests and calls."""
        self.in_flight.clear()
        self._calls.clear()

    def peer(self, session: str | None) -> KnownClient | None:
        """The session, or the modern client, with this label."""
        known = None if session is None else self._views.sessions.get(session)
        if known is None:
            return None
        declared = known.declared[-1]
        revision = cast("events.SessionOpened | events.ClientSeen", declared.fact).revision
        # A modern client may send any revision.
        return KnownClient(revision if revision in _REVISIONS else "", declared.mono)

    def _response(self, step: RequestStep, fact: events.HttpResponse) -> None:
        exchange = None if fact.problem is None else self._exchange(step.entry)
        for message in () if exchange is None else exchange.messages:
            request = self.in_flight.get(message.seq)
            if request is not None:
                self._end(step, request, "refused")

    def _exchange(self, entry: Entry) -> Exchange | None:
        return self._views.exchanges.get(entry.context.exchange or 0)

    def _head(self, entry: Entry) -> Head | None:
        exchange = self._exchange(entry)
        if exchange is None or exchange.head is None:
            return None
        fact = exchange.request
        return Head(fact.http_version, fact.client, _trace(fact.headers))

    def _received(self, step: RequestStep, fact: events.MessageReceived) -> None:
        if fact.rpc != "request" or fact.method is None:
            return
        entry, context = step.entry, step.entry.context
        pipe = context.pipe
        transport, head = ("http", self._head(entry)) if pipe is None else (_PIPES[pipe[0]], None)
        step.begun = request = ObservedRequest(
            entry.seq, entry.at, entry.mono, fact.method, fact.id, context.session, transport, head
        )
        forgotten = self.in_flight.store(entry.seq, request)
        if forgotten is not None:
            self._end(step, forgotten, "unanswered")

    def _answered(self, step: RequestStep, fact: events.MessageEmitted | events.MessageDropped) -> None:
        request = self.in_flight.get(step.entry.cause or 0) if fact.rpc in ("response", "error") else None
        if request is None:
            return
        # `initialize` has its session by now.
        request.session = request.session or step.entry.context.session
        answer = "completed" if fact.rpc == "response" else "protocol_error"
        self._end(step, request, answer if isinstance(fact, events.MessageEmitted) else "disconnected")

    def _started(self, step: RequestStep, fact: events.CallStarted) -> None:
        context = step.entry.context
        request = self.in_flight.get(step.entry.cause or 0)
        if request is not None:
            request.tool = fact.tool
        step.call = ObservedCall(fact.tool, context.task, request)
        self._calls.store(context.call or "", step.call)

    def _settled(self, step: RequestStep, fact: events.CallSettled) -> None:
        self._calls.pop(step.entry.context.call or "", None)
        request = None if step.call is None or step.call.task is not None else step.call.request
        if request is not None and request.seq in self.in_flight:
            request.outcome = fact.outcome
            if not fact.answered:
                self._end(step, request, fact.outcome)

    def _end(self, step: RequestStep, request: ObservedRequest, outcome: str) -> None:
        request.outcome = request.outcome or outcome
        self.in_flight.pop(request.seq, None)
        step.over.append(request)


def _trace(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The trace context in the head of a request. Two `traceparent` headers count as none.

    W3C Trace Context, tracestate Header Field Values: "When receiving multiple tracestate header fields, they MUST be
    combined into a single header according to RFC7230". And it "MUST NOT" be read without a traceparent.
    """
    said: dict[str, list[str]] = {}
    for name, value in headers:
        if name.lower() in TRACE_MEMBERS:
            said.setdefault(name.lower(), []).append(value)
    if len(said.get("traceparent", ())) != 1:
        return {}
    joined = {name: ",".join(values) for name, values in said.items()}
    return {name: value for name, value in joined.items() if len(value) <= LONGEST_TRACE}


Attributes: TypeAlias = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class Source:
    """The engine of spans and log records: what it is of, the attributes that all of them have, and `hide`.

    `hide` gets each text that may be a client's, and returns it without the secrets of the engine.
    """

    of: str = "server"
    attributes: Attributes = field(default_factory=dict)
    hide: Callable[[str], str] = str

    def shown(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self.hide(value) if isinstance(value, str) else value for key, value in attributes.items()}


OPERATION_DURATION: Final = "mcp.server.operation.duration"
SESSION_DURATION: Final = "mcp.server.session.duration"
BOUNDS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Seconds: the `ExplicitBucketBoundaries` of both."""

# A larger message begins a new trace: parsing it twice would delay the calls.
_MOST_READ: Final = 256 * 1024
_LONGEST_TEXT: Final = 256
_NAMED: Final = {"tools/call": ("name", "gen_ai.tool.name"), "prompts/get": ("name", "gen_ai.prompt.name")}
_WITH_URI: Final = ("resources/read", "resources/subscribe", "resources/unsubscribe")
_FAILED: Final = ("cancelled", "disconnected", "refused", "unanswered")


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The values in a request: its target by attribute, such as `gen_ai.tool.name`, and its trace."""

    target: Attributes = field(default_factory=dict)
    trace: Mapping[str, str] = field(default_factory=dict)


def read_target(method: str, message: bytes) -> RequestTarget:
    """The values in a request; empty if it is malformed or too large to be parsed again."""
    value: Any = from_json(message) if len(message) <= _MOST_READ else None
    params = _members(_members(value).get("params"))
    meta = _members(params.get("_meta"))
    texts = {name: meta[name] for name in TRACE_MEMBERS if isinstance(meta.get(name), str)}
    trace = {name: text for name, text in texts.items() if len(text) <= LONGEST_TRACE}
    member, attribute = ("uri", "mcp.resource.uri") if method in _WITH_URI else _NAMED.get(method, ("", ""))
    name = params.get(member)
    return RequestTarget({attribute: clip(name, _LONGEST_TEXT)} if isinstance(name, str) else {}, trace)


def _members(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def connection(request: ObservedRequest, peer: KnownClient | None) -> Attributes:
    """The attributes of the transport of a request. They have few values, so metrics use them as well."""
    if request.transport == "stdio":
        about: Attributes = {"network.transport": "pipe"}
    else:
        about = {"network.transport": "tcp", "network.protocol.name": request.transport}
    if request.head is not None:
        about["network.protocol.version"] = request.head.version
    if peer is not None and peer.revision:
        about["mcp.protocol.version"] = peer.revision
    return about


def identity(request: ObservedRequest) -> Attributes:
    """The attributes with the name of its sender.

    `mcp.session.id` is the label: the id would let a reader end the session.
    """
    about: Attributes = {}
    if is_id(request.id):
        about["jsonrpc.request.id"] = clip(str(request.id), _LONGEST_TEXT)
    if is_session(request.session):
        about["mcp.session.id"] = request.session or ""
    if request.head is not None:
        about["client.address"], port = parts(request.head.client)
        if port is not None:
            about["client.port"] = port
    return about


@dataclass(frozen=True, slots=True)
class Failure:
    """How a request failed: `type` for `error.type`, the code of a JSON-RPC error, and its message."""

    type: str
    code: int | None = None
    message: str | None = None


def failure(request: ObservedRequest, end: object) -> Failure | None:
    """None for a request that did not fail. `end` is the fact that ended it, which may be its answer."""
    error = _error(end.message) if isinstance(end, MessageEmitted) else {}
    code, message = error.get("code"), error.get("message")
    if isinstance(code, int):
        return Failure(str(code), code, clip(message, _LONGEST_TEXT) if isinstance(message, str) else None)
    if request.outcome in ("tool_error", "timed_out"):
        # A passed deadline is an `isError` too; an event of the span has its name.
        return Failure("tool_error")
    return Failure(request.outcome) if request.outcome in _FAILED else None


def _error(answer: bytes) -> Mapping[str, Any]:
    # Errors of this server are short. Longer bodies are results and are not parsed.
    value: Any = from_json(answer) if len(answer) <= _MOST_READ and b'"error"' in answer else None
    return _members(_members(value).get("error"))


def operation(request: ObservedRequest, why: Failure | None, label: Callable[[str | None], str]) -> Attributes:
    """The attributes of a request for metrics, beside those of `connection`. `label` returns the label of a tool."""
    about: Attributes = {}
    if request.tool is not None:
        about |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": label(request.tool)}
    if why is not None:
        about["error.type"] = why.type
        if why.code is not None:
            about["rpc.response.status_code"] = str(why.code)
    return about

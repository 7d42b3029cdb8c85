"""From the entries of the log to requests with a beginning, an outcome and an end.

    begins   a client's request was read                            MessageReceived
    ends     its answer was made, or could not be sent              MessageEmitted, MessageDropped
             its call was silenced: cancelled, or nobody is there   CallSettled without an answer
             HTTP refused what brought it                           HttpResponse with a problem

An answer is emitted behind the end of its call, which tells more than the answer does; so the call's outcome is noted
until then. The calls of tasks outlive their requests and are no part of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..observe import events
from ..observe.log import Entry
from ..wire.jsonrpc import RequestId
from ..wire.revisions import LEGACY, MODERN
from ..wire.v2025.draft_streams import METHODS as STREAM_METHODS
from ..wire.v2025.registry import REQUESTS as LEGACY_REQUESTS
from ..wire.v2026.registry import REQUESTS as MODERN_REQUESTS
from .latest import Latest

KNOWN_METHODS: Final = frozenset({*LEGACY_REQUESTS, *MODERN_REQUESTS, *STREAM_METHODS})
OUTCOMES: Final = (
    "completed",
    "tool_error",
    "protocol_error",
    "input_required",
    "timed_out",
    "cancelled",
    "disconnected",
    "refused",
    "unanswered",
)
"""`refused`: by HTTP, before there was a message to answer. `unanswered`: nothing was heard of it for very long."""

TRACE_MEMBERS: Final = ("traceparent", "tracestate")
"""W3C Trace Context, as headers and, since SEP-414, as members of `params._meta`."""
LONGEST_TRACE: Final = 512
"""Characters. W3C Trace Context section 3.3.1.5: "Vendors SHOULD propagate at least 512 characters"."""

# More than can be in flight by default, as in the log's own pairing.
_MOST_OPEN: Final = 10_000
# Heads of HTTP requests whose messages are still being read, and answers on their way from their calls.
_MOST_PASSING: Final = 2000
# Sessions and modern clients whose revision is known; twice the sessions of the defaults.
_MOST_PEERS: Final = 2000

# What names the call that it is about, and nothing more.
_OF_CALL: Final = (
    events.CallProgressed,
    events.CallCancelled,
    events.DispatchSent,
    events.DispatchExpired,
    events.DispatchSettled,
)


@dataclass(slots=True, eq=False)
class Peer:
    """A session, or a modern client. `revision` is empty where it named one that this server does not speak."""

    revision: str
    opened: float


@dataclass(frozen=True, slots=True)
class Head:
    """What is kept of the head of an HTTP request: the client, with its port where that is known, and its trace."""

    version: str
    client: str
    trace: Mapping[str, str]


@dataclass(slots=True, eq=False)
class Request:
    """A request of a client. `method` is as it was written, `transport` is `http`, `websocket` or `stdio`.

    Its entry has the number `seq`; `at` and `mono` are its times. The entry itself is not kept: its message may be
    large, and the log has bounded that. `head` is that of the HTTP request that brought it, None on a connection that
    carries everything. `outcome` is one of `OUTCOMES` once it is over. `kept` is for whoever follows requests to keep
    something with one.
    """

    seq: int
    at: float
    mono: float
    exchange: int
    method: str
    id: RequestId | None
    session: str | None
    transport: str
    head: Head | None
    tool: str | None = None
    outcome: str | None = None
    kept: Any = None

    @property
    def era(self) -> str:
        """`legacy` or `modern`; `unknown` where it was refused before anybody knew."""
        if self.session is None:
            return "legacy" if self.method == "initialize" else "unknown"
        return "legacy" if events.is_session(self.session) else "modern"


@dataclass(slots=True, eq=False)
class Running:
    """A call that runs: of a request, or of the task that a request began. `kept` as that of `Request`."""

    tool: str | None
    task: str | None
    request: Request | None
    kept: Any = None


@dataclass(slots=True)
class Step:
    """One entry, and what it means: the request that begins with it, those that are over, the call that it is about."""

    entry: Entry
    begun: Request | None = None
    call: Running | None = None
    over: list[Request] = field(default_factory=list)


class Requests:
    """Fed with every entry in order. `in_flight` are the requests that are not over."""

    def __init__(self) -> None:
        self.in_flight: Latest[int, Request] = Latest(_MOST_OPEN)
        self.peers: Latest[str, Peer] = Latest(_MOST_PEERS)
        self._of_exchange: dict[int, list[Request]] = {}
        self._calls: Latest[str, Running] = Latest(_MOST_OPEN)
        self._answering: Latest[str, Request] = Latest(_MOST_PASSING)
        self._heads: Latest[int, Head] = Latest(_MOST_PASSING)
        self._transports: Latest[str, str] = Latest(_MOST_PASSING)
        self._takers: Mapping[type, Callable[[Step, Any], None]] = {
            events.HttpRequest: self._head,
            events.HttpResponse: self._response,
            events.ConnectionOpened: self._connected,
            events.SessionOpened: self._greeted,
            events.ClientSeen: self._greeted,
            events.MessageReceived: self._received,
            events.MessageEmitted: self._emitted,
            events.MessageDropped: self._dropped,
            events.CallStarted: self._started,
            events.CallSettled: self._settled,
            **dict.fromkeys(_OF_CALL, self._about_call),
        }

    def take(self, entry: Entry) -> Step:
        """One more entry."""
        step = Step(entry)
        taker = self._takers.get(type(entry.event))
        if taker is not None:
            taker(step, entry.event)
        return step

    def missed(self) -> None:
        """Entries are missing: the end of anything that is open may be among them."""
        for open_ones in (self.in_flight, self._calls, self._answering, self._heads, self._of_exchange):
            open_ones.clear()

    def _head(self, step: Step, event: events.HttpRequest) -> None:
        self._heads.put(event.exchange, Head(event.http_version, event.client, _trace(event.headers)))

    def _connected(self, step: Step, event: events.ConnectionOpened) -> None:
        self._transports.put(event.connection, event.transport)

    def _greeted(self, step: Step, event: events.SessionOpened | events.ClientSeen) -> None:
        # A modern client names what it likes.
        revision = event.revision if event.revision in (*LEGACY, *MODERN) else ""
        self.peers.put(event.session, Peer(revision, step.entry.mono))

    def _received(self, step: Step, event: events.MessageReceived) -> None:
        if event.rpc != "request" or event.method is None:
            return
        carried = event.connection
        entry = step.entry
        request = Request(
            seq=entry.seq,
            at=entry.at,
            mono=entry.mono,
            exchange=event.exchange,
            method=event.method,
            id=event.id,
            session=event.session,
            transport="http" if carried is None else self._transports.get(carried, "websocket"),
            head=self._heads.get(event.exchange) if carried is None else None,
        )
        step.begun = request
        self._of_exchange.setdefault(event.exchange, []).append(request)
        forgotten = self.in_flight.put(entry.seq, request)
        if forgotten is not None:
            self._end(step, forgotten, "unanswered")

    def _response(self, step: Step, event: events.HttpResponse) -> None:
        if event.problem is not None:
            for request in [*self._of_exchange.get(event.exchange, ())]:
                self._end(step, request, "refused")

    def _emitted(self, step: Step, event: events.MessageEmitted) -> None:
        step.call = None if event.call is None else self._calls.get(event.call)
        if event.rpc in ("response", "error") and step.entry.pair is not None:
            request = self.in_flight.get(step.entry.pair)
            if request is not None:
                # `initialize` has its session by now.
                request.session = request.session or event.session
                self._end(step, request, "completed" if event.rpc == "response" else "protocol_error")

    def _dropped(self, step: Step, event: events.MessageDropped) -> None:
        request = self._answering.pop(event.call, None) if event.call is not None else None
        if request is not None and event.rpc in ("response", "error"):
            self._end(step, request, "disconnected")

    def _started(self, step: Step, event: events.CallStarted) -> None:
        request = self.in_flight.get(step.entry.pair or 0)
        if request is not None:
            request.tool = event.tool
        step.call = Running(event.tool, event.task, request)
        self._calls.put(event.call, step.call)

    def _settled(self, step: Step, event: events.CallSettled) -> None:
        step.call = self._calls.pop(event.call, None)
        request = None if step.call is None or event.task is not None else step.call.request
        if request is None or request.seq not in self.in_flight:
            return
        request.outcome = event.outcome
        if event.answered:
            self._answering.put(event.call, request)
        else:
            self._end(step, request, event.outcome)

    def _about_call(self, step: Step, event: Any) -> None:
        step.call = self._calls.get(event.call)

    def _end(self, step: Step, request: Request, outcome: str) -> None:
        """Over, with the outcome of its call where there was one."""
        request.outcome = request.outcome or outcome
        self.in_flight.pop(request.seq, None)
        others = self._of_exchange.get(request.exchange, [])
        if request in others:
            others.remove(request)
        if not others:
            self._of_exchange.pop(request.exchange, None)
        step.over.append(request)


def _trace(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The trace context in the head of a request; of two `traceparent` nobody can say which is the parent.

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

"""The views: what the log shows of each thing. `fold.py` alone changes them; everybody else only reads.

What happened to a view is the entry that says so, None until then: `exchange.response.fact.status`,
`message.delivered.mono`. So every fact has a number, a time and a cause. A view is complete and also knows what came
later; `answered_by(at)` and its like say what was so before a time (the monotonic clock of the log, in seconds).

    Client --- Session --- Scope --- Message (request) --- Call --- Task
       |          |                    |        |
       +------ Connection --- Exchange-+     Stream --- Message (notification, answer)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from msgspec import Struct, field, structs

from ..core.inbound import HttpHead
from ..log import events
from ..log.event_log import Entry
from ..wire.jsonrpc import ProgressToken, RequestId, Rpc
from ..wire.revisions import LEGACY, MODERN
from .clients import Scope
from .contents import Content, Contents, covers, members
from .retention import ForgottenError

if TYPE_CHECKING:
    from .clients import Client, Connection, Session
    from .tables.rows import RefusalRow
    from .work import Call, Stream

MessageFact: TypeAlias = events.MessageReceived | events.MessageEmitted | events.MessageDropped

# Statuses and names of refusals whose cause is a limit of this server or its end, never the client's message.
LIMIT_STATUSES: Final = frozenset({408, 413, 429, 503})
# Members of the params of a request that name what it is about.
_TARGETS: Final = ("name", "uri", "taskId")
EVENT_STREAM: Final = "text/event-stream"
LIMIT_REFUSALS: Final = frozenset({"TOO_MANY_REQUESTS", "BUSY", "BODY_TOO_LARGE", "REQUEST_TIMEOUT"})


def _before(entry: Entry | None, at: float) -> bool:
    return entry is not None and entry.mono < at


class Exchange(Struct, eq=False):
    """One HTTP request with its response; on a pipe, one message of the client with what answers it.

    `head` is the `http.request`, None on a pipe. `client` and `session` are None until an entry says whose it is.
    `response` and `closed` are `http.response` and `http.closed`. `entries` are the numbers of all its entries;
    `shared` those that belong to all `calls` that it is about. `unreadable` is a body that was not read, `misuse` the
    first `client.misuse`, `stream` the first event stream that its response read. `refusals` are errors in it that wait
    for the status of the response. `labels` are those of the sessions and modern clients that its entries name.
    """

    number: int
    began: Entry
    head: Entry | None = None
    connection: Connection | None = None
    client: Client | None = None
    session: Session | None = None
    response: Entry | None = None
    closed: Entry | None = None
    unreadable: Entry | None = None
    misuse: Entry | None = None
    cut: bool = False
    entries: list[int] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    stream: Stream | None = None
    labels: tuple[str, ...] = ()
    refusals: tuple[RefusalRow, ...] = ()
    _fields: HttpHead | None = None

    @property
    def seq(self) -> int:
        """The number of its first entry."""
        return self.began.seq

    @property
    def fields(self) -> HttpHead:
        """The head of the request as the server reads it, the secrets hidden; without headers where there is none."""
        if self._fields is None:
            fact = None if self.head is None else self.request
            self._fields = HttpHead("", ()) if fact is None else HttpHead(fact.method, fact.headers)
        return self._fields

    @property
    def headers(self) -> Mapping[str, Sequence[str]]:
        """The values of each header of the request, as `HttpHead.values`."""
        return self.fields.values

    def header(self, name: str) -> str | None:
        """The first value of a header; None where it is not there."""
        return next(iter(self.headers.get(name, ())), None)

    def is_hidden(self, name: str) -> bool:
        """True if the value of a header, or of a query parameter with `?` before its name, is hidden in the log."""
        return self.head is not None and name in self.request.hidden

    @property
    def is_endpoint(self) -> bool:
        """True if it is for the protocol's endpoint."""
        return self.head is not None and self.request.path.rstrip("/").endswith("/mcp")

    @property
    def revision(self) -> str | None:
        """The revision of the session that it is in, else the one that its head names; so of an `initialize` none."""
        session = self.session
        if session is not None and session.is_legacy and session.opened.context.exchange != self.number:
            return session.revision
        named = self.header("mcp-protocol-version")
        return named if named in LEGACY or named in MODERN else None

    @property
    def request(self) -> events.HttpRequest:
        """The head of the HTTP request. Raises `ForgottenError` where the log does not show it."""
        if self.head is None:
            raise ForgottenError
        return cast("events.HttpRequest", self.head.fact)

    @property
    def status(self) -> int | None:
        """The status of the response."""
        return None if self.response is None else cast("events.HttpResponse", self.response.fact).status

    @property
    def refusal(self) -> str | None:
        """The name of the refusal of the whole request."""
        return None if self.response is None else cast("events.HttpResponse", self.response.fact).refusal

    @property
    def is_event_stream(self) -> bool:
        """True if its response is an event stream."""
        response = None if self.response is None else cast("events.HttpResponse", self.response.fact)
        return response is not None and response.content_type == EVENT_STREAM

    @property
    def ended_by(self) -> str | None:
        """`client`, or why the server ended it; None while it lasts, and for an answer in one piece."""
        return None if self.closed is None else cast("events.HttpClosed", self.closed.fact).by

    def closed_by(self, at: float) -> bool:
        """True if its event stream, or an exchange without a response, was over before a time."""
        return _before(self.closed, at)

    def left_by(self, at: float) -> bool:
        """True if the client had closed it before a time."""
        return _before(self.closed, at) and self.ended_by == "client"

    def limited_by(self, at: float) -> bool:
        """True if a limit of the server, or its end, had refused it before a time."""
        return _before(self.response, at) and (self.status in LIMIT_STATUSES or self.refusal in LIMIT_REFUSALS)


class Message(Struct, eq=False):
    """One JSON-RPC message, of either side. `received` says that it is the client's.

    `place` is its connection, `session` that of its context. For a client's request: `answer` is the final message,
    `call` what it began, `opened` the session of an `initialize`, `stream` the one that was opened for its answer,
    `resumed` the one that it asked for again; `refused` and `repeated` are the entries that say so, `asked_to_cancel`
    the client's first notification that names it. For a message of the server: `request` is the one that it answers, or
    in whose call it was sent; `stream` carries it, `delivered` is the entry of the delivery. `replies` are the client's
    answers to a question, whose `question` that is. `same_id` is the request before it with the same typed id in its
    scope. The judge, which reads contents, sets `era` and `revision` of what the client sent, and the typed progress
    `token` of its requests.
    """

    entry: Entry
    received: bool
    place: Connection | None = None
    exchange: Exchange | None = None
    session: Session | None = None
    request: Message | None = None
    call: Call | None = None
    stream: Stream | None = None
    resumed: Stream | None = None
    answer: Message | None = None
    delivered: Entry | None = None
    refused: Entry | None = None
    repeated: Entry | None = None
    opened: Session | None = None
    asked_to_cancel: Message | None = None
    question: Message | None = None
    replies: list[Message] | None = None
    same_id: Message | None = None
    contents: Contents | None = None
    parsed: Content | None = None
    era: Literal["legacy", "modern"] | None = None
    spoken: str | None = None
    token: ProgressToken | None = None
    is_forgotten: bool = False
    kept_target: str = ""
    kept_size: int = 0

    @property
    def fact(self) -> MessageFact:
        """Its fact in the log; without the content, where that is forgotten."""
        return self.entry.fact  # type: ignore[return-value]

    @property
    def seq(self) -> int:
        """The number of its entry."""
        return self.entry.seq

    # Readers ask for these many times for each message, so they go to the fact themselves.
    @property
    def rpc(self) -> Rpc:
        """The kind of message."""
        return self.entry.fact.rpc  # type: ignore[union-attr]

    @property
    def method(self) -> str | None:
        """Its method, None for an answer."""
        return self.entry.fact.method  # type: ignore[union-attr]

    @property
    def id(self) -> RequestId | None:
        """Its id with its type; None where it has none, or one that JSON-RPC does not allow."""
        return self.entry.fact.id  # type: ignore[union-attr]

    @property
    def raw(self) -> bytes:
        """Its JSON with the secrets hidden. Raises `ForgottenError`."""
        if self.is_forgotten:
            raise ForgottenError
        return self.entry.fact.message  # type: ignore[union-attr, return-value]

    @property
    def content(self) -> Content:
        """The same, parsed. Raises `ForgottenError`."""
        return self.parsed or self._parse()

    def _parse(self) -> Content:
        content = Content(self.raw)
        if self.contents is not None:
            self.contents.keep(self, content)
        return content

    @property
    def value(self) -> Any:
        """The JSON value. Raises `ForgottenError`."""
        return (self.parsed or self._parse()).value

    @property
    def params(self) -> Mapping[str, Any]:
        """The params where they are an object, else an empty one."""
        return (self.parsed or self._parse()).params

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the params where that is an object, else an empty one."""
        return (self.parsed or self._parse()).meta

    @property
    def result(self) -> Any:
        """The result of an answer, None where it has none."""
        return members(self.value).get("result")

    @property
    def error(self) -> Any:
        """The error of an answer, None where it has none."""
        return members(self.value).get("error")

    @property
    def batch(self) -> int | None:
        """The place of a client's message in the array that brought it; None where it came alone."""
        return getattr(self.fact, "batch", None)

    @property
    def hidden(self) -> tuple[tuple[str, str], ...]:
        """The members that are hidden in the log: the JSON pointer (RFC 6901) and the JSON type of each."""
        return getattr(self.fact, "hidden", ())

    def hides(self, pointer: str) -> bool:
        """True if the member at a JSON pointer, or one below or above it, is hidden in the log."""
        hidden = self.hidden
        return bool(hidden) and covers(hidden, pointer)

    @property
    def at(self) -> float:
        """When it came, or was made."""
        return self.entry.mono

    @property
    def post(self) -> Exchange | None:
        """The HTTP request that brought it; None on a pipe, and where the log does not have its head."""
        exchange = self.exchange
        return None if exchange is None or exchange.head is None else exchange

    @property
    def pipe(self) -> Connection | None:
        """Its connection, where that carries all messages both ways."""
        return self.place if self.place is not None and self.place.scope is not None else None

    @property
    def transport(self) -> Literal["http", "websocket", "stdio"]:
        """The transport that it came or went by."""
        return "http" if self.place is None else self.place.transport

    @property
    def in_session(self) -> Session | None:
        """The legacy session that it is of: of an initialize, the one that it opened."""
        if self.era == "modern":
            return None
        session = self.opened or self.session
        if session is None or not session.is_legacy:
            session = None if self.pipe is None else self.pipe.session
        # A session that was opened later is none of this message; an `initialize` has opened its own.
        is_there = session is not None and (session is self.opened or session.seq < self.seq)
        return session if is_there else None

    @property
    def revision(self) -> str | None:
        """Its revision of the protocol, where that is known; what the server sends has that of session or request."""
        if self.opened is not None:
            return self.opened.revision
        if self.received:
            return self.spoken
        if self.session is not None and self.session.is_legacy:
            return self.session.revision
        return None if self.request is None else self.request.revision

    @property
    def position(self) -> int | None:
        """The position of a message of the server on its stream."""
        return getattr(self.fact, "position", None)

    @property
    def had(self) -> float | None:
        """When a socket took a message of the server."""
        return None if self.delivered is None else self.delivered.mono

    @property
    def answered(self) -> float | None:
        """When the answer to a request was delivered."""
        return None if self.answer is None else self.answer.had

    @property
    def refusal(self) -> str | None:
        """The name of the refusal, where no method handled it."""
        return None if self.refused is None else getattr(self.refused.fact, "refusal", None)

    @property
    def began(self) -> float:
        """When the first of it arrived: over HTTP the head of its request, which can be long before the body."""
        exchange = self.exchange
        return self.entry.mono if exchange is None or exchange.head is None else exchange.head.mono

    @property
    def scope(self) -> Scope | None:
        """Where its id counts; None as long as nobody knows whose it is."""
        session, place, exchange = self.opened or self.session, self.place, self.exchange
        if session is not None and session.is_legacy:
            return session.scope
        if place is not None and place.scope is not None:
            return place.scope
        client = None if exchange is None else exchange.client
        return None if client is None else client.scope

    def had_by(self, at: float) -> bool:
        """True if a socket had taken a message of the server before a time."""
        return _before(self.delivered, at)

    def answered_by(self, at: float) -> bool:
        """True if its answer had been delivered before a time."""
        return self.answer is not None and _before(self.answer.delivered, at)

    def was_answered(self, at: float) -> bool:
        """True if the server had made its answer before a time."""
        return self.answer is not None and self.answer.entry.mono < at

    def progressed_by(self, at: float) -> bool:
        """True if a progress report of its call had been delivered before a time."""
        reports = () if self.call is None else self.call.progress
        return any(_before(report.delivered, at) for report in reports)

    def cancelled_by(self, at: float) -> bool:
        """True if before a time the client had cancelled it, or anything else its call."""
        asked, call = self.asked_to_cancel, self.call
        return (asked is not None and asked.entry.mono < at) or (call is not None and _before(call.cancelled, at))

    def dropped_by(self, at: float) -> bool:
        """True if before a time the client had left, with the answer not delivered."""
        if self.exchange is not None and self.exchange.head is not None:
            end = self.exchange.closed if self.exchange.ended_by == "client" else None
        else:
            end = self.place.closed if self.place is not None and self.place.ended_by == "client" else None
        return end is not None and end.mono < at and not self.answered_by(end.mono)

    def limited_by(self, at: float) -> bool:
        """True if a limit of the server, or its end, had refused it before a time."""
        if _before(self.refused, at) and getattr(self.refused.fact, "refusal", "") in LIMIT_REFUSALS:  # type: ignore[union-attr]
            return True
        return self.exchange is not None and self.exchange.limited_by(at)

    @property
    def size(self) -> int:
        """How many bytes it has, or had. It outlives the content."""
        return self.kept_size if self.is_forgotten else len(self.fact.message)

    @property
    def target(self) -> str:
        """The name, URI or task id that a request is about; empty where it has none. It outlives the content."""
        if self.is_forgotten:
            return self.kept_target
        params = self.params
        return next((params[name] for name in _TARGETS if isinstance(params.get(name), str)), "")

    def forget(self, *, whole: bool = False) -> int:
        """Give up the content; all facts stay, with `whole` but the target. Returns how many bytes it had."""
        if self.is_forgotten:
            return 0
        if not whole and self.received and self.rpc == "request":
            self.kept_target = self.target
        size = self.kept_size = len(self.fact.message)
        self.is_forgotten, self.parsed = True, None
        light = structs.replace(self.entry.fact, message=b"")
        self.entry = structs.replace(self.entry, fact=light)
        return size

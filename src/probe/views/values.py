"""The views: the state of each client, exchange, message, call and stream in the log. Only `fold.py` changes them.

A fact about a view is its entry in the log, None until then: `exchange.response.fact.status`, `message.delivered.mono`.
So every fact has a number, a time and a cause. A view has all facts up to the newest entry. `answered_by(at)` and its
like give the state before a time, in seconds on the monotonic clock of the log.

    Client --- Session --- Scope --- Message (request) --- Call --- Task
       |          |                    |        |
       +------ Connection --- Exchange-+     Stream --- Message (notification, answer)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct, field, structs

from ..core.inbound import HttpHead
from ..log import events
from ..log.event_log import Entry
from ..wire.jsonrpc import ProgressToken, RequestId, Rpc
from ..wire.revisions import LEGACY, MODERN
from .clients import Scope
from .retention import Content, Contents, ForgottenError, covers, members

if TYPE_CHECKING:
    from .clients import Client, Connection, Session
    from .rows import RefusalRow
    from .work import Call, Stream

MessageFact: TypeAlias = events.MessageReceived | events.MessageEmitted | events.MessageDropped

# Statuses and names of refusals caused by a limit of this server or its end, never by the client's message.
LIMIT_STATUSES: Final = frozenset({408, 413, 429, 503})
# Members of the params with the target of a request.
_TARGETS: Final = ("name", "uri", "taskId")
EVENT_STREAM: Final = "text/event-stream"
LIMIT_REFUSALS: Final = frozenset({"TOO_MANY_REQUESTS", "BUSY", "BODY_TOO_LARGE", "REQUEST_TIMEOUT"})


_NO_HEAD: Final = HttpHead("", ())


@lru_cache(maxsize=64)
def _head(method: str, headers: tuple[tuple[str, str], ...]) -> HttpHead:
    """A client sends the same headers again and again."""
    return HttpHead(method, headers)


def _before(entry: Entry | None, at: float) -> bool:
    return entry is not None and entry.mono < at


class Exchange(Struct, eq=False):
    """One HTTP request with its response; on a pipe, one message of the client with its answer.

    Its number is in the context of all its entries, so one reader serves every transport. It is not the same as a
    request or a call: a batch has several `messages`, each with its own answer. The response of a resumption reads the
    `stream` of an earlier exchange: a delivery has the exchange of the reader, the emission that of the request. And a
    legacy call goes on after its connection was lost: the exchange is closed, and the answer comes in a later one.

    `head` is the `http.request`, None on a pipe; `is_endpoint`: its path is the protocol's endpoint. `client` and
    `session` are None until an entry has them. `entries` are the numbers of its entries; `shared` those that belong to
    all of its `calls`. `unreadable` is the entry of an unread body, `misuse` the first `client.misuse`, `stream` the
    first event stream that its response read. `refusals` wait for the status of the response. `labels` are those of
    sessions and modern clients in its entries. The judge reads the head into `fields`, which has no headers on a pipe.
    """

    number: int
    began: Entry
    head: Entry | None = None
    is_endpoint: bool = False
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
    fields: HttpHead = _NO_HEAD

    @property
    def seq(self) -> int:
        return self.began.seq

    def read_head(self) -> None:
        """Set `fields`: the head as the server reads it, with the secrets hidden."""
        self.fields = _head(self.request.method, self.request.headers)

    @property
    def headers(self) -> Mapping[str, Sequence[str]]:
        return self.fields.values

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        values = self.fields.values.get(name)
        return values[0] if values else None

    def is_hidden(self, name: str) -> bool:
        """A query parameter has `?` before its name."""
        return self.head is not None and name in self.request.hidden

    @property
    def revision(self) -> str | None:
        """The revision of its session, else of its head; None for an `initialize`."""
        session = self.session
        if session is not None and session.is_legacy and session.opened.context.exchange != self.number:
            return session.revision
        named = self.header("mcp-protocol-version")
        return named if named in LEGACY or named in MODERN else None

    @property
    def request(self) -> events.HttpRequest:
        """Raises `ForgottenError` where the log does not show it."""
        if self.head is None:
            raise ForgottenError
        return self.head.fact  # type: ignore[return-value]

    @property
    def status(self) -> int | None:
        return None if self.response is None else self.response.fact.status  # type: ignore[union-attr,return-value]

    @property
    def refusal(self) -> str | None:
        return None if self.response is None else self.response.fact.refusal  # type: ignore[union-attr]

    @property
    def is_event_stream(self) -> bool:
        response = self.response
        return response is not None and response.fact.content_type == EVENT_STREAM  # type: ignore[union-attr]

    @property
    def ended_by(self) -> str | None:
        """`client`, or the server's reason to end it; None while it is open, and for an answer in one piece."""
        return None if self.closed is None else self.closed.fact.by  # type: ignore[union-attr]

    def closed_by(self, at: float) -> bool:
        """True if its event stream, or an exchange without a response, was over before a time."""
        return _before(self.closed, at)

    def limited_by(self, at: float) -> bool:
        return _before(self.response, at) and (self.status in LIMIT_STATUSES or self.refusal in LIMIT_REFUSALS)


class Message(Struct, eq=False):
    """One JSON-RPC message, of either side. `received` is true for the client's.

    `seq` and `at` are the number and the time of its entry, `rpc`, `method`, `id`, `batch` and `hidden` those of its
    fact. `id` is None without one, or with one that JSON-RPC forbids, `batch` is the place of a client's message in its
    batch, and `hidden` has JSON pointer (RFC 6901) and JSON type of each hidden member.

    `place` is its connection, `pipe` the same if it is one, `session` the session of its context. `in_session` is its
    legacy session, for an `initialize` the one that it opened. `scope` is None until its client is known.

    The judge reads contents, and sets `revision`, `era` of the client's messages, the typed progress `token` of its
    requests, and `has_meta`: False where the params have no `_meta`.

    A client's request: `answer` is the final message, `call` the call that it began, `opened` the session of an
    `initialize`, `stream` the stream opened for its answer, `resumed` the stream that it resumed. `refused` and
    `repeated` are entries, `asked_to_cancel` is the client's first `notifications/cancelled` with its id, `same_id` the
    request before it with the same typed id in its scope.

    A message of the server: `request` is the request that it answers, or that began its call. `stream` carries it,
    `delivered` is the entry of the delivery. `replies` are the client's answers to a question of the server; in each of
    them `question` is that question.
    """

    entry: Entry
    received: bool
    seq: int
    at: float
    rpc: Rpc
    method: str | None
    id: RequestId | None
    place: Connection | None = None
    exchange: Exchange | None = None
    session: Session | None = None
    pipe: Connection | None = None
    scope: Scope | None = None
    in_session: Session | None = None
    batch: int | None = None
    hidden: tuple[tuple[str, str], ...] = ()
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
    revision: str | None = None
    token: ProgressToken | None = None
    has_meta: bool = True
    is_forgotten: bool = False
    kept_target: str = ""
    kept_size: int = 0

    @property
    def fact(self) -> MessageFact:
        """Without the content once that is forgotten."""
        return self.entry.fact  # type: ignore[return-value]

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
        """Raises `ForgottenError`."""
        return (self.parsed or self._parse()).value

    @property
    def params(self) -> Mapping[str, Any]:
        return (self.parsed or self._parse()).params

    @property
    def meta(self) -> Mapping[str, Any]:
        return (self.parsed or self._parse()).meta

    @property
    def result(self) -> Any:
        return members(self.value).get("result")

    @property
    def error(self) -> Any:
        return members(self.value).get("error")

    def hides(self, pointer: str) -> bool:
        """True if the log hides the member at a JSON pointer, or one below or above it."""
        return bool(self.hidden) and covers(self.hidden, pointer)

    @property
    def post(self) -> Exchange | None:
        """None on a pipe, and where the log does not have the head."""
        exchange = self.exchange
        return None if exchange is None or exchange.head is None else exchange

    @property
    def transport(self) -> Literal["http", "websocket", "stdio"]:
        return "http" if self.pipe is None else self.pipe.transport

    @property
    def position(self) -> int | None:
        return getattr(self.fact, "position", None)

    @property
    def had(self) -> float | None:
        return None if self.delivered is None else self.delivered.mono

    @property
    def answered(self) -> float | None:
        return None if self.answer is None else self.answer.had

    @property
    def refusal(self) -> str | None:
        """The name of its refusal."""
        return None if self.refused is None else getattr(self.refused.fact, "refusal", None)

    @property
    def began(self) -> float:
        """The time of its first bytes: over HTTP the head of its request. The body can come much later."""
        exchange = self.exchange
        return self.entry.mono if exchange is None or exchange.head is None else exchange.head.mono

    def had_by(self, at: float) -> bool:
        return _before(self.delivered, at)

    def answered_by(self, at: float) -> bool:
        return self.answer is not None and _before(self.answer.delivered, at)

    def was_answered(self, at: float) -> bool:
        """The server had made the answer, delivered or not."""
        return self.answer is not None and self.answer.entry.mono < at

    def progressed_by(self, at: float) -> bool:
        """A progress report of the call had been delivered."""
        reports = () if self.call is None else self.call.progress
        return any(_before(report.delivered, at) for report in reports)

    def cancelled_by(self, at: float) -> bool:
        """The client had cancelled it, or its call was cancelled."""
        asked, call = self.asked_to_cancel, self.call
        return (asked is not None and asked.entry.mono < at) or (call is not None and _before(call.cancelled, at))

    def dropped_by(self, at: float) -> bool:
        """The client had left without the answer."""
        if self.exchange is not None and self.pipe is None:
            end = self.exchange.closed if self.exchange.ended_by == "client" else None
        else:
            end = self.place.closed if self.place is not None and self.place.ended_by == "client" else None
        return end is not None and end.mono < at and not self.answered_by(end.mono)

    def limited_by(self, at: float) -> bool:
        if _before(self.refused, at) and getattr(self.refused.fact, "refusal", "") in LIMIT_REFUSALS:  # type: ignore[union-attr]
            return True
        return self.exchange is not None and self.exchange.limited_by(at)

    @property
    def size(self) -> int:
        """Outlives the content."""
        return self.kept_size if self.is_forgotten else len(self.fact.message)

    @property
    def target(self) -> str:
        """The name, URI or task id in a request; empty without one. Outlives the content."""
        if self.is_forgotten:
            return self.kept_target
        params = self.params
        for name in _TARGETS:
            target = params.get(name)
            if isinstance(target, str):
                return target
        return ""

    def forget(self, *, whole: bool = False) -> int:
        """Give up the content; with `whole` the target, too. Returns the bytes of the content."""
        if self.is_forgotten:
            return 0
        if not whole and self.received and self.rpc == "request":
            self.kept_target = self.target
        size = self.kept_size = len(self.fact.message)
        self.is_forgotten, self.parsed = True, None
        light = structs.replace(self.entry.fact, message=b"")
        self.entry = structs.replace(self.entry, fact=light)
        return size

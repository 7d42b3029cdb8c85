"""The view of one subject for predicates: exchanges, messages of both sides, streams, sessions and pipes.

The projector makes these from the entries of the log and alone changes them; a predicate only reads them. Times are the
monotonic clock of the server in seconds, `seq` is the number of an entry. A message of the server counts as had by
the client from `delivered` on: then the socket took it, which does not say that the client has read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import from_json

from ...log.bounded import Newest
from ...log.events.messages import UnreadableFault
from ...wire.jsonrpc import RequestId, Rpc
from ...wire.revisions import LEGACY, MODERN
from ..values import covers
from ..values import members as members  # noqa: PLC0414  # the views and those who read them take it from here
from .listings import Lists

Era: TypeAlias = Literal["legacy", "modern"]
Transport: TypeAlias = Literal["http", "websocket", "stdio"]

# Requests of one scope that an answer or a cancellation can still name; more are in flight nowhere.
_MOST_REQUESTS: Final = 5_000
# Messages of one stream, or of one exchange, that are remembered.
_MOST_OF_STREAM: Final = 1_000
# Statuses and names of refusals whose cause is a limit of this server or its end, never the client's message.
LIMIT_STATUSES: Final = frozenset({408, 413, 429, 503})
LIMIT_REFUSALS: Final = frozenset({"TOO_MANY_REQUESTS", "BUSY", "BODY_TOO_LARGE", "REQUEST_TIMEOUT"})
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"


class ForgottenError(Exception):
    """The content of a message was asked for after it had made room for newer ones."""


_FORGOTTEN: Final = object()
_PACKED: Final = object()


@dataclass(slots=True, eq=False)
class Session:
    """A session of the legacy era. `initialize` is its request, `had` when the answer to that was delivered.

    `initialized` is the first `notifications/initialized`, `closed` when it ended and `why`. `last_act` is when the
    client last sent something in it, `last_request` when that was a request other than ping. `lists` are those that
    were delivered in it.
    """

    label: str
    seq: int
    opened: float
    transport: Transport
    revision: str
    name: str
    version: str
    capabilities: Mapping[str, Any]
    scope: Scope
    initialize: Message | None
    had: float | None = None
    initialized: Message | None = None
    last_act: float = 0.0
    last_request: float = 0.0
    closed: float | None = None
    why: str = ""
    lists: Lists = field(default_factory=Lists)


@dataclass(slots=True, eq=False)
class Pipe:
    """A WebSocket or the standard streams of a process: one connection that carries all messages both ways.

    `by` and `code` are those of its end. `session` is the legacy session on it, where there is one. `first` is the
    first message that came on it, `modern` the newest revision without sessions that a message on it named. On standard
    streams `ended_input` is when the client closed its end.
    """

    label: str
    transport: Transport
    seq: int
    opened: float
    scope: Scope
    session: Session | None = None
    first: Message | None = None
    modern: str | None = None
    ended_input: float | None = None
    last_act: float = 0.0
    closed: float | None = None
    by: str = ""
    code: int | None = None

    @property
    def revision(self) -> str | None:
        """The revision of its session, else the newest without sessions that was named on it."""
        return self.modern if self.session is None else self.session.revision


@dataclass(slots=True, eq=False)
class Scope:
    """A scope of request ids and progress tokens: a session, a pipe, or a modern client over HTTP.

    `certain` says that one process speaks in it. `requests` are the newest requests by their typed id, and `fell_out`
    says that there were more of them.
    """

    kind: Literal["session", "pipe", "client"]
    certain: bool
    requests: Newest[RequestId, Message] = field(default_factory=lambda: Newest(_MOST_REQUESTS))
    fell_out: bool = False


@dataclass(slots=True, eq=False)
class Exchange:
    """One HTTP request and its response. Header names are lower case; `headers` has each value in its order.

    `status` and what follows it are those of the response, None until there is one. `left` is when an event stream or
    an exchange without a response ended, and `by` who ended it: `client`, or why the server did. `found` is the rule
    that has already found a fault in it. `spoken` is the revision that MCP-Protocol-Version names, where that is known.
    `is_endpoint` says whether it is for the protocol's endpoint.
    """

    number: int
    seq: int
    at: float
    connection: str | None
    method: str
    path: str
    query: str
    headers: Mapping[str, tuple[str, ...]]
    hidden: frozenset[str]
    client: str
    peer: str | None
    named: str | None
    session_in_query: bool
    session: Session | None = None
    status: int | None = None
    response_seq: int | None = None
    responded: float | None = None
    content_type: str = ""
    refusal: str | None = None
    problem: str | None = None
    told: Mapping[str, str] = field(default_factory=dict)
    left: float | None = None
    by: str = ""
    messages: list[Message] = field(default_factory=list)
    stream: ServerStream | None = None
    is_endpoint: bool = field(init=False)
    spoken: str | None = field(init=False)
    unreadable: Unreadable | None = None
    found: str | None = None
    doubted: bool = False

    def header(self, name: str) -> str | None:
        """The first value of a header, without the spaces and tabs around it; None where it is not there."""
        values = self.headers.get(name)
        return values[0].strip(" \t") if values else None

    def is_hidden(self, name: str) -> bool:
        """Whether the value of a header, or of a query parameter with `?` before its name, is hidden in the log."""
        return name in self.hidden

    @property
    def revision(self) -> str | None:
        """The revision of its session, else the one that its head names."""
        return self.spoken if self.session is None else self.session.revision

    def __post_init__(self) -> None:
        """Read what many rules ask for."""
        self.is_endpoint = self.path.rstrip("/").endswith("/mcp")
        named = self.header("mcp-protocol-version")
        self.spoken = named if era_of(named) is not None else None

    @property
    def is_limited(self) -> bool:
        """Whether it was refused for a limit of this server, or because that ends."""
        return self.status in LIMIT_STATUSES or self.refusal in LIMIT_REFUSALS


@dataclass(slots=True, eq=False)
class Unreadable:
    """Bytes of the client that were not read as JSON: see `events.MessageUnreadable`.

    `found` is the rule that has already found a fault in them.
    """

    seq: int
    at: float
    fault: UnreadableFault
    problem: str
    head: str
    size: int
    declared: int | None
    exchange: Exchange | None
    pipe: Pipe | None
    found: str | None = None
    doubted: bool = False

    @property
    def revision(self) -> str | None:
        """The revision of its pipe; None without one."""
        return None if self.pipe is None else self.pipe.revision


@dataclass(slots=True, eq=False)
class Message:
    """A JSON-RPC message of the client. `value` is its JSON with the secrets hidden, `raw` the bytes of that.

    Once newer messages have come its content is read from `raw` each time that somebody asks (`pack`), and later given
    up (`forget`): a rule that asks for it then gets `ForgottenError`.
    `id` is None where the message has none, or one that JSON-RPC does not allow. `answer` is the final message to a
    request, once the server made it; `refusal` is the name of the refusal where no method handled it, and `problem`
    says that in words. `question` is the request of the server that it answers. `dropped` is when the client left the
    response stream of a request before the answer was delivered. `found` is the rule that has already found a fault in
    this message.
    """

    seq: int
    at: float
    rpc: Rpc
    method: str | None
    id: RequestId | None
    content: Any
    raw: bytes
    batch: int | None
    hidden: tuple[tuple[str, str], ...]
    transport: Transport
    era: Era | None
    revision: str | None
    scope: Scope
    session: Session | None
    exchange: Exchange | None
    pipe: Pipe | None
    question: Sent | None = None
    answer: Sent | None = None
    refusal: str | None = None
    stream: ServerStream | None = None
    dropped: float | None = None
    found: str | None = None
    doubted: bool = False
    problem: str = ""
    # Most rules look at these, so they are looked up once.
    _params: Mapping[str, Any] | None = field(default=None, repr=False)
    _meta: Mapping[str, Any] | None = field(default=None, repr=False)

    def pack(self) -> None:
        """Keep the bytes of the content alone."""
        if self.content is not _FORGOTTEN:
            self.content = _PACKED
            self._params = self._meta = None

    def forget(self) -> None:
        """Give up the content; who and when stay."""
        self.content, self.raw = _FORGOTTEN, b""
        self._params = self._meta = None

    @property
    def value(self) -> Any:
        """The JSON of the message with the secrets hidden. Raises `ForgottenError`."""
        if self.content is _PACKED:
            return from_json(self.raw)
        if self.content is _FORGOTTEN:
            raise ForgottenError
        return self.content

    @property
    def params(self) -> Mapping[str, Any]:
        """The params where they are an object, else an empty one."""
        if self.content is _PACKED:
            return members(members(self.value).get("params"))
        if self._params is None:
            self._params = members(members(self.value).get("params"))
        return self._params

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the params where that is an object, else an empty one."""
        if self.content is _PACKED:
            return members(self.params.get("_meta"))
        if self._meta is None:
            self._meta = members(self.params.get("_meta"))
        return self._meta

    @property
    def result(self) -> Any:
        """The result of an answer, None where it has none."""
        return members(self.value).get("result")

    @property
    def error(self) -> Any:
        """The error of an answer, None where it has none."""
        return members(self.value).get("error")

    @property
    def answered(self) -> float | None:
        """When the final message was delivered."""
        return None if self.answer is None else self.answer.delivered

    @property
    def began(self) -> float:
        """When the first of it arrived: over HTTP the head of its request, which can be long before the body."""
        return self.at if self.exchange is None else self.exchange.at

    @property
    def is_limited(self) -> bool:
        """Whether it was refused for a limit of this server, or because that ends."""
        return self.refusal in LIMIT_REFUSALS or (self.exchange is not None and self.exchange.is_limited)

    def hides(self, pointer: str) -> bool:
        """Whether the member at a JSON pointer, or one below or above it, is hidden in the log."""
        return covers(self.hidden, pointer)


@dataclass(slots=True, eq=False)
class Sent:
    """A message of the server. `request` is the client's request that it answers, or in whose call it was sent.

    `size` is how many bytes it has, also once `raw` is empty again (`forget`).
    `delivered` is when a socket took it, and `delivered_seq` the entry that says so; None until then, and where it
    never was. `answers` are the client's answers to a question.
    """

    seq: int
    at: float
    rpc: Rpc
    method: str | None
    id: RequestId | None
    raw: bytes
    size: int
    position: int | None
    hidden: tuple[tuple[str, str], ...]
    request: Message | None
    session: Session | None
    exchange: Exchange | None
    pipe: Pipe | None
    stream: ServerStream | None
    task: str | None
    revision: str | None
    delivered: float | None = None
    delivered_seq: int | None = None
    answers: list[Message] = field(default_factory=list)
    _value: Any = field(default=None, repr=False)

    def pack(self) -> None:
        """Keep the bytes of the content alone."""
        if self._value is not _FORGOTTEN:
            self._value = _PACKED

    def forget(self) -> None:
        """Give up the content; who and when stay."""
        self.raw, self._value = b"", _FORGOTTEN

    @property
    def value(self) -> Any:
        """The JSON of the message with the secrets hidden. Raises `ForgottenError`."""
        if self._value is _PACKED:
            return from_json(self.raw)
        if self._value is _FORGOTTEN:
            raise ForgottenError
        if self._value is None:
            self._value = from_json(self.raw)
        return self._value

    @property
    def params(self) -> Mapping[str, Any]:
        """The params of a question or notification; empty where there are none."""
        return members(members(self.value).get("params"))

    @property
    def result(self) -> Mapping[str, Any]:
        """The result of an answer; empty where there is none."""
        return members(members(self.value).get("result"))

    @property
    def error(self) -> Mapping[str, Any]:
        """The error of an answer; empty where there is none."""
        return members(members(self.value).get("error"))


@dataclass(frozen=True, slots=True)
class Control:
    """A part of an event stream beside messages: see `events.StreamControl`."""

    seq: int
    at: float
    what: str
    event_id: str | None
    retry_ms: int | None


@dataclass(slots=True, eq=False)
class ServerStream:
    """A stream of messages of the server. `request` is the request that it was opened for, None for a GET.

    `sent` are its newest messages by position. `readers` are the exchanges that carried it, the newest last. `controls`
    are what those carried beside messages.
    """

    id: str
    purpose: str
    seq: int
    opened: float
    session: Session | None
    request: Message | None
    ended: float | None = None
    readers: list[Exchange] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    sent: Newest[int, Sent] = field(default_factory=lambda: Newest(_MOST_OF_STREAM))

    @property
    def is_answered(self) -> bool:
        """Whether the answer to its request was delivered."""
        return self.request is not None and self.request.answered is not None

    def delivered(self) -> Iterator[Sent]:
        """Its messages that a socket took, the oldest first."""
        return (sent for sent in self.sent.values() if sent.delivered is not None)


@dataclass(frozen=True, slots=True)
class Frame:
    """A control frame or a refused frame of a WebSocket: see `events.WebSocketFrame`."""

    seq: int
    at: float
    direction: str
    opcode: str
    size: int
    refused: str | None
    pipe: Pipe

    @property
    def revision(self) -> str | None:
        """The revision of its pipe; None without one."""
        return self.pipe.revision


@dataclass(frozen=True, slots=True)
class ProcessChange:
    """Something happened to the server on standard streams, or to the client that `mcp-probe judge` started.

    `of` is `server` or `client`; `what` is that of `events.StdioChanged` or `events.ClientProcess`.
    """

    seq: int
    at: float
    of: Literal["server", "client"]
    what: str
    pid: int
    status: int | None
    pipe: Pipe | None

    @property
    def revision(self) -> str | None:
        """The revision of its pipe; None without one."""
        return None if self.pipe is None else self.pipe.revision


@dataclass(frozen=True, slots=True)
class TaskNews:
    """A status of a task at the server. `seq` and `at` are those of the entry."""

    seq: int
    at: float
    id: str
    tool: str
    status: str


def era_of(revision: str | None) -> Era | None:
    """The era of a revision that this server knows."""
    if revision in LEGACY:
        return "legacy"
    return "modern" if revision in MODERN else None

"""The vocabulary of the event log. Each class is one kind of fact; its docstring says when it is recorded.

`session` is a short public label, not the session id: `s7` is a session of the legacy era, `m7` stands for the requests
of one modern client, which have no session. `call`, `task`, `stream` and `exchange` are ids of this server; a stream's
belongs to its session. An exchange is one HTTP request with its response; on a WebSocket or on standard streams, where
one connection carries everything, it is one message of the client with what answers it, and the connection itself has a
number of its own.

Of a message, `rpc`, `method` and `id` are noted when it is recorded, so that nobody has to read it in order to find it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic_core import from_json

from ..wire.jsonrpc import ProgressToken, RequestId, clip, id_length, is_id

# The parameter by which a message names what another one began.
_NAMES = {
    "notifications/cancelled": "requestId",
    "tasks/get": "taskId",
    "tasks/result": "taskId",
    "tasks/cancel": "taskId",
    "tasks/update": "taskId",
    "stream/resume": "streamId",
    "stream/poll": "streamId",
}
# Longer ids are refused by default, and the message itself keeps any; nothing is found by one of these.
_LONGEST_ID = 1024

Rpc: TypeAlias = Literal["request", "notification", "response", "error", "invalid"]
"""What a JSON value is as a JSON-RPC message."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """The head of an HTTP request arrived; `headers` are as received, secrets hidden.

    `client` is the client's address, with its port where that is known. `peer` is the address and port of the trusted
    proxy that speaks for it, None where the request came from the client itself.
    """

    kind: ClassVar[str] = "http.request"
    exchange: int
    method: str
    path: str
    query: str
    http_version: str
    client: str
    headers: tuple[tuple[str, str], ...]
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The head of the response was handed to the socket. `problem` says why a request was refused."""

    kind: ClassVar[str] = "http.response"
    exchange: int
    status: int
    content_type: str
    session: str | None
    stream: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class HttpClosed:
    """An event stream response is over, or an exchange without any response, which has no `stream`.

    `by` is `client` when the peer went first, else why the server ended it.
    """

    kind: ClassVar[str] = "http.closed"
    exchange: int
    session: str | None
    stream: str | None
    by: str
    messages: int


@dataclass(frozen=True, slots=True)
class ConnectionOpened:
    """A connection that carries all messages both ways is open: `websocket` or `stdio`.

    `exchange` is the HTTP request that became a WebSocket; of standard streams it is a number that no request has.
    `client` and `peer` are those of the request; on standard streams they are `stdio` and None.
    """

    kind: ClassVar[str] = "connection.opened"
    connection: str
    transport: str
    exchange: int
    client: str
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """Such a connection is over. `by` is `client` when the peer went first, else why the server ended it.

    `code` is the close code of a WebSocket, None where there was none. `messages` is how many the peer was sent.
    """

    kind: ClassVar[str] = "connection.closed"
    connection: str
    session: str | None
    code: int | None
    by: str
    messages: int


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """One message of a client was read, before it was judged. `batch` is its place in a batch, from 0.

    `about` is what it names that another message began: the request that a cancellation names, the task of `tasks/*`,
    the stream of `stream/*`. `connection` is the one that carried it, None over HTTP.
    """

    kind: ClassVar[str] = "message.received"
    exchange: int
    session: str | None
    batch: int | None
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes
    about: RequestId | None = None
    connection: str | None = None


@dataclass(frozen=True, slots=True)
class MessageEmitted:
    """The server made a message for a stream, or for an answer in one piece (`stream` is None). Not yet delivered.

    `exchange` is the request whose response the message belongs to, None on a stream that was opened for no request.
    """

    kind: ClassVar[str] = "message.emitted"
    exchange: int | None
    session: str | None
    stream: str | None
    position: int | None
    call: str | None
    task: str | None
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes


@dataclass(frozen=True, slots=True)
class MessagesDelivered:
    """The socket took the stream's messages from `first` to `last`."""

    kind: ClassVar[str] = "message.delivered"
    exchange: int
    session: str | None
    stream: str | None
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MessageDropped:
    """A message was not sent: nobody may hear it any more, or no stream could carry it. `why` says which."""

    kind: ClassVar[str] = "message.dropped"
    session: str | None
    call: str | None
    task: str | None
    why: str
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """`initialize` was answered. `session_id` is the beginning of the id that the client got; JSON is kept as bytes.

    `transport` is `http`, `websocket` or `stdio`.
    """

    kind: ClassVar[str] = "session.opened"
    session: str
    session_id: str
    revision: str
    client_name: str
    client_version: str
    capabilities: bytes
    transport: str = "http"


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The session ended: `deleted`, `idle` or `shutdown`; its requests and tasks were cancelled."""

    kind: ClassVar[str] = "session.closed"
    session: str
    why: str


@dataclass(frozen=True, slots=True)
class ClientSeen:
    """A modern client sent its first request, or declares other capabilities than it did in the request before.

    `transport` is what carried that request: `http`, `websocket` or `stdio`.
    """

    kind: ClassVar[str] = "client.seen"
    session: str
    client: str
    revision: str
    client_name: str
    client_version: str
    capabilities: bytes
    transport: str = "http"


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A request, or the work of a task, began to run in its own nursery. `exchange` is the one that brought it."""

    kind: ClassVar[str] = "call.started"
    call: str
    exchange: int
    session: str | None
    task: str | None
    request_id: RequestId
    method: str
    tool: str | None
    progress_token: ProgressToken | None


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """The work reported progress that no notification carries: nobody gave a token for it.

    A report for a token is a `message.emitted`.
    """

    kind: ClassVar[str] = "call.progressed"
    call: str
    session: str | None
    task: str | None
    progress: float
    total: float | None
    message: str | None


@dataclass(frozen=True, slots=True)
class CallCancelled:
    """Somebody asked the work to stop; that is not yet its end. `effect` is false when it was over already."""

    kind: ClassVar[str] = "call.cancelled"
    call: str
    session: str | None
    task: str | None
    request_id: RequestId
    by: str
    reason: str | None
    effect: bool


@dataclass(frozen=True, slots=True)
class CallSettled:
    """The scope of the work has exited. `scope_exit_ms` is how long that took after a cancellation."""

    kind: ClassVar[str] = "call.settled"
    call: str
    session: str | None
    task: str | None
    request_id: RequestId
    outcome: str
    answered: bool
    duration_ms: float
    cancelled_by: str | None
    scope_exit_ms: float | None
    steps_done: float | None
    steps_total: float | None
    sent_after_cancel: int


@dataclass(frozen=True, slots=True)
class DispatchSent:
    """A synchronous tool call was handed to its tool, with the deadlines that run from now on.

    `host` and `dispatch` are the tool host that it was sent to and its id there, None for a tool of this server.
    """

    kind: ClassVar[str] = "dispatch.sent"
    call: str
    session: str | None
    tool: str
    idle_ms: int
    ceiling_ms: int
    host: str | None = None
    dispatch: str | None = None


@dataclass(frozen=True, slots=True)
class DispatchExtended:
    """Valid progress has moved the idle deadline; noted for the first report, then once a second at most.

    `reports` is how many there were. `deadline` is the one that passes next, `due_ms` when, counted from the start.
    """

    kind: ClassVar[str] = "dispatch.extended"
    call: str
    session: str | None
    reports: int
    deadline: str
    due_ms: int


@dataclass(frozen=True, slots=True)
class DispatchExpired:
    """A deadline has passed (`idle` or `ceiling`), and the call's scope with it."""

    kind: ClassVar[str] = "dispatch.expired"
    call: str
    session: str | None
    deadline: str
    elapsed_ms: int
    idle_ms: int
    ceiling_ms: int
    reports: int


@dataclass(frozen=True, slots=True)
class DispatchSettled:
    """A dispatch is over. Of its progress `reports` were valid, `invalid` were not.

    `coalesced` of the valid ones made room for newer ones. `sent` is how many went on to the client, 0 where that gave
    no token.
    """

    kind: ClassVar[str] = "dispatch.settled"
    call: str
    session: str | None
    outcome: str
    elapsed_ms: int
    reports: int
    sent: int
    coalesced: int
    invalid: int


@dataclass(frozen=True, slots=True)
class DispatchCancelled:
    """A tool host was told to stop a dispatch; `cause` is what ended the call."""

    kind: ClassVar[str] = "dispatch.cancelled"
    call: str
    host: str
    dispatch: str
    cause: str
    reason: str | None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class DispatchLate:
    """A tool host said something of a dispatch that is over: the first of its kind, the rest are only counted.

    `what`: `progress`, `result` or `error`.
    """

    kind: ClassVar[str] = "dispatch.late"
    call: str
    host: str
    dispatch: str
    what: str
    session: str | None = None


@dataclass(frozen=True, slots=True)
class DispatchStopped:
    """What became of a cancelled dispatch at its host, `after_ms` milliseconds after `tool.cancel`.

    `how`: `acknowledged` (the work has stopped), `answered` (it came to its end instead), `unanswered` (the host has
    said nothing in time, the place is given back), `never_sent` (it still waited here) or `host_gone`. `late` counts
    what was dropped meanwhile.
    """

    kind: ClassVar[str] = "dispatch.stopped"
    call: str
    host: str
    dispatch: str
    how: str
    after_ms: float
    late: int
    session: str | None = None


@dataclass(frozen=True, slots=True)
class HostConnected:
    """A tool host gave the secret and is connected; it has not registered yet. `connection` is its label, as `h3`.

    `client` and `peer` are those of its request.
    """

    kind: ClassVar[str] = "host.connected"
    connection: str
    exchange: int
    client: str
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class HostRegistered:
    """A tool host has a name and offers tools. `replaced` is its older connection, which it takes over from."""

    kind: ClassVar[str] = "host.registered"
    connection: str
    host: str
    version: str | None
    library: str | None
    tools: tuple[str, ...]
    replaced: str | None


@dataclass(frozen=True, slots=True)
class HostUpdated:
    """A tool host offers these tools from now on."""

    kind: ClassVar[str] = "host.updated"
    connection: str
    host: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostMessage:
    """One message between this server and a tool host; `tool.progress` is counted instead, and `ping` left out.

    `direction` is `received` or `sent` (handed to the connection's writer). `call` is the one that it is about, and
    `session` who called.
    """

    kind: ClassVar[str] = "host.message"
    connection: str
    direction: str
    call: str | None
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes
    session: str | None = None


@dataclass(frozen=True, slots=True)
class HostMisuse:
    """A tool host broke the rules of docs/tool-hosts.md; `detail` says how. Noted up to a number per connection."""

    kind: ClassVar[str] = "host.misuse"
    connection: str
    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class HostClosed:
    """A tool host's connection is over. `by` is `client` when the host went first, else why the server ended it.

    `host` is None where it never registered. `failed` is how many calls failed with it, `late` what was dropped in all.
    """

    kind: ClassVar[str] = "host.closed"
    connection: str
    host: str | None
    code: int | None
    by: str
    failed: int
    late: int


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A task has a new status or message. `queued` exists only here, before the protocol's `working`."""

    kind: ClassVar[str] = "task.changed"
    task: str
    session: str | None
    tool: str
    status: str
    message: str | None
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class TaskRemoved:
    """A task and its result were forgotten: `expired`, `stopped` with the server, or why its session ended."""

    kind: ClassVar[str] = "task.removed"
    task: str
    session: str | None
    why: str


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """A stream of messages exists from now on; readers come and go.

    `purpose`: `response`, `standalone`, `subscription` or `resumable` (a stream of the draft extension, of one tool
    call). `exchange` is the request that it was opened for, None for a standalone one.
    """

    kind: ClassVar[str] = "stream.opened"
    exchange: int | None
    session: str | None
    stream: str
    purpose: str


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """Nothing more will be sent on the stream; what was sent can be read again for a while."""

    kind: ClassVar[str] = "stream.ended"
    session: str | None
    stream: str
    messages: int


@dataclass(frozen=True, slots=True)
class StreamResumed:
    """Another reader goes on with a stream of the draft extension. `exchange` is who reads now.

    It gets what follows the position `after`, `waiting` messages of it at once.
    """

    kind: ClassVar[str] = "stream.resumed"
    session: str | None
    stream: str
    exchange: int
    after: int
    waiting: int


@dataclass(frozen=True, slots=True)
class StreamLost:
    """A stream of the draft extension and what it kept are gone; `messages` of it were never sent.

    `why`: `abandoned` (nobody came back in time), `overflow` (more waited than may), `session_ended`, `server_full`.
    """

    kind: ClassVar[str] = "stream.lost"
    session: str | None
    stream: str
    why: str
    messages: int


@dataclass(frozen=True, slots=True)
class ClientMisuse:
    """The client did something a revision forbids or that cannot have an effect; `clause` names the rule.

    `exchange` is the request that did it, where no session says who it was.
    """

    kind: ClassVar[str] = "client.misuse"
    session: str | None
    what: str
    clause: str
    detail: str
    exchange: int | None = None


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A limit of `settings.Limits` refused something."""

    kind: ClassVar[str] = "limit.reached"
    session: str | None
    limit: str
    value: float


@dataclass(frozen=True, slots=True)
class AuditState:
    """The audit file can be written again (`ok`), or no longer (`failing`); `lost` rows will never be in it."""

    kind: ClassVar[str] = "audit.state"
    state: str
    why: str | None
    lost: int


@dataclass(frozen=True, slots=True)
class ServerState:
    """The server as a whole: `ready`, `draining`, `stopped`."""

    kind: ClassVar[str] = "server.state"
    state: str


Event: TypeAlias = (
    HttpRequest
    | HttpResponse
    | HttpClosed
    | ConnectionOpened
    | ConnectionClosed
    | MessageReceived
    | MessageEmitted
    | MessagesDelivered
    | MessageDropped
    | SessionOpened
    | SessionClosed
    | ClientSeen
    | CallStarted
    | CallProgressed
    | CallCancelled
    | CallSettled
    | DispatchSent
    | DispatchExtended
    | DispatchExpired
    | DispatchSettled
    | DispatchCancelled
    | DispatchLate
    | DispatchStopped
    | HostConnected
    | HostRegistered
    | HostUpdated
    | HostMessage
    | HostMisuse
    | HostClosed
    | TaskChanged
    | TaskRemoved
    | StreamOpened
    | StreamEnded
    | StreamResumed
    | StreamLost
    | ClientMisuse
    | LimitReached
    | AuditState
    | ServerState
)


def subject(message: Any) -> RequestId | None:
    """What a client's message is about, where another message began that."""
    method = message.get("method") if isinstance(message, dict) else None
    if not isinstance(method, str) or method not in _NAMES:
        return None
    params = message.get("params")
    id = params.get(_NAMES[method]) if isinstance(params, dict) else None
    return id if is_id(id) and id_length(id) <= _LONGEST_ID else None


def announced(message: bytes) -> str | None:
    """The id that a `notifications/stream/create` gives its stream."""
    value: Any = from_json(message)
    for name in ("params", "stream", "streamId"):
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def essentials(message: Any) -> tuple[Rpc, str | None, RequestId | None]:
    """What a JSON value is as a message, its method and its id; an id that is none of JSON-RPC's is left out."""
    if not isinstance(message, dict):
        return "invalid", None, None
    method, id = message.get("method"), message.get("id")
    known = id if is_id(id) and id_length(id) <= _LONGEST_ID else None
    if isinstance(method, str):
        return "request" if "id" in message else "notification", clip(method), known
    if "error" in message:
        return "error", None, known
    return "response" if "result" in message else "invalid", None, known


def is_session(label: str | None) -> bool:
    """Whether a label is that of a session, where ids are of one client, and not of whoever says to be the same one."""
    return label is not None and label.startswith("s")

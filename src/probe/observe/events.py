"""The vocabulary of the event log. Each class is one kind of fact; its docstring says when it is recorded.

A fact has no ids: its connection, exchange, session, call, task and stream are the context of its entry, and the entry
because of which it happened is the cause (`context.py`). Each docstring says which cause a fact has.

The `rpc`, `method` and `id` of a message are stored beside it, so that a reader can find a message without parsing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from ..wire.jsonrpc import Fault, ProgressToken, RequestId, clip, id_length, is_id

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

UnreadableFault: TypeAlias = Literal[Fault, "size", "incomplete"]
"""Why a message was not read: what `wire.jsonrpc.Fault` says, or its size, or that only a part of it came."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """The head of an HTTP request arrived; `headers` are as received, secrets hidden.

    `client` is the client's address, with its port where that is known. `peer` is the address and port of the trusted
    proxy that speaks for it, None where the request came from the client itself. `named` is the label of the session
    that the request names, also where that has ended; `session_in_query` says that the id of a session stood in the
    URL. `stream_id` is the number of the HTTP/2 stream, None with HTTP/1. `hidden` are the names of the headers and,
    each with a `?` before it, of the query parameters whose values were hidden.
    """

    kind: ClassVar[str] = "http.request"
    method: str
    path: str
    query: str
    http_version: str
    client: str
    headers: tuple[tuple[str, str], ...]
    peer: str | None = None
    named: str | None = None
    session_in_query: bool = False
    stream_id: int | None = None
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The head of the response was handed to the socket. Cause: the `http.request`.

    `problem` says in words why a request was refused, `refusal` is the name of that in `wire.errors.Refusal`. `headers`
    are those that tell a client what to do: Retry-After, Allow, WWW-Authenticate, and Mcp-Session-Id as a fingerprint.
    """

    kind: ClassVar[str] = "http.response"
    status: int
    content_type: str
    problem: str | None
    refusal: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class HttpClosed:
    """An event stream response is over, or an exchange without any response, which has no stream.

    Cause: the `http.request`. `by` is `client` when the peer went first, else why the server ended it. The server meant
    to end it where that is `end of stream`, `hang-up` or `displaced by a newer connection`; after any other reason
    something may be missing that was to come.
    """

    kind: ClassVar[str] = "http.closed"
    by: str
    messages: int


@dataclass(frozen=True, slots=True)
class ConnectionOpened:
    """A connection that carries all messages both ways is open; `transport` is `websocket` or `stdio`.

    Cause: the `http.request` that became a WebSocket, none for standard streams. The exchange in the context is that
    request; for standard streams it is a number that no request has. `client` and `peer` are those of the request; on
    standard streams they are `stdio` and None.
    """

    kind: ClassVar[str] = "connection.opened"
    transport: str
    client: str
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """Such a connection is over. Cause: its `connection.opened`.

    `by` is `client` when the peer went first, else why the server ended it. `code` is the close code of a WebSocket,
    None where there was none. `messages` is how many the peer was sent.
    """

    kind: ClassVar[str] = "connection.closed"
    code: int | None
    by: str
    messages: int


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """One message of a client was read, before it was checked. `batch` is its place in a batch, from 0.

    Cause: the `message.emitted` of the request that it answers; else the `http.request` or the `connection.opened` that
    brought it. `about` is what it names that another message began: the request that a cancellation names, the task of
    `tasks/*`, the stream of `stream/*`. `hidden` has the path (RFC 6901) and the JSON type of each member that was
    hidden, of the first 100; what this server judges it judges before it hides.
    """

    kind: ClassVar[str] = "message.received"
    batch: int | None
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes
    about: RequestId | None = None
    hidden: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MessageUnreadable:
    r"""A message came that was not read as JSON. Cause: the `http.request` or the `connection.opened`.

    `fault`: `syntax` or `encoding` (not UTF-8), which the client got wrong; `nesting`, `number` or `surrogate`, which
    is JSON that this server does not read; `size`, beyond `max_body_bytes`; `incomplete`, where the client went before
    the end of the body, or took too long. `head` has the first 2,048 bytes; those that are not printable ASCII, and the
    backslash, are written as `\xNN`, and what follows the name of a secret is hidden. `size` is how many bytes came,
    `declared` what Content-Length promised, None where it did not.
    """

    kind: ClassVar[str] = "message.unreadable"
    fault: UnreadableFault
    problem: str
    head: str
    size: int
    declared: int | None


@dataclass(frozen=True, slots=True)
class MessageRefused:
    """A message of the client was answered with an error before any method handled it. Cause: its `message.received`.

    Of a batch that is refused as a whole, it is the first message, or the one that is at fault. `refusal` is a name in
    `wire.errors.Refusal`, `problem` says the same in words.
    """

    kind: ClassVar[str] = "message.refused"
    refusal: str
    problem: str


@dataclass(frozen=True, slots=True)
class MessageEmitted:
    """The server made a message for a stream, or for an answer in one piece, which has no stream. Not yet delivered.

    Cause of an answer: the `message.received` that it answers. Cause of what a call sends: its `call.started`. The
    exchange is the request whose response the message belongs to, none on a stream that was opened for no request.
    `hidden` is that of a `message.received`.
    """

    kind: ClassVar[str] = "message.emitted"
    position: int | None
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes
    hidden: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MessagesDelivered:
    """The socket took the messages from `first` to `last` of a stream, or of an answer in one piece.

    All of them are about the same call. Cause: the `message.emitted` of the first. The exchange and the connection are
    those of the reader. `event_ids` says that each left as an event with the id `STREAM-POSITION`.
    """

    kind: ClassVar[str] = "message.delivered"
    first: int
    last: int
    event_ids: bool = False


@dataclass(frozen=True, slots=True)
class MessageDropped:
    """A message was not sent: it may not be sent any more, or no stream could carry it. `why` says which.

    The cause is that of a `message.emitted`.
    """

    kind: ClassVar[str] = "message.dropped"
    why: str
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """`initialize` was answered. Cause: its `message.received`. `session_id` is the beginning of the id of the session.

    `transport` is `http`, `websocket` or `stdio`.
    """

    kind: ClassVar[str] = "session.opened"
    session_id: str
    revision: str
    client_name: str
    client_version: str
    capabilities: bytes
    transport: str = "http"


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The session ended, and its requests and tasks were cancelled. Cause: the `http.request` of a DELETE, else none.

    `why` is `deleted`, `idle`, `shutdown`, or that its connection was lost.
    """

    kind: ClassVar[str] = "session.closed"
    why: str


@dataclass(frozen=True, slots=True)
class ClientSeen:
    """A modern client sent its first request, or declares capabilities that it has not declared before.

    Programs that share a label may declare different ones in turn: of a label the latest eight sets are remembered.
    Cause: the `http.request` or the `connection.opened`. `transport` is what carried that request: `http`,
    `websocket` or `stdio`.
    """

    kind: ClassVar[str] = "client.seen"
    client: str
    revision: str
    client_name: str
    client_version: str
    capabilities: bytes
    transport: str = "http"


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A request, or the work of a task, began to run in its own nursery. Cause: its `message.received`.

    `tool` and what follows it describe a tool call; for another request `tool` is None and the others are empty.
    `arguments` is JSON with its secrets hidden, and cut at `record_argument_bytes`. `steps_total` is how many steps the
    tool has with these arguments, where it counts steps.
    """

    kind: ClassVar[str] = "call.started"
    request_id: RequestId
    method: str
    tool: str | None
    progress_token: ProgressToken | None
    toolset: str
    era: str
    revision: str
    transport: str
    client_name: str
    client_version: str
    steps_total: float | None
    arguments: bytes


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """The work reported progress that no notification carries, because the client gave no token for it.

    Cause: the `call.started`. A report for a token is a `message.emitted`.
    """

    kind: ClassVar[str] = "call.progressed"
    progress: float
    total: float | None
    message: str | None


@dataclass(frozen=True, slots=True)
class CallCancelled:
    """The work was asked to stop; that is not yet its end. `effect` is false when it was over already.

    Cause: the `message.received` or the `http.request` that asked for it, the `dispatch.expired` of a deadline, else
    none.
    """

    kind: ClassVar[str] = "call.cancelled"
    request_id: RequestId
    by: str
    reason: str | None
    effect: bool


@dataclass(frozen=True, slots=True)
class CallSettled:
    """The scope of the work has exited. `scope_exit_ms` is how long that took after a cancellation.

    Cause: the `call.cancelled` that had an effect, else the `call.started`. `result` is JSON with its secrets hidden,
    and cut at `record_result_bytes`: what is answered, or what `tasks/result` gives; `{"error": ...}` for a JSON-RPC
    error; null where there is none, and for a request that is no tool call. `coalesced` is how many progress reports
    made room for newer ones.
    """

    kind: ClassVar[str] = "call.settled"
    request_id: RequestId
    outcome: str
    answered: bool
    duration_ms: float
    cancelled_by: str | None
    cancel_reason: str | None
    scope_exit_ms: float | None
    steps_done: float | None
    steps_total: float | None
    sent_after_cancel: int
    coalesced: int
    result: bytes


@dataclass(frozen=True, slots=True)
class DispatchSent:
    """A synchronous tool call was handed to its tool, with the deadlines that run from now on.

    The cause of this and of every other fact of a dispatch is the `call.started`. `host` and `dispatch` are the tool
    host that it was sent to and its id there, None for a tool of this server.
    """

    kind: ClassVar[str] = "dispatch.sent"
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
    reports: int
    deadline: str
    due_ms: int


@dataclass(frozen=True, slots=True)
class DispatchExpired:
    """A deadline has passed (`idle` or `ceiling`), and the call's scope with it."""

    kind: ClassVar[str] = "dispatch.expired"
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
    outcome: str
    elapsed_ms: int
    reports: int
    sent: int
    coalesced: int
    invalid: int


@dataclass(frozen=True, slots=True)
class DispatchCancelled:
    """A tool host was told to stop a dispatch; `by` is what ended the call."""

    kind: ClassVar[str] = "dispatch.cancelled"
    host: str
    dispatch: str
    by: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class DispatchLate:
    """A tool host said something of a dispatch that is over: the first of its kind, the rest are only counted.

    `what`: `progress`, `result` or `error`.
    """

    kind: ClassVar[str] = "dispatch.late"
    host: str
    dispatch: str
    what: str


@dataclass(frozen=True, slots=True)
class DispatchStopped:
    """What became of a cancelled dispatch at its host, `after_ms` milliseconds after `tool.cancel`.

    `how`: `acknowledged` (the work has stopped), `answered` (it came to its end instead), `unanswered` (the host has
    said nothing in time, the place is given back), `never_sent` (it still waited here) or `host_gone`. `late` counts
    what was dropped meanwhile.
    """

    kind: ClassVar[str] = "dispatch.stopped"
    host: str
    dispatch: str
    how: str
    after_ms: float
    late: int


@dataclass(frozen=True, slots=True)
class HostConnected:
    """A tool host gave the secret and is connected; it has not registered yet. Cause: the `http.request`.

    `client` and `peer` are those of the request.
    """

    kind: ClassVar[str] = "host.connected"
    client: str
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class HostRegistered:
    """A tool host has a name and offers tools. `replaced` is its older connection, which it takes over from."""

    kind: ClassVar[str] = "host.registered"
    host: str
    version: str | None
    library: str | None
    tools: tuple[str, ...]
    replaced: str | None


@dataclass(frozen=True, slots=True)
class HostUpdated:
    """A tool host offers these tools from now on."""

    kind: ClassVar[str] = "host.updated"
    host: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostMessage:
    """One message between this server and a tool host; `tool.progress` is counted instead, and `ping` left out.

    `direction` is `received` or `sent` (handed to the connection's writer). Cause of an answer: the message that it
    answers; of another message about a call, its `call.started`; else the `host.connected`.
    """

    kind: ClassVar[str] = "host.message"
    direction: str
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes


@dataclass(frozen=True, slots=True)
class HostMisuse:
    """A tool host broke the rules of docs/tool-hosts.md; `detail` says how. Noted up to a number per connection."""

    kind: ClassVar[str] = "host.misuse"
    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class HostClosed:
    """A tool host's connection is over. `by` is `client` when the host went first, else why the server ended it.

    `host` is None where it never registered. `failed` is how many calls failed with it, `late` what was dropped in all.
    """

    kind: ClassVar[str] = "host.closed"
    host: str | None
    code: int | None
    by: str
    failed: int
    late: int


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A task has a new status or message. `queued` exists only here, before the protocol's `working`.

    Cause: the `message.received` that made it so, else the `call.started`.
    """

    kind: ClassVar[str] = "task.changed"
    tool: str
    status: str
    message: str | None
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class TaskRemoved:
    """A task and its result were forgotten: `expired`, `stopped` with the server, or why its session ended."""

    kind: ClassVar[str] = "task.removed"
    why: str


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """A stream of messages exists from now on; readers come and go.

    `purpose`: `response`, `standalone`, `subscription` or `resumable` (a stream of the draft extension, of one tool
    call). Cause: the `message.received` of the request that it was opened for, or the `http.request` of a GET.
    """

    kind: ClassVar[str] = "stream.opened"
    purpose: str


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """Nothing more will be sent on the stream; what was sent can be read again for a while. Cause: its opening."""

    kind: ClassVar[str] = "stream.ended"
    messages: int


@dataclass(frozen=True, slots=True)
class StreamResumed:
    """Another reader goes on with a stream of the draft extension. Cause: the `message.received` that asked for it.

    The connection and the exchange are those of the reader. It gets what follows the position `after`, `waiting`
    messages of it at once.
    """

    kind: ClassVar[str] = "stream.resumed"
    after: int
    waiting: int


@dataclass(frozen=True, slots=True)
class StreamLost:
    """A stream of the draft extension and what it kept are gone; `messages` of it were never sent. Cause: its opening.

    `why`: `abandoned` (nobody came back in time), `overflow` (more waited than may), `session_ended`, `server_full`.
    """

    kind: ClassVar[str] = "stream.lost"
    why: str
    messages: int


Control: TypeAlias = Literal["priming", "retry", "comment"]
"""What an event stream carries beside messages."""


@dataclass(frozen=True, slots=True)
class StreamControl:
    """A socket took something of an event stream that is no message. Cause: the `http.request` of the reader.

    `what`: `priming` (the event with an id and no data), `retry` (the same before a hang-up) or `comment` (keep-alive).
    `event_id` is its id, `retry_ms` the value of its `retry` field; None where it has none.
    """

    kind: ClassVar[str] = "stream.control"
    what: Control
    event_id: str | None
    retry_ms: int | None


@dataclass(frozen=True, slots=True)
class SocketOpened:
    """The listener accepted a connection for HTTP. `client` is the peer's address and port.

    It is recorded with the first request, or at the end of a connection that has none; not where only the dashboard and
    the API are read. Of one address no more of them are recorded than it may send requests.
    """

    kind: ClassVar[str] = "socket.opened"
    client: str


@dataclass(frozen=True, slots=True)
class SocketClosed:
    """A connection for HTTP is closed. Cause: its `socket.opened`.

    `by` is `client` when the peer went first, else why the server closed it. `requests` is how many it carried.
    """

    kind: ClassVar[str] = "socket.closed"
    by: str
    requests: int


@dataclass(frozen=True, slots=True)
class SocketRefused:
    """The listener refused what came on a connection, with `status` or, without one, by closing the connection.

    It is no valid HTTP, or it came behind a request that is not answered. Cause: the `socket.opened`. `why` says what
    is wrong; of HTTP/2 it is the error code (RFC 9113, section 7).
    """

    kind: ClassVar[str] = "socket.refused"
    status: int | None
    why: str


Direction: TypeAlias = Literal["received", "sent"]
Opcode: TypeAlias = Literal["ping", "pong", "close", "text", "binary", "continuation", "reserved"]
"""What a frame is by its opcode: RFC 6455 section 5.2."""


@dataclass(frozen=True, slots=True)
class WebSocketFrame:
    """A control frame of a WebSocket, or a frame of the client that was refused. Cause: the `connection.opened`.

    Whose `close` comes first has ended the connection. Of pings and pongs the first 20 of a connection are recorded,
    then one every two seconds. `size` is that of the payload in bytes. `refused` says why a frame was refused, None for
    one that was not.
    """

    kind: ClassVar[str] = "websocket.frame"
    direction: Direction
    opcode: Opcode
    size: int
    refused: str | None


StdioChange: TypeAlias = Literal[
    "end_of_input",
    "input_broken",
    "output_broken",
    "SIGTERM",
    "SIGINT",
    "SIGHUP",
    "exit",
    "crlf",
    "empty_line",
    "no_final_newline",
]
"""What can happen to a server on standard streams."""


@dataclass(frozen=True, slots=True)
class StdioChanged:
    """Something happened to a server on standard streams. Cause: its `connection.opened`.

    `what`: the client closed standard input (`end_of_input`), reading or writing failed (`input_broken`,
    `output_broken`), a signal came (`SIGTERM`, `SIGINT`, `SIGHUP`, each time), or this process is about to `exit`. And
    the first time only: a line ended with CRLF (`crlf`), an `empty_line` came, the last line had no end
    (`no_final_newline`). `pid` is the number of this process, `status` its exit status at `exit`, else None;
    `stderr_lines` is how many lines it has written to standard error.
    """

    kind: ClassVar[str] = "stdio.changed"
    what: StdioChange
    pid: int
    status: int | None
    stderr_lines: int


ClientChange: TypeAlias = Literal["started", "exited", "killed", "timed_out"]
"""What can happen to a client that `mcp-probe judge` runs."""


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """Something happened to the process of a client that `mcp-probe judge -- COMMAND` runs. No cause.

    `what`: it was `started`; it has had all the time that it was given (`timed_out`); the judge sent it a signal so
    that it ends (`killed`, each time); it is over (`exited`). A process that `exited` and was not `killed` before has
    ended by itself. `status` is its exit status at `exited`, None where a signal ended it; `signal` is the name of the
    signal that was sent at `killed`, or that ended it at `exited`. `asked` is its command line at `started`, with its
    secrets hidden.
    """

    kind: ClassVar[str] = "client.process"
    what: ClientChange
    pid: int
    status: int | None = None
    signal: str | None = None
    asked: str | None = None


@dataclass(frozen=True, slots=True)
class ClientMisuse:
    """The client did something that a revision forbids, or that cannot have an effect; `clause` names the rule.

    Cause: the `message.received` or the `http.request` that did it.
    """

    kind: ClassVar[str] = "client.misuse"
    what: str
    clause: str
    detail: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A limit of `settings.Limits` refused something. Cause: the request that was refused, where there is one."""

    kind: ClassVar[str] = "limit.reached"
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
    | MessageUnreadable
    | MessageRefused
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
    | StreamControl
    | SocketOpened
    | SocketClosed
    | SocketRefused
    | WebSocketFrame
    | StdioChanged
    | ClientProcess
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

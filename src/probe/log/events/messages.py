"""Messages of JSON-RPC and their essentials for a search without parsing; streams of messages to a client."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import Struct

from ...wire.jsonrpc import Fault, RequestId, Rpc, clip, id_length, is_id

# The parameter with the id of something begun by an earlier message.
_NAMES = {
    "notifications/cancelled": "requestId",
    "tasks/get": "taskId",
    "tasks/result": "taskId",
    "tasks/cancel": "taskId",
    "tasks/update": "taskId",
    "stream/resume": "streamId",
    "stream/poll": "streamId",
}


# Longer ids are refused by default. The message itself keeps any id, but a search does not find one of these.
_LONGEST_ID = 1024


UnreadableFault: TypeAlias = Literal[Fault, "size", "incomplete"]
"""Why a message was not read: a `wire.jsonrpc.Fault`, its size, or a missing end."""


class MessageReceived(Struct, frozen=True, gc=False):
    """One message of a client was read, before any check. `batch` is its place in a batch, from 0.

    Cause: for an answer, the `message.emitted` of its request; else the `http.request` or the `connection.opened` it
    came with. `about` is the id of something begun by an earlier message: the request of a cancellation, the task of
    `tasks/*`, the stream of `stream/*`. `hidden` has the path (RFC 6901) and the JSON type of the first 100 hidden
    members. The server judges a message before it hides them.
    """

    kind: ClassVar[str] = "message.received"
    batch: int | None
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes
    about: RequestId | None = None
    hidden: tuple[tuple[str, str], ...] = ()


class MessageUnreadable(Struct, frozen=True, gc=False):
    r"""A message could not be read as JSON. Cause: the `http.request` or the `connection.opened`.

    `fault`: `syntax` or `encoding` (not UTF-8), the client's mistakes; `nesting`, `number` or `surrogate`, valid JSON
    refused by this server; `size`, beyond `max_body_bytes`; `incomplete`, if the client closed before the end of the
    body, or took too long. `head` has the first 2,048 bytes; those that are not printable ASCII, and the backslash, are
    written as `\xNN`, and everything behind the name of a secret is hidden. `size` is the number of bytes received,
    `declared` that of Content-Length, None without it.
    """

    kind: ClassVar[str] = "message.unreadable"
    fault: UnreadableFault
    problem: str
    head: str
    size: int
    declared: int | None


class RequestRepeated(Struct, frozen=True, gc=False):
    """A request may have been sent twice: one before has the same id and the same bytes. Cause: its `message.received`.

    `first` is the entry of the one before, `first_exchange` its exchange; `after_ms` is the time between them. A
    gateway may have sent it again after its connection broke, unknown to its client. In 2026-07-28 two programs with
    one name at one address, without `?client=`, may have sent one each.
    """

    kind: ClassVar[str] = "request.repeated"
    method: str
    id: RequestId
    first: int
    first_exchange: int | None
    after_ms: float


class MessageRefused(Struct, frozen=True, gc=False):
    """A message of the client was answered with an error before any method handled it. Cause: its `message.received`.

    For a batch refused as a whole, it is the first message, or the faulty one. `refusal` is a name in
    `wire.errors.Refusal`, `problem` the same in words.
    """

    kind: ClassVar[str] = "message.refused"
    refusal: str
    problem: str


class MessageEmitted(Struct, frozen=True, gc=False):
    """The server made a message for a stream, or for an answer in one piece, without a stream. Not yet delivered.

    Cause of an answer: the `message.received` of its request. Cause of other messages of a call: its `call.started`.
    The exchange is the request with the message in its response, none on a stream opened without a request. `hidden` is
    as for `message.received`.
    """

    kind: ClassVar[str] = "message.emitted"
    position: int | None
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes
    hidden: tuple[tuple[str, str], ...] = ()


class MessagesDelivered(Struct, frozen=True, gc=False):
    """The socket took the messages from `first` to `last` of a stream, or of an answer in one piece.

    All of them are about the same call. Cause: the `message.emitted` of the first. The exchange and the connection are
    those of the reader. `event_ids`: each was an event with the id `STREAM-POSITION`.
    """

    kind: ClassVar[str] = "message.delivered"
    first: int
    last: int
    event_ids: bool = False


class MessageDropped(Struct, frozen=True, gc=False):
    """A message was not sent, as it is no longer allowed or no stream could carry it. `why` is the reason.

    The cause is that of a `message.emitted`.
    """

    kind: ClassVar[str] = "message.dropped"
    why: str
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes


def subject(message: Any) -> RequestId | None:
    """The id of the request, task or stream a client's message is about, if another message began it."""
    method = message.get("method") if isinstance(message, dict) else None
    if not isinstance(method, str) or method not in _NAMES:
        return None
    params = message.get("params")
    id = params.get(_NAMES[method]) if isinstance(params, dict) else None
    return id if is_id(id) and id_length(id) <= _LONGEST_ID else None


def essentials(message: Any) -> tuple[Rpc, str | None, RequestId | None]:
    """The kind of message, its method and its id. An id forbidden by JSON-RPC is left out."""
    if not isinstance(message, dict):
        return "invalid", None, None
    method, id = message.get("method"), message.get("id")
    known = id if is_id(id) and id_length(id) <= _LONGEST_ID else None
    if isinstance(method, str):
        return "request" if "id" in message else "notification", clip(method), known
    if "error" in message:
        return "error", None, known
    return "response" if "result" in message else "invalid", None, known


class StreamOpened(Struct, frozen=True, gc=False):
    """A stream of messages exists from now on; readers come and go.

    `purpose`: `response`, `standalone`, `subscription` or `resumable` (a stream of the draft extension, of one tool
    call). Cause: the `message.received` of its request, or the `http.request` of a GET.
    """

    kind: ClassVar[str] = "stream.opened"
    purpose: str


class StreamEnded(Struct, frozen=True, gc=False):
    """The stream gets no more messages. Those sent can be read again for a while. Cause: its opening."""

    kind: ClassVar[str] = "stream.ended"
    messages: int


class StreamResumed(Struct, frozen=True, gc=False):
    """A new reader resumes a stream of the draft extension. Cause: the `message.received` of its request.

    The connection and the exchange are those of the reader. It gets the messages behind the position `after`, `waiting`
    of them at once.
    """

    kind: ClassVar[str] = "stream.resumed"
    after: int
    waiting: int


class StreamLost(Struct, frozen=True, gc=False):
    """A stream of the draft extension was removed; `messages` of its messages were never sent. Cause: its opening.

    `why`: `abandoned` (no reader in time), `overflow` (too many messages waited), `session_ended`, `server_full`.
    """

    kind: ClassVar[str] = "stream.lost"
    why: str
    messages: int


Control: TypeAlias = Literal["priming", "retry", "comment"]
"""The parts of an event stream beside messages."""


class StreamControl(Struct, frozen=True, gc=False):
    """A socket took a part of an event stream other than a message. Cause: the `http.request` of the reader.

    `what`: `priming` (the event with an id and no data), `retry` (the same before a hang-up) or `comment` (keep-alive).
    `event_id` is its id, `retry_ms` the value of its `retry` field; None without one.
    """

    kind: ClassVar[str] = "stream.control"
    what: Control
    event_id: str | None
    retry_ms: int | None

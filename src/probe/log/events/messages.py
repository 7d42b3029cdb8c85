"""Messages of JSON-RPC: received, emitted, delivered; and what a reader finds them by without parsing them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import Struct

from ...wire.jsonrpc import Fault, RequestId, Rpc, clip, id_length, is_id

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


UnreadableFault: TypeAlias = Literal[Fault, "size", "incomplete"]
"""Why a message was not read: what `wire.jsonrpc.Fault` says, or its size, or that only a part of it came."""


class MessageReceived(Struct, frozen=True):
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


class MessageUnreadable(Struct, frozen=True):
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


class RequestRepeated(Struct, frozen=True):
    """A request may have been sent twice: one before has the same id and the same bytes. Cause: its `message.received`.

    `first` is the entry of the one before, `first_exchange` the exchange that brought it; `after_ms` is the time
    between them. A gateway whose connection broke may have sent it again, and its client cannot know. In 2026-07-28 two
    programs of one name at one address, without `?client=`, may have sent one each.
    """

    kind: ClassVar[str] = "request.repeated"
    method: str
    id: RequestId
    first: int
    first_exchange: int | None
    after_ms: float


class MessageRefused(Struct, frozen=True):
    """A message of the client was answered with an error before any method handled it. Cause: its `message.received`.

    Of a batch that is refused as a whole, it is the first message, or the one that is at fault. `refusal` is a name in
    `wire.errors.Refusal`, `problem` says the same in words.
    """

    kind: ClassVar[str] = "message.refused"
    refusal: str
    problem: str


class MessageEmitted(Struct, frozen=True):
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


class MessagesDelivered(Struct, frozen=True):
    """The socket took the messages from `first` to `last` of a stream, or of an answer in one piece.

    All of them are about the same call. Cause: the `message.emitted` of the first. The exchange and the connection are
    those of the reader. `event_ids` says that each left as an event with the id `STREAM-POSITION`.
    """

    kind: ClassVar[str] = "message.delivered"
    first: int
    last: int
    event_ids: bool = False


class MessageDropped(Struct, frozen=True):
    """A message was not sent: it may not be sent any more, or no stream could carry it. `why` says which.

    The cause is that of a `message.emitted`.
    """

    kind: ClassVar[str] = "message.dropped"
    why: str
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes


def subject(message: Any) -> RequestId | None:
    """The id of the thing that a client's message is about, where another message began it."""
    method = message.get("method") if isinstance(message, dict) else None
    if not isinstance(method, str) or method not in _NAMES:
        return None
    params = message.get("params")
    id = params.get(_NAMES[method]) if isinstance(params, dict) else None
    return id if is_id(id) and id_length(id) <= _LONGEST_ID else None


def essentials(message: Any) -> tuple[Rpc, str | None, RequestId | None]:
    """The kind of message that a JSON value is, its method and its id; an id that JSON-RPC forbids is left out."""
    if not isinstance(message, dict):
        return "invalid", None, None
    method, id = message.get("method"), message.get("id")
    known = id if is_id(id) and id_length(id) <= _LONGEST_ID else None
    if isinstance(method, str):
        return "request" if "id" in message else "notification", clip(method), known
    if "error" in message:
        return "error", None, known
    return "response" if "result" in message else "invalid", None, known

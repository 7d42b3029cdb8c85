"""Received JSON as messages, within the limits, and the facts about bytes that are no message; for every transport."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from ..log.bounded import Newest
from ..log.context import Recorder
from ..log.event_log import Entry, EventLog
from ..log.events import (
    ClientMisuse,
    LimitReached,
    MessageReceived,
    MessageRefused,
    MessageUnreadable,
    RequestRepeated,
    UnreadableFault,
    essentials,
    subject,
)
from ..log.redaction import shown_bytes
from ..settings.server import Limits
from ..wire.errors import Code, McpError, Refusal, Rejection
from ..wire.jsonrpc import MalformedError, Message, Request, RequestId, classify, clip, encode, id_length, is_id
from ..wire.revisions import V2025_03_26
from ..wire.v2026.meta import RequestMeta
from .streams.stream import kept


class ClientInfo(Struct, frozen=True):
    """The name and the version in a client's messages; each is empty where it is missing."""

    name: str = ""
    version: str = ""


_UNNAMED: Final = ClientInfo()
# The legacy era answers a request with one of these errors with HTTP 200.
_REFUSALS: Final = {
    Code.METHOD_NOT_FOUND: Refusal.METHOD_NOT_FOUND,
    Code.INVALID_PARAMS: Refusal.INVALID_PARAMS,
    Code.INVALID_REQUEST: Refusal.INVALID_REQUEST,
}


class RequestContext(Struct):
    """The context of one message: made by the endpoint, completed by the message's era.

    `recorder` is bound to the exchange and to the session; its cause is the `message.received`. `transport` is `http`,
    `websocket` or `stdio`. `origin` is the scheme and authority of this server's pages for the client, empty where it
    cannot reach them. `holder` is the client address for shares of limits; None has no share. `seen` is the stream and
    the position of the client's last event (`Last-Event-ID`). `call` is the id of the call that the request will begin,
    if it is known before.
    """

    recorder: Recorder
    transport: str = "http"
    origin: str = ""
    holder: str | None = None
    seen: tuple[str, int] | None = None
    client: ClientInfo = _UNNAMED
    call: str | None = None

    def concerns(self, call: Recorder) -> None:
        """The message, and so its answer, is about this call."""
        self.recorder = self.recorder.bind(call=call.context.call, task=call.context.task)

    def misuse(self, what: str, clause: str, detail: str = "") -> None:
        self.recorder.append(ClientMisuse(what, clause, detail))

    def refused(self, error: McpError) -> McpError:
        """Record that the message is answered with this error before any method handles it; returns the error."""
        self.recorder.append(MessageRefused(_REFUSALS[Code(error.code)].name, error.message))
        return error


_Key: TypeAlias = tuple[str | None, str | None, RequestId]
# For all clients together; a repeat comes within seconds.
_REQUESTS_KEPT: Final = 4096
_REPEATED_WITHIN_S: Final = 10.0


class Received(NamedTuple):
    """A message with its context."""

    message: Message
    context: RequestContext


def goes_on(body: bytes) -> bool:
    """True if the body of a request may be a cancellation: running work is stopped before more is begun."""
    return b'"notifications/cancelled"' in body


def record_received(
    recorder: Recorder,
    value: Any,
    body: bytes,
    limits: Limits,
    question: Callable[[RequestId], Recorder | None] | None = None,
) -> list[Recorder]:
    """Record received messages before they are judged. Returns a recorder for each, with its entry as cause.

    Each message of a batch is recorded alone; a batch above `max_batch` is recorded whole. `question` finds the
    recorder of the open request for the id of an answer: the answer is about the same call.
    """
    whole = not isinstance(value, list) or not 0 < len(value) <= limits.max_batch
    recorders = []
    for place, item in [(None, value)] if whole else enumerate(value):
        entry = kept(item, body if whole else encode(item))
        rpc, method, id = essentials(item)
        asked = None if question is None or id is None or rpc not in ("response", "error") else question(id)
        own = recorder
        if asked is not None:
            own = recorder.bind(call=asked.context.call, task=asked.context.task).caused_by(asked.cause)
        fact = MessageReceived(place, rpc, method, id, entry.body, subject(item), entry.hidden)
        recorders.append(own.having(fact))
    return recorders


def unreadable(
    fault: UnreadableFault, problem: str, body: bytes, *, size: int | None = None, declared: int | None = None
) -> MessageUnreadable:
    """The fact about a message that begins with `body`."""
    return MessageUnreadable(
        fault, clip(problem, 300), shown_bytes(body), len(body) if size is None else size, declared
    )


def unreadable_json(error: MalformedError, body: bytes, declared: int | None = None) -> MessageUnreadable:
    """The fact about a whole message refused by `parse`."""
    return unreadable(error.fault or "syntax", str(error), body, declared=declared)


def read_message(value: Any, limits: Limits) -> Message:
    """One message. Raises `Rejection` for a malformed one, and for a too long id."""
    most = limits.max_id_length
    try:
        message = classify(value)
    except MalformedError as error:
        raise Rejection(Refusal.INVALID_REQUEST, str(error), id=_short(error.id, most)) from None
    if isinstance(message, Request) and id_length(message.id) > most:
        raise Rejection(Refusal.INVALID_REQUEST, f"Invalid Request: the id is longer than {most} (max_id_length)")
    return message


def read_batch(batch: Sequence[Any], revision: str, limits: Limits, recorder: Recorder) -> list[Message]:
    """The messages of a batch of a session; `recorder` is that of its first one. Raises `Rejection`."""
    if revision != V2025_03_26:
        why = f"revision {revision} has no batches, send one message at a time"
    elif not batch:
        why = "an empty batch"
    elif len(batch) > limits.max_batch:
        recorder.append(LimitReached("max_batch", limits.max_batch))
        why = f"a batch of more than {limits.max_batch} messages (max_batch)"
    elif any(isinstance(item, dict) and item.get("method") == "initialize" for item in batch):
        why = "initialize must not be part of a batch"
    else:
        return [read_message(item, limits) for item in batch]
    raise Rejection(Refusal.INVALID_REQUEST, f"Invalid Request: {why}")


def read_initialize(value: Any, size: int, limits: Limits) -> Request | None:
    """The `initialize` request in a value of `size` bytes; None for any other value. Raises `Rejection`."""
    if not isinstance(value, dict) or value.get("method") != "initialize" or "id" not in value:
        return None
    message, most = read_message(value, limits), limits.max_initialize_bytes
    if isinstance(message, Request) and size > most:
        why = f"initialize is larger than {most} bytes (max_initialize_bytes)"
        raise Rejection(Refusal.BODY_TOO_LARGE, why, id=message.id)
    return message if isinstance(message, Request) else None


def refused_message(received: Sequence[Received], rejection: Rejection) -> Recorder:
    """The recorder of the rejected message; the first if the rejection has no id."""
    named = (context.recorder for message, context in received if getattr(message, "id", None) == rejection.id)
    return next(named, received[0].context.recorder)


def check_token(request: Request, meta: RequestMeta, limits: Limits) -> None:
    """Raise `Rejection` for a modern request with a too long progress token."""
    token, most = meta.progress_token, limits.max_id_length
    if token is not None and id_length(token) > most:
        why = f"Invalid params: params._meta.progressToken is longer than {most} characters (max_id_length)"
        raise Rejection(Refusal.INVALID_META, why, request.id)


def read_id(value: Any, limits: Limits) -> RequestId | None:
    """The id to echo for a value, even for a malformed message. An answer has none: its id is this server's own."""
    id = value.get("id") if isinstance(value, dict) and "method" in value else None
    return _short(id, limits.max_id_length) if is_id(id) else None


def _short(id: RequestId | None, most: int) -> RequestId | None:
    return id if id is not None and id_length(id) <= most else None


class Repeats:
    """The latest requests of one engine over HTTP, by client, label and id, as numbers of entries."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._latest: Newest[_Key, int] = Newest(_REQUESTS_KEPT)

    def note(self, request: Request, context: RequestContext, *, in_flight: bool = False) -> bool:
        """Take one request. If it repeats an earlier one, record both exchanges and return True.

        This is no misuse, since the client may not know of it. The same bytes on the connection of the first request
        are the client's own, unless the first is still `in_flight`.
        """
        again = context.recorder.cause
        if again is None or context.transport != "http":
            return False
        # Programs with the same name and address share a modern client's session; `?client=` distinguishes them.
        key = (context.recorder.context.session, context.recorder.context.label, request.id)
        first = self._latest.get(key)
        if not in_flight:
            # The request in flight stays the first, even if others have its id.
            self._latest.store(key, again)
        if first is None:
            return False
        before, now = (self._log.entry(seq) for seq in (first, again))
        if before is None or now is None or not (_are_same(before, now) and (in_flight or _is_other(before, now))):
            return False
        after_ms = round((now.mono - before.mono) * 1000, 3)
        repeated = RequestRepeated(clip(request.method), request.id, before.seq, before.context.exchange, after_ms)
        context.recorder.append(repeated)
        return True


def _are_same(before: Entry, now: Entry) -> bool:
    bodies = [entry.fact.message for entry in (before, now) if isinstance(entry.fact, MessageReceived)]
    return len(bodies) == 2 and bodies[0] == bodies[1]


def _is_other(before: Entry, now: Entry) -> bool:
    connections = {entry.context.connection for entry in (before, now)} - {None}
    return len(connections) == 2 and now.mono - before.mono <= _REPEATED_WITHIN_S

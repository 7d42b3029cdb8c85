"""An exchange as a page lists it: what was asked, how long it took, and how it ended.

A row is made when somebody asks, of the views and of entries that the log keeps. It costs about as much as an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from pydantic_core import from_json

from ..log import events
from ..log.event_log import Entry
from ..wire.jsonrpc import clip, encode
from .call_row import ANSWERS
from .tables.groups import is_on_wire
from .values import Call, Exchange, Message

State: TypeAlias = Literal[
    "completed",
    "tool_error",
    "protocol_error",
    "timed_out",
    "cancelled",
    "disconnected",
    "input_required",
    "running",
    "error",
    "refused",
    "misuse",
    "answered",
    "dropped",
    "open",
    "ended",
    "waiting",
    "unanswered",
    "done",
]

# A line of a page can show so much of a text, and a longer result is not parsed for it: 64 KiB take 0.1 ms.
_LONGEST: Final = 300
_MOST_READ: Final = 64 * 1024
# Entries of an exchange without a message that are looked at for one on the wire.
_LOOKED_AT: Final = 100
_PROGRESS: Final = "notifications/progress"

EntryOf: TypeAlias = Callable[[int], Entry | None]


@dataclass(frozen=True, slots=True)
class Moment:
    """The number of an entry and its times, in seconds since the epoch and of the monotonic clock."""

    seq: int
    at: float
    mono: float


@dataclass(frozen=True, slots=True)
class Ending:
    """How an exchange ended, or how far it is.

    `state` is the outcome of its call, such as `cancelled`, or `running`. Without a call: `error` (a JSON-RPC error),
    `refused` (an HTTP status from 400), `misuse`, `answered`, `dropped` (its message was not sent), `open` and `ended`
    (an event stream), `waiting` and `unanswered` (a request), `done` (nothing has to follow).

    `by` is who or what ended it, such as `notification` for a call and `client` for a stream. `steps` of
    `steps_total` were done, `stopped_ms` is how long the work took to stop, and `sent_after` counts messages that were
    sent after the cancellation. `code` is that of a JSON-RPC error. `detail` is the beginning of a text of the tool,
    the error, the refusal, or of the person who cancelled.
    """

    state: State
    by: str | None = None
    steps: float | None = None
    steps_total: float | None = None
    stopped_ms: float | None = None
    sent_after: int = 0
    code: int | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class ExchangeRow:
    """An exchange: an HTTP request with what answers it, one message on a pipe with that, or a message of neither.

    `id` is the text of the `exchange` that a `view` names; below 0 it is the number of an entry without an exchange.
    `head` is the entry that a line shows first: the message that was sent, else the head of the HTTP request; `method`
    is that message's. `on_wire` is false where no entry is of something on the wire. `ended` is the last entry of what
    is over, `duration_ms` the time from `began` until then. `progress` counts reports, `dropped` the messages that were
    not sent. `answer` is the entry of the first answer, `delivered` the moment in which a socket took that. `misuse` is
    the first violation that was noted.
    """

    id: str
    exchange: int
    began: Moment
    head: int
    on_wire: bool
    method: str | None
    session: str | None
    label: str | None
    call: str | None
    tool: str | None
    status: int | None
    refusal: str | None
    misuse: str | None
    answer: int | None
    delivered: Moment | None
    progress: int
    dropped: int
    ended: Moment | None
    duration_ms: float | None
    ending: Ending

    def encoded(self) -> bytes:
        """The row in JSON."""
        return encode(self)


def moment(entry: Entry | None) -> Moment | None:
    """The moment of an entry."""
    return None if entry is None else Moment(entry.seq, entry.at, entry.mono)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The views of an exchange that its ending depends on. `head` is the entry that a line shows first."""

    exchange: Exchange
    head: Entry
    answers: Sequence[Message]
    call: Call | None
    settled: events.CallSettled | None
    dropped: Sequence[Message]


def row_of(exchange: Exchange, entry_of: EntryOf) -> ExchangeRow:
    """The row of an exchange with a number."""
    parts = _parts(exchange)
    head, began, call = parts.head, moment(exchange.began), parts.call
    answer = parts.answers[0] if parts.answers else None
    end = _end(parts)
    named = _session(exchange, entry_of)
    assert began is not None
    return ExchangeRow(
        id=str(exchange.number),
        exchange=exchange.number,
        began=began,
        head=head.seq,
        on_wire=_is_on_wire(exchange, entry_of),
        method=_method(head.fact),
        session=named[0],
        label=named[1],
        call=None if call is None else call.name,
        tool=None if call is None else call.tool,
        status=exchange.status,
        refusal=exchange.refusal,
        misuse=None if exchange.misuse is None else cast("events.ClientMisuse", exchange.misuse.fact).what,
        answer=None if answer is None else answer.seq,
        delivered=None if answer is None else moment(answer.delivered),
        progress=_progress(parts),
        dropped=len(parts.dropped),
        ended=moment(end),
        duration_ms=None if end is None else _ms(exchange.began, end),
        ending=_ending(parts, entry_of),
    )


def lone_row(key: int, head: Entry, answer: Entry | None) -> ExchangeRow | None:
    """The row of an entry without an exchange, and of what answers it; None where it is not on the wire."""
    if not is_on_wire(head.fact):
        return None
    fact, context = head.fact, head.context
    end = answer if answer is not None else None if _asks(fact) else head
    return ExchangeRow(
        id=str(key),
        exchange=key,
        began=Moment(head.seq, head.at, head.mono),
        head=head.seq,
        on_wire=True,
        method=_method(fact),
        session=context.session,
        label=context.label,
        call=context.call,
        tool=None,
        status=None,
        refusal=None,
        misuse=fact.what if isinstance(fact, events.ClientMisuse) else None,
        answer=None if answer is None else answer.seq,
        delivered=None,
        progress=0,
        dropped=int(isinstance(fact, events.MessageDropped)),
        ended=moment(end),
        duration_ms=None if end is None else _ms(head, end),
        ending=_lone_ending(fact, answer),
    )


def _lone_ending(fact: Any, answer: Entry | None) -> Ending:
    if answer is not None:
        return _answered(answer.fact)
    if isinstance(fact, events.MessageDropped):
        return Ending("dropped", detail=_short(fact.why))
    if isinstance(fact, events.ClientMisuse):
        return Ending("misuse", detail=_short(fact.detail))
    return Ending("waiting" if _asks(fact) else "done")


def _parts(exchange: Exchange) -> _Parts:
    messages = exchange.messages
    asked = [message for message in messages if message.received and message.rpc == "request"]
    answers = {message.seq: message for message in messages[1:] if message.rpc in ANSWERS}
    answers |= {message.answer.seq: message.answer for message in asked if message.answer is not None}
    calls = [message.call for message in asked if message.call is not None]
    calls = calls or [call for call in exchange.calls.values() if call.exchange is exchange]
    ended = [call.ended for call in calls if call.ended is not None]
    newest = max(ended, key=lambda entry: entry.seq, default=None)
    first = [messages[0].entry] if messages else []
    heads = [*first, *([exchange.unreadable] if exchange.unreadable is not None else [])]
    head = min(heads, key=lambda entry: entry.seq, default=exchange.head or exchange.began)
    dropped = [message for message in messages if isinstance(message.fact, events.MessageDropped)]
    settled = None if newest is None else cast("events.CallSettled", newest.fact)
    in_order = [answers[seq] for seq in sorted(answers)]
    return _Parts(exchange, head, in_order, calls[0] if calls else None, settled, dropped)


def _session(exchange: Exchange, entry_of: EntryOf) -> tuple[str | None, str | None]:
    """The session and the label of an exchange, which its first entries may not know yet."""
    session = exchange.session.label if exchange.session is not None else None
    label = exchange.client.label if exchange.client is not None and exchange.client.kind == "label" else None
    if session is None:
        found = (entry_of(seq) for seq in exchange.entries[:_LOOKED_AT])
        session = next((entry.context.session for entry in found if entry is not None and entry.context.session), None)
    return session, label


def _is_on_wire(exchange: Exchange, entry_of: EntryOf) -> bool:
    if exchange.messages or exchange.head or exchange.response or exchange.closed or exchange.unreadable:
        return True
    found = (entry_of(seq) for seq in exchange.entries[:_LOOKED_AT])
    return any(entry is not None and is_on_wire(entry.fact) for entry in found)


def _progress(parts: _Parts) -> int:
    if parts.call is not None:
        return parts.call.reports
    return sum(message.method == _PROGRESS for message in parts.exchange.messages)


def _streams(exchange: Exchange) -> bool:
    response = None if exchange.response is None else cast("events.HttpResponse", exchange.response.fact)
    return response is not None and response.content_type.startswith("text/event-stream")


def _end(parts: _Parts) -> Entry | None:
    """The last entry of what is over: of an event stream its close, of an answer in one piece its delivery."""
    exchange = parts.exchange
    if exchange.closed is not None or _streams(exchange):
        return exchange.closed
    ends = [exchange.response, *(answer.delivered or answer.entry for answer in parts.answers)]
    return max((entry for entry in ends if entry is not None), key=lambda entry: entry.seq, default=None)


def _ending(parts: _Parts, entry_of: EntryOf) -> Ending:
    exchange, settled = parts.exchange, parts.settled
    if settled is not None and settled.outcome != "completed":
        return _stopped(settled, parts.answers, entry_of)
    error = next((answer for answer in parts.answers if answer.rpc == "error"), None)
    if error is not None:
        return _answered((entry_of(error.seq) or error.entry).fact)
    response = None if exchange.response is None else cast("events.HttpResponse", exchange.response.fact)
    if response is not None and response.status >= 400:
        return Ending("refused", detail=_short(response.problem))
    if exchange.misuse is not None:
        return Ending("misuse", detail=_short(cast("events.ClientMisuse", exchange.misuse.fact).detail))
    return _orderly(parts)


def _orderly(parts: _Parts) -> Ending:
    """The ending of what nothing went wrong with, or which has not ended."""
    settled = parts.settled
    if settled is not None:
        return Ending("completed", steps=settled.steps_done, steps_total=settled.steps_total)
    return Ending("answered") if parts.answers else _unanswered(parts)


def _unanswered(parts: _Parts) -> Ending:
    exchange, call, fact = parts.exchange, parts.call, parts.head.fact
    by = exchange.ended_by
    if call is not None:
        record = call.record
        done, total = (None, None) if record is None else (record.steps_done, record.steps_total)
        return Ending("running", steps=done, steps_total=total)
    if isinstance(fact, events.MessageDropped):
        return Ending("dropped", detail=_short(fact.why))
    if _streams(exchange):
        return Ending("open" if exchange.closed is None else "ended", by=by)
    if _asks(fact) or (exchange.head is not None and exchange.response is None):
        return Ending("waiting" if exchange.closed is None else "unanswered", by=by)
    return Ending("done")


def _stopped(fact: events.CallSettled, answers: Sequence[Message], entry_of: EntryOf) -> Ending:
    """The end of a call that did not come to its own."""
    result = _read(fact.result)
    code, text = _error(result)
    if text is None:
        text = _first_text(result) or fact.cancel_reason
    if text is None and answers:
        code, text = _error(_read(getattr((entry_of(answers[0].seq) or answers[0].entry).fact, "message", b"")))
    return Ending(
        cast("State", fact.outcome),
        by=fact.cancelled_by,
        steps=fact.steps_done,
        steps_total=fact.steps_total,
        stopped_ms=fact.scope_exit_ms,
        sent_after=fact.sent_after_cancel,
        code=code,
        detail=_short(text),
    )


def _answered(fact: Any) -> Ending:
    if getattr(fact, "rpc", None) != "error":
        return Ending("answered")
    code, text = _error(_read(fact.message))
    return Ending("error", code=code, detail=_short(text))


def _asks(fact: Any) -> bool:
    return getattr(fact, "rpc", None) == "request"


def _method(fact: Any) -> str | None:
    return None if isinstance(fact, events.HttpRequest) else getattr(fact, "method", None)


def _read(body: bytes) -> Any:
    return from_json(body) if 0 < len(body) <= _MOST_READ else None


def _error(value: Any) -> tuple[int | None, str | None]:
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return None, None
    code, text = error.get("code"), error.get("message")
    return code if type(code) is int else None, text if isinstance(text, str) else None


def _first_text(result: Any) -> str | None:
    content = result.get("content") if isinstance(result, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    text = first.get("text") if isinstance(first, dict) else None
    return text if isinstance(text, str) else None


def _short(text: str | None) -> str | None:
    return None if text is None else clip(text, _LONGEST)


def _ms(began: Entry, end: Entry) -> float:
    return max(0.0, round((end.mono - began.mono) * 1000, 3))

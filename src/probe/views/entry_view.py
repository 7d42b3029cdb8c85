"""The view of an entry, and the row of its exchange, so that a reader of single entries need not infer them.

A row is made when a reader asks, from the views and the kept entries of the log. It costs about as much as an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast

from ..log import events
from ..log.context import Context
from ..log.event_log import Entry
from ..log.query import direction_of
from ..wire.jsonrpc import encode
from .ending import Ending, EndingParts, asks, ending_of, lone_ending, streams
from .fold import Views
from .meaning import EntryOf, Group, Problem, exchange_key, group_of, is_on_wire, method, problem_of
from .records import ANSWERS, cancelled_how
from .search.conditions import LineMarks
from .values import Exchange, Message
from .work import Call

Transport: TypeAlias = Literal["http", "websocket", "stdio", "host"]

# In an exchange without a message, entries looked at for one on the wire.
_LOOKED_AT: Final = 100
_PROGRESS: Final = "notifications/progress"


@dataclass(frozen=True, slots=True)
class Moment:
    """The number of an entry and its times, in seconds since the epoch and of the monotonic clock."""

    seq: int
    at: float
    mono: float


@dataclass(frozen=True, slots=True)
class Work:
    """The work that an exchange began; the work of a `task` goes on after it.

    `cancelled` is the moment of the cancellation, `ended` the moment when its scope had exited.
    """

    task: str | None
    began: Moment
    cancelled: Moment | None
    ended: Moment | None


@dataclass(frozen=True, slots=True)
class ExchangeRow:
    """An exchange: an HTTP request with what answers it, one message on a pipe with that, or a message of neither.

    `id` is the text of the `exchange` that a `view` names; below 0 it is the number of an entry without an exchange.
    `head` is the entry shown first in a line: the message of the client, else the head of the HTTP request; `method` is
    that message's, `target` its name, URI or task id. `request` is method and path over HTTP, such as `GET /mcp`,
    `unreadable` the reason why its body was not read as JSON. `on_wire` is false where no entry is on the wire. `ended`
    is the last entry of an exchange that is over, `duration_ms` the time from `began` until then. `progress` counts
    reports, `dropped` messages that were not sent. `answer` is the entry of the first answer, `delivered` the moment
    when a socket took it. `misuse` is the first noted violation. `passes`: whether it passes the filter line that was
    given as `passes`; null without one.
    """

    id: str
    exchange: int
    began: Moment
    head: int
    on_wire: bool
    transport: Transport | None
    request: str | None
    unreadable: str | None
    method: str | None
    target: str
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
    work: Work | None
    ending: Ending
    passes: bool | None = None

    def encoded(self) -> bytes:
        return encode(self)


def moment(entry: Entry | None) -> Moment | None:
    """The moment of an entry."""
    return None if entry is None else Moment(entry.seq, entry.at, entry.mono)


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
        transport=_transport(exchange.began.context),
        request=None if exchange.head is None else f"{exchange.request.method} {exchange.request.path}",
        unreadable=None if exchange.unreadable is None else getattr(exchange.unreadable.fact, "fault", None),
        method=_method(head.fact),
        target=next((message.target for message in exchange.messages if message.seq == head.seq), ""),
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
        work=None if call is None else _work(call),
        ending=ending_of(parts, entry_of),
    )


def lone_row(key: int, head: Entry, answer: Entry | None) -> ExchangeRow | None:
    """The row of an entry without an exchange, with its answer if any; None where it is not on the wire."""
    if not is_on_wire(head.fact):
        return None
    fact, context = head.fact, head.context
    end = answer if answer is not None else None if asks(fact) else head
    return ExchangeRow(
        id=str(key),
        exchange=key,
        began=Moment(head.seq, head.at, head.mono),
        head=head.seq,
        on_wire=True,
        transport=_transport(context),
        request=None,
        unreadable=None,
        method=_method(fact),
        target="",
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
        work=None,
        ending=lone_ending(fact, answer),
    )


def _transport(context: Context) -> Transport | None:
    if context.connection is not None and context.connection.startswith("h"):
        return "host"
    if context.pipe is not None:
        return "websocket" if context.pipe.startswith("w") else "stdio"
    return None if context.exchange is None else "http"


def _work(call: Call) -> Work:
    began = moment(call.began)
    assert began is not None
    return Work(None if call.task is None else call.task.id, began, moment(call.cancelled), moment(call.ended))


def _parts(exchange: Exchange) -> EndingParts:
    messages = exchange.messages
    asked = [message for message in messages if message.received and message.rpc == "request"]
    head = _head(exchange)
    answers = {message.seq: message for message in messages if message.rpc in ANSWERS and message.seq != head.seq}
    answers |= {message.answer.seq: message.answer for message in asked if message.answer is not None}
    calls = [message.call for message in asked if message.call is not None]
    calls = calls or [call for call in exchange.calls.values() if call.exchange is exchange]
    ended = [call.ended for call in calls if call.ended is not None]
    newest = max(ended, key=lambda entry: entry.seq, default=None)
    dropped = [message for message in messages if isinstance(message.fact, events.MessageDropped)]
    settled = None if newest is None else cast("events.CallSettled", newest.fact)
    in_order = [answers[seq] for seq in sorted(answers)]
    return EndingParts(exchange, head, in_order, calls[0] if calls else None, settled, dropped)


def _head(exchange: Exchange) -> Entry:
    """The entry shown first in a line: never a message of the server on an HTTP response."""
    messages = exchange.messages
    sent = next((message.entry for message in messages if message.received or exchange.head is None), None)
    firsts = [entry for entry in (sent, exchange.unreadable) if entry is not None]
    return min(firsts, key=lambda entry: entry.seq, default=exchange.head or exchange.began)


def _session(exchange: Exchange, entry_of: EntryOf) -> tuple[str | None, str | None]:
    """The first entries of an exchange may not have its session and label."""
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


def _progress(parts: EndingParts) -> int:
    if parts.call is not None:
        return parts.call.reports
    return sum(message.method == _PROGRESS for message in parts.exchange.messages)


def _end(parts: EndingParts) -> Entry | None:
    """The last entry of an exchange that is over: an event stream's close, or an answer's delivery."""
    exchange = parts.exchange
    if exchange.closed is not None or streams(exchange):
        return exchange.closed
    ends = [exchange.response, *(answer.delivered or answer.entry for answer in parts.answers)]
    return max((entry for entry in ends if entry is not None), key=lambda entry: entry.seq, default=None)


def _method(fact: Any) -> str | None:
    return None if isinstance(fact, events.HttpRequest) else getattr(fact, "method", None)


def _ms(began: Entry, end: Entry) -> float:
    return max(0.0, round((end.mono - began.mono) * 1000, 3))


Touched: TypeAlias = dict[int, int]
"""Exchanges by the key of `EntryView.exchange`, each with the newest entry that changed it."""


@dataclass(frozen=True, slots=True)
class EntryView:
    """The exchange of an entry and its meaning, as far as the log has come.

    `exchange` names its exchange, always: its number, else below 0 the entry of the message that it answers, or its
    own. `on_wire` is true for what is on the wire, or went wrong there. `group` is that of its kind, `problem` the
    cause of a problem, null where it is none. `direction` is `in` to the server or `out` from it. `method` is that of a
    message, of the request that it answers, or of a call.

    `delivered` is the moment in which a socket first took a message, null before; it may be set when the entry is given
    again. The entry that says so has the numbers of these messages in `delivers`.

    `cancelled_how` is the cause of a cancellation in words after `cancelled`, such as `by the client`; else null.

    `passes`: whether it passes the filter line that was given as `passes`; null without one.
    """

    exchange: int
    on_wire: bool
    group: Group
    problem: Problem | None
    direction: Literal["in", "out"] | None
    method: str | None
    delivered: Moment | None
    delivers: list[int]
    cancelled_how: str | None = None
    passes: bool | None = None


def _cancelled_how(fact: Any) -> str | None:
    by = None
    if isinstance(fact, events.CallCancelled | events.DispatchCancelled):
        by = fact.by
    elif isinstance(fact, events.CallSettled):
        by = fact.cancelled_by
    return None if by is None else cancelled_how(by)


class EntryViews:
    """Makes the views of entries and the rows of exchanges of one log.

    `entry_of` finds an entry by its number, None where it is not kept; `views` returns the views of the log.
    """

    def __init__(self, entry_of: EntryOf, views: Callable[[], Views]) -> None:
        self._entry_of = entry_of
        self._views = views

    def of(self, entry: Entry, passing: LineMarks | None = None) -> EntryView:
        fact, views = entry.fact, self._views()
        message = views.messages.get(entry.seq)
        return EntryView(
            exchange_key(entry, self._entry_of),
            is_on_wire(fact),
            group_of(fact),
            problem_of(fact),
            cast("Literal['in', 'out'] | None", direction_of(fact)),
            method(entry, self._entry_of),
            None if message is None else moment(message.delivered),
            [message.seq for message in _delivered(views, entry)],
            _cancelled_how(fact),
            None if passing is None else passing.entry(entry),
        )

    def encoded(self, entry: Entry, row: bytes | None = None, passing: LineMarks | None = None) -> bytes:
        """An entry in JSON with its `view` as the last member; `row` is its JSON without, if made already."""
        return b'%b,"view":%b}' % ((row or entry.encoded())[:-1], encode(self.of(entry, passing)))

    def touch(self, entry: Entry, touched: Touched) -> None:
        """Note the exchanges changed by an entry: its own, that of its call, those of delivered messages."""
        views = self._views()
        key = exchange_key(entry, self._entry_of)
        touched[key] = max(touched.get(key, 0), entry.seq)
        call = None if entry.context.call is None else views.call(entry.context.call)
        if call is not None and call.exchange is not None:
            touched[call.exchange.number] = entry.seq
        for message in _delivered(views, entry):
            if message.exchange is not None:
                touched[message.exchange.number] = entry.seq

    def rows(self, touched: Touched, passing: LineMarks | None = None) -> Iterator[bytes]:
        """The present rows in JSON; without exchanges that are no longer kept."""
        for key, newest in touched.items():
            row = self._row(key) if key >= 0 else self._lone_row(key, newest)
            if row is not None:
                shown = row if passing is None else replace(row, passes=passing.exchange(key, self._seqs(key, newest)))
                yield shown.encoded()

    def _seqs(self, key: int, newest: int) -> Sequence[int]:
        exchange = self._views().exchanges.get(key)
        return sorted({-key, newest}) if exchange is None else exchange.entries

    def _row(self, number: int) -> ExchangeRow | None:
        exchange = self._views().exchanges.get(number)
        return None if exchange is None else row_of(exchange, self._entry_of)

    def _lone_row(self, key: int, newest: int) -> ExchangeRow | None:
        head = self._entry_of(-key)
        answer = None if newest == -key else self._entry_of(newest)
        return None if head is None else lone_row(key, head, answer)


def _delivered(views: Views, entry: Entry) -> list[Message]:
    """The messages that a socket took for the first time with this entry."""
    fact, stream = entry.fact, None
    if not isinstance(fact, events.MessagesDelivered):
        return []
    if entry.context.stream is None:
        found = [] if entry.cause is None else [views.messages.get(entry.cause)]
    else:
        stream = views.streams.get((entry.context.session, entry.context.stream))
        sent = {} if stream is None else stream.sent
        near = fact.last - fact.first < len(sent)
        places = range(fact.first, fact.last + 1) if near else [at for at in sent if fact.first <= at <= fact.last]
        found = [sent.get(place) for place in places]
    return [
        each for each in found if each is not None and each.delivered is not None and each.delivered.seq == entry.seq
    ]

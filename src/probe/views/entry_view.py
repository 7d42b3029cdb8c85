"""The exchange and the meaning of an entry, so that a reader of single entries need not infer them from others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, cast

from ..log import events
from ..log.event_filter import direction_of
from ..log.event_log import Entry
from ..wire.jsonrpc import encode
from .exchange_row import ExchangeRow, Moment, lone_row, moment, row_of
from .fold import Views
from .naming import EntryOf, exchange_key, method
from .tables.groups import Group, group_of, is_on_wire
from .tables.problems import Problem, problem_of
from .values import Message

Touched: TypeAlias = dict[int, int]
"""Exchanges by the key of `EntryView.exchange`, each with the newest entry that changed it."""


@dataclass(frozen=True, slots=True)
class EntryView:
    """What an entry is part of, as far as the log has come.

    `exchange` names its exchange, always: its number, else below 0 the entry of the message that it answers, or its
    own. `on_wire` is true for what is on the wire, or went wrong there. `group` is that of its kind, `problem` the
    cause of a problem, null where it is none. `direction` is `in` to the server or `out` from it. `method` is that of a
    message, of the request that it answers, or of a call.

    `delivered` is the moment in which a socket first took a message, null before; it may be set when the entry is given
    again. The entry that says so has the numbers of these messages in `delivers`.

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
    passes: bool | None = None


class Passing(Protocol):
    """Decides what passes a filter line, as far as the log was read."""

    def entry(self, entry: Entry) -> bool:
        """Whether an entry passes."""

    def exchange(self, key: int, seqs: Sequence[int]) -> bool:
        """Whether an exchange with these entries passes."""


class EntryViews:
    """Makes the views of entries and the rows of exchanges of one log.

    `entry_of` finds an entry by its number, None where it is not kept; `views` returns the views of the log.
    """

    def __init__(self, entry_of: EntryOf, views: Callable[[], Views]) -> None:
        self._entry_of = entry_of
        self._views = views

    def of(self, entry: Entry, passing: Passing | None = None) -> EntryView:
        """The view of an entry."""
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
            None if passing is None else passing.entry(entry),
        )

    def encoded(self, entry: Entry, row: bytes | None = None, passing: Passing | None = None) -> bytes:
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

    def rows(self, touched: Touched, passing: Passing | None = None) -> Iterator[bytes]:
        """The present rows in JSON of exchanges; without those no longer kept."""
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

"""The conditions of a filter line on exchanges and on their entries.

An **exchange** is an HTTP request with its messages and its answer, a message on a pipe with its answer, or another
message with its answer. It passes if each word fits one of its entries, and no negated word fits any. A negated `kind`
is different: it needs an entry on the wire of another kind. For example, `-kind:message` passes an exchange with an
`http.request`.

An **entry** passes if its exchange fits the words for client, tool, outcome and status, and the entry itself fits all
others.

The search looks back and judges exchanges in their present state. A reader of a growing log judges each entry when it
is read: a call passes `outcome:cancelled` only after its cancellation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from ...log.bounded import Newest
from ...log.event_log import Entry, EventLog
from ...log.query import EventFilter, RowText, direction_of
from ..fold import Views
from ..meaning import EntryOf, exchange_key, groups_of, is_on_wire, method, problem_of
from ..values import Exchange
from ..work import Call
from .words import Key, Word, matcher


class LoggedExchanges:
    """The exchanges of one log by their keys, as far as its `views` have come.

    `entry_of` finds an entry by its number, None where the log does not have it.
    """

    def __init__(self, views: Callable[[], Views], entry_of: EntryOf) -> None:
        self._views = views
        self._entry_of = entry_of

    def key(self, entry: Entry) -> int:
        return exchange_key(entry, self._entry_of)

    def method(self, entry: Entry) -> str | None:
        return method(entry, self._entry_of)

    def named(self, key: int, word: Key) -> Iterator[str]:
        """The values of an exchange for a word of this key."""
        if key < 0:
            yield from self._of_lone(-key, word)
            return
        exchange = self._views().exchanges.get(key)
        if exchange is None:
            return
        if word == "client":
            client = exchange.client
            label = client.label if client is not None and client.kind == "label" else None
            yield from self._names(exchange.labels, label)
        elif word == "status":
            if exchange.status is not None:
                yield str(exchange.status)
        elif word == "tool":
            yield from (call.tool for call in _calls(exchange) if call.tool is not None)
        else:
            yield from _outcomes(exchange)

    def _of_lone(self, seq: int, word: Key) -> Iterator[str]:
        entry = self._entry_of(seq) if word == "client" else None
        if entry is None:
            return
        session = entry.context.session
        yield from self._names(() if session is None else (session,), entry.context.label)

    def _names(self, labels: Iterable[str], given: str | None) -> Iterator[str]:
        """Labels of sessions, names that clients give themselves, and the given name."""
        for label in labels:
            yield label
            session = self._views().sessions.get(label)
            if session is not None and session.client_name:
                yield session.client_name
        if given is not None:
            yield given


def _calls(exchange: Exchange) -> Iterator[Call]:
    for message in exchange.messages:
        if message.received and message.call is not None:
            yield message.call
    yield from (call for call in exchange.calls.values() if call.exchange is exchange)


def _outcomes(exchange: Exchange) -> Iterator[str]:
    calls = [*_calls(exchange)]
    ended = [str(getattr(call.ended.fact, "outcome", "")) for call in calls if call.ended is not None]
    yield from ended or ("running",) * bool(calls)


_OF_EXCHANGE: Final = frozenset[Key]({"client", "tool", "outcome", "status"})

_Values: TypeAlias = Callable[[Entry], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class WordTest:
    """One word about entries without a text: `has` tests an entry."""

    has: Callable[[Entry], bool]
    negated: bool
    of_kind: bool

    def met(self, found: bool) -> bool:
        """True if an exchange passes, with the result of `finds` for its entries."""
        return found != (self.negated and not self.of_kind)

    def finds(self, entries: Iterable[Entry]) -> bool:
        """True if an entry fits; for a negated `kind`, if one on the wire is of another."""
        if self.negated and self.of_kind:
            return any(is_on_wire(entry.fact) and not self.has(entry) for entry in entries)
        return any(map(self.has, entries))


class Conditions:
    """The words of one line, for the exchanges of one log. `asks` are about entries, `texts` about their texts."""

    def __init__(self, words: Sequence[Word], exchanges: LoggedExchanges) -> None:
        self._exchanges = exchanges
        self._of_exchange = [(word, matcher(word)) for word in words if word.key in _OF_EXCHANGE]
        values = _values_in(exchanges)
        self.asks = [
            WordTest(_having(values[word.key], matcher(word)), word.negated, word.key == "kind")
            for word in words
            if word.key in values
        ]
        self.texts = [word for word in words if word.key == "text"]

    def around(self, key: int) -> bool:
        """True if the exchange fits the words for client, tool, outcome and status."""
        named = self._exchanges.named
        return all(any(map(matches, named(key, word.key))) != word.negated for word, matches in self._of_exchange)

    def names(self, entry: Entry) -> bool:
        """True if the entry fits all other words except texts."""
        return all(ask.has(entry) != ask.negated for ask in self.asks)

    def passes_entry(self, entry: Entry) -> bool:
        if not (self.around(self._exchanges.key(entry)) and self.names(entry)):
            return False
        row = RowText(entry.encoded()) if self.texts else None
        return row is None or all(_has_text(row, word) != word.negated for word in self.texts)

    def look(self, entry: Entry, found: set[int]) -> None:
        """Add to `found` the words that fit this entry."""
        found.update(place for place, ask in enumerate(self.asks) if place not in found and ask.finds((entry,)))
        texts = [pair for pair in enumerate(self.texts, len(self.asks)) if pair[0] not in found]
        if texts:
            row = RowText(entry.encoded())
            found.update(place for place, word in texts if _has_text(row, word))

    def passes_exchange(self, key: int, found: Collection[int]) -> bool:
        """`found` has the words found by `look` in the entries of the exchange."""
        asked = all(ask.met(place in found) for place, ask in enumerate(self.asks))
        texts = enumerate(self.texts, len(self.asks))
        return asked and all((place in found) != word.negated for place, word in texts) and self.around(key)


def _has_text(row: RowText, word: Word) -> bool:
    return any(map(row.has, word.values))


def _having(values: _Values, matches: Callable[[str], bool]) -> Callable[[Entry], bool]:
    return lambda entry: any(map(matches, values(entry)))


def _values_in(exchanges: LoggedExchanges) -> Mapping[Key, _Values]:
    return {
        "kind": lambda entry: (entry.fact.kind,),
        "group": lambda entry: tuple(groups_of(entry.fact)),
        "method": lambda entry: _some(exchanges.method(entry)),
        "direction": lambda entry: _some(direction_of(entry.fact)),
        "problem": _problem,
        "stream": _stream,
        "call": lambda entry: _some(entry.context.call),
        "task": lambda entry: _some(entry.context.task),
        "exchange": lambda entry: () if entry.context.exchange is None else (str(entry.context.exchange),),
        "connection": lambda entry: _some(entry.context.connection),
    }


def _problem(entry: Entry) -> tuple[str, ...]:
    problem = problem_of(entry.fact)
    return () if problem is None else (problem, "any")


def _stream(entry: Entry) -> tuple[str, ...]:
    context = entry.context
    return () if context.stream is None else (context.stream, f"{context.session}/{context.stream}")


def _some(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)


@dataclass(slots=True)
class _Looked:
    found: set[int] = field(default_factory=set)
    until: int = 0


class PassingRows:
    """Judges the exchanges of one line. Each entry is looked at once."""

    def __init__(self, conditions: Conditions, entry_of: EntryOf, most: int) -> None:
        self._conditions = conditions
        self._entry_of = entry_of
        self._looked: Newest[int, _Looked] = Newest(most)

    def passes(self, key: int, seqs: Sequence[int]) -> bool:
        looked = self._looked.get(key)
        if looked is None:
            looked = _Looked()
            self._looked.store(key, looked)
        for seq in seqs[bisect_right(seqs, looked.until) :]:
            entry = self._entry_of(seq)
            if entry is not None:
                self._conditions.look(entry, looked.found)
            looked.until = seq
        return self._conditions.passes_exchange(key, looked.found)


# Different lines of readers at a time.
_LINES: Final = 64


class FollowedExchanges:
    """The exchanges of a log, as far as its `views` have come. All readers of a line share its conditions."""

    def __init__(self, log: EventLog, views: Callable[[], Views]) -> None:
        exchanges = LoggedExchanges(views, log.entry)
        # Without the object itself, which the functions would refer to and which refers to them.
        self._conditions = conditions = lru_cache(maxsize=_LINES)(lambda words: Conditions(words, exchanges))
        self._rows = lru_cache(maxsize=_LINES)(
            lambda words: PassingRows(conditions(words), log.entry, views().retention.line_exchanges)
        )

    def passes(self, words: tuple[Word, ...], entry: Entry) -> bool:
        """The log must have been read up to the entry."""
        return self._conditions(words).passes_entry(entry)

    def passes_row(self, words: tuple[Word, ...], key: int, seqs: Sequence[int]) -> bool:
        """True if the exchange passes so far; `seqs` are the numbers of its entries, in order."""
        return self._rows(words).passes(key, seqs)


@dataclass(frozen=True, slots=True)
class LineMarks:
    """Marks entries and exchanges that pass the `words` of a line. `exchanges` must have read the log."""

    words: tuple[Word, ...]
    exchanges: FollowedExchanges = field(compare=False, repr=False)

    def entry(self, entry: Entry) -> bool:
        return self.exchanges.passes(self.words, entry)

    def exchange(self, key: int, seqs: Sequence[int]) -> bool:
        return self.exchanges.passes_row(self.words, key, seqs)


@dataclass(frozen=True, slots=True)
class LineFilter:
    """Passes entries that pass `events` and the `words` of a line. `exchanges` must have read the log."""

    events: EventFilter
    words: tuple[Word, ...]
    exchanges: FollowedExchanges = field(compare=False, repr=False)

    @property
    def passes_all(self) -> bool:
        return self.events.passes_all and not self.words

    @property
    def text(self) -> str | None:
        return self.events.text

    def fits(self, entry: Entry) -> bool:
        """True if an entry fits all conditions except `text`."""
        return self.events.fits(entry) and (not self.words or self.exchanges.passes(self.words, entry))

    def concerns(self, entry: Entry) -> bool:
        return self.events.concerns(entry)

    def finds(self, row: bytes) -> bool:
        return self.events.finds(row)

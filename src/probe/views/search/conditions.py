"""The conditions of a filter line on exchanges and on their entries.

An **exchange** passes if each word fits one of its entries, and no negated word fits any. A negated `kind` is
different: it needs an entry on the wire of another kind. For example, `-kind:message` passes an exchange with an
`http.request`.

An **entry** passes if its exchange fits the words for client, tool, outcome and status, and the entry itself fits all
others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ...log.event_filter import RowText, direction_of
from ...log.event_log import Entry
from ..tables.groups import groups_of, is_on_wire
from ..tables.problems import problem_of
from .exchanges import LoggedExchanges
from .words import Key, Word, matcher

_OF_EXCHANGE: Final = frozenset[Key]({"client", "tool", "outcome", "status"})

_Values: TypeAlias = Callable[[Entry], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Ask:
    """One word about entries without a text: `has` tests an entry."""

    has: Callable[[Entry], bool]
    negated: bool
    of_kind: bool

    def met(self, found: bool) -> bool:
        """Whether an exchange passes, with the result of `finds` for its entries."""
        return found != (self.negated and not self.of_kind)

    def finds(self, entries: Iterable[Entry]) -> bool:
        """Whether one of the entries fits; for a negated `kind`, whether one on the wire is of another."""
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
            Ask(_having(values[word.key], matcher(word)), word.negated, word.key == "kind")
            for word in words
            if word.key in values
        ]
        self.texts = [word for word in words if word.key == "text"]

    def around(self, key: int) -> bool:
        """Whether an exchange fits the words for client, tool, outcome and status."""
        named = self._exchanges.named
        return all(any(map(matches, named(key, word.key))) != word.negated for word, matches in self._of_exchange)

    def names(self, entry: Entry) -> bool:
        """Whether an entry fits all other words except texts."""
        return all(ask.has(entry) != ask.negated for ask in self.asks)

    def passes_entry(self, entry: Entry) -> bool:
        """Whether an entry passes."""
        if not (self.around(self._exchanges.key(entry)) and self.names(entry)):
            return False
        row = RowText(entry.encoded()) if self.texts else None
        return row is None or all(_has_text(row, word) != word.negated for word in self.texts)

    def look(self, entry: Entry, found: set[int]) -> None:
        """Add to `found` the words about entries and texts that fit this entry."""
        found.update(place for place, ask in enumerate(self.asks) if place not in found and ask.finds((entry,)))
        texts = [pair for pair in enumerate(self.texts, len(self.asks)) if pair[0] not in found]
        if texts:
            row = RowText(entry.encoded())
            found.update(place for place, word in texts if _has_text(row, word))

    def passes_exchange(self, key: int, found: Collection[int]) -> bool:
        """Whether an exchange passes, with the words `found` by `look` in its entries."""
        asked = all(ask.met(place in found) for place, ask in enumerate(self.asks))
        texts = enumerate(self.texts, len(self.asks))
        return asked and all((place in found) != word.negated for place, word in texts) and self.around(key)


def _has_text(row: RowText, word: Word) -> bool:
    return any(map(row.has, word.values))


def _having(values: _Values, matches: Callable[[str], bool]) -> Callable[[Entry], bool]:
    return lambda entry: any(map(matches, values(entry)))


def _values_in(exchanges: LoggedExchanges) -> Mapping[Key, _Values]:
    """For each key, the function that gives an entry's values."""
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

"""A filter line for readers of a growing log: each entry is judged when it is read.

Its exchange may go on, so the entries up to the newest read one decide: a call passes `outcome:cancelled` only after
its cancellation. The search looks back and judges exchanges in their present state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol

from ...log.event_filter import EventFilter
from ...log.event_log import Entry, EventLog
from ..fold import Views
from .conditions import Conditions
from .exchanges import LoggedExchanges
from .passing import PassingRows
from .words import Word


class Follows(Protocol):
    """The follower of a log, with its views."""

    @property
    def views(self) -> Views:
        """The views of all entries of the log."""

    async def reach(self, seq: int) -> None:
        """Take the entries up to this existing one; others run meanwhile."""


# Different lines of readers at a time.
_LINES: Final = 64


class FollowedExchanges:
    """The exchanges of a log, as far as `observer` has read it."""

    def __init__(self, log: EventLog, observer: Follows) -> None:
        exchanges = LoggedExchanges(lambda: observer.views, log.entry)
        self._observer = observer
        self._conditions = lru_cache(maxsize=_LINES)(lambda words: Conditions(words, exchanges))
        self._rows = lru_cache(maxsize=_LINES)(lambda words: PassingRows(self._conditions(words), log.entry))

    async def reach(self, seq: int) -> None:
        """Have the log read up to this existing entry; others run meanwhile."""
        await self._observer.reach(seq)

    def passes(self, words: tuple[Word, ...], entry: Entry) -> bool:
        """Whether an entry passes a line. The log must have been read up to it."""
        return self._conditions(words).passes_entry(entry)

    def passes_row(self, words: tuple[Word, ...], key: int, seqs: Sequence[int]) -> bool:
        """Whether an exchange passes a line, as far as it has come; `seqs` are the numbers of its entries, in order."""
        return self._rows(words).passes(key, seqs)


@dataclass(frozen=True, slots=True)
class LineMarks:
    """Marks entries and exchanges that pass the `words` of a line. `exchanges` must have read the log."""

    words: tuple[Word, ...]
    exchanges: FollowedExchanges = field(compare=False, repr=False)

    def entry(self, entry: Entry) -> bool:
        """Whether an entry passes."""
        return self.exchanges.passes(self.words, entry)

    def exchange(self, key: int, seqs: Sequence[int]) -> bool:
        """Whether an exchange with these entries passes."""
        return self.exchanges.passes_row(self.words, key, seqs)


@dataclass(frozen=True, slots=True)
class LineFilter:
    """Passes entries that pass `events` and the `words` of a line. `exchanges` must have read the log."""

    events: EventFilter
    words: tuple[Word, ...]
    exchanges: FollowedExchanges = field(compare=False, repr=False)

    @property
    def passes_all(self) -> bool:
        """Whether every entry passes."""
        return self.events.passes_all and not self.words

    @property
    def text(self) -> str | None:
        """See `EventFilter.text`."""
        return self.events.text

    def fits(self, entry: Entry) -> bool:
        """Whether an entry fits all conditions except `text`."""
        return self.events.fits(entry) and (not self.words or self.exchanges.passes(self.words, entry))

    def concerns(self, entry: Entry) -> bool:
        """See `EventFilter.concerns`."""
        return self.events.concerns(entry)

    def finds(self, row: bytes) -> bool:
        """See `EventFilter.finds`."""
        return self.events.finds(row)

    async def reach(self, seq: int) -> None:
        """Have the log read up to this entry, where that is needed; others run meanwhile."""
        if self.words:
            await self.exchanges.reach(seq)

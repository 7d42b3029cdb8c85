"""A filter line for those who read a log while it grows: each entry is judged when it is read.

Its exchange may go on, so of it counts what the log says up to the entry that was read last: a call that is cancelled
later does not pass `outcome:cancelled` before that. The search, which looks back, judges exchanges as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ...log.event_filter import EventFilter
from ...log.event_log import Entry, EventLog
from ...log.follower import LogFollower
from .conditions import Conditions
from .exchanges import ExchangeFold, LoggedExchange
from .passing import PassingRows
from .words import Word

# As many as a log has by default where each has one entry; some twenty megabytes. Of an older one that goes on, only
# what comes then is known.
_MOST: Final = 20_000
# Readers at a time with lines of their own.
_LINES: Final = 64


class FollowedExchanges:
    """The newest exchanges of a log, as far as `reach` was asked to read it; before the first time nothing is done.

    `names` gives the names that clients have given themselves so far, by their labels.
    """

    def __init__(self, log: EventLog, names: Callable[[], Mapping[str, str]]) -> None:
        self._log = log
        self._names = names
        self._fold = ExchangeFold(log.entry, {}, _MOST)
        self._follower = LogFollower(log, self._take, self._missed)
        self._conditions = lru_cache(maxsize=_LINES)(lambda words: Conditions(words, self._fold))
        self._rows = lru_cache(maxsize=_LINES)(lambda words: PassingRows(self._conditions(words), log.entry))
        self._begun = False

    async def reach(self, seq: int) -> None:
        """Read the log up to this entry, which is there; others run meanwhile."""
        if not self._begun:
            self._begun = True
            self._fold.learn(self._names())
        await self._follower.reach(seq)

    def passes(self, words: tuple[Word, ...], entry: Entry) -> bool:
        """Whether an entry passes a line. The log must have been read up to it."""
        exchange = self._fold.exchanges.get(self._fold.key(entry)) or LoggedExchange()
        return self._conditions(words).passes_entry(entry, exchange)

    def passes_row(self, words: tuple[Word, ...], key: int, seqs: Sequence[int]) -> bool:
        """Whether an exchange passes a line, as far as it has come; `seqs` are the numbers of its entries, in order."""
        return self._rows(words).passes(key, self._fold.exchanges.get(key) or LoggedExchange(), seqs)

    def _take(self, entry: Entry) -> None:
        self._fold.add(entry)

    def _missed(self, first: int, last: int) -> None:
        # Clients that came meanwhile have told their names in entries that are gone.
        self._fold.learn(self._names())


@dataclass(frozen=True, slots=True)
class LineMarks:
    """Marks what passes the `words` of a line, as far as `exchanges` have read the log, and leaves nothing out."""

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
    """Passes entries that pass both `events` and the `words` of a line, as far as `exchanges` have read the log."""

    events: EventFilter
    words: tuple[Word, ...]
    exchanges: FollowedExchanges = field(compare=False, repr=False)

    @property
    def passes_all(self) -> bool:
        """Whether nothing is left out."""
        return self.events.passes_all and not self.words

    @property
    def text(self) -> str | None:
        """See `EventFilter.text`."""
        return self.events.text

    def fits(self, entry: Entry) -> bool:
        """Whether all that is asked fits but `text`."""
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

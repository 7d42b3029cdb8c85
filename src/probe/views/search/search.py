"""The search of the whole log for what a filter line asks for: how much of it passes, and the newest of that.

`exchanges.py` says what an exchange is, `conditions.py` when one passes, and when an entry does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ...log.event_filter import RowText
from ...log.event_log import Entry, EventLog
from .conditions import Ask, Conditions
from .exchanges import ExchangeFold, LoggedExchange
from .words import Word

By: TypeAlias = Literal["exchange", "entry"]

# Entries that are looked at in one piece, and what each costs: as much as to encode so many bytes.
_PIECE: Final = 200
_COST: Final = 320


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`matched` of `total` exchanges or entries pass.

    `parts` are the newest of them, newest first: the entries of an exchange, or one entry each. `next` is the entry
    before which the rest of them begin, None where there are none.
    """

    matched: int
    total: int
    parts: Sequence[Sequence[Entry]]
    next: int | None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search for exchanges or entries that began before an entry, and for so many entries at most.

    One exchange is whole, however many it has.
    """

    words: Sequence[Word]
    by: By
    before: int
    limit: int


class Search:
    """One search. `names` are the names that clients give themselves, by their labels.

    `done` hears of each small piece of work how many bytes it was about, and lets others run when that was enough.
    """

    def __init__(
        self, log: EventLog, names: Mapping[str, str], wanted: SearchRequest, done: Callable[[int], Awaitable[None]]
    ) -> None:
        self._log = log
        self._wanted = wanted
        self._done = done
        self._fold = ExchangeFold(log.entry, names)
        self._conditions = Conditions(wanted.words, self._fold)

    async def run(self) -> SearchResult:
        """Look at all of the log as it stands; others run in between."""
        at, last = 0, self._log.last
        while at < last:
            page = self._log.since(at, min(_PIECE, last - at))
            for entry in page.entries:
                self._fold.add(entry).entries.append(entry)
            at = max(page.next, at + 1)
            await self._done(_PIECE * _COST)
        exchanges = self._fold.exchanges.values()
        if self._wanted.by == "exchange":
            return await self._by_exchange([each for each in exchanges if each.on_wire])
        return await self._by_entry(list(exchanges))

    async def _by_exchange(self, exchanges: Sequence[LoggedExchange]) -> SearchResult:
        passing = [each for each in exchanges if await self._passes(each)]
        older = [each.entries for each in passing if each.entries[0].seq < self._wanted.before]
        taken: list[Sequence[Entry]] = []
        size = 0
        for entries in reversed(older):
            size += len(entries)
            if taken and size > self._wanted.limit:
                break
            taken.append(entries)
        next = taken[-1][0].seq if len(taken) < len(older) else None
        return SearchResult(len(passing), len(exchanges), taken, next)

    async def _passes(self, exchange: LoggedExchange) -> bool:
        """Whether an exchange passes; a large one is looked at in pieces."""
        if not self._conditions.around(exchange):
            return False
        for ask in self._conditions.asks:
            if not ask.met(await self._finds(ask, exchange.entries)):
                return False
        # The texts come last: they are looked for in the encoded entry.
        return not self._conditions.texts or await self._has_texts(exchange.entries)

    async def _finds(self, ask: Ask, entries: Sequence[Entry]) -> bool:
        for start in range(0, len(entries), _PIECE):
            piece = entries[start : start + _PIECE]
            found = ask.finds(piece)
            await self._done(len(piece) * _COST)
            if found:
                return True
        return False

    async def _has_texts(self, entries: Sequence[Entry]) -> bool:
        """Whether the entries of an exchange have each text that is asked for, and none that is not wanted."""
        missing = list(self._conditions.texts)
        for entry in entries:
            for word in await self._found(entry, missing):
                if word.negated:
                    return False
                missing.remove(word)
            if not missing:
                return True
        return all(word.negated for word in missing)

    async def _found(self, entry: Entry, texts: Sequence[Word]) -> list[Word]:
        """The words about texts of which an entry has one."""
        encoded = entry.encoded()
        row, found = RowText(encoded), list[Word]()
        for word in texts:
            for value in word.values:
                has = row.has(value)
                await self._done(len(encoded))
                if has:
                    found.append(word)
                    break
        return found

    async def _by_entry(self, exchanges: Sequence[LoggedExchange]) -> SearchResult:
        passing: list[Entry] = []
        total = 0
        for exchange in exchanges:
            total += len(exchange.entries)
            if self._conditions.around(exchange):
                passing += await self._of(exchange.entries)
        older = sorted((entry for entry in passing if entry.seq < self._wanted.before), key=lambda entry: -entry.seq)
        taken = older[: self._wanted.limit]
        next = taken[-1].seq if taken and len(taken) < len(older) else None
        return SearchResult(len(passing), total, [[entry] for entry in taken], next)

    async def _of(self, entries: Sequence[Entry]) -> list[Entry]:
        """The entries of an exchange that pass, where the exchange has what is asked of it."""
        passing: list[Entry] = []
        for start in range(0, len(entries), _PIECE):
            piece = entries[start : start + _PIECE]
            passing += filter(self._conditions.names, piece)
            await self._done(len(piece) * _COST)
        texts = self._conditions.texts
        if not texts:
            return passing
        wanted = {id(word) for word in texts if not word.negated}
        return [entry for entry in passing if {id(word) for word in await self._found(entry, texts)} == wanted]

"""The search of the whole log with a filter line: how many exchanges or entries pass, and the newest of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ...log.event_log import Entry, EventLog
from ...log.query import RowText
from ..fold import Views
from ..meaning import is_on_wire
from .conditions import Conditions, LoggedExchanges, WordTest
from .words import Word

By: TypeAlias = Literal["exchange", "entry"]

# Entries looked at in one piece, and the cost of each: as much as to encode this many bytes.
_PIECE: Final = 200
_COST: Final = 320


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`matched` of `total` exchanges or entries pass.

    `parts` are the newest of them, newest first: the entries of an exchange, or one entry each. The rest of them are
    before the entry `next`, None without a rest.
    """

    matched: int
    total: int
    parts: Sequence[Sequence[Entry]]
    next: int | None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search for exchanges or entries begun before an entry, with a limit of entries in the result.

    The first exchange is whole, even beyond the limit.
    """

    words: Sequence[Word]
    by: By
    before: int
    limit: int


@dataclass(slots=True)
class _Found:
    """An exchange with its entries; `on_wire` if one of them is on the wire."""

    key: int
    entries: list[Entry] = field(default_factory=list)
    on_wire: bool = False


class Search:
    """One search. `views` returns the views of the log.

    `done` is called after each small piece of work with its bytes, and lets others run when a turn is used up.
    """

    def __init__(
        self,
        log: EventLog,
        views: Callable[[], Views],
        wanted: SearchRequest,
        done: Callable[[int], Awaitable[None]],
    ) -> None:
        self._log = log
        self._wanted = wanted
        self._done = done
        self._exchanges = LoggedExchanges(views, log.entry)
        self._conditions = Conditions(wanted.words, self._exchanges)

    async def run(self) -> SearchResult:
        at, last = 0, self._log.last
        found: dict[int, _Found] = {}
        while at < last:
            page = self._log.since(at, min(_PIECE, last - at))
            for entry in page.entries:
                self._add(found, entry)
            at = max(page.next, at + 1)
            await self._done(_PIECE * _COST)
        if self._wanted.by == "exchange":
            return await self._by_exchange([each for each in found.values() if each.on_wire])
        return await self._by_entry(list(found.values()))

    def _add(self, found: dict[int, _Found], entry: Entry) -> None:
        key = self._exchanges.key(entry)
        exchange = found.get(key)
        if exchange is None:
            exchange = found[key] = _Found(key)
        exchange.entries.append(entry)
        exchange.on_wire = exchange.on_wire or is_on_wire(entry.fact)

    async def _by_exchange(self, exchanges: Sequence[_Found]) -> SearchResult:
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

    async def _passes(self, exchange: _Found) -> bool:
        """A large exchange is looked at in pieces."""
        if not self._conditions.around(exchange.key):
            return False
        for ask in self._conditions.asks:
            if not ask.met(await self._finds(ask, exchange.entries)):
                return False
        # Texts come last: an entry must be encoded for them.
        return not self._conditions.texts or await self._has_texts(exchange.entries)

    async def _finds(self, ask: WordTest, entries: Sequence[Entry]) -> bool:
        for start in range(0, len(entries), _PIECE):
            piece = entries[start : start + _PIECE]
            found = ask.finds(piece)
            await self._done(len(piece) * _COST)
            if found:
                return True
        return False

    async def _has_texts(self, entries: Sequence[Entry]) -> bool:
        """True if the entries have each wanted text, and no negated one."""
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
        """The words about texts found in an entry."""
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

    async def _by_entry(self, exchanges: Sequence[_Found]) -> SearchResult:
        passing: list[Entry] = []
        total = 0
        for exchange in exchanges:
            total += len(exchange.entries)
            if self._conditions.around(exchange.key):
                passing += await self._of(exchange.entries)
        older = sorted((entry for entry in passing if entry.seq < self._wanted.before), key=lambda entry: -entry.seq)
        taken = older[: self._wanted.limit]
        next = taken[-1].seq if taken and len(taken) < len(older) else None
        return SearchResult(len(passing), total, [[entry] for entry in taken], next)

    async def _of(self, entries: Sequence[Entry]) -> list[Entry]:
        """The passing entries of an exchange."""
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

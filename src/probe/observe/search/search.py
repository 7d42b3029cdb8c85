"""The search of the whole log for what a filter line asks for: how much of it passes, and the newest of that.

An **exchange** is an HTTP request with its messages and its answer, a message on a pipe with what answers it, or one
message that belongs to neither. It passes where, for each word, one of its entries has what the word asks for, and for
each negated word none has; of kinds that are not wanted it needs an entry on the wire that is none of them.

An **entry** passes where its exchange has the client, the tool, the outcome and the status that are asked for, and it
has all else itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from .. import events
from ..event_filter import RowText, direction_of
from ..log import Entry, EventLog
from ..tables.problems import problem_of
from .words import Key, Word, matcher

By: TypeAlias = Literal["exchange", "entry"]

_OF_EXCHANGE: Final = frozenset[Key]({"client", "tool", "outcome", "status"})
_WIRE: Final = (
    "http",
    "message",
    "request",
    "host.message",
    "host.misuse",
    "connection",
    "client.misuse",
    "limit",
    "stream.lost",
    "socket.refused",
)
_MESSAGES: Final = (events.MessageReceived, events.MessageEmitted, events.MessageDropped, events.HostMessage)
_ANSWERS: Final = ("response", "error")
# Entries that are added to their exchanges in one piece, and what that costs: as much as to encode so many bytes.
_PIECE: Final = 200
_PIECE_COST: Final = 64 * 1024


def is_on_wire(event: events.Event) -> bool:
    """Whether an entry tells of something on the wire, or of what went wrong there."""
    if isinstance(event, events.WebSocketFrame):
        return event.refused is not None
    return event.kind.startswith(_WIRE) and not isinstance(event, events.MessagesDelivered)


@dataclass(slots=True)
class _SearchedExchange:
    """One exchange: its entries, and what they say of all of it."""

    entries: list[Entry] = field(default_factory=list)
    on_wire: bool = False
    clients: set[str] = field(default_factory=set)
    tools: set[str] = field(default_factory=set)
    outcomes: set[str] = field(default_factory=set)
    statuses: set[str] = field(default_factory=set)
    begun: bool = False

    def named(self, key: Key) -> Iterator[str]:
        """The values that a word of this key is compared with."""
        if key == "client":
            return iter(self.clients)
        if key == "tool":
            return iter(self.tools)
        if key == "status":
            return iter(self.statuses)
        return iter(self.outcomes or ({"running"} if self.begun else ()))


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
        self._names = names
        self._wanted = wanted
        self._done = done
        self._of_exchange = [(word, matcher(word)) for word in wanted.words if word.key in _OF_EXCHANGE]
        self._of_entry = [(word, matcher(word)) for word in wanted.words if word.key not in _OF_EXCHANGE]
        # The cheap ones first: a text has to be looked for in the encoded entry.
        self._of_entry.sort(key=lambda pair: pair[0].key == "text")

    async def run(self) -> SearchResult:
        """Look at all of the log as it stands; others run in between."""
        exchanges = await self._exchanges()
        if self._wanted.by == "exchange":
            return await self._by_exchange([each for each in exchanges if each.on_wire])
        return await self._by_entry(exchanges)

    async def _exchanges(self) -> list[_SearchedExchange]:
        found: dict[int, _SearchedExchange] = {}
        at, last = 0, self._log.last
        while at < last:
            page = self._log.since(at, min(_PIECE, last - at))
            for entry in page.entries:
                self._add(found, entry)
            at = max(page.next, at + 1)
            await self._done(_PIECE_COST)
        return list(found.values())

    def _add(self, found: dict[int, _SearchedExchange], entry: Entry) -> None:
        context, fact = entry.context, entry.fact
        key = context.exchange if context.exchange is not None else -self._asked(entry)
        exchange = found.get(key)
        if exchange is None:
            exchange = found[key] = _SearchedExchange()
        exchange.entries.append(entry)
        exchange.on_wire = exchange.on_wire or is_on_wire(fact)
        if context.session is not None:
            exchange.clients |= {context.session, self._names.get(context.session, context.session)}
        if context.label is not None:
            exchange.clients.add(context.label)
        if isinstance(fact, events.CallStarted):
            exchange.begun = True
            if fact.tool is not None:
                exchange.tools.add(fact.tool)
        elif isinstance(fact, events.CallSettled):
            exchange.outcomes.add(fact.outcome)
        elif isinstance(fact, events.HttpResponse):
            exchange.statuses.add(str(fact.status))

    def _asked(self, entry: Entry) -> int:
        """The message that an entry without an exchange answers, else the entry itself."""
        asked = self._question(entry)
        return entry.seq if asked is None else asked.seq

    def _question(self, entry: Entry) -> Entry | None:
        """The request that an entry answers, where the log has it."""
        if entry.cause is None or not isinstance(entry.fact, _MESSAGES) or entry.fact.rpc not in _ANSWERS:
            return None
        asked = self._log.entry(entry.cause)
        return asked if asked is not None and isinstance(asked.fact, _MESSAGES) else None

    def _fits_outside(self, exchange: _SearchedExchange) -> bool:
        return all(any(map(matches, exchange.named(word.key))) != word.negated for word, matches in self._of_exchange)

    async def _has(self, entry: Entry, word: Word, matches: Callable[[str], bool]) -> bool:
        if word.key != "text":
            await self._done(0)
            return any(matches(value) for value in self._named(entry, word))
        encoded = entry.encoded()
        row = RowText(encoded)
        for value in word.values:
            found = row.has(value)
            await self._done(len(encoded))
            if found:
                return True
        return False

    def _named(self, entry: Entry, word: Word) -> tuple[str, ...]:
        """The values of an entry for a key."""
        fact, context = entry.fact, entry.context
        if word.key == "kind":
            return (fact.kind,)
        if word.key == "method":
            return _some(self._method(entry))
        if word.key == "direction":
            return _some(direction_of(fact))
        if word.key == "problem":
            problem = problem_of(fact)
            return () if problem is None else (problem, "any")
        if word.key == "stream":
            return () if context.stream is None else (context.stream, f"{context.session}/{context.stream}")
        value = getattr(context, word.key)
        return () if value is None else (str(value),)

    def _method(self, entry: Entry) -> str | None:
        """The method of a message, of an answer that of its request, and of a call."""
        if isinstance(entry.fact, events.CallStarted):
            return entry.fact.method
        told = self._question(entry) or entry
        return told.fact.method if isinstance(told.fact, _MESSAGES) else None

    async def _fits_inside(self, exchange: _SearchedExchange) -> bool:
        """Whether the entries of an exchange have between them what is asked for, and nothing that is not wanted."""
        entries = exchange.entries
        for word, matches in self._of_entry:
            if word.key == "kind" and word.negated:
                if not await self._has_other(exchange, word, matches):
                    return False
                continue
            has = False
            for entry in entries:
                has = await self._has(entry, word, matches)
                if has:
                    break
            if has == word.negated:
                return False
        return True

    async def _has_other(self, exchange: _SearchedExchange, word: Word, matches: Callable[[str], bool]) -> bool:
        """Whether an entry on the wire has none of the values."""
        for entry in exchange.entries:
            if is_on_wire(entry.fact) and not await self._has(entry, word, matches):
                return True
        return False

    async def _by_exchange(self, exchanges: Sequence[_SearchedExchange]) -> SearchResult:
        passing: list[_SearchedExchange] = []
        for exchange in exchanges:
            if self._fits_outside(exchange) and await self._fits_inside(exchange):
                passing.append(exchange)
            await self._done(0)
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

    async def _by_entry(self, exchanges: Sequence[_SearchedExchange]) -> SearchResult:
        passing: list[Entry] = []
        total = 0
        for exchange in exchanges:
            total += len(exchange.entries)
            if self._fits_outside(exchange):
                passing += [entry for entry in exchange.entries if await self._passes(entry)]
            await self._done(0)
        older = sorted((entry for entry in passing if entry.seq < self._wanted.before), key=lambda entry: -entry.seq)
        taken = older[: self._wanted.limit]
        next = taken[-1].seq if taken and len(taken) < len(older) else None
        return SearchResult(len(passing), total, [[entry] for entry in taken], next)

    async def _passes(self, entry: Entry) -> bool:
        for word, matches in self._of_entry:
            if await self._has(entry, word, matches) == word.negated:
                return False
        return True


def _some(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)

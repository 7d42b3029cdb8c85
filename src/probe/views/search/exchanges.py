"""The exchanges of a log, put together from its entries as they come.

An **exchange** is an HTTP request with its messages and its answer, a message on a pipe with what answers it, or one
message that belongs to neither.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ...log import events
from ...log.bounded import Newest
from ...log.event_log import Entry
from ..tables.groups import is_on_wire
from .words import Key

_MESSAGES: Final = (events.MessageReceived, events.MessageEmitted, events.MessageDropped, events.HostMessage)
_ANSWERS: Final = ("response", "error")


@dataclass(slots=True)
class LoggedExchange:
    """One exchange: what its entries say of all of it, and the `entries` that somebody has kept for it."""

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


class ExchangeFold:
    """Takes the entries of a log in their order, and keeps the newest exchanges: at most `most`, or all.

    `entry_of` finds an entry by its number, None where the log has it no more. `names` are the names that clients give
    themselves, by their labels; those that the entries tell are learned.
    """

    def __init__(
        self, entry_of: Callable[[int], Entry | None], names: Mapping[str, str], most: int = sys.maxsize
    ) -> None:
        self.exchanges: Newest[int, LoggedExchange] = Newest(most)
        self._entry_of = entry_of
        self._names: Newest[str, str] = Newest(most)
        self.learn(names)

    def learn(self, names: Mapping[str, str]) -> None:
        """More names that clients give themselves, by their labels."""
        for label, name in names.items():
            self._names.store(label, name)

    def add(self, entry: Entry) -> LoggedExchange:
        """Take one entry; returns its exchange. Of its entries the exchange keeps none by itself."""
        context, fact = entry.context, entry.fact
        key = self.key(entry)
        exchange = self.exchanges.get(key)
        if exchange is None:
            exchange = LoggedExchange()
            self.exchanges.store(key, exchange)
        exchange.on_wire = exchange.on_wire or is_on_wire(fact)
        if isinstance(fact, (events.SessionOpened, events.ClientSeen)) and context.session is not None:
            self._names.store(context.session, fact.client_name or context.session)
        if context.session is not None and context.session not in exchange.clients:
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
        return exchange

    def key(self, entry: Entry) -> int:
        """The exchange of an entry: its number, else below 0 the message that it answers, or the entry itself."""
        if entry.context.exchange is not None:
            return entry.context.exchange
        asked = self.question(entry)
        return -(entry.seq if asked is None else asked.seq)

    def question(self, entry: Entry) -> Entry | None:
        """The request that an entry answers, where the log has it."""
        if entry.cause is None or not isinstance(entry.fact, _MESSAGES) or entry.fact.rpc not in _ANSWERS:
            return None
        asked = self._entry_of(entry.cause)
        return asked if asked is not None and isinstance(asked.fact, _MESSAGES) else None

    def method(self, entry: Entry) -> str | None:
        """The method of a message, of an answer that of its request, and of a call."""
        if isinstance(entry.fact, events.CallStarted):
            return entry.fact.method
        told = self.question(entry) or entry
        return told.fact.method if isinstance(told.fact, _MESSAGES) else None

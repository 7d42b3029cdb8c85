"""What a filter line asks of exchanges, answered by the views of their log.

An **exchange** is an HTTP request with its messages and its answer, a message on a pipe with what answers it, or one
message that belongs to neither, with its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ...log import events
from ...log.event_log import Entry
from ..call_row import ANSWERS
from ..fold import Views
from ..values import Exchange
from ..work import Call
from .words import Key

_MESSAGES: Final = (events.MessageReceived, events.MessageEmitted, events.MessageDropped, events.HostMessage)


class LoggedExchanges:
    """The exchanges of one log by their keys, as far as its `views` have come.

    `entry_of` finds an entry by its number, None where the log has it no more.
    """

    def __init__(self, views: Callable[[], Views], entry_of: Callable[[int], Entry | None]) -> None:
        self._views = views
        self._entry_of = entry_of

    def key(self, entry: Entry) -> int:
        """The exchange of an entry: its number, else below 0 the message that it answers, or the entry itself."""
        if entry.context.exchange is not None:
            return entry.context.exchange
        asked = self.question(entry)
        return -(entry.seq if asked is None else asked.seq)

    def question(self, entry: Entry) -> Entry | None:
        """The request that an entry answers, where the log has it."""
        if entry.cause is None or not isinstance(entry.fact, _MESSAGES) or entry.fact.rpc not in ANSWERS:
            return None
        asked = self._entry_of(entry.cause)
        return asked if asked is not None and isinstance(asked.fact, _MESSAGES) else None

    def method(self, entry: Entry) -> str | None:
        """The method of a message, of an answer that of its request, and of a call."""
        if isinstance(entry.fact, events.CallStarted):
            return entry.fact.method
        said = self.question(entry) or entry
        return said.fact.method if isinstance(said.fact, _MESSAGES) else None

    def named(self, key: int, word: Key) -> Iterator[str]:
        """The values of an exchange that a word of this key is compared with."""
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
        """The values of an entry without an exchange."""
        entry = self._entry_of(seq) if word == "client" else None
        if entry is None:
            return
        session = entry.context.session
        yield from self._names(() if session is None else (session,), entry.context.label)

    def _names(self, labels: Iterable[str], given: str | None) -> Iterator[str]:
        """The labels of sessions, the names that their clients give themselves, and the one that was given."""
        for label in labels:
            yield label
            session = self._views().sessions.get(label)
            if session is not None and session.client_name:
                yield session.client_name
        if given is not None:
            yield given


def _calls(exchange: Exchange) -> Iterator[Call]:
    """The calls that began in an exchange."""
    for message in exchange.messages:
        if message.received and message.call is not None:
            yield message.call
    yield from (call for call in exchange.calls.values() if call.exchange is exchange)


def _outcomes(exchange: Exchange) -> Iterator[str]:
    calls = [*_calls(exchange)]
    ended = [str(getattr(call.ended.fact, "outcome", "")) for call in calls if call.ended is not None]
    yield from ended or ("running",) * bool(calls)

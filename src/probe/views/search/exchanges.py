"""The values of exchanges for a filter line, from the views of their log.

An **exchange** is an HTTP request with its messages and its answer, a message on a pipe with its answer, or another
message with its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ...log.event_log import Entry
from ..fold import Views
from ..naming import EntryOf, exchange_key, method
from ..values import Exchange
from ..work import Call
from .words import Key


class LoggedExchanges:
    """The exchanges of one log by their keys, as far as its `views` have come.

    `entry_of` finds an entry by its number, None where the log does not have it.
    """

    def __init__(self, views: Callable[[], Views], entry_of: EntryOf) -> None:
        self._views = views
        self._entry_of = entry_of

    def key(self, entry: Entry) -> int:
        """The key of an entry's exchange: `naming.exchange_key`."""
        return exchange_key(entry, self._entry_of)

    def method(self, entry: Entry) -> str | None:
        """The method of an entry: `naming.method`."""
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
        """The labels of sessions, their clients' own names, and the given name."""
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

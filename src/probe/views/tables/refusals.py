"""The table of refusals: errors that the server answered because of what the client sent.

An error counts by its JSON-RPC code (`CLIENT_CODES`). Some errors have such a code and another cause: HTTP statuses
tell of limits, and `tasks/result` of a failed task gives the error of its tool. The status of an HTTP response is
recorded after the error in its body, so an error waits for the head of its response where that has not been sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic_core import from_json

from ...log import events
from ...log.bounded import Newest
from ...log.event_log import Entry
from ...wire.errors import CLIENT_CODES, Refusal
from ...wire.jsonrpc import RequestId, clip
from .rows import RefusalRow
from .table import Table

# Statuses of refusals whose cause is a setting of this server, under codes that say otherwise.
_LIMITS: Final = frozenset(
    refusal.status for refusal in (Refusal.REQUEST_TIMEOUT, Refusal.BODY_TOO_LARGE, Refusal.EVENTS_GONE)
)
# Requests that have no answer yet, and exchanges whose response has no head yet. The oldest is forgotten.
_MOST_WAITING: Final = 20_000
# A line of a page can show so much of an error's message.
_LONGEST: Final = 300


class RefusalRows:
    """Fed with the entries of the log that `takers` has a place for.

    `has_failed` tells whether a task has the status `failed`. `count` is called once for each refusal.
    """

    def __init__(self, has_failed: Callable[[RequestId | None], bool], count: Callable[[RefusalRow], None]) -> None:
        self.table: Table[RefusalRow] = Table()
        self._has_failed = has_failed
        self._count = count
        # The method of a request, and the task that it names, by its entry.
        self._asked: Newest[int, tuple[str | None, RequestId | None]] = Newest(_MOST_WAITING)
        # Refusals of HTTP exchanges whose response has no head yet.
        self._waiting: Newest[int, list[RefusalRow]] = Newest(_MOST_WAITING)
        self.takers: Mapping[type, Callable[[Entry, Any], None]] = {
            events.HttpRequest: self._requested,
            events.MessageReceived: self._received,
            events.MessageEmitted: self._emitted,
            events.HttpResponse: self._responded,
            events.HttpClosed: self._closed,
        }

    def _requested(self, entry: Entry, fact: events.HttpRequest) -> None:
        self._waiting.store(entry.context.exchange or 0, [])

    def _received(self, entry: Entry, fact: events.MessageReceived) -> None:
        if fact.rpc == "request":
            self._asked.store(entry.seq, (fact.method, fact.about))

    def _emitted(self, entry: Entry, fact: events.MessageEmitted) -> None:
        row = self._refusal(entry, fact) if fact.rpc == "error" else None
        if row is None:
            return
        waiting = None if entry.context.exchange is None else self._waiting.get(entry.context.exchange)
        if waiting is None:
            self._add(row)
        else:
            waiting.append(row)

    def _refusal(self, entry: Entry, fact: events.MessageEmitted) -> RefusalRow | None:
        error = from_json(fact.message)["error"]
        method, about = self._asked.pop(entry.cause or 0, (None, None))
        if error["code"] not in CLIENT_CODES:
            return None
        if method == "tasks/result" and self._has_failed(about):
            return None
        message = clip(error["message"], _LONGEST)
        return RefusalRow(
            str(entry.seq),
            entry.at,
            entry.context.session,
            entry.context.exchange,
            method,
            None,
            error["code"],
            message,
        )

    def _responded(self, entry: Entry, fact: events.HttpResponse) -> None:
        if fact.status not in _LIMITS:
            self._settle(entry.context.exchange or 0, fact.status)
        self._waiting.pop(entry.context.exchange or 0, None)

    def _closed(self, entry: Entry, fact: events.HttpClosed) -> None:
        """The client has gone before its response."""
        self._settle(entry.context.exchange or 0, None)

    def _settle(self, exchange: int, status: int | None) -> None:
        for row in self._waiting.pop(exchange, []):
            self._add(replace(row, status=status))

    def _add(self, row: RefusalRow) -> None:
        self.table.add(row.id, row)
        self._count(row)

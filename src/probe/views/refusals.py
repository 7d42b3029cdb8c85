"""Refusals: errors in answer to wrong requests of a client.

An error counts by its JSON-RPC code (`CLIENT_CODES`). Two errors with such a code have another cause and do not
count: one under the HTTP status of a limit, such as 429, and the tool's own error from `tasks/result` of a failed task.
The log has the status of an HTTP response after the error in its body, so an error waits for the head of its response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic_core import from_json

from ..log import events
from ..log.bounded import Newest
from ..log.event_log import Entry
from ..wire.errors import CLIENT_CODES, Refusal
from ..wire.jsonrpc import clip
from .clients import Acts
from .contents import members
from .retention import Retention
from .tables.rows import RefusalRow
from .values import Exchange, Message
from .work import Task

# Statuses of refusals caused by a setting of this server; their codes name another cause.
_LIMITS: Final = frozenset(
    refusal.status for refusal in (Refusal.REQUEST_TIMEOUT, Refusal.BODY_TOO_LARGE, Refusal.EVENTS_GONE)
)
# Characters of an error's message that a line of a page shows.
_LONGEST: Final = 300


class Refusals:
    """The newest refusals: `rows` by id, each with the number of the entry that completed it.

    `blamed` finds the counts of the client of a session, at a time and with an entry.
    """

    def __init__(
        self,
        retention: Retention,
        tasks: Mapping[str, Task],
        blamed: Callable[[str | None, float, int], Acts],
    ) -> None:
        self._most_waiting = retention.of_exchange
        self._tasks = tasks
        self._blamed = blamed
        self.rows: Newest[str, tuple[RefusalRow, int]] = Newest(retention.rows)

    def made(self, message: Message) -> None:
        """An error was made: count it now, or with the head of its response."""
        row, exchange = self._row(message), message.exchange
        if row is None:
            return
        if exchange is None or exchange.head is None or exchange.response is not None or exchange.closed is not None:
            self._count(row, message.seq)
        elif len(exchange.refusals) < self._most_waiting:
            exchange.refusals = (*exchange.refusals, row)

    def responded(self, entry: Entry, exchange: Exchange) -> None:
        """Count the errors waiting for the response of an exchange, or for its end without one."""
        waiting, exchange.refusals = exchange.refusals, ()
        status = exchange.status
        if status not in _LIMITS:
            for row in waiting:
                self._count(replace(row, status=status), entry.seq)

    def _count(self, row: RefusalRow, seq: int) -> None:
        self.rows.store(row.id, (row, seq))
        self._blamed(row.session, row.at, seq).refused += 1

    def _row(self, message: Message) -> RefusalRow | None:
        error, asked = members(members(from_json(message.raw)).get("error")), message.request
        asked = asked if asked is not None and asked.rpc == "request" and asked.seq == message.entry.cause else None
        code = error.get("code")
        if code not in CLIENT_CODES or (asked is not None and self._gives_failure(asked)):
            return None
        context, text = message.entry.context, clip(str(error.get("message")), _LONGEST)
        method = None if asked is None else asked.method
        return RefusalRow(
            str(message.seq), message.entry.at, context.session, context.exchange, method, None, code, text
        )

    def _gives_failure(self, asked: Message) -> bool:
        """True if a request asks for the result of a task that has failed."""
        fact: Any = asked.fact
        if asked.method != "tasks/result" or not isinstance(fact, events.MessageReceived):
            return False
        task = self._tasks.get(fact.about) if isinstance(fact.about, str) else None
        return task is not None and task.status == "failed" and task.removed is None

"""Follows the event log, so that the tables and the evidence of calls are there when somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from ..observe.evidence import Evidence
from ..observe.log import Entry, EventLog
from ..observe.records import CallRecords
from ..observe.tables import Tables
from ..settings import Limits

# Often enough that nothing is pushed out of the log unread and that to catch up takes a few milliseconds, seldom enough
# to cost nothing beside the calls.
_INTERVAL_S = 0.1
# Entries between two checkpoints: about a millisecond.
_PIECE = 250


class Observer:
    """The observer of one engine's log. `missed` counts entries that were pushed out before it came to them."""

    def __init__(self, log: EventLog, records: CallRecords, limits: Limits) -> None:
        self._log = log
        self._position = 0
        self._followers: list[Callable[[Sequence[str], Entry], None]] = []
        self.missed = 0
        self.evidence = Evidence(limits.call_records)
        self.tables = Tables(records, self.evidence, limits.call_records)

    def follow(self, take: Callable[[Sequence[str], Entry], None]) -> None:
        """From now on, `take` gets the tool calls that an entry belongs to, and the entry."""
        self._followers.append(take)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the log until cancelled."""
        task_status.started()
        while True:
            await self._log.wait_beyond(self._position)
            await self.reach(self._log.last)
            await trio.sleep(_INTERVAL_S)

    async def reach(self, seq: int) -> None:
        """Bring tables and evidence up to this entry, which is there; others run meanwhile."""
        while self._position < seq:
            self._take(_PIECE)
            await trio.lowlevel.checkpoint()

    def catch_up(self) -> None:
        """Bring tables and evidence up to the end of the log, for whoever reads them now."""
        while self._position < self._log.last:
            self._take(_PIECE)

    def _take(self, limit: int) -> None:
        page = self._log.since(self._position, limit)
        if page.gap is not None:
            self.missed += page.gap.last - page.gap.first + 1
        for entry in page.entries:
            calls = self.tables.take(entry)
            if calls:
                for take in self._followers:
                    take(calls, entry)
        self._position = page.next

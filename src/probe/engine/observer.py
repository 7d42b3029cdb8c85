"""Follows the event log, so that the tables and the evidence of calls are there when somebody looks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, Protocol

import trio

from ..observe.evidence import Evidence
from ..observe.log import Entry, EventLog
from ..observe.records import CallRecords
from ..observe.tables import Tables
from ..settings import Limits

logger = logging.getLogger(__name__)

# Often enough that nothing is pushed out of the log unread and that to catch up takes a few milliseconds, seldom enough
# to cost nothing beside the calls.
_INTERVAL_S: Final = 0.1
# Entries between two checkpoints, and the bytes of their messages: about a millisecond.
_PIECE: Final = 250
_PIECE_BYTES: Final = 1024 * 1024
# What a defect in the code behind the observer raises.
_DEFECTS: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Follower(Protocol):
    """Is told of the tool calls that entries belong to."""

    def take(self, calls: Sequence[str], entry: Entry) -> None:
        """An entry, and its calls."""

    def missed(self, first: int, last: int) -> None:
        """Nobody knows what the entries from `first` to `last` belong to."""


class Observer:
    """The observer of one engine's log.

    `missed` counts entries that were pushed out before it came to them, or that it could not take: a defect here is
    logged and costs evidence, as what only watches must not end what it watches.
    """

    def __init__(self, log: EventLog, records: CallRecords, limits: Limits) -> None:
        self._log = log
        self._position = 0
        self._followers: list[Follower] = []
        self.missed = 0
        self.evidence = Evidence(limits.call_records)
        self.tables = Tables(records, self.evidence, limits.call_records)

    def follow(self, follower: Follower) -> None:
        """From now on, the follower is told."""
        self._followers.append(follower)

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
        self.tables.forget_before(self._log.first)
        if page.gap is not None:
            self._miss(page.gap.first, page.gap.last)
        size = 0
        for entry in page.entries:
            # Before it is taken: nobody comes to an entry twice, whatever becomes of it.
            self._position = entry.seq
            try:
                self._pass_on(entry)
            except _DEFECTS:
                logger.exception("the entry %d of the log cannot be taken", entry.seq)
                self._miss(entry.seq, entry.seq)
            size += len(getattr(entry.event, "message", None) or ())
            if size > _PIECE_BYTES:
                return

    def _pass_on(self, entry: Entry) -> None:
        calls = self.tables.take(entry)
        if calls:
            for follower in self._followers:
                follower.take(calls, entry)

    def _miss(self, first: int, last: int) -> None:
        self._position = last
        self.missed += last - first + 1
        self.evidence.missed()
        for follower in self._followers:
            follower.missed(first, last)

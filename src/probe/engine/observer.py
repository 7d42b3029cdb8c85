"""Follows the event log, so that views and tables are ready for readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import trio

from ..core.cycles import cut
from ..log.event_log import Entry, EventLog
from ..log.follower import LogFollower
from ..settings.server import Limits
from ..views.fold import Views
from ..views.retention import Retention
from ..views.tables import Tables
from ..views.work import Call, Calls


class EntryFollower(Protocol):
    """Is given each entry, once the views have taken it."""

    def take(self, calls: Sequence[Call], entry: Entry) -> None: ...

    def missed(self, first: int, last: int) -> None:
        """These entries were lost, and may belong to any call that ran."""
        ...


class Observer:
    """The views and the tables of one engine's log: both first take all entries of the log.

    With `all_with_log` calls, sessions and clients that are over are not kept longer than their entries, either.
    """

    def __init__(self, log: EventLog, run: str, limits: Limits, *, all_with_log: bool = False) -> None:
        self._all_with_log = all_with_log
        self._followers: list[EntryFollower] = []
        self._views = Views(run, Retention(calls=limits.call_records))
        self._tables = Tables(self._views, log)
        self._log = log
        self._log_follower = LogFollower(log, self._take, self._missed, begin=self._forget)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        await self._log_follower.serve(task_status=task_status)

    async def reach(self, seq: int) -> None:
        """Take the entries up to this one, which exists; other tasks run in between."""
        await self._log_follower.reach(seq)

    def catch_up(self) -> None:
        """Take the entries up to the end of the log at once. A follower must not call it."""
        self._log_follower.catch_up()

    @property
    def views(self) -> Views:
        self.catch_up()
        return self._views

    @property
    def records(self) -> Calls:
        return self.views.calls

    def call(self, name: str) -> Call | None:
        return self.views.call(name)

    @property
    def tables(self) -> Tables:
        self.catch_up()
        return self._tables

    @property
    def missed(self) -> int:
        return self._log_follower.missed_entries

    @property
    def has_followers(self) -> bool:
        return bool(self._followers)

    def follow(self, follower: EntryFollower) -> None:
        self._followers.append(follower)

    def let_go(self) -> None:
        """Let go of everything, as nobody uses it any more. Called once, at the end."""
        self._views.let_go()
        cut(self._tables, self)

    def _forget(self) -> None:
        self._views.forget_before(self._log.first, all_over=self._all_with_log)

    def _take(self, entry: Entry) -> None:
        calls = self._views.take(entry)
        for follower in self._followers:
            follower.take(calls, entry)

    def _missed(self, first: int, last: int) -> None:
        self._views.missed()
        for follower in self._followers:
            follower.missed(first, last)

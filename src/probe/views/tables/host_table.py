"""The table of tool hosts: who is connected, what each offers, and what became of the calls that it was sent.

A dispatch takes a place at its host from `dispatch.sent` until it is settled; one that its host was told to stop, until
`dispatch.stopped`, which may come long after the call has its answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...log import events
from ...log.event_log import Entry
from .rows import HostRow
from .table import Table

# Many times the dispatches that may run by default: more stay behind only where entries were missed.
_MOST_FOLLOWED: Final = 10_000
# Outcomes of calls that somebody stopped.
_STOPPED: Final = frozenset({"cancelled", "disconnected"})
_EXPIRED: Final = "timed_out"


@dataclass(slots=True)
class _Followed:
    """A dispatch: the connection that it was sent on, and what is known of its end."""

    connection: str
    told_to_stop: bool = False
    settled: bool = False
    stopped: bool = False
    late: int = 0


class HostRows:
    """Fed with the entries of the log that `takers` has a place for."""

    def __init__(self) -> None:
        # A host that reconnects all the time must not push out one that stays.
        self.table: Table[HostRow] = Table(may_go=lambda row: row.state == "closed")
        # The connection that has a name, or had it last.
        self._named: dict[str, str] = {}
        self._followed: OrderedDict[str, _Followed] = OrderedDict()
        self.takers: Mapping[type, Callable[[Entry, Any], None]] = {
            events.HostConnected: self._connected,
            events.HostRegistered: self._registered,
            events.HostUpdated: self._updated,
            events.HostMessage: self._message,
            events.HostMisuse: self._misused,
            events.HostClosed: self._closed,
            events.DispatchSent: self._sent,
            events.DispatchExtended: self._extended,
            events.DispatchSettled: self._settled,
            events.DispatchCancelled: self._told_to_stop,
            events.DispatchLate: self._late,
            events.DispatchStopped: self._stopped,
        }

    def _connected(self, entry: Entry, fact: events.HostConnected) -> None:
        row = HostRow(
            id=entry.context.connection or "",
            name=None,
            version=None,
            library=None,
            client=fact.client,
            state="connected",
            opened_at=entry.at,
            last_at=entry.at,
            closed=None,
            code=None,
            replaced=None,
            tools=[],
            in_flight=0,
            dispatched=0,
            completed=0,
            failed=0,
            cancelled=0,
            expired=0,
            late=0,
            misuse=0,
        )
        gone = self.table.add(row.id, row)
        if gone is not None and gone.name is not None and self._named.get(gone.name) == gone.id:
            del self._named[gone.name]

    def _registered(self, entry: Entry, fact: events.HostRegistered) -> None:
        row = self._row(entry, entry.context.connection)
        if row is not None:
            row.name, row.version, row.library = fact.host, fact.version, fact.library
            row.state, row.tools, row.replaced = "registered", list(fact.tools), fact.replaced
            self._named[fact.host] = row.id

    def _updated(self, entry: Entry, fact: events.HostUpdated) -> None:
        row = self._row(entry, entry.context.connection)
        if row is not None:
            row.tools = list(fact.tools)

    def _message(self, entry: Entry, fact: events.HostMessage) -> None:
        self._row(entry, entry.context.connection)

    def _misused(self, entry: Entry, fact: events.HostMisuse) -> None:
        row = self._row(entry, entry.context.connection)
        if row is not None:
            row.misuse += 1

    def _closed(self, entry: Entry, fact: events.HostClosed) -> None:
        row = self._row(entry, entry.context.connection)
        if row is not None:
            row.state, row.closed, row.code = "closed", fact.by, fact.code
            # Work that still runs there has no result for this server; and `late` counts all that came late.
            row.in_flight, row.late = 0, max(row.late, fact.late)

    def _sent(self, entry: Entry, fact: events.DispatchSent) -> None:
        row = None if fact.host is None else self._row(entry, self._named.get(fact.host))
        if row is None:
            return
        row.dispatched += 1
        row.in_flight += 1
        self._followed[entry.context.call or ""] = _Followed(row.id)
        if len(self._followed) > _MOST_FOLLOWED:
            _, oldest = self._followed.popitem(last=False)
            self._give_back(entry, oldest)

    def _extended(self, entry: Entry, fact: events.DispatchExtended) -> None:
        known = self._followed_by(entry)
        if known is not None:
            self._row(entry, known.connection)

    def _told_to_stop(self, entry: Entry, fact: events.DispatchCancelled) -> None:
        known = self._followed_by(entry)
        if known is not None:
            known.told_to_stop = True
            self._row(entry, known.connection)

    def _settled(self, entry: Entry, fact: events.DispatchSettled) -> None:
        known = self._followed_by(entry)
        if known is None:
            return
        known.settled = True
        row = self._row(entry, known.connection)
        if row is not None:
            _count(row, fact.outcome)
        if not (known.told_to_stop or known.stopped):
            self._give_back(entry, known)
        self._forget_if_over(entry, known)

    def _stopped(self, entry: Entry, fact: events.DispatchStopped) -> None:
        known = self._followed_by(entry)
        if known is None:
            return
        known.stopped = True
        row = self._row(entry, known.connection)
        if row is not None and row.state != "closed":
            # The first of each kind was counted as it came; the end of the connection has counted all.
            row.late += max(0, fact.late - known.late)
        self._give_back(entry, known)
        self._forget_if_over(entry, known)

    def _late(self, entry: Entry, fact: events.DispatchLate) -> None:
        known = self._followed_by(entry)
        if known is not None:
            known.late += 1
        row = self._row(entry, self._named.get(fact.host) if known is None else known.connection)
        if row is not None and row.state != "closed":
            row.late += 1

    def _give_back(self, entry: Entry, known: _Followed) -> None:
        """The place that a dispatch took."""
        row = self._row(entry, known.connection)
        if row is not None and row.state != "closed":
            row.in_flight -= 1

    def _followed_by(self, entry: Entry) -> _Followed | None:
        """The dispatch of the entry's call, if it is followed."""
        return self._followed.get(entry.context.call or "")

    def _forget_if_over(self, entry: Entry, known: _Followed) -> None:
        if known.settled and (known.stopped or not known.told_to_stop):
            del self._followed[entry.context.call or ""]

    def _row(self, entry: Entry, connection: str | None) -> HostRow | None:
        """The row, which is about to change."""
        row = None if connection is None else self.table.changed(connection)
        if row is not None and row.state != "closed":
            row.last_at = entry.at
        return row


def _count(row: HostRow, outcome: str) -> None:
    if outcome == "completed":
        row.completed += 1
    elif outcome == _EXPIRED:
        row.expired += 1
    elif outcome in _STOPPED:
        row.cancelled += 1
    else:
        row.failed += 1

"""The tool calls of the audit: those that are not written yet, and queries of memory or of the file.

With a file, unwritten calls are merged into its rows, so that each call is there once, in its present state. An
unwritten call moves between these tables of `Unwritten`, by its id:

    _waiting    has changes to write
    _taken      in the batch that is being written
    _written    how much of it the file has
    _running    its end is not written
    _dropped    had to leave `_waiting` at its bound
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Final, NamedTuple, TypeVar

import trio

from ...log.event_log import EventLog
from ...log.query import whole_number
from ...views.records import CallRecord
from ...views.search.call_filter import CallFilter
from ...views.work import Calls
from ..observer import Observer
from ..services import Turns
from . import reading as audit_reading
from .file import UNUSABLE, AuditFile, in_thread, why
from .reading import FoundRows, KeptRow


class _Progress(NamedTuple):
    """The written part of a call: the number of its entries, and whether its outcome is written."""

    entries: int
    settled: bool


_NOTHING = _Progress(0, False)


class Unwritten:
    """The calls with unwritten changes. At most `most` wait; a further one drops the one that waits longest.

    A running call is kept until its end is written, even if the records have dropped it: `sweep` finds the end without
    a note. At most 2 * `most` are kept, since a call with a missed end would stay for ever.
    """

    def __init__(self, records: Calls, most: int) -> None:
        self._records = records
        self._most = most
        self._running: OrderedDict[str, CallRecord] = OrderedDict()
        self._waiting: OrderedDict[str, CallRecord] = OrderedDict()
        self._taken: dict[str, tuple[CallRecord, _Progress]] = {}
        self._written: OrderedDict[str, _Progress] = OrderedDict()
        # The dropped calls, and whether they count as lost.
        self._dropped: OrderedDict[str, bool] = OrderedDict()
        self.lost = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def note(self, call: str) -> None:
        record = None if call in self._waiting else self._find(call)
        if record is not None:
            self._wait(record)
            self._make_room()

    def _find(self, call: str) -> CallRecord | None:
        return self._running.get(call) or self._records.get(call)

    def _wait(self, record: CallRecord) -> None:
        if record.outcome is None:
            self._running[record.call] = record
            if len(self._running) > 2 * self._most:
                self._running.popitem(last=False)
        self.lost -= self._dropped.pop(record.call, False)
        self._waiting[record.call] = record

    def missed(self) -> None:
        """Entries of running calls may be missing, so their evidence in the file is no longer complete."""
        for call in list(self._running):
            self.note(call)

    def sweep(self) -> None:
        """Make calls wait that ended without a note, and dropped ones if there is room."""
        for call in [call for call, record in self._running.items() if record.outcome is not None]:
            self.note(call)
        back = {call: record for call in self._dropped if (record := self._find(call)) is not None}
        room = max(0, self._most - len(self._waiting))
        for call in [*back][::-1][:room]:
            self._wait(back[call])
            # They have waited longest.
            self._waiting.move_to_end(call, last=False)

    def _make_room(self) -> None:
        while len(self._waiting) > self._most:
            call, record = self._waiting.popitem(last=False)
            gone = record.outcome is not None and not self._written.get(call, _NOTHING).settled
            if record.outcome is not None:
                self._running.pop(call, None)
            self.lost += gone
            self._dropped[call] = gone
        if len(self._dropped) > 2 * self._most:
            # A call without a record cannot come back.
            known = [(call, gone) for call, gone in self._dropped.items() if self._find(call) is not None]
            self._dropped = OrderedDict(known)

    def take(self) -> tuple[CallRecord, int] | None:
        """The next call to write, and the number of its entries in the file; None if no call waits.

        A taken call counts as unwritten until `commit`.
        """
        if not self._waiting:
            return None
        call, record = self._waiting.popitem(last=False)
        written = self._written.get(call, _NOTHING)
        self._taken[call] = record, written
        return record, written.entries

    def taken_as(self, record: CallRecord, entries: int) -> None:
        self._taken[record.call] = record, _Progress(entries, record.outcome is not None)

    def commit(self) -> None:
        for call, (_, progress) in self._taken.items():
            self._written[call] = progress
            self._written.move_to_end(call)
            if progress.settled:
                self._running.pop(call, None)
                if self._dropped.get(call):
                    # It was dropped again meanwhile; only evidence is missing.
                    self.lost -= 1
                    self._dropped[call] = False
        self._taken.clear()
        while len(self._written) > self._most + len(self._running):
            call, progress = self._written.popitem(last=False)
            if call in self._running:
                # Its first entries have left the log, and would count as missing.
                self._written[call] = progress

    def put_back(self) -> None:
        taken = {call: record for call, (record, _) in self._taken.items()}
        for call in taken:
            self.lost -= self._dropped.pop(call, False)
        self._waiting = OrderedDict({**taken, **self._waiting})
        self._taken.clear()
        self._make_room()

    def forget_written(self) -> None:
        """The file may have lost its calls: make all calls in the records wait again."""
        self._written.clear()
        for record in [*self._records.newest_first()][::-1]:
            if record.call not in self._waiting:
                self._wait(record)
        self._make_room()

    def pending(self) -> list[CallRecord]:
        taken = {call: record for call, (record, _) in self._taken.items()}
        dropped = {call: record for call in self._dropped if (record := self._find(call)) is not None}
        return sorted({**dropped, **taken, **self._waiting}.values(), key=lambda record: record.seq, reverse=True)


_T = TypeVar("_T")
# The number of simultaneous queries to the file. Each query has a thread and a connection. Reading rows takes the
# interpreter's lock from the protocol, so more threads would only take more of that.
_READERS: Final = 1
# The digits of the largest number of a call.
_LONGEST_NUMBER: Final = 19


class CursorError(ValueError):
    """The cursor is not one of this server."""


class AuditUnreadableError(Exception):
    """The file cannot be read now, or not in time; the message has the reason."""


@dataclass(frozen=True, slots=True)
class CallRows:
    """Rows in JSON, the newest first. `next` is the cursor of the next page, None at the end.

    A page may be short, even empty, if a filter passes few rows.
    """

    rows: list[bytes]
    next: str | None


@dataclass(frozen=True, slots=True)
class CallWithEvidence:
    """A row in JSON, and the entries of its call; not `complete` if there were more. `tag` is a digest of them."""

    row: bytes
    complete: bool
    events: list[bytes]
    tag: str


def _with_evidence(row: bytes, entries: Iterable[tuple[int, bytes]], *, complete: bool) -> CallWithEvidence:
    entries = list(entries)
    # The row has the id of the run, and entries of a run never change: so their megabytes are not hashed.
    places = ",".join(str(place) for place, _ in entries)
    tag = blake2b(b"%b %d %b" % (row, complete, places.encode()), digest_size=16).hexdigest()
    return CallWithEvidence(row, complete, [body for _, body in entries], tag)


class MemoryCalls:
    """The newest calls of this run, from the observer's records."""

    def __init__(self, run: str, observer: Observer, log: EventLog) -> None:
        self._run = run
        self._observer = observer
        self._log = log

    async def page(self, wanted: CallFilter, cursor: str | None, limit: int, max_bytes: int) -> CallRows:
        """At most `limit` rows that pass the filter, newest first, from a cursor on.

        `max_bytes` ends the page early, but never before its first row. Raises `CursorError`.
        """
        before = None if cursor is None else self._place(cursor)
        found = await search(self._observer.records.newest_first(), 0, wanted, before, limit, max_bytes)
        return _rows(found, f"{self._run}-")

    def _place(self, cursor: str) -> int:
        run, _, place = cursor.rpartition("-")
        if run != self._run:
            raise CursorError("this cursor is none that this run of the server gave; the calls of another run are gone")
        return _number(place)

    async def get(self, id: str, max_bytes: int) -> CallWithEvidence | None:
        """One call by its id, such as `RUN.c7`, or `c7` for this run; evidence up to `max_bytes`. None if unknown."""
        run, _, call = id.rpartition(".")
        record = self._observer.records.get(call) if run in ("", self._run) else None
        return None if record is None else await self.with_evidence(record, max_bytes)

    async def with_evidence(self, record: CallRecord, max_bytes: int) -> CallWithEvidence:
        complete, entries = await self.evidence(record.call, max_bytes)
        return _with_evidence(record.encoded(), entries, complete=complete)

    async def evidence(self, call: str, max_bytes: int) -> tuple[bool, list[tuple[int, bytes]]]:
        """The entries of a call that are still in the log, in order, and whether these are all."""
        known = self._observer.call(call)
        places = [] if known is None else known.in_order()
        complete = known is not None and not known.cut
        entries: list[tuple[int, bytes]] = []
        size, turns = 0, Turns()
        for place in places:
            entry = self._log.entry(place)
            body = b"" if entry is None else entry.encoded()
            size += len(body)
            if size > max_bytes:
                return False, entries
            if entry is not None:
                entries.append((place, body))
            await turns.done(len(body))
        return complete and len(entries) == len(places), entries


class FileCalls:
    """The calls of all runs in the file, and the unwritten calls of this run.

    `page` and `get` are those of `MemoryCalls`, and raise `AuditUnreadableError`, too.
    """

    def __init__(
        self, file: AuditFile, run: str, memory: MemoryCalls, unwritten: Unwritten, observer: Observer
    ) -> None:
        self._file = file
        self._run = run
        self._memory = memory
        self._unwritten = unwritten
        self._observer = observer
        self._readers = trio.CapacityLimiter(_READERS)

    async def page(self, wanted: CallFilter, cursor: str | None, limit: int, max_bytes: int) -> CallRows:
        before = None if cursor is None else _number(cursor)
        self._observer.catch_up()
        # Rows that are written from now on are in both; the present pending ones count as they are in memory. The file
        # is read afterwards, so it has all others.
        pending, base = self._unwritten.pending(), self._file.base
        fresh = await search(pending, base, wanted, before, limit, max_bytes)
        skip = frozenset(base + record.seq for record in pending)
        path = self._file.path
        written = await self._read(partial(audit_reading.page, path, wanted, before, limit, max_bytes, skip))
        found = _merged(fresh, written, limit)
        return _rows(found)

    async def get(self, id: str, max_bytes: int) -> CallWithEvidence | None:
        run, _, call = id.rpartition(".")
        known = await self._known(call, max_bytes) if run in ("", self._run) else None
        if known is not None and known.complete:
            return known
        kept = await self._read(partial(audit_reading.find, self._file.path, f"{run or self._run}.{call}", max_bytes))
        if kept is None:
            return known
        if known is None:
            return _with_evidence(kept.row, kept.entries, complete=kept.complete)
        return await self._together(known, kept, call, max_bytes)

    async def _known(self, call: str, max_bytes: int) -> CallWithEvidence | None:
        self._observer.catch_up()
        pending = {record.call: record for record in self._unwritten.pending()}
        if call in pending:
            return await self._memory.with_evidence(pending[call], max_bytes)
        return await self._memory.get(call, max_bytes)

    async def _together(self, known: CallWithEvidence, kept: KeptRow, call: str, max_bytes: int) -> CallWithEvidence:
        """A call of this run with evidence that has left the log, or is not yet in the file."""
        _, entries = await self._memory.evidence(call, max_bytes)
        view = self._observer.call(call)
        together = dict(sorted({**dict(kept.entries), **dict(entries)}.items()))
        whole = view is not None and not view.cut and together.keys() >= view.entries.keys()
        return _with_evidence(known.row, together.items(), complete=whole)

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Keep readers away from the file for the block."""
        async with self._readers:
            yield

    async def _read(self, question: Callable[[], _T]) -> _T:
        try:
            # A cancelled reader leaves the thread behind; its time is bounded.
            return await in_thread(question, self._readers)
        except UNUSABLE as error:
            raise AuditUnreadableError(f"the audit file cannot be read now: {why(error)}") from None


def _rows(found: FoundRows, prefix: str = "") -> CallRows:
    rows = [row for _, row in found.rows]
    return CallRows(rows, None if found.reached is None else f"{prefix}{found.reached}")


def _number(cursor: str) -> int:
    number = whole_number(cursor, _LONGEST_NUMBER)
    if number is None:
        raise CursorError("the cursor must be `next` of a page before")
    # Beyond SQLite's largest number, all cursors are equal.
    return min(number, 2**63 - 1)


async def search(
    records: Iterable[CallRecord], base: int, wanted: CallFilter, before: int | None, limit: int, max_bytes: int
) -> FoundRows:
    """The first records below the number `before` that pass, newest first. Other tasks run in between."""
    below = [record for record in records if before is None or base + record.seq < before]
    found: list[tuple[int, bytes]] = []
    size, reached, turns = 0, None, Turns()
    for read, record in enumerate(below):
        if len(found) == limit or size >= max_bytes or (wanted.looks_inside and read == audit_reading.MOST_READ):
            return FoundRows(found, reached)
        reached = base + record.seq
        if wanted.matches(record):
            row = record.encoded()
            found.append((reached, row))
            size += len(row)
        await turns.done(len(record.arguments) + len(record.result or b"") if wanted.looks_inside else 0)
    return FoundRows(found, None)


def _merged(one: FoundRows, other: FoundRows, limit: int) -> FoundRows:
    floor = max((found.reached for found in (one, other) if found.reached is not None), default=None)
    rows = sorted((row for row in (*one.rows, *other.rows) if floor is None or row[0] >= floor), reverse=True)
    if len(rows) > limit:
        return FoundRows(rows[:limit], rows[limit - 1][0])
    return FoundRows(rows, floor)

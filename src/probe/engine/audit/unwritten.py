"""Tool calls with changes that are not written yet.

A call moves between these tables, by its id:

    _waiting    has changes to write
    _taken      in the batch that is being written
    _written    how much of it the file has
    _running    its end is not written
    _dropped    had to leave `_waiting` at its bound
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from ...views.records import CallRecord, Records


class _Progress(NamedTuple):
    """The written part of a call: the number of its entries, and whether its outcome is written."""

    entries: int
    settled: bool


_NOTHING = _Progress(0, False)


class Unwritten:
    """The calls with unwritten changes. At most `most` wait; a further one drops the one that waits longest.

    A running call is kept until its end is written, even if the records have dropped it: `sweep` finds the end in its
    record without a note. At most 2 * `most` running calls are kept, since a call with a missed end would stay for
    ever.
    """

    def __init__(self, records: Records, most: int) -> None:
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
        """The log has a new entry of this call, and the records have it already."""
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
        """The taken calls are written."""
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
        """The taken calls were not written: make them wait again."""
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
        """The calls with changes that may not be written, the newest first."""
        taken = {call: record for call, (record, _) in self._taken.items()}
        dropped = {call: record for call in self._dropped if (record := self._find(call)) is not None}
        return sorted({**dropped, **taken, **self._waiting}.values(), key=lambda record: record.seq, reverse=True)

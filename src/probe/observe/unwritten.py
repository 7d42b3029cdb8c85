"""Tool calls of which something has not been written yet."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from .records import CallRecord, CallRecords


class _Progress(NamedTuple):
    """How much of a call has been written: so many entries of its evidence, and whether its outcome."""

    entries: int
    settled: bool


_NOTHING = _Progress(0, False)


class Unwritten:
    """What one writer has still to do. At most `most` calls wait; the one that waits longest makes room.

    `lost` counts calls whose outcome will never be written. A call that runs is held until its end is written, though
    the records have forgotten it meanwhile; one that makes room comes back with its next change.
    """

    def __init__(self, records: CallRecords, most: int) -> None:
        self._records = records
        self._most = most
        self._running: dict[str, CallRecord] = {}
        self._waiting: OrderedDict[str, CallRecord] = OrderedDict()
        self._taken: dict[str, tuple[CallRecord, _Progress]] = {}
        self._written: OrderedDict[str, _Progress] = OrderedDict()
        self.lost = 0

    def __len__(self) -> int:
        """How many calls wait."""
        return len(self._waiting)

    def note(self, call: str, *, begins: bool) -> None:
        """An entry of the log belongs to this call; with that one it `begins`."""
        if call in self._waiting:
            return
        record = self._running.get(call) or self._records.get(call)
        if record is None:
            self.lost += begins
            return
        if record.outcome is None:
            self._running[call] = record
        self._waiting[call] = record
        self._make_room()

    def _make_room(self) -> None:
        while len(self._waiting) > self._most:
            call, record = self._waiting.popitem(last=False)
            if record.outcome is not None:
                self._running.pop(call, None)
                self.lost += not self._written.get(call, _NOTHING).settled

    def take(self) -> tuple[CallRecord, int] | None:
        """The next call to write, and how many entries of its evidence were written before; None where none waits.

        What was taken still counts as unwritten, until `commit`.
        """
        if not self._waiting:
            return None
        call, record = self._waiting.popitem(last=False)
        written = self._written.get(call, _NOTHING)
        self._taken[call] = record, written
        return record, written.entries

    def taken_as(self, record: CallRecord, entries: int) -> None:
        """The record was taken as it is now, with so many entries of its evidence in all."""
        self._taken[record.call] = record, _Progress(entries, record.outcome is not None)

    def commit(self) -> None:
        """All that was taken is written."""
        for call, (_, progress) in self._taken.items():
            self._written[call] = progress
            self._written.move_to_end(call)
            if progress.settled:
                self._running.pop(call, None)
        self._taken.clear()
        while len(self._written) > self._most + len(self._running):
            self._written.popitem(last=False)

    def put_back(self) -> None:
        """Nothing that was taken is written."""
        taken = {call: record for call, (record, _) in self._taken.items()}
        self._waiting = OrderedDict({**taken, **self._waiting})
        self._taken.clear()
        self._make_room()

    def forget_written(self) -> None:
        """What was written before may be gone."""
        self._written.clear()

    def pending(self) -> list[CallRecord]:
        """The calls whose last state may not be written, the newest first."""
        taken = {call: record for call, (record, _) in self._taken.items()}
        return sorted({**taken, **self._waiting}.values(), key=lambda record: record.seq, reverse=True)

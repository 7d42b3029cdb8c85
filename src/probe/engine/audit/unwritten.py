"""Tool calls of which something has not been written yet."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from ...views.records import CallRecord, Records


class _Progress(NamedTuple):
    """How much of a call has been written: so many entries of its evidence, and whether its outcome."""

    entries: int
    settled: bool


_NOTHING = _Progress(0, False)


class Unwritten:
    """The calls that one writer has still to write. At most `most` wait; the one that waits longest makes room.

    A call that runs is held until its end is written, though the records have forgotten it meanwhile: `sweep` finds
    that end in its record, whoever else has heard of it. A call that made room comes back with its next change, or once
    there is room, while the records have it. `lost` counts those that settled and neither wait nor are written. Of the
    calls that run, twice as many as may wait are held; one whose end was missed would be held for ever.
    """

    def __init__(self, records: Records, most: int) -> None:
        self._records = records
        self._most = most
        self._running: OrderedDict[str, CallRecord] = OrderedDict()
        self._waiting: OrderedDict[str, CallRecord] = OrderedDict()
        self._taken: dict[str, tuple[CallRecord, _Progress]] = {}
        self._written: OrderedDict[str, _Progress] = OrderedDict()
        # The records that made room, and whether they count as lost.
        self._dropped: OrderedDict[str, bool] = OrderedDict()
        self.lost = 0

    def __len__(self) -> int:
        """The number of calls that wait."""
        return len(self._waiting)

    def note(self, call: str) -> None:
        """An entry of the log belongs to this call, which the records have taken already."""
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
        """Entries of any call that ran may be missing, so its evidence in the file is no longer complete."""
        for call in list(self._running):
            self.note(call)

    def sweep(self) -> None:
        """Have wait what ended without a note, and what made room before, as far as there is room now."""
        for call in [call for call, record in self._running.items() if record.outcome is not None]:
            self.note(call)
        back = {call: record for call in self._dropped if (record := self._find(call)) is not None}
        room = max(0, self._most - len(self._waiting))
        for call in [*back][::-1][:room]:
            self._wait(back[call])
            # They waited longest.
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
            # A record that is nowhere any more cannot come back.
            known = [(call, gone) for call, gone in self._dropped.items() if self._find(call) is not None]
            self._dropped = OrderedDict(known)

    def take(self) -> tuple[CallRecord, int] | None:
        """The next call to write, and how many entries of its evidence were written before; None where none waits.

        A call that was taken still counts as unwritten, until `commit`.
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
                if self._dropped.get(call):
                    # It waited once more meanwhile, and had to make room; what is left is evidence.
                    self.lost -= 1
                    self._dropped[call] = False
        self._taken.clear()
        while len(self._written) > self._most + len(self._running):
            call, progress = self._written.popitem(last=False)
            if call in self._running:
                # Its first entries have long left the log, and would count as missing.
                self._written[call] = progress

    def put_back(self) -> None:
        """Nothing that was taken is written."""
        taken = {call: record for call, (record, _) in self._taken.items()}
        for call in taken:
            self.lost -= self._dropped.pop(call, False)
        self._waiting = OrderedDict({**taken, **self._waiting})
        self._taken.clear()
        self._make_room()

    def forget_written(self) -> None:
        """The calls that were written before may be gone: all that the records still have wait again."""
        self._written.clear()
        for record in [*self._records.newest_first()][::-1]:
            if record.call not in self._waiting:
                self._wait(record)
        self._make_room()

    def pending(self) -> list[CallRecord]:
        """The calls whose last state may not be written, the newest first."""
        taken = {call: record for call, (record, _) in self._taken.items()}
        dropped = {call: record for call in self._dropped if (record := self._find(call)) is not None}
        return sorted({**dropped, **taken, **self._waiting}.values(), key=lambda record: record.seq, reverse=True)

"""A log read from a file, used like the log of a running server."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .context import NO_CONTEXT, Context
from .event_log import Entry, EventLog, Gap, LogPage, cost_of
from .events import AnyEvent
from .ndjson import SavedLog


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that was read: its `name` without folders, its log, and the other parts of a session file.

    `manifest` and `report` are JSON objects, None where the file has none.
    """

    name: str
    log: SavedLog
    manifest: Mapping[str, Any] | None = None
    report: Mapping[str, Any] | None = None

    @property
    def saved_at(self) -> float | None:
        """When it was saved, in seconds since the epoch; None if the file has no such time."""
        at = (self.manifest or {}).get("saved_at")
        return at if isinstance(at, float) else None

    @property
    def is_filtered(self) -> bool:
        """True if entries were left out on purpose."""
        return self.log.end is not None and self.log.end.why == "filtered"

    @property
    def is_cut_off(self) -> bool:
        return self.log.end is None


class ReadLog(EventLog):
    """The entries of a file, for the readers of a log. Any of the numbers may be missing.

    `append` adds no entry: events of the server that shows a file are not part of the file.
    """

    def __init__(self, saved: SavedLog) -> None:
        super().__init__(lambda: (0.0, 0.0), max_events=1, max_bytes=1)
        self._entries = saved.entries
        self._numbers = [entry.seq for entry in self._entries]
        self.last = self._numbers[-1] if self._numbers else 0
        self.bytes = sum(cost_of(entry.fact) for entry in self._entries)
        begins = saved.items[0] if saved.items else None
        # Entries left out on purpose do not count as missing.
        self._first = begins.last + 1 if isinstance(begins, Gap) else 1

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def first(self) -> int:
        return self._first

    def append(
        self,
        fact: AnyEvent,
        context: Context = NO_CONTEXT,
        cause: int | None = None,
        when: tuple[float, float] | None = None,
    ) -> int:
        """Wake waiting readers without recording the fact. Returns the last number."""
        self._readers.unpark_all()
        return self.last

    async def wait_beyond(self, seq: int) -> None:
        if self.last <= seq:
            await self._readers.park()

    def since(self, seq: int, limit: int) -> LogPage:
        """See `EventLog.since`. The next page begins behind missing numbers."""
        start = max(seq + 1, self._first)
        gap = Gap(seq + 1, self._first - 1) if seq + 1 < self._first else None
        found = self._between(start, min(self.last, start + limit - 1))
        following = bisect_left(self._numbers, start) + len(found)
        next = self._numbers[following] - 1 if following < len(self._numbers) else self.last
        return LogPage(gap, found, max(seq, start - 1, next))

    def until(self, seq: int, limit: int) -> list[Entry]:
        end = bisect_right(self._numbers, seq)
        return self._entries[max(0, end - limit) : end]

    def tail(self, count: int) -> int:
        if count >= len(self._numbers):
            return self._first - 1
        return self.last if count == 0 else self._numbers[-count] - 1

    def _between(self, start: int, end: int) -> list[Entry]:
        return self._entries[bisect_left(self._numbers, start) : bisect_right(self._numbers, end)]

"""The views of a log, asked for the evidence and the row of one call."""

from __future__ import annotations

from collections.abc import Iterator

from probe.log.event_log import Entry
from probe.views.fold import Views
from probe.views.records import CallRecord
from probe.views.retention import Retention


class Evidence:
    """The evidence of calls; an empty one of a call that is not known."""

    def __init__(self, views: Views) -> None:
        self.views = views

    def take(self, entry: Entry) -> list[str]:
        """One more entry; returns the names of its calls."""
        return [call.name for call in self.views.take(entry)]

    def of(self, call: str) -> list[int]:
        """The numbers of the entries, in order."""
        return sorted(self.found(call))

    def found(self, call: str, skip: int = 0) -> list[int]:
        """The same in the order in which they were found."""
        known = self.views.call(call)
        return [] if known is None else known.found(skip)

    def complete(self, call: str) -> bool:
        """Whether those are all there were."""
        known = self.views.call(call)
        return known is not None and not known.cut


class Rows:
    """The rows of tool calls, folded from entries."""

    def __init__(self, run: str, most: int) -> None:
        self.views = Views(run, Retention(calls=most))

    def __len__(self) -> int:
        return len(self.views.calls)

    def take(self, entry: Entry) -> list[str]:
        """One more entry; returns the names of its calls."""
        return [call.name for call in self.views.take(entry)]

    def get(self, call: str) -> CallRecord | None:
        """The row of a call that is listed."""
        return self.views.calls.get(call)

    def newest_first(self) -> Iterator[CallRecord]:
        """All of them."""
        return self.views.calls.newest_first()

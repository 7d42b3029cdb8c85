"""The position of one reader of the live feed, and its next entries: pure, the clock is an argument.

    behind what is kept          -> Missed("evicted")     always
    ahead of what it may read    -> None, until it may again
    the same, far behind         -> Missed("skipped")     only a reader that had caught up; a resumed one gets all
    else                         -> a span of entries

Every number is in exactly one span or one `Missed`, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PIECE = 64
"""Entries of a span at most: some 0.5 ms of work. Spans end at multiples of it, so readers at different places soon ask
for the same spans, and each span is encoded once."""

Reason: TypeAlias = Literal["evicted", "skipped", "restarted"]


@dataclass(frozen=True, slots=True)
class Missed:
    """Entries that the reader does not get. `restarted`: those of another run, with unknown numbers."""

    reason: Reason
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class Span:
    """The entries after `after`, up to `last`."""

    after: int
    last: int


class FeedCursor:
    """A reader that has everything up to `position`.

    It may read `per_second` entries in the long run and `burst` at once. If a reader that had caught up falls more than
    `burst` behind, it continues at the last multiple of `burst`, where all such readers share the same spans again.
    """

    def __init__(self, position: int, now: float, *, per_second: float, burst: int) -> None:
        self.position = position
        self.caught_up = False
        self._per_second = per_second
        self._burst = burst
        self._may = float(burst)
        self._counted_at = now

    def next(self, first: int, last: int, now: float) -> Missed | Span | None:
        """The next span or loss of a log that keeps `first` to `last`; None if there is none at this time.

        A `Missed` counts as sent. Call `took` for the part of a span that was sent.
        """
        self._may = min(self._burst, self._may + (now - self._counted_at) * self._per_second)
        self._counted_at = now
        if self.position + 1 < first:
            return self._miss("evicted", first - 1)
        if self.position >= last:
            self.caught_up = True
            return None
        if self._may > 0:
            return Span(self.position, min(last, self.position + PIECE - self.position % PIECE))
        if self.caught_up and last - self.position > self._burst:
            return self._miss("skipped", last - last % self._burst)
        return None

    def took(self, reached: int, cost: float) -> None:
        """The reader has a span up to `reached` at a cost of `cost` entries; an excess delays its next ones."""
        self.position = reached
        self._may -= cost

    def _miss(self, reason: Reason, last: int) -> Missed:
        missed = Missed(reason, self.position + 1, last)
        self.position = last
        return missed

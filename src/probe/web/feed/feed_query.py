"""The query of a reader of the feed, and the reader's position: pure, the clock is an argument.

    behind what is kept          -> Missed("evicted")     always
    ahead of what it may read    -> None, until it may again
    the same, far behind         -> Missed("skipped")     only a reader that had caught up; a resumed one gets all
    else                         -> a span of entries

Every number is in exactly one span or one `Missed`, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast
from urllib.parse import parse_qsl

from ...core.inbound import HttpHead
from ...log.event_filter import EventFilter, parse
from ...log.query import QueryError, switch, twice, whole_number
from ...views.search.words import Word
from ...views.search.words import read as read_line
from ...views.tables import TABLES, TableName
from ...wire.jsonrpc import clip

OWN = ("since", "tail", "tables", "filter", "view", "passes")
"""The parameters of the feed beside the filters of events."""

_TAIL = 100


@dataclass(frozen=True, slots=True)
class FeedQuery:
    """The query of one reader. It continues after the event id `since`; None for the newest `tail` passing entries.

    An entry passes if it is `wanted` and passes the `words` of the filter line. `packed`: the reader takes gzip.
    `view`: each entry has its `view`, and the rows of their exchanges come before. `passes` are words of another line:
    views and rows get marks for it, and none is left out.
    """

    wanted: EventFilter
    words: tuple[Word, ...]
    tables: tuple[TableName, ...]
    tail: int
    since: str | None
    packed: bool
    view: bool = False
    passes: tuple[Word, ...] = ()


def read(head: HttpHead, query: str) -> FeedQuery:
    """The query of a request. Raises `QueryError` for unknown names and values."""
    pairs = parse_qsl(query, keep_blank_values=True)
    own: dict[str, str] = {}
    for name, value in pairs:
        if name in own:
            raise twice(name)
        if name in OWN:
            own[name] = value
    wanted = parse([pair for pair in pairs if pair[0] not in OWN], beside=OWN)
    # An EventSource reconnects with the same query; the header has its newest event id.
    since = head.get("last-event-id") or own.get("since")
    packed = _takes_gzip(head.all("accept-encoding"))
    words = read_line(own.get("filter", ""))
    tables, tail, view = _tables(own.get("tables")), _tail(own.get("tail")), switch("view", own.get("view"))
    passes = read_line(own.get("passes", ""))
    if passes and not view:
        raise QueryError("passes needs view=1")
    return FeedQuery(wanted, words, tables, tail, since, packed, view, passes)


def _tables(value: str | None) -> tuple[TableName, ...]:
    names = [] if value is None else value.split(",")
    for name in names:
        if name not in TABLES:
            raise QueryError(f"there is no table {clip(name)!r}; known are {', '.join(TABLES)}", TABLES)
    return tuple(cast("TableName", name) for name in dict.fromkeys(names))


def _tail(value: str | None) -> int:
    if value is None:
        return _TAIL
    number = whole_number(value)
    if number is None:
        raise QueryError(f"tail must be a whole number from 0, got {clip(value)!r}")
    return number


def _takes_gzip(accept: str) -> bool:
    for part in accept.lower().replace(" ", "").split(","):
        name, _, weight = part.partition(";q=")
        if name == "gzip":
            return weight.strip("0.") != "" or not weight
    return False


def place(id: str, run: str, last: int) -> int | None:
    """The number of the entry in an event id; None for an id that this run cannot have given out."""
    named, _, number = id.rpartition("-")
    seq = whole_number(number)
    return seq if named == run and seq is not None and seq <= last else None


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

"""The query and the position of a reader of the feed, and its events, made once for all readers with the same query.

A position is pure: the clock is an argument. Every number is in exactly one span or one `FeedGap`, in order.

    behind what is kept          -> FeedGap("evicted")     always
    ahead of what it may read    -> None, until it may again
    the same, far behind         -> FeedGap("skipped")     only a reader that had caught up; a resumed one gets all
    else                         -> a span of entries
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast
from urllib.parse import parse_qsl

import trio

from ...core.inbound import HttpHead
from ...log.event_log import EventLog
from ...log.query import EventFilter, QueryError, parse, switch, twice, whole_number
from ...views.entry_view import EntryViews, Touched
from ...views.search.conditions import LineFilter, LineMarks
from ...views.search.words import Word
from ...views.search.words import read as read_line
from ...views.tables import TABLES, TableName, Tables
from ...wire import sse
from ...wire.jsonrpc import clip, encode

OWN = ("since", "tail", "tables", "filter", "view", "passes")
"""The parameters of the feed beside the filters of events."""

_TAIL = 100


@dataclass(frozen=True, slots=True)
class FeedQuery:
    """The query of one reader. It continues after the event id `since`; None for the newest `tail` passing entries.

    An entry passes if it is `wanted` and passes the `words` of the filter line. `packed`: the reader takes gzip.
    `view`: each entry has its `view`, after the rows of the exchanges. `passes` are words of another line: views and
    rows get marks for it, and none is left out.
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
    """Raises `QueryError` for unknown names and values."""
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
class FeedGap:
    """Entries that this reader of the feed does not get; null for the unknown numbers of another run (`restarted`)."""

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

    It may read `per_second` entries in the long run and `burst` at once. Once it falls more than `burst` behind, it
    continues at the last multiple of `burst`, where all such readers share the same spans again.
    """

    def __init__(self, position: int, now: float, *, per_second: float, burst: int) -> None:
        self.position = position
        self.caught_up = False
        self._per_second = per_second
        self._burst = burst
        self._may = float(burst)
        self._counted_at = now

    def next(self, first: int, last: int, now: float) -> FeedGap | Span | None:
        """The next span or loss of a log that keeps `first` to `last`; None if there is none at this time.

        A `FeedGap` counts as sent. Call `took` for the part of a span that was sent.
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

    def _miss(self, reason: Reason, last: int) -> FeedGap:
        missed = FeedGap(reason, self.position + 1, last)
        self.position = last
        return missed


@dataclass(frozen=True, slots=True)
class FeedReader:
    """A reader of the feed: the time of its start, the entry it has reached, and the number of entries it is behind."""

    since: float
    position: int
    behind: int


@dataclass(frozen=True, slots=True)
class FeedHello:
    """First on every connection of the feed. `resumed`: it continues directly after the given id."""

    run: str
    version: str
    started_at: float
    first: int
    last: int
    resumed: bool


PIECE_BYTES = 64 * 1024
"""A piece ends with the entry or row that reaches this size: far less than a millisecond of copying."""

NEWEST_CALLS = 50
"""The newest calls in a feed. At full speed there are a thousand a second; the audit has all."""

# Frames of half a second, for readers with different filters at the same place.
_KEPT_BYTES = 4 * 1024 * 1024
_KEPT = 512

_ROWS = 200

# The cost of an entry not encoded, in encoded entries: about 1 µs against 20 µs.
_LOOKED_AT = 0.05


@dataclass(slots=True, eq=False)
class FeedFrame:
    """A text of events, the entry or version of a table that its reader then has, and its cost."""

    text: bytes
    reached: int = 0
    cost: float = 0.0


class Pieces:
    """Makes frames from the log and the tables of one engine, each within a millisecond; keeps the latest."""

    def __init__(self, run: str, log: EventLog, tables: Tables, views: EntryViews) -> None:
        self._run = run
        self._log = log
        self._tables = tables
        self._views = views
        self._kept: OrderedDict[Hashable, FeedFrame] = OrderedDict()
        self._kept_bytes = 0
        self._made = False

    async def let_others_run(self) -> None:
        """To be awaited after each piece."""
        if self._made:
            self._made = False
            await trio.lowlevel.checkpoint()

    def id(self, seq: int) -> str:
        return f"{self._run}-{seq}"

    def gap(self, missed: FeedGap, position: int) -> FeedFrame:
        return FeedFrame(sse.event(encode(missed), id=self.id(position), name="gap"))

    def entries(
        self, span: Span, wanted: EventFilter | LineFilter, *, view: bool = False, marks: LineMarks | None = None
    ) -> FeedFrame:
        """The passing entries of a span, or of its beginning; `marks` decide what passes a line.

        With `view` each has its view, after the rows of changed exchanges. A reader cut off between two entries has the
        rows of the earlier ones, and gets the others with the rest.
        """
        key = (span, wanted, view, marks)
        return self._kept.get(key) or self._keep(key, self._entries(span, wanted, {} if view else None, marks))

    def _entries(
        self, span: Span, wanted: EventFilter | LineFilter, touched: Touched | None, marks: LineMarks | None
    ) -> FeedFrame:
        self._made = True
        page = self._log.since(span.after, span.last - span.after)
        # In a file, numbers may be missing after the span.
        parts, size, cost, reached = list[bytes](), 0, 0.0, max(span.last, page.next)
        for entry in page.entries:
            if touched is not None and wanted.concerns(entry):
                self._views.touch(entry, touched)
            if not wanted.fits(entry):
                cost += _LOOKED_AT
                continue
            row = entry.encoded()
            size += len(row)
            cost += 1 + (len(row) >> 10)
            if wanted.finds(row):
                shown = row if touched is None else self._views.encoded(entry, row, marks)
                parts.append(sse.event(shown, id=self.id(entry.seq)))
            if size >= PIECE_BYTES:
                reached = entry.seq
                break
        rows = list(self._views.rows(touched, marks)) if touched else []
        if rows:
            parts.insert(0, _rows_event("exchanges", rows))
        return FeedFrame(b"".join(parts), reached, cost + len(rows))

    def rows(self, table: TableName, version: int) -> FeedFrame:
        """The rows of a table changed after a version, the earliest change first; or the first of these."""
        key = (table, version, self._tables.last)
        return self._kept.get(key) or self._keep(key, self._rows(table, version))

    def _rows(self, table: TableName, version: int) -> FeedFrame:
        changed = self._tables.changed(table, version)
        if table == "calls":
            changed = changed[-NEWEST_CALLS:]
        text, count = self.named(table, [id for id, _ in changed])
        if count == len(changed):
            return FeedFrame(text, self._tables.last)
        reached = changed[count - 1][1]
        # All rows changed by one entry come in one piece: a reader has an entry whole or not at all.
        same = list(self._tables.rows(table, [id for id, newest in changed[count:] if newest == reached]))
        return FeedFrame(text + (_rows_event(table, same) if same else b""), reached)

    def named(self, table: TableName, ids: Sequence[str]) -> tuple[bytes, int]:
        self._made = True
        rows, size, count = list[bytes](), 0, 0
        for id in ids[:_ROWS]:
            found = list(self._tables.rows(table, [id]))
            rows += found
            size += sum(map(len, found))
            count += 1
            if size >= PIECE_BYTES:
                break
        if not rows:
            return b"", count
        return _rows_event(table, rows), count

    def _keep(self, key: Hashable, made: FeedFrame) -> FeedFrame:
        """The oldest make room; a frame above the whole limit is not kept."""
        self._kept[key] = made
        self._kept_bytes += len(made.text)
        while self._kept_bytes > _KEPT_BYTES or len(self._kept) > _KEPT:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1].text)
        return made


def _rows_event(table: str, rows: Sequence[bytes]) -> bytes:
    return sse.event(b'{"table":%b,"rows":[%b]}' % (encode(table), b",".join(rows)), name="rows")


def tail_start(log: EventLog, wanted: EventFilter | LineFilter, before: int, count: int) -> tuple[int, int, float]:
    """Look for passing entries backwards from `before`, one piece: returns its end, their number and the cost."""
    entries = log.until(before, PIECE)
    after = entries[0].seq - 1 if entries else log.first - 1
    found, cost, size = 0, 0.0, 0
    for entry in reversed(entries):
        fits = wanted.fits(entry)
        row = entry.encoded() if fits and wanted.text is not None else b""
        cost += 1 + (len(row) >> 10) if row else _LOOKED_AT
        found += fits and wanted.finds(row)
        size += len(row)
        if found == count or size >= PIECE_BYTES:
            return entry.seq - 1, found, cost
    return after, found, cost

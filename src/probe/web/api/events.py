"""`/api/events`: the event log by pages, by one entry, and by lines of JSON; `/api/search`: what a filter line passes.

`/api/filter` gives the error of such a line, and its completions.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from typing import Any, cast, get_args

import trio
from msgspec import to_builtins
from quart import Response
from quart_trio import QuartTrio

from ...engine.engine import Engine
from ...engine.services import Turns
from ...log import ndjson
from ...log.event_log import Entry, EventLog, Gap
from ...log.ndjson import End, Why
from ...log.query import EventFilter, QueryError, parse, whole_number
from ...settings.server import Limits
from ...views.entry_view import EntryViews, Touched
from ...views.rows import SessionRow
from ...views.search.search import By, Search, SearchRequest, SearchResult
from ...views.search.words import Known, complete
from ...views.search.words import read as read_line
from ...wire.jsonrpc import clip, encode
from . import listing, responses
from .answers import FilterReading
from .listing import Query, read
from .responses import not_found

# Entries looked at between two checkpoints, if none is encoded.
_PIECE = 100


@dataclass(slots=True)
class Scan:
    """A page while it is made: the `gap` in it, and `next`, the beginning of the following page.

    It is `full` at its limit of rows, of bytes, or of entries looked at. With `views` each row has its `view`;
    `touched` are the exchanges of the rows.
    """

    wanted: EventFilter
    limit: int
    limits: Limits
    views: EntryViews | None = None
    touched: Touched = field(default_factory=dict)
    next: int | None = None
    gap: Gap | None = None
    looked: int = 0
    full: bool = False
    _rows: int = 0
    _bytes: int = 0
    _encoded: bool = False

    @property
    def piece(self) -> int:
        return min(_PIECE, self.limits.api_scan - self.looked)

    def row(self, entry: Entry) -> bytes | None:
        """The row of the next entry; empty if the filter does not pass it, None if the page is full."""
        if self.full:
            return None
        row = entry.encoded() if self.wanted.fits(entry) else b""
        self._encoded = bool(row)
        if not (row and self.wanted.finds(row)):
            row = b""
        elif self._rows and self._bytes + len(row) > self.limits.api_page_bytes:
            self.full = True
            return None
        else:
            self._rows += 1
            self._bytes += len(row)
            row = row if self.views is None else self._viewed(self.views, entry, row)
        self.looked += 1
        self.full = self._rows >= self.limit or self.looked >= self.limits.api_scan
        return row

    def _viewed(self, views: EntryViews, entry: Entry, row: bytes) -> bytes:
        views.touch(entry, self.touched)
        return views.encoded(entry, row)

    async def pause(self) -> None:
        # To encode one entry takes as long as to look at many.
        if self._encoded or self.looked % _PIECE == 0:
            await trio.lowlevel.checkpoint()


async def forward(log: EventLog, scan: Scan, since: int) -> AsyncGenerator[bytes, None]:
    """The rows after `since`, oldest first. A gap stands before a page's first entry, never within a page."""
    scan.next = since
    while not scan.full:
        page = log.since(scan.next, scan.piece)
        if page.gap is not None and scan.looked:
            return
        scan.gap, before, scan.next = scan.gap or page.gap, scan.next, max(scan.next, log.first - 1)
        if page.next == before:
            return
        for entry in page.entries:
            if (row := scan.row(entry)) is None:
                return
            scan.next = entry.seq
            if row:
                yield row
            await scan.pause()
        scan.next = page.next


async def backward(log: EventLog, scan: Scan, before: int) -> AsyncGenerator[bytes, None]:
    """The rows before `before`, newest first; entries older than the kept ones are a gap at the end."""
    upper = min(before, log.last + 1)
    while not scan.full and upper > log.first:
        found = log.until(upper - 1, scan.piece)
        if not found:
            # A file may lack numbers.
            upper = log.first
        for entry in reversed(found):
            if (row := scan.row(entry)) is None:
                break
            upper = entry.seq
            if row:
                yield row
            await scan.pause()
    scan.next = upper if upper > log.first else None
    if scan.next is None and upper > 1:
        scan.gap = Gap(1, upper - 1)


async def exchange_rows(views: EntryViews, touched: Touched) -> AsyncGenerator[bytes, None]:
    """The rows of exchanges; others run between two of them."""
    for row in views.rows(touched):
        yield row
        await trio.lowlevel.checkpoint()


async def lines(engine: Engine, wanted: EventFilter, since: int) -> AsyncGenerator[bytes, None]:
    """The present log, line by line: a line for entries that left before they were read, and one at the end."""
    why: Why = "complete" if wanted.passes_all and since == 0 else "filtered"
    last = end = engine.log.last
    yield ndjson.header(engine.header())
    while since < end:
        page = engine.log.since(since, min(_PIECE, end - since))
        if page.gap is not None:
            yield ndjson.line(page.gap)
        for entry in page.entries:
            row = entry.encoded() if wanted.fits(entry) else b""
            if row and wanted.finds(row):
                yield row + b"\n"
            if row:
                await trio.lowlevel.checkpoint()
        since = page.next
        # A gap may reach beyond the end: entries may come and leave while this reads.
        last = max(last, since)
        await trio.lowlevel.checkpoint()
    yield ndjson.line(End(last, why))


def _views(engine: Engine) -> EntryViews:
    return EntryViews(engine.log.entry, lambda: engine.observer.views)


def register(app: QuartTrio, engine: Engine) -> None:
    """Add the pages of entries."""

    @app.get(listing.EVENTS.rule)
    async def events() -> Response:
        query, wanted = _asked(listing.EVENTS)
        log, limits = engine.log, engine.settings.limits
        limit = min(query.number("limit", limits.api_page, low=1), limits.api_page)
        shown = _views(engine) if query.switch("view") else None
        scan = Scan(wanted, limit, limits, shown)
        if "before" in query.own:
            if "since" in query.own:
                raise QueryError("since and before exclude each other")
            rows = backward(log, scan, query.number("before", 0))
        else:
            rows = forward(log, scan, query.number("since", 0))

        def others() -> Mapping[str, Any]:
            gap = None if scan.gap is None else asdict(scan.gap)
            return {"run": engine.run, "gap": gap, "next": scan.next, "last": log.last}

        exchanges = {} if shown is None else {"exchanges": exchange_rows(shown, scan.touched)}
        return responses.streamed_json({"events": rows, **exchanges}, others)

    @app.get(listing.EVENT.rule)
    async def event(seq: str) -> Response:
        query = read(listing.EVENT.own)
        number, log = whole_number(seq) or 0, engine.log
        entry = log.entry(number)
        if entry is None:
            return not_found(_missing(log, number))
        body, tag = entry.encoded(), f"{engine.run}-{number}"
        if query.switch("view"):
            views = _views(engine)
            delivered = views.of(entry).delivered
            body, tag = views.encoded(entry, body), f"{tag}-{delivered.seq if delivered else 0}"
        return responses.stable(Response(body, content_type=responses.JSON), tag)

    @app.get(listing.EVENTS_NDJSON.rule)
    async def all_events() -> Response:
        query, wanted = _asked(listing.EVENTS_NDJSON)
        body = responses.joined(lines(engine, wanted, query.number("since", 0)))
        return responses.streamed(body, responses.NDJSON, f"events-{engine.run}.ndjson")


def _asked(page: listing.Route) -> tuple[Query, EventFilter]:
    query = read(page.own, page.filters)
    return query, parse(query.filters, [item.name for item in page.own])


def _missing(log: EventLog, number: int) -> str:
    if number == 0:
        return "an entry is named by its number, which counts from 1"
    if number < log.first:
        return f"entry {number} was pushed out of the log; the oldest is {log.first}"
    return f"there is no entry {number} yet; the newest is {log.last}"


def register_search(
    app: QuartTrio,
    engine: Engine,
    reading: AbstractAsyncContextManager[None],
    searching: AbstractAsyncContextManager[None],
) -> None:
    """Add the page. One search at a time holds `searching`; its work shares the lock `reading` with the exports."""

    @app.get(listing.SEARCH.rule)
    async def search() -> Response:
        query = read(listing.SEARCH.own)
        log, limits = engine.log, engine.settings.limits
        # Each search reads the whole log, so a page may have more entries than other pages.
        limit = min(query.number("limit", limits.api_page), limits.api_scan)
        # One more than any entry has: all of the log.
        before = query.number("before", log.last + 1)
        wanted = SearchRequest(read_line(query.own.get("filter", "")), _by(query), before, limit)
        last = log.last
        turns = Turns(reading)
        # The memory of a search grows with the entries of the log.
        async with searching:
            found = await Search(log, lambda: engine.observer.views, wanted, turns.done).run()
            entries, next, left_out = await _fitting(found, limits.api_page_bytes, turns) if limit else ([], None, 0)
        counts = {"run": engine.run, "matched": found.matched, "total": found.total, "last": last}
        touched: Touched = {}
        shown = _views(engine) if query.switch("view") else None
        arrays = {"events": _found(entries, turns, shown, touched)}
        if shown is not None:
            arrays["exchanges"] = exchange_rows(shown, touched)
        return responses.streamed_json(arrays, lambda: {**counts, "next": next, "left_out": left_out})


def _by(query: Query) -> By:
    by = query.own.get("by", "exchange")
    if by not in get_args(By):
        raise QueryError(f"by must be exchange or entry, got {clip(by)!r}", get_args(By))
    return cast("By", by)


async def _fitting(found: SearchResult, max_bytes: int, turns: Turns) -> tuple[list[Entry], int | None, int]:
    """The entries with room in the answer, the beginning of the rest, and the first exchange's entries without room."""
    entries: list[Entry] = []
    size = 0
    for place, part in enumerate(found.parts):
        for at, entry in enumerate(part):
            row_bytes = len(entry.encoded())
            size += row_bytes
            if size > max_bytes and place:
                return entries, found.parts[place - 1][0].seq, 0
            if size > max_bytes and at:
                rest = part[0].seq if len(found.parts) > 1 else found.next
                return list(part[:at]), rest, len(part) - at
            await turns.done(row_bytes)
        entries += part
    return entries, found.next, 0


async def _found(
    entries: Sequence[Entry], turns: Turns, views: EntryViews | None, touched: Touched
) -> AsyncGenerator[bytes, None]:
    # Others run between two entries: a large answer would delay every call.
    for entry in entries:
        row = entry.encoded() if views is None else views.encoded(entry)
        if views is not None:
            views.touch(entry, touched)
        yield row
        await turns.done(len(row))


_METHODS = ("notifications/progress", "tools/*")


def register_filter_line(app: QuartTrio, engine: Engine) -> None:
    """Add the page about a filter line."""

    @app.get(listing.FILTER_LINE.rule)
    async def filter_line() -> Response:
        query = read(listing.FILTER_LINE.own)
        line = query.own.get("line", "")
        at = min(query.number("at", len(line)), len(line))
        found = complete(line, at, _known(engine.observer.tables.sessions))
        return Response(encode(to_builtins(FilterReading(_error(line), found))), content_type=responses.JSON)


def _error(line: str) -> str | None:
    try:
        read_line(line)
    except QueryError as error:
        return str(error)
    return None


def _known(sessions: Iterable[SessionRow]) -> Known:
    rows = [row for row in sessions if row.era is not None]
    tools = sorted({tool for row in rows for tool in row.tools})
    methods = sorted({method for row in rows for method in row.methods})
    return {
        "client": [_client(row) for row in reversed(rows)],
        "tool": [(tool, "") for tool in tools],
        "method": [(method, "") for method in (*methods, *_METHODS)],
    }


def _client(row: SessionRow) -> tuple[str, str]:
    return (row.id, row.client_name) if row.label is None else (row.label, f"{row.id} {row.client_name}")

"""`/api/search`: the part of the log that a filter line passes; `/api/filter`: its error and its completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import cast, get_args

from msgspec import to_builtins
from quart import Response
from quart_trio import QuartTrio

from ...engine.engine import Engine
from ...engine.services import Turns
from ...log.event_log import Entry
from ...log.query import QueryError
from ...views.entry_view import EntryViews, Touched
from ...views.rows import SessionRow
from ...views.search.search import By, Search, SearchRequest, SearchResult
from ...views.search.words import Known, complete
from ...views.search.words import read as read_line
from ...wire.jsonrpc import clip, encode
from . import listing, responses
from .answers import FilterReading
from .events import exchange_rows
from .listing import Query, read
from .responses import streamed_json


def register(
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
        shown = EntryViews(log.entry, lambda: engine.observer.views) if query.switch("view") else None
        arrays = {"events": _rows(entries, turns, shown, touched)}
        if shown is not None:
            arrays["exchanges"] = exchange_rows(shown, touched)
        return streamed_json(arrays, lambda: {**counts, "next": next, "left_out": left_out})


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


async def _rows(
    entries: Sequence[Entry], turns: Turns, views: EntryViews | None, touched: Touched
) -> AsyncGenerator[bytes, None]:
    """Others run between two entries: a large answer would delay every call."""
    for entry in entries:
        row = entry.encoded() if views is None else views.encoded(entry)
        if views is not None:
            views.touch(entry, touched)
        yield row
        await turns.done(len(row))


_METHODS = ("notifications/progress", "tools/*")


def register_filter_line(app: QuartTrio, engine: Engine) -> None:
    """Add the page."""

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

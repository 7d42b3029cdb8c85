"""`/api/search`: the part of the log that a filter line passes."""

from __future__ import annotations

from typing import cast, get_args

import trio
from quart import Response
from quart_trio import QuartTrio

from ...engine.protocols import WatchedEngine
from ...engine.turns import Turns
from ...observe.query import QueryError
from ...observe.search.search import By, Search, SearchRequest, SearchResult
from ...observe.search.words import read as read_line
from ...wire.jsonrpc import clip
from . import listing
from .queries import Query, read
from .responses import array, json_answer


def register(app: QuartTrio, engine: WatchedEngine, turnstile: trio.Lock) -> None:
    """Add the page of one engine. Its work goes through the turnstile of the exports."""
    log, limits = engine.log, engine.settings.limits

    @app.get(listing.SEARCH.rule)
    async def search() -> Response:
        query = read(listing.SEARCH.own)
        # A page has more of them than others where that is asked for: each looks at all of the log.
        limit = min(query.number("limit", limits.api_page), limits.api_scan)
        # One more than any entry has: all of the log.
        before = query.number("before", log.last + 1)
        wanted = SearchRequest(read_line(query.own.get("filter", "")), _by(query), before, limit)
        last = log.last
        turns = Turns(turnstile)
        found = await Search(log, engine.observer.tables.client_names(), wanted, turns.done).run()
        rows, next, left_out = await _answer(found, limits.api_page_bytes, turns) if limit else ([], None, 0)
        counts = {"run": engine.run, "matched": found.matched, "total": found.total, "last": last}
        return json_answer({**counts, "next": next, "left_out": left_out}, {"events": array(rows)})


def _by(query: Query) -> By:
    by = query.own.get("by", "exchange")
    if by not in get_args(By):
        raise QueryError(f"by must be exchange or entry, got {clip(by)!r}", get_args(By))
    return cast("By", by)


async def _answer(found: SearchResult, max_bytes: int, turns: Turns) -> tuple[list[bytes], int | None, int]:
    """The parts that an answer has room for, where the rest begins, and how many entries of the first had no room.

    Others run between two entries: a large answer would hold up every call.
    """
    rows: list[bytes] = []
    size = 0
    for place, part in enumerate(found.parts):
        encoded: list[bytes] = []
        for entry in part:
            row = entry.encoded()
            size += len(row)
            if size > max_bytes and place:
                return rows, found.parts[place - 1][0].seq, 0
            if size > max_bytes and encoded:
                rest = part[0].seq if len(found.parts) > 1 else found.next
                return encoded, rest, len(part) - len(encoded)
            encoded.append(row)
            await turns.done(len(row))
        rows += encoded
    return rows, found.next, 0

"""`/api/calls`: tool calls, page by page, one with its evidence, and all of them as lines of JSON or as a table."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

import trio
from pydantic_core import from_json
from quart import Response
from quart_trio import QuartTrio

from ...engine.audit.call_store import AuditUnreadableError, CallRows, CallStore, CursorError
from ...engine.budgets import Turns
from ...engine.engine import Engine
from ...log.entry_reading import as_written, entry_of
from ...log.event_log import Entry
from ...views.entry_view import EntryViews, Touched
from ...views.fold import Views
from ...views.search import call_filter
from ...views.search.call_filter import CallFilter
from . import call_table, listing, media, responses
from .problems import not_found, problem
from .queries import Query, read
from .responses import array, json_answer

_DEFAULT_LIMIT: Final = 50
# Rows of an export in memory at once, beside those that a socket has not taken.
_PIECE_ROWS: Final = 200
_PIECE_BYTES: Final = 64 * 1024


def register(app: QuartTrio, engine: Engine, making: trio.Lock) -> None:
    """Add the pages about calls. A page is made under the lock `making`, and counted once that is released."""

    @app.get(listing.CALLS.rule)
    async def calls() -> Response:
        query, wanted = _asked(listing.CALLS)
        limits = engine.settings.limits
        limit = min(query.number("limit", _DEFAULT_LIMIT, low=1), limits.api_page)
        async with making:
            page = await engine.audit.calls.page(wanted, query.own.get("cursor"), limit, limits.api_page_bytes)
            return json_answer({"next": page.next}, {"calls": array(page.rows)})

    @app.get(listing.CALL.rule)
    async def call(id: str) -> Response:
        view = read(listing.CALL.own).switch("view")
        async with making:
            found = await engine.audit.calls.get(id, engine.settings.limits.api_page_bytes)
            if found is None:
                return not_found("there is no such call, or it is kept no longer")
            complete = b"true" if found.complete else b"false"
            rows, exchanges = (await _viewed(found.events)) if view else (found.events, b"")
            # Each copy of some megabytes takes a millisecond, so there are two.
            events = b",".join(rows)
            body = b'{"call":%b,"evidence":{"complete":%b,"events":[%b]%b}}' % (found.row, complete, events, exchanges)
            return responses.stable(Response(body, content_type=media.JSON), f"{found.tag}{'-view' * view}")

    @app.get(listing.CALLS_NDJSON.rule)
    async def lines() -> Response:
        _, wanted = _asked(listing.CALLS_NDJSON)
        rows = await _export(engine.audit.calls, wanted, b"", lambda row: row + b"\n")
        return responses.streamed(rows, media.NDJSON, f"calls-{engine.run}.ndjson")

    @app.get(listing.CALLS_CSV.rule)
    async def table() -> Response:
        _, wanted = _asked(listing.CALLS_CSV)
        rows = await _export(engine.audit.calls, wanted, call_table.header(), call_table.line)
        return responses.streamed(rows, f"{media.CSV}; charset=utf-8; header=present", f"calls-{engine.run}.csv")

    @app.errorhandler(CursorError)
    async def bad_cursor(error: CursorError) -> Response:
        return problem(400, str(error))

    @app.errorhandler(AuditUnreadableError)
    async def unreadable(error: AuditUnreadableError) -> Response:
        response = problem(503, str(error))
        response.headers["retry-after"] = "5"
        return response


async def _viewed(events: Sequence[bytes]) -> tuple[list[bytes], bytes]:
    """Entries with their views, and the rows of their exchanges: from these entries alone, as their run may be over."""
    entries, views, turns, touched = dict[int, Entry](), Views(), Turns(), Touched()
    shown = EntryViews(entries.get, lambda: views)
    for event in events:
        entry = as_written(event) or entry_of(from_json(event))
        entries[entry.seq] = entry
        views.take(entry)
        await turns.done(len(event))
    rows = list[bytes]()
    for entry, event in zip(entries.values(), events, strict=True):
        shown.touch(entry, touched)
        rows.append(shown.encoded(entry, event))
        await turns.done(len(event))
    return rows, b',"exchanges":%b' % responses.array(shown.rows(touched))


def _asked(page: listing.Route) -> tuple[Query, CallFilter]:
    query = read(page.own, page.filters)
    return query, call_filter.parse(query.filters, [item.name for item in page.own])


async def _export(
    store: CallStore, wanted: CallFilter, head: bytes, write: Callable[[bytes], bytes]
) -> AsyncGenerator[bytes, None]:
    """All passing rows, newest first. A row that starts or changes meanwhile is not given twice.

    The first page is read before the response begins: if it cannot be read, the answer is a refusal.
    """
    first = await store.page(wanted, None, _PIECE_ROWS, _PIECE_BYTES)
    return responses.joined(_parts(store, wanted, first, head, write))


async def _parts(
    store: CallStore, wanted: CallFilter, page: CallRows, head: bytes, write: Callable[[bytes], bytes]
) -> AsyncGenerator[bytes, None]:
    turns = Turns()
    yield head
    while True:
        for row in page.rows:
            yield write(row)
            await turns.done(len(row))
        if page.next is None:
            return
        page = await store.page(wanted, page.next, _PIECE_ROWS, _PIECE_BYTES)

"""`/api/sessions` and the other live tables; `/api/calls`: tool calls, also as lines of JSON and as CSV (RFC 4180)."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import trio
from pydantic_core import from_json
from quart import Response
from quart_trio import QuartTrio

from ...engine.audit.call_store import AuditUnreadableError, CallRows, CursorError, FileCalls, MemoryCalls
from ...engine.engine import Engine
from ...engine.services import Turns
from ...log.event_log import Entry
from ...log.ndjson import read_entry
from ...log.query import QueryError
from ...views.entry_view import EntryViews, Touched
from ...views.fold import Views
from ...views.records import APART, CallRecord
from ...views.search import call_filter
from ...views.search.call_filter import CallFilter
from ...views.tables import TableName, Tables
from ...wire.jsonrpc import encode
from . import listing, responses
from .listing import Query, read
from .responses import array, json_answer, not_found, problem


def register(app: QuartTrio, engine: Engine, making: AbstractAsyncContextManager[None]) -> None:
    """Add the pages. A page is made under the lock `making`, and counted once that is released."""

    def add(name: TableName, page: listing.Route) -> None:
        @app.get(page.rule, endpoint=name)
        async def table() -> Response:
            query = read(page.own)
            async with making:
                # A row that changes meanwhile is newer than `seq`; a reader that continues from `seq` gets it again.
                seq, tables = engine.log.last, engine.observer.tables
                ids = _before(tables.all(name), query.own.get("cursor"))
                rows, next = await _newest(tables, name, ids, engine.settings.limits.api_page_bytes)
                return json_answer({"run": engine.run, "seq": seq, "next": next}, {name: array(rows)})

    for name, page in listing.TABLE_PAGES.items():
        add(name, page)


def _before(ids: list[str], cursor: str | None) -> list[str]:
    if cursor is None:
        return ids
    if cursor not in ids:
        raise QueryError("the cursor must be `next` of a page before; its row is gone, and so are all before it")
    return ids[: ids.index(cursor)]


async def _newest(tables: Tables, name: TableName, ids: list[str], max_bytes: int) -> tuple[list[bytes], str | None]:
    """The last rows with room in a page, at least one, and the cursor of the older ones.

    Others run between two rows: a large page would delay every call.
    """
    found: list[bytes] = []
    oldest, size = None, 0
    for id in reversed(ids):
        for row in tables.rows(name, [id]):
            size += len(row)
            if found and size > max_bytes:
                return found[::-1], oldest
            found.append(row)
            oldest = id
        await trio.lowlevel.checkpoint()
    return found[::-1], None


_DEFAULT_LIMIT: Final = 50
# Rows of an export in memory at once, beside those that a socket has not taken.
_PIECE_ROWS: Final = 200
_PIECE_BYTES: Final = 64 * 1024


def register_calls(app: QuartTrio, engine: Engine, making: AbstractAsyncContextManager[None]) -> None:
    """Add the pages about calls, with `making` as for `register`."""

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
            return responses.stable(Response(body, content_type=responses.JSON), f"{found.tag}{'-view' * view}")

    @app.get(listing.CALLS_NDJSON.rule)
    async def lines() -> Response:
        _, wanted = _asked(listing.CALLS_NDJSON)
        rows = await _export(engine.audit.calls, wanted, b"", lambda row: row + b"\n")
        return responses.streamed(rows, responses.NDJSON, f"calls-{engine.run}.ndjson")

    @app.get(listing.CALLS_CSV.rule)
    async def table() -> Response:
        _, wanted = _asked(listing.CALLS_CSV)
        rows = await _export(engine.audit.calls, wanted, csv_header(), csv_line)
        return responses.streamed(rows, f"{responses.CSV}; charset=utf-8; header=present", f"calls-{engine.run}.csv")

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
        entry = read_entry(event)
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
    store: MemoryCalls | FileCalls, wanted: CallFilter, head: bytes, write: Callable[[bytes], bytes]
) -> AsyncGenerator[bytes, None]:
    """All passing rows, newest first. A row that starts or changes meanwhile is not given twice.

    The first page is read before the response begins: if it cannot be read, the answer is a refusal.
    """
    first = await store.page(wanted, None, _PIECE_ROWS, _PIECE_BYTES)
    return responses.joined(_parts(store, wanted, first, head, write))


async def _parts(
    store: MemoryCalls | FileCalls, wanted: CallFilter, page: CallRows, head: bytes, write: Callable[[bytes], bytes]
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


COLUMNS: Final = (
    "id",
    *(name for name in CallRecord.__struct_fields__ if name not in APART),
    *("progress_token_type", "arguments", "result"),
)
"""The members of a row, in order, but for `cancelled_how`: it is `cancelled_by` in words."""

# Columns with values of several JSON types: `5` is not `"5"`.
_TYPED: Final = frozenset({"request_id", "progress_token", "arguments", "result"})
# Some spreadsheets take a cell with this beginning, also in the wide forms, for a formula, and the text is a client's.
# Such a cell gets a `'` before it; so does one that begins with `'`.
_ACTIVE: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", "'")


def csv_header() -> bytes:
    """The first line."""
    return _line(COLUMNS)


def csv_line(row: bytes) -> bytes:
    """The line of a row in JSON. Null is an empty cell; other values than texts are written as JSON."""
    fields = from_json(row)
    return _line(_cell(name, fields[name]) for name in COLUMNS)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and name not in _TYPED:
        return f"'{value}" if value.startswith(_ACTIVE) else value
    return encode(value).decode()


def _line(cells: Any) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)
    return text.getvalue().encode()

"""`/api/sessions`, `/api/tasks`, `/api/streams`, `/api/hosts`, `/api/refusals`, `/api/counts`: the live tables."""

from __future__ import annotations

import trio
from quart import Response
from quart_trio import QuartTrio

from ...engine.engine import Engine
from ...log.query import QueryError
from ...views.tables.tables import TableName, Tables
from . import listing
from .queries import read
from .responses import array, json_answer


def register(app: QuartTrio, engine: Engine, making: trio.Lock) -> None:
    """Add the pages. A page is made under the lock `making`, and counted once that is released."""

    async def table(name: TableName, page: listing.Route) -> Response:
        query = read(page.own)
        async with making:
            # A row that changes meanwhile is newer than `seq`; a reader that continues from `seq` gets it again.
            seq, tables = engine.log.last, engine.observer.tables
            ids = _before(tables.all(name), query.own.get("cursor"))
            rows, next = await _newest(tables, name, ids, engine.settings.limits.api_page_bytes)
            return json_answer({"run": engine.run, "seq": seq, "next": next}, {name: array(rows)})

    @app.get(listing.SESSIONS.rule)
    async def sessions() -> Response:
        return await table("sessions", listing.SESSIONS)

    @app.get(listing.TASKS.rule)
    async def tasks() -> Response:
        return await table("tasks", listing.TASKS)

    @app.get(listing.STREAMS.rule)
    async def streams() -> Response:
        return await table("streams", listing.STREAMS)

    @app.get(listing.HOSTS.rule)
    async def hosts() -> Response:
        return await table("hosts", listing.HOSTS)

    @app.get(listing.REFUSALS.rule)
    async def refusals() -> Response:
        return await table("refusals", listing.REFUSALS)

    @app.get(listing.COUNTS.rule)
    async def counts() -> Response:
        return await table("counts", listing.COUNTS)


def _before(ids: list[str], cursor: str | None) -> list[str]:
    """The ids before a cursor, or all. Raises `QueryError`."""
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

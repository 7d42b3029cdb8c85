"""`/api/sessions`, `/api/tasks`, `/api/streams`: the live tables, whole."""

from __future__ import annotations

from quart import Response
from quart_trio import QuartTrio

from ...engine.engine import Engine
from ...observe.tables import TableName
from . import listing
from .queries import read
from .responses import gathered, json_answer


def register(app: QuartTrio, engine: Engine) -> None:
    """Add the pages of one engine."""

    async def table(name: TableName) -> Response:
        read()
        engine.observer.catch_up()
        # Rows that change while others are encoded are newer than that, and come again with what is read from there on.
        seq, tables = engine.log.last, engine.observer.tables
        rows = await gathered(tables.rows(name, tables.all(name)))
        return json_answer({"run": engine.run, "seq": seq}, {name: rows})

    @app.get(listing.SESSIONS.rule)
    async def sessions() -> Response:
        return await table("sessions")

    @app.get(listing.TASKS.rule)
    async def tasks() -> Response:
        return await table("tasks")

    @app.get(listing.STREAMS.rule)
    async def streams() -> Response:
        return await table("streams")

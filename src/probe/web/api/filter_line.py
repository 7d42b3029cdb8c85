"""`/api/filter`: the error of a filter line, and the completions of the word at a place."""

from __future__ import annotations

from collections.abc import Iterable

from quart import Response
from quart_trio import QuartTrio

from ...engine.engine import Engine
from ...log.query import QueryError
from ...views.search.completing import Known, complete
from ...views.search.words import read as read_line
from ...views.tables.rows import SessionRow
from ...wire.jsonrpc import encode
from . import listing, media
from .answers import FilterReading
from .queries import read

_METHODS = ("notifications/progress", "tools/*")


def register(app: QuartTrio, engine: Engine) -> None:
    """Add the page."""

    @app.get(listing.FILTER_LINE.rule)
    async def filter_line() -> Response:
        query = read(listing.FILTER_LINE.own)
        line = query.own.get("line", "")
        at = min(query.number("at", len(line)), len(line))
        found = complete(line, at, _known(engine.observer.tables.sessions))
        return Response(encode(FilterReading(_error(line), found)), content_type=media.JSON)


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

"""`/api`: read-only JSON about what happened, for the dashboard and for scripts; `/interaction`: pages to confirm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import trio
from quart import Response, request
from quart_trio import QuartTrio

from ..engine.engine import Engine
from ..wire.jsonrpc import encode
from . import interaction


class _BadQueryError(ValueError):
    """A query parameter is not what it must be."""


def create(engine: Engine) -> QuartTrio:
    """The side pages of one engine."""
    app = QuartTrio("probe")
    # No page here reads a body; this is what Quart would keep of one.
    app.config["MAX_CONTENT_LENGTH"] = 1024
    limits = engine.settings.limits
    most = limits.api_page

    @app.get("/api/events")
    async def events() -> Response:
        page = engine.log.since(_number("since", 0), min(_number("limit", most), most), limits.api_page_bytes)
        gap = None if page.gap is None else {"first": page.gap.first, "last": page.gap.last}
        rows = await _gathered(entry.encoded() for entry in page.entries)
        return _json({"gap": gap, "next": page.next, "last": engine.log.last}, "events", rows)

    @app.get("/api/calls")
    async def calls() -> Response:
        newest = engine.records.newest(min(_number("limit", 50), most))
        return _json({}, "calls", await _gathered(encode(record.as_json()) for record in newest))

    interaction.register(app, engine)

    @app.errorhandler(_BadQueryError)
    async def bad_query(error: _BadQueryError) -> Response:
        return _problem(400, "Bad Request", str(error))

    @app.errorhandler(404)
    async def not_found(error: Exception) -> Response:
        return _problem(404, "Not Found", "known are /mcp, /health, /ready, /api/events, /api/calls and /interaction")

    @app.errorhandler(405)
    async def not_allowed(error: Exception) -> Response:
        allowed = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))
        response = _problem(405, "Method Not Allowed", f"this page takes {allowed}")
        response.headers["allow"] = allowed
        return response

    return app


def _number(name: str, default: int) -> int:
    given = request.args.get(name)
    if given is None:
        return default
    if not given.isascii() or not given.isdecimal() or len(given) > 15:
        raise _BadQueryError(f"{name} must be a whole number from 0, got {given[:40]!r}")
    return int(given)


async def _gathered(rows: Iterable[bytes]) -> bytes:
    """The rows as one JSON array. Other tasks run between two of them: a large page would hold up every call."""
    made = []
    for row in rows:
        made.append(row)
        await trio.lowlevel.checkpoint()
    return b"[" + b",".join(made) + b"]"


def _json(value: dict[str, Any], name: str, rows: bytes) -> Response:
    """An object with one more member, whose value is JSON already."""
    head = encode(value)[:-1] + (b"," if value else b"")
    body = b'%b"%b":%b}' % (head, name.encode(), rows)
    return Response(body, content_type="application/json", headers={"cache-control": "no-store"})


def _problem(status: int, title: str, detail: str) -> Response:
    """An RFC 9457 problem."""
    body = encode({"type": "about:blank", "title": title, "status": status, "detail": detail})
    return Response(body, status=status, content_type="application/problem+json")

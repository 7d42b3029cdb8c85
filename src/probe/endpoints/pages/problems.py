"""Refusals, as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quart import Response
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from ...observe.event_filter import FilterError
from ...wire.jsonrpc import encode
from .queries import BadQueryError


def problem(status: int, title: str, detail: str, known: Iterable[str] = ()) -> Response:
    """A refusal; `known` are the parameters that there are, for one that had an unknown one."""
    value: dict[str, Any] = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    names = list(known)
    body = encode({**value, "known": names} if names else value)
    return Response(body, status=status, content_type="application/problem+json")


def not_found(detail: str) -> Response:
    """404."""
    return problem(404, "Not Found", detail)


def register(app: QuartTrio, known_paths: str) -> None:
    """Answer what goes wrong on any page; `known_paths` is told to who asks for one that there is not."""

    @app.errorhandler(BadQueryError)
    async def bad_query(error: BadQueryError) -> Response:
        return problem(400, "Bad Request", str(error), error.known)

    @app.errorhandler(FilterError)
    async def bad_filter(error: FilterError) -> Response:
        return problem(400, "Bad Request", str(error))

    @app.errorhandler(404)
    async def no_page(error: Exception) -> Response:
        return not_found(known_paths)

    @app.errorhandler(405)
    async def not_allowed(error: Exception) -> Response:
        allowed = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))
        response = problem(405, "Method Not Allowed", f"this page takes {allowed}")
        response.headers["allow"] = allowed
        return response

    @app.errorhandler(HTTPException)
    async def refused(error: HTTPException) -> Response:
        return problem(error.code or 500, error.name, error.description or error.name)

"""Refusals, as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quart import Response
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from ...log.query import QueryError
from ...server.endpoints.asgi import PROBLEM_MEDIA, RefusedError


def problem(status: int, detail: str, known: Iterable[str] = ()) -> Response:
    """A refusal; `known` are the valid names, after an unknown one."""
    return Response(RefusedError(status, detail, known=known).body, status=status, content_type=PROBLEM_MEDIA)


def not_found(detail: str) -> Response:
    """A refusal with status 404."""
    return problem(404, detail)


def register(app: QuartTrio, known_paths: Callable[[], str]) -> None:
    """Answer the errors of all pages with problem details; the answer to an unknown path is that of `known_paths`."""

    @app.errorhandler(QueryError)
    async def bad_query(error: QueryError) -> Response:
        return problem(400, str(error), error.known)

    @app.errorhandler(404)
    async def no_page(error: Exception) -> Response:
        return not_found(known_paths())

    @app.errorhandler(405)
    async def not_allowed(error: Exception) -> Response:
        allowed = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))
        response = problem(405, f"this page takes {allowed}")
        response.headers["allow"] = allowed
        return response

    @app.errorhandler(HTTPException)
    async def refused(error: HTTPException) -> Response:
        return problem(error.code or 500, error.description or error.name)

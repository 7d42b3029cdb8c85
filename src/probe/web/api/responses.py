"""Answers of the pages: JSON joined from encoded rows, bodies in pieces, 304, and problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final

from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from ...log.query import QueryError
from ...log.redaction import encode_with
from ...server.endpoints.asgi import PROBLEM_MEDIA, RefusedError
from ...wire.jsonrpc import encode

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
NDJSON = "application/x-ndjson"
CSV = "text/csv"
HTML = "text/html"
XML = "application/xml"
ZIP = "application/zip"

# Half of the bytes of `max_unsent_bytes` that each answer holds.
_CHUNK_BYTES: Final = 32 * 1024


def json_answer(value: Mapping[str, Any], rows: Mapping[str, bytes] | None = None) -> Response:
    """An object with at least one member; the values of `rows` are encoded JSON."""
    return Response(encode_with(value, (rows or {}).items()), content_type=JSON)


def array(rows: Iterable[bytes]) -> bytes:
    """Rows as one JSON array."""
    return b"[" + b",".join(rows) + b"]"


def stable(response: Response, tag: str) -> Response:
    """An answer with an ETag: a client that has this version gets 304 and no body."""
    if request.if_none_match.contains_weak(tag):
        response = Response(b"", status=304)
        del response.headers["content-type"]
    response.set_etag(tag)
    # A client may keep it and must revalidate it: 304 is cheap.
    response.headers["cache-control"] = "no-cache"
    return response


def streamed(parts: AsyncIterator[bytes], content_type: str, filename: str | None = None) -> Response:
    """A body made while it is sent; it ends if the client disconnects. With `filename` a browser saves it."""
    headers = {} if filename is None else {"content-disposition": f'attachment; filename="{filename}"'}
    if request.method == "HEAD":
        head = Response(b"", content_type=content_type, headers=headers)
        # The length is not known before the body is made.
        del head.headers["content-length"]
        return head
    return Response(parts, content_type=content_type, headers=headers)


def streamed_json(
    arrays: Mapping[str, AsyncGenerator[bytes, None]], others: Callable[[], Mapping[str, Any]]
) -> Response:
    """An object made while it is sent, so that only few of its rows are in memory.

    `arrays` are encoded rows, made one after the other. `others` is called after the last row; it gives at least one
    member.
    """

    async def parts() -> AsyncGenerator[bytes, None]:
        yield b"{"
        for name, rows in arrays.items():
            yield b'"%b":[' % name.encode()
            comma = b""
            async with aclosing(rows):
                async for row in rows:
                    yield comma + row
                    comma = b","
            yield b"],"
        yield encode(others())[1:]

    return streamed(joined(parts()), JSON)


async def joined(parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The parts of a body, with small ones joined; a large one is sent by itself."""
    chunk = bytearray()
    async with aclosing(parts):
        async for part in parts:
            if chunk and len(chunk) + len(part) > _CHUNK_BYTES:
                yield bytes(chunk)
                chunk.clear()
            chunk += part
    yield bytes(chunk)


def register(app: QuartTrio) -> None:
    """Set the headers and limits of every answer."""
    # Otherwise Quart cuts a body after a minute, unseen by the client. The listener disconnects a peer that does not
    # read.
    app.config["RESPONSE_TIMEOUT"] = None

    @app.after_request
    async def finish(response: Response) -> Response:
        response.headers.setdefault("cache-control", "no-store")
        if response.mimetype == HTML:
            response.headers.setdefault("cross-origin-opener-policy", "same-origin")
        if request.method == "HEAD" and "content-length" in response.headers:
            length = response.headers["content-length"]
            response.set_data(b"")
            response.headers["content-length"] = length
        return response


def problem(status: int, detail: str, known: Iterable[str] = ()) -> Response:
    """A refusal; `known` are the valid names, after an unknown one."""
    return Response(RefusedError(status, detail, known=known).body, status=status, content_type=PROBLEM_MEDIA)


def not_found(detail: str) -> Response:
    """A refusal with status 404."""
    return problem(404, detail)


def answer_errors(app: QuartTrio, known_paths: Callable[[], str]) -> None:
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

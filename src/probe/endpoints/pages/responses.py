"""Answers of the pages: JSON put together from rows that are encoded already, bodies in pieces, and 304."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from quart import Response, request
from quart_trio import QuartTrio

from ...observe.stored import encode_with
from .media import HTML, JSON


def json_answer(value: Mapping[str, Any], rows: Mapping[str, bytes] | None = None) -> Response:
    """An object with at least one member; the values of `rows` are JSON already."""
    return Response(encode_with(value, (rows or {}).items()), content_type=JSON)


def array(rows: Iterable[bytes]) -> bytes:
    """Rows as one JSON array."""
    return b"[" + b",".join(rows) + b"]"


def stable(response: Response, tag: str) -> Response:
    """An answer that stays as it is while its tag is the same: who has it already gets 304 and no body."""
    if request.if_none_match.contains_weak(tag):
        response = Response(b"", status=304)
        del response.headers["content-type"]
    response.set_etag(tag)
    # May be kept, and is asked for again each time: 304 costs next to nothing.
    response.headers["cache-control"] = "no-cache"
    return response


def streamed(parts: AsyncIterator[bytes], content_type: str, filename: str | None = None) -> Response:
    """A body that is made while it is sent; the client's going ends it. With `filename` a browser saves it."""
    headers = {} if filename is None else {"content-disposition": f'attachment; filename="{filename}"'}
    if request.method == "HEAD":
        head = Response(b"", content_type=content_type, headers=headers)
        # It is not known without making the body.
        del head.headers["content-length"]
        return head
    return Response(parts, content_type=content_type, headers=headers)


def register(app: QuartTrio) -> None:
    """Set the headers and limits of every answer."""
    # Else a body that takes longer than a minute would be cut without a sign; a peer that reads nothing is disconnected
    # by the listener.
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

"""Refusals as problem details (RFC 9457): of all pages, but not of the protocol, which has its own."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from ...core.inbound import HttpHead
from ...wire.jsonrpc import encode
from .asgi import Headers, Send, respond

MEDIA = "application/problem+json"
_HEADERS: Headers = ((b"content-type", MEDIA.encode()), (b"cache-control", b"no-store"))


class RefusedError(Exception):
    """A request is answered with a problem. `known` is what there is, where something unknown was asked for."""

    def __init__(self, status: int, detail: str, headers: Headers = (), known: Iterable[str] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers
        self.body = body(status, detail, known)


def body(status: int, detail: str, known: Iterable[str] = ()) -> bytes:
    """The JSON of a problem."""
    title = HTTPStatus(status).phrase
    value: dict[str, Any] = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    names = list(known)
    return encode({**value, "known": names} if names else value)


async def refuse(send: Send, head: HttpHead, refused: RefusedError) -> None:
    """Send the whole response."""
    await respond(send, refused.status, [*_HEADERS, *refused.headers], b"" if head.method == "HEAD" else refused.body)

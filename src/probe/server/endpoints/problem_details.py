"""Refusals as problem details (RFC 9457) for all paths but those of MCP, which has its own errors."""

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
    """A request is refused with a problem. `known` lists the valid names if an unknown one was requested."""

    def __init__(self, status: int, detail: str, headers: Headers = (), known: Iterable[str] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers
        self.body = body(status, detail, known)


def body(status: int, detail: str, known: Iterable[str] = ()) -> bytes:
    """The problem as JSON."""
    title = HTTPStatus(status).phrase
    value: dict[str, Any] = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    names = list(known)
    return encode({**value, "known": names} if names else value)


async def refuse(send: Send, head: HttpHead, refused: RefusedError) -> None:
    """Send the refusal as a whole response."""
    await respond(send, refused.status, [*_HEADERS, *refused.headers], b"" if head.method == "HEAD" else refused.body)

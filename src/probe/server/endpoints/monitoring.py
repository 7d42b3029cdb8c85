"""Pages for monitoring: `/health` (liveness), `/ready` (readiness) and `/metrics`.

Orchestrators probe the first two, without a Host name of this server. `/metrics` is for Prometheus and exists only if
the settings ask for it.
"""

from __future__ import annotations

from collections.abc import Callable

from .asgi import Receive, Scope, Send, respond

_HEADERS = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


class Health:
    """`/health` and `/ready`; `ready` returns whether the server takes new work."""

    def __init__(self, ready: Callable[[], bool]) -> None:
        self._ready = ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await respond(send, 405, [(b"allow", b"GET, HEAD")])
        elif scope["path"] == "/health":
            await respond(send, 200, _HEADERS, b'{"status":"alive"}')
        else:
            ready = self._ready()
            body = b'{"status":"ready"}' if ready else b'{"status":"draining"}'
            await respond(send, 200 if ready else 503, _HEADERS, body)


class Metrics:
    """The metrics page of one engine: `text` returns it, with the media type `content_type`."""

    def __init__(self, content_type: str, text: Callable[[], bytes]) -> None:
        self._content_type = content_type.encode()
        self._text = text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await respond(send, 405, [(b"allow", b"GET, HEAD")])
            return
        headers = [(b"content-type", self._content_type), (b"cache-control", b"no-store")]
        await respond(send, 200, headers, self._text())

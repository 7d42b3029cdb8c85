"""Pages for programs that watch the server: `/health` (liveness), `/ready` (readiness) and `/metrics`.

The first two are for probes of an orchestrator, which know no Host name of ours; `/metrics` is for Prometheus, and is
there only if it is wanted.
"""

from __future__ import annotations

from collections.abc import Callable

from .asgi import Receive, Scope, Send, respond

_HEADERS = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


class Health:
    """`ready` tells whether new work is taken."""

    def __init__(self, ready: Callable[[], bool]) -> None:
        self._ready = ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["method"] not in ("GET", "HEAD"):
            await respond(send, 405, [(b"allow", b"GET, HEAD")])
        elif scope["path"] == "/health":
            await respond(send, 200, _HEADERS, b'{"status":"alive"}')
        else:
            ready = self._ready()
            body = b'{"status":"ready"}' if ready else b'{"status":"draining"}'
            await respond(send, 200 if ready else 503, _HEADERS, body)


class Metrics:
    """Serves the page of one engine's telemetry: what `text` gives, of the type `content_type`."""

    def __init__(self, content_type: str, text: Callable[[], bytes]) -> None:
        self._content_type = content_type.encode()
        self._text = text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["method"] not in ("GET", "HEAD"):
            await respond(send, 405, [(b"allow", b"GET, HEAD")])
            return
        headers = [(b"content-type", self._content_type), (b"cache-control", b"no-store")]
        await respond(send, 200, headers, self._text())

"""`/metrics`, for Prometheus; there only if it is wanted."""

from __future__ import annotations

from collections.abc import Callable

from .asgi import Receive, Scope, Send, respond


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

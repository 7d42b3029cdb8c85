"""`/metrics`, for Prometheus; there only if it is wanted."""

from __future__ import annotations

from ..telemetry.service import MetricsText
from .asgi import Receive, Scope, Send, respond


class Metrics:
    """Serves the page of one engine's telemetry."""

    def __init__(self, page: MetricsText) -> None:
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["method"] not in ("GET", "HEAD"):
            await respond(send, 405, [(b"allow", b"GET, HEAD")])
            return
        kind = self._page.content_type.encode()
        headers = [(b"content-type", kind), (b"cache-control", b"no-store")]
        await respond(send, 200, headers, self._page.text())

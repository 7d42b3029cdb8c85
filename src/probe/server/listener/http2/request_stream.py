"""One request of an HTTP/2 connection: hypercorn's work per stream, and what the listener knows of the request."""

from __future__ import annotations

from typing import Any

from hypercorn.protocol.http_stream import ASGIHTTPState, HTTPStream
from hypercorn.typing import ASGISendEvent


class RequestStream(HTTPStream):
    """`more` are ASGI extensions of this request. `ends`: the part of the body that is being sent is the last one."""

    def __init__(self, *args: Any, more: dict[str, Any]) -> None:
        super().__init__(*args)
        self.more = more
        self.ends = False

    async def app_send(self, message: ASGISendEvent | None) -> None:
        """Take what the application sends; None when its call is over."""
        if message is not None and message["type"] == "http.response.body" and self.state is ASGIHTTPState.RESPONSE:
            self.ends = not (message.get("more_body", False) or self.response.get("trailers", False))
        await super().app_send(message)

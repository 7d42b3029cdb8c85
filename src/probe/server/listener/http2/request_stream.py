"""One request of an HTTP/2 connection: hypercorn's stream, with two more members."""

from __future__ import annotations

from typing import Any

from hypercorn.protocol.http_stream import ASGIHTTPState, HTTPStream
from hypercorn.typing import ASGISendEvent


class RequestStream(HTTPStream):
    """`more` are ASGI extensions of this request. `ends`: the present part of the body is the last one."""

    def __init__(self, *args: Any, more: dict[str, Any]) -> None:
        super().__init__(*args)
        self.more = more
        self.ends = False

    async def app_send(self, message: ASGISendEvent | None) -> None:
        """Take a message of the application; None at the end of its call."""
        if message is not None and message["type"] == "http.response.body" and self.state is ASGIHTTPState.RESPONSE:
            self.ends = not (message.get("more_body", False) or self.response.get("trailers", False))
        await super().app_send(message)

"""The read-only address of a room: pages and data by GET, in which the room's own id never stands.

The id is in the event log, for example in the address of a page that an elicitation asks for. Answers are changed on
their way out: each copy of the room's id becomes the read-only one, which is as long. So an answer must not be
compressed, and a ZIP file is only for the owner.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import parse_qs

from ..server.endpoints.asgi import Scope, Send

SESSION_FILE: Final = "/api/export.mcpprobe"
"""For the owner only: in a ZIP file the id cannot be replaced."""

_SEARCHES: Final = ("text", "filter", "passes")
_COMPRESSES: Final = b"accept-encoding"


def may_show(scope: Scope) -> bool:
    """True if a read-only address may answer this request."""
    path = f"{scope['path']}/"
    is_page = path.startswith(("/dashboard/", "/api/")) or scope["path"] == "/"
    return scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and is_page and scope["path"] != SESSION_FILE


def searches(scope: Scope) -> bool:
    """True if a request searches texts. Its hits would show, piece by piece, the id that an answer hides."""
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return any(name in query for name in _SEARCHES)


def uncompressed(scope: Scope) -> Scope:
    """The scope of a request that accepts no compression."""
    headers = [pair for pair in scope["headers"] if pair[0].lower() != _COMPRESSES]
    # The values that the listener keeps for this head are of the other one.
    extensions = {name: value for name, value in scope.get("extensions", {}).items() if name != "probe.notes"}
    return {**scope, "headers": headers, "extensions": extensions}


class Masked:
    """A `send` that replaces each `secret` in bodies by `shown`, which is as long, also where it is in two pieces.

    Only bytes that may begin the secret wait for the next piece, so an event is not held back by it.
    """

    def __init__(self, send: Send, secret: bytes, shown: bytes) -> None:
        self._send = send
        self._secret = secret
        self._shown = shown
        self._kept = b""

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Send one message of a response."""
        if message["type"] == "http.response.body":
            body = (self._kept + message.get("body", b"")).replace(self._secret, self._shown)
            keep = self._begun(body) if message.get("more_body", False) else 0
            self._kept = body[len(body) - keep :]
            message = {**message, "body": body[: len(body) - keep]}
        await self._send(message)

    def _begun(self, body: bytes) -> int:
        """The length of the end of `body` that begins the secret."""
        longest = min(len(self._secret) - 1, len(body))
        return next((size for size in range(longest, 0, -1) if body.endswith(self._secret[:size])), 0)

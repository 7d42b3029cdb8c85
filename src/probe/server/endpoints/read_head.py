"""The head of an HTTP request, parsed once for all requests with the same head."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final

from ...core.clients import client_label
from ...core.modern_inbound import Era
from ...log import redaction
from ...log.redaction import SESSION_HEADER
from .asgi import Scope, http_head

NOTES: Final = "probe.notes"
"""The ASGI extension of a listener that recognizes repeated heads.

`scope["extensions"]["probe.notes"]` is a mapping for values derived from the head alone. The next request with the same
bytes mostly gets the same mapping. The listener keeps and bounds these mappings.
"""


class ReadHead:
    """The values derived from the head of a request.

    `headers` and `hidden` are for an `http.request` without a query. `label` is the raw `?client=` of the query.
    `sessions` are the values of `Mcp-Session-Id`. `judged`: the head has passed the rungs before the body. Then
    `length` is the Content-Length of a POST, None if it is not a number, and `era` is the era of the head.
    """

    __slots__ = ("era", "head", "headers", "hidden", "judged", "label", "length", "query", "sessions")

    def __init__(self, scope: Scope) -> None:
        self.head = http_head(scope)
        self.query: str = scope["query_string"].decode("latin-1")
        self.headers = redaction.decoded_headers(self.head.headers)
        self.hidden = redaction.hidden_names(self.headers, "")
        self.label = client_label(self.query) if self.query else None
        self.sessions = self.head.each(SESSION_HEADER)
        self.judged = False
        self.length: int | None = None
        self.era: Era | None = None


def read_head(scope: Scope) -> ReadHead:
    """The head of the request of an ASGI scope."""
    notes: MutableMapping[str, Any] | None = scope.get("extensions", {}).get(NOTES)
    if notes is None:
        return ReadHead(scope)
    known: ReadHead | None = notes.get("read")
    if known is None:
        known = notes["read"] = ReadHead(scope)
    return known

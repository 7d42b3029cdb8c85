"""Pages behind opaque cursors (2025-11-25 server/utilities/pagination)."""

from __future__ import annotations

import base64
import binascii

from ...wire.errors import Code, McpError


def cursor(kind: str, after: int) -> str:
    """An opaque cursor for the position after which the next page of a `kind` of list begins."""
    return base64.urlsafe_b64encode(f"{kind}:{after}".encode()).decode().rstrip("=")


def position(kind: str, given: str | None) -> int:
    """The position of a cursor; 0 without one. Raises `McpError` -32602 for one that this list never gave."""
    if given is None:
        return 0
    try:
        padded = given + "=" * (-len(given) % 4)
        _, _, number = base64.b64decode(padded, altchars=b"-_", validate=True).decode().rpartition(":")
        after = int(number)
    except (binascii.Error, ValueError):
        after = -1
    if after < 1 or cursor(kind, after) != given:
        raise McpError(Code.INVALID_PARAMS, f"Invalid params: params.cursor is not a cursor of this {kind} list")
    return after

"""The protocol revisions of this server. They are dates, so their strings are in order."""

from __future__ import annotations

from typing import Final

V2025_03_26: Final = "2025-03-26"
V2025_06_18: Final = "2025-06-18"
V2025_11_25: Final = "2025-11-25"
V2026_07_28: Final = "2026-07-28"

LEGACY: Final = (V2025_03_26, V2025_06_18, V2025_11_25)
"""Revisions with `initialize` and sessions, oldest first."""

MODERN: Final = (V2026_07_28,)
"""Revisions without sessions: the `_meta` of each request names the revision; oldest first."""


def negotiate(requested: str) -> str:
    """The revision to answer `initialize` with: the requested one, else the latest.

    2025-11-25 basic/lifecycle: "If the server supports the requested protocol version, it MUST respond with the same
    version. Otherwise, the server MUST respond with another protocol version it supports. This SHOULD be the latest".
    """
    return requested if requested in LEGACY else LEGACY[-1]

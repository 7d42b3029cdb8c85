"""The address of this server for the links to its pages: as the operator says, or as the request shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from .asgi import Scope

FORWARDED: Final = "probe.forwarded"
"""Beyond ASGI: the scheme and the path prefix that a trusted proxy passes on, each empty where it says nothing."""

# The prefix that a proxy takes off a path; anything else could lead a link elsewhere.
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_MOST_PREFIX = 200


def forwarded(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, str]:
    """Scheme and prefix, from X-Forwarded-Proto and X-Forwarded-Prefix; of several values the last is the proxy's."""
    values: dict[bytes, str] = {}
    for name, value in headers:
        values[name] = value.decode("latin-1").rpartition(",")[2].strip()
    scheme, prefix = values.get(b"x-forwarded-proto", ""), values.get(b"x-forwarded-prefix", "").rstrip("/")
    known = len(prefix) <= _MOST_PREFIX and _PREFIX.fullmatch(prefix) and not {".", ".."} & set(prefix.split("/"))
    return scheme if scheme in ("http", "https") else "", prefix if known else ""


def base_of(public_url: str, scope: Scope | Any, host: str) -> str:
    """The beginning of each page's address: scheme, authority and a proxy's prefix, without a slash at the end."""
    if public_url:
        return public_url.rstrip("/")
    scheme, prefix = scope.get(FORWARDED, ("", ""))
    return f"{scheme or scope['scheme']}://{host}{prefix}"

"""The head of an HTTP request, parsed once for all requests with the same head, and what proxies have added to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping
from typing import Any, Final

from ...core.clients import client_label, is_loopback
from ...core.inbound import is_local_name
from ...core.modern_inbound import Era
from ...log import redaction
from ...log.redaction import SESSION_HEADER
from ...settings import Settings
from .asgi import Scope, http_head

NOTES: Final = "probe.notes"
"""The ASGI extension of a listener that recognizes repeated heads.

`scope["extensions"]["probe.notes"]` is a mapping for values derived from the head alone. The next request with the same
bytes mostly gets the same mapping. The listener keeps and bounds these mappings.
"""

FORWARDED: Final = "probe.forwarded"
"""Beyond ASGI: the scheme and the path prefix from a trusted proxy, such as `("https", "/probe")`; empty if missing."""

PREFIX: Final = "probe.prefix"
"""Beyond ASGI: the beginning of the path that this server itself removed, such as that of a room; empty if missing."""

# The prefix that a proxy removes from a path. Any other text could lead a link to another site.
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_MOST_PREFIX = 200
# Headers that proxies add: RFC 9110 section 7.6.3, RFC 7239, and its predecessors such as X-Forwarded-For.
_OF_PROXIES = re.compile(rb"via|forwarded|x-forwarded-.*|x-real-ip|.*-connecting-ip|.*-client-ip")


class ReadHead:
    """The values derived from the head of a request.

    `label` is the raw `?client=` of the query. `sessions` are the values of `Mcp-Session-Id`. `judged`: the head has
    passed the rungs before the body. Then `length` is the Content-Length of a POST, None if it is not a number, and
    `era` is the era of the head.
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


def forwarded(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, str]:
    """Scheme and prefix from X-Forwarded-Proto and X-Forwarded-Prefix; the last value is the one that the proxy set."""
    values: dict[bytes, str] = {}
    for name, value in headers:
        values[name] = value.decode("latin-1").rpartition(",")[2].strip()
    scheme, prefix = values.get(b"x-forwarded-proto", ""), values.get(b"x-forwarded-prefix", "").rstrip("/")
    known = len(prefix) <= _MOST_PREFIX and _PREFIX.fullmatch(prefix) and not {".", ".."} & set(prefix.split("/"))
    return scheme if scheme in ("http", "https") else "", prefix if known else ""


def base_of(public_url: str, scope: Scope | Any, host: str) -> str:
    """The beginning of each page's URL: scheme, authority and removed prefixes, without a final slash."""
    own: str = scope.get(PREFIX, "")
    if public_url:
        return public_url.rstrip("/") + own
    scheme, prefix = scope.get(FORWARDED, ("", ""))
    return f"{scheme or scope['scheme']}://{host}{prefix}{own}"


def is_private(settings: Settings, scope: Scope | Any) -> bool:
    """True if, as far as this server can know, only this machine reaches it, and the request is of this machine."""
    on_loopback = is_loopback(settings.host) or is_local_name(settings.host)
    if not on_loopback or settings.public_url or settings.allowed_hosts or settings.trusted_proxies:
        return False
    host, *others = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"] or [""]
    peer, _port = scope.get("client") or ("", None)
    passed_on = any(_OF_PROXIES.fullmatch(name.lower()) for name, _ in scope["headers"])
    return is_loopback(peer) and is_local_name(host) and not others and not passed_on

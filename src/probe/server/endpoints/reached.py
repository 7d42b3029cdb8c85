"""The way of a request to this server: the base URL for links to its pages, and whether it came from this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from ...core.clients import is_loopback
from ...core.inbound import is_local_name
from ...settings import Settings
from .asgi import Scope

FORWARDED: Final = "probe.forwarded"
"""Beyond ASGI: the scheme and the path prefix from a trusted proxy, such as `("https", "/probe")`; empty if missing."""

# The prefix that a proxy removes from a path. Any other text could lead a link to another site.
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_MOST_PREFIX = 200

# Headers that proxies add: RFC 9110 section 7.6.3, RFC 7239, and its predecessors such as X-Forwarded-For.
_OF_PROXIES = re.compile(rb"via|forwarded|x-forwarded-.*|x-real-ip|.*-connecting-ip|.*-client-ip")


def forwarded(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, str]:
    """Scheme and prefix from X-Forwarded-Proto and X-Forwarded-Prefix; the last value is the one that the proxy set."""
    values: dict[bytes, str] = {}
    for name, value in headers:
        values[name] = value.decode("latin-1").rpartition(",")[2].strip()
    scheme, prefix = values.get(b"x-forwarded-proto", ""), values.get(b"x-forwarded-prefix", "").rstrip("/")
    known = len(prefix) <= _MOST_PREFIX and _PREFIX.fullmatch(prefix) and not {".", ".."} & set(prefix.split("/"))
    return scheme if scheme in ("http", "https") else "", prefix if known else ""


def base_of(public_url: str, scope: Scope | Any, host: str) -> str:
    """The beginning of each page's URL: scheme, authority and a proxy's prefix, without a final slash."""
    if public_url:
        return public_url.rstrip("/")
    scheme, prefix = scope.get(FORWARDED, ("", ""))
    return f"{scheme or scope['scheme']}://{host}{prefix}"


def is_private(settings: Settings, scope: Scope | Any) -> bool:
    """Whether, as far as this server can know, only this machine reaches it, and the request comes from this machine.

    A server on loopback may stand behind a proxy, so no setting and no header of the request may show a proxy.
    """
    on_loopback = is_loopback(settings.host) or is_local_name(settings.host)
    if not on_loopback or settings.public_url or settings.allowed_hosts or settings.trusted_proxies:
        return False
    host, *others = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"] or [""]
    peer, _port = scope.get("client") or ("", None)
    passed_on = any(_OF_PROXIES.fullmatch(name.lower()) for name, _ in scope["headers"])
    return is_loopback(peer) and is_local_name(host) and not others and not passed_on

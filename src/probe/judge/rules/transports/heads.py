"""Readers of the head of an HTTP request, for rules."""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from urllib.parse import unquote_plus

from ....wire.revisions import MODERN
from ...projection.views import Exchange

SESSION: Final = "mcp-session-id"
VERSION: Final = "mcp-protocol-version"
LAST_EVENT: Final = "last-event-id"
NO_IDS: Final = frozenset({"", "undefined", "null", "None"})
"""The words that a program without a session id sends in place of one; the log shows these as they are."""


def has_body(exchange: Exchange) -> bool:
    """Whether a body follows the head, as far as that says (RFC 9112 section 6.3; HTTP/2 need not say it)."""
    length = exchange.header("content-length")
    if length is not None:
        return length.strip("0") != ""
    return "transfer-encoding" in exchange.headers or "content-type" in exchange.headers


def speaks_modern(exchange: Exchange) -> bool:
    """Whether the head names a revision without sessions."""
    return exchange.header(VERSION) in MODERN


def lines(exchange: Exchange, name: str) -> list[str]:
    """The values of a header, each without the spaces and tabs around it."""
    return [value.strip(" \t") for value in exchange.headers.get(name, ())]


def single_values(exchange: Exchange, name: str) -> list[str]:
    """The values of a header that may stand once; a gateway may have joined two of them with a comma."""
    return [part.strip(" \t") for value in exchange.headers.get(name, ()) for part in value.split(",")]


def accepts(exchange: Exchange) -> frozenset[str]:
    """The media types and ranges of Accept, without those of weight 0 (RFC 9110 section 12.5.1)."""
    return _accepted(",".join(exchange.headers.get("accept", ())))


# Each client sends one Accept header, and one query, with all its requests.
@lru_cache(maxsize=256)
def _accepted(accept: str) -> frozenset[str]:
    found = set()
    for part in accept.split(","):
        kind, *parameters = (each.strip().lower() for each in part.split(";"))
        weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        if weight.strip("0."):
            found.add(kind)
    return frozenset(found)


def covers(kind: str, accepted: frozenset[str]) -> bool:
    """Whether a media type is among those of Accept, by its name or by a range."""
    return kind in accepted or "*/*" in accepted or f"{kind.partition('/')[0]}/*" in accepted


@lru_cache(maxsize=256)
def query_names(query: str) -> frozenset[str]:
    """The names of the parameters of a query that have a value, in lower case."""
    parts = (part.partition("=") for part in query.split("&"))
    return frozenset(unquote_plus(name).lower() for name, _, value in parts if value)


@lru_cache(maxsize=256)
def is_json(content_type: str | None) -> bool:
    """Whether a Content-Type is that of JSON in UTF-8."""
    media, *parameters = [part.strip().lower() for part in (content_type or "").split(";")]
    charsets = [part[8:].strip('"') for part in parameters if part.startswith("charset=")]
    return media == "application/json" and all(name in ("utf-8", "utf8") for name in charsets)

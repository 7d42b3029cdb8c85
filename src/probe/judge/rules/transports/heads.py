"""Readers of the head of an HTTP request. For Accept, Content-Type and the era they call the functions of `core/`.

So a refusal of the server and a finding rest on one reading of the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ....core.inbound import HttpHead, acceptance, is_json
from ....core.modern_inbound import era_of_head
from ....views.values import Exchange
from ....wire.errors import Rejection
from ...trace.findings import FAIL, PASS, WARN, Finding

SESSION_ID: Final = "mcp-session-id"
VERSION: Final = "mcp-protocol-version"
LAST_EVENT: Final = "last-event-id"
NO_IDS: Final = frozenset({"", "undefined", "null", "None"})
"""Programs without a session id send one of these in its place; the log shows them as they are."""


def is_post(exchange: Exchange) -> bool:
    """True for a POST to the endpoint with a body (RFC 9112 section 6.3; in HTTP/2 no header has to announce it).

    A POST without a body carries no message: health checks send such ones.
    """
    length, headers = exchange.header("content-length"), exchange.headers
    if exchange.fields.method != "POST" or not exchange.is_endpoint:
        return False
    if length is not None:
        return length.strip("0") != ""
    return "transfer-encoding" in headers or "content-type" in headers


def is_modern(exchange: Exchange) -> bool:
    """True if the head names a revision without sessions."""
    return era_of_head(exchange.fields) == "modern"


def one_value(head: HttpHead, name: str) -> str | None:
    """The value of a header; None without it, and for two different ones, as the server refuses these."""
    try:
        return head.get(name)
    except Rejection:
        return None


def parts(exchange: Exchange, name: str) -> Sequence[str]:
    """The values of a header; a gateway may have joined two of them with a comma."""
    return [part.strip(" \t") for value in exchange.fields.each(name) for part in value.split(",")]


def accepts(exchange: Exchange, *kinds: str) -> Finding:
    """Check that Accept lists media types. A range such as `*/*` covers them, and every server takes it: WARN."""
    listed = {kind: acceptance(exchange.fields, kind) for kind in kinds}
    if missing := [kind for kind, how in listed.items() if how == "not"]:
        return FAIL(f"Accept does not list {' and '.join(missing)} (client or gateway)")
    if covered := [kind for kind, how in listed.items() if how == "by range"]:
        return WARN(f"Accept covers {' and '.join(covered)} by a range")
    return PASS()


def says_json(exchange: Exchange) -> Finding:
    """Check that Content-Type is `application/json` in UTF-8."""
    try:
        if is_json(exchange.fields):
            return PASS()
    except Rejection:
        pass
    given = exchange.fields.each("content-type")
    return FAIL(f"Content-Type is {', '.join(given)}" if given else "Content-Type is missing")


def session_id(exchange: Exchange) -> str | None:
    """The session of a request for the endpoint: its label, or the beginning of an id unknown to the server."""
    value = exchange.header(SESSION_ID)
    if value is None or value in NO_IDS or not exchange.is_endpoint or exchange.is_hidden(SESSION_ID):
        return None
    return exchange.request.named or value

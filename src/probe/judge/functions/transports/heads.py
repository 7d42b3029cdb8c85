"""What rules read in the head of an HTTP request. Accept, Content-Type and the era are read by the server's functions.

So what `core/` refuses and what a rule finds are about the same bytes, and cannot differ.
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
"""The words that a program without a session id sends in place of one; the log shows these as they are."""


def is_post(exchange: Exchange) -> bool:
    """True for a POST to the endpoint that has a body (RFC 9112 section 6.3; HTTP/2 need not say it).

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
    """The value of a header that may stand once; None without it, and where two differ, which the server refuses."""
    try:
        return head.get(name)
    except Rejection:
        return None


def parts(exchange: Exchange, name: str) -> Sequence[str]:
    """The values of a header that may stand once; a gateway may have joined two of them with a comma."""
    return [part.strip(" \t") for value in exchange.fields.each(name) for part in value.split(",")]


def accepts(exchange: Exchange, *kinds: str) -> Finding:
    """Finds whether Accept lists media types: a range that covers them serves every server, and is still no list."""
    listed = {kind: acceptance(exchange.fields, kind) for kind in kinds}
    if missing := [kind for kind, how in listed.items() if how == "not"]:
        return FAIL(f"Accept does not list {' and '.join(missing)} (client or gateway)")
    if covered := [kind for kind, how in listed.items() if how == "by range"]:
        return WARN(f"Accept covers {' and '.join(covered)} by a range")
    return PASS()


def says_json(exchange: Exchange) -> Finding:
    """Finds whether Content-Type is that of JSON in UTF-8."""
    try:
        if is_json(exchange.fields):
            return PASS()
    except Rejection:
        pass
    given = exchange.fields.each("content-type")
    return FAIL(f"Content-Type is {', '.join(given)}" if given else "Content-Type is missing")


def session_id(exchange: Exchange) -> str | None:
    """The session that a request for the endpoint names: by its label, else by the beginning of its id."""
    value = exchange.header(SESSION_ID)
    if value is None or value in NO_IDS or not exchange.is_endpoint or exchange.is_hidden(SESSION_ID):
        return None
    return exchange.request.named or value

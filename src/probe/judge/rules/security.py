"""Rules `security.*`: what a client should keep to itself."""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from urllib.parse import unquote_plus

from ...views.values import Exchange
from ..trace.findings import FAIL, PASS, UNCLEAR, Finding
from ..trace.opportunities import EXCHANGE, SESSION
from ..trace.rules import rule
from ..trace.trace import Trace

_SECRETS: Final = frozenset({"access_token", "token", "api_key", "apikey", "key", "authorization", "secret"})
# Sessions that the id in an address is looked for among.
_NEWEST: Final = 20


@rule("security.session-id-kept", each=EXCHANGE)
def keeps_session_id(exchange: Exchange, trace: Trace) -> Finding | None:
    """Keeps the session id out of addresses.

    The server compares before it hides anything. The sentence is of 2025-11-25: of an id in an address alone it must be
    known that its session is of that revision.
    """
    session, bound = exchange.session, set(trace.rule.revisions)
    named = None if session is None or session.seq > exchange.seq or not session.is_legacy else session.revision
    if not exchange.request.session_in_query:
        return PASS() if named in bound else None
    opened = {each.revision for each in trace.seen.newest(SESSION, None, _NEWEST)}
    revisions = {named} if named is not None else opened
    if revisions == bound:
        return FAIL("the id of a session stands in the address (client or gateway)")
    if revisions & bound or not revisions:
        return UNCLEAR("the id of a session of an unknown revision stands in the address")
    return None


@rule("security.secrets-not-in-query", each=EXCHANGE)
def keeps_secrets(exchange: Exchange, trace: Trace) -> Finding | None:
    """Sends no credentials in the query. A person gives the address, and some gateways demand it."""
    request = exchange.request
    if not request.query or not (exchange.is_endpoint or request.path.rstrip("/").endswith("/ws")):
        return None
    found = _SECRETS & _names(request.query)
    return FAIL(f"{' and '.join(sorted(found))} in the query of the address") if found else PASS()


@lru_cache(maxsize=256)
def _names(query: str) -> frozenset[str]:
    """The names of the parameters of a query that have a value, in lower case."""
    parts = (part.partition("=") for part in query.split("&"))
    return frozenset(unquote_plus(name).lower() for name, _, value in parts if value)

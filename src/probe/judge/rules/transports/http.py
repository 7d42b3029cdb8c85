"""Rules `http.*` of every revision, and of those with sessions: the heads of requests."""

from __future__ import annotations

from itertools import islice
from typing import Final

from ....views.clients import Session
from ....views.values import Exchange, Message
from ...clients.series import ALWAYS
from ...trace.findings import FAIL, PASS, UNCLEAR, Finding
from ...trace.opportunities import DENIED, EXCHANGE, REFUSED, RESPONSE, SESSION
from ...trace.rules import rule
from ...trace.trace import Trace
from .heads import SESSION_ID, VERSION, accepts, is_modern, is_post, one_value, says_json

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_METHODS: Final = frozenset({"POST", "GET", "DELETE"})
# Methods outside of sessions, and the probe for the era of the server.
_OUTSIDE: Final = frozenset({"initialize", "server/discover"})
# Newest sessions of a client, and newest requests of a session, in a search.
_MOST_SESSIONS: Final = 20
_MOST_REQUESTS: Final = 50


@rule("http.post-accept", each=EXCHANGE, methods={"POST"})
def accepts_both(exchange: Exchange, trace: Trace) -> Finding | None:
    """Accepts JSON and event streams on every POST."""
    return accepts(exchange, _JSON, _EVENTS) if is_post(exchange) else None


@rule("http.get-accept", each=EXCHANGE, methods={"GET"})
def accepts_events(exchange: Exchange, trace: Trace) -> Finding | None:
    """Accepts event streams on GET. A browser on the address has no session id, and is not judged."""
    has_session = exchange.is_endpoint and SESSION_ID in exchange.headers
    return accepts(exchange, _EVENTS) if has_session and not is_modern(exchange) else None


@rule("http.content-type", each=EXCHANGE, methods={"POST"})
def content_type(exchange: Exchange, trace: Trace) -> Finding | None:
    """Declares the bodies of its POSTs as JSON."""
    return says_json(exchange) if is_post(exchange) else None


def session_of(exchange: Exchange, at: float) -> Session | None:
    """The session of a request for the endpoint, if the client had the answer to `initialize` before it.

    "If the client does not support the version in the server's response, it SHOULD disconnect": for a DELETE right
    after the answer the client need not know the revision.
    """
    session, method = exchange.session, exchange.fields.method
    if session is None or not exchange.is_endpoint or not had_id(session, exchange.began.mono):
        return None
    if method == "DELETE" and (session.initialized is None or session.initialized.at >= at):
        asked = None if session.initialize is None else session.initialize.params.get("protocolVersion")
        return session if asked == session.revision else None
    return session if method in _METHODS else None


@rule("http.version-header", each=EXCHANGE)
def names_version(exchange: Exchange, trace: Trace) -> Finding | None:
    """Names the protocol version on every request after initialize."""
    session = session_of(exchange, trace.at)
    is_owed = session is not None and session.revision in trace.rule.revisions
    return PASS() if is_owed and VERSION in exchange.headers else None


@rule("http.version-header", each=RESPONSE)
def names_no_version(exchange: Exchange, trace: Trace) -> Finding | None:
    """Likewise. An `initialize` in a session is judged by another rule."""
    session = session_of(exchange, trace.at)
    if session is None or session.revision not in trace.rule.revisions or VERSION in exchange.headers:
        return None
    if any(message.method == "initialize" for message in exchange.messages):
        return None
    return FAIL(f"{exchange.fields.method} without MCP-Protocol-Version (client or gateway)", session)


@rule("http.version-header-negotiated", each=EXCHANGE)
def names_negotiated(exchange: Exchange, trace: Trace) -> Finding | None:
    """Names the negotiated version.

    A request with a revision without sessions is no request of the session, although it carries its id.
    """
    session, named = session_of(exchange, trace.at), exchange.fields.each(VERSION)
    if session is None or session.revision not in trace.rule.revisions or not named or is_modern(exchange):
        return None
    if one_value(exchange.fields, VERSION) == session.revision:
        return PASS()
    return FAIL(f"MCP-Protocol-Version is {', '.join(named)}, negotiated was {session.revision}", session)


@rule("http.session-header", each=EXCHANGE, one_process=True)
def has_session_id(exchange: Exchange, trace: Trace) -> Finding | None:
    """Sends the session id with every request. Without a label a request without an id belongs to no client."""
    return PASS() if trace.subject.kind == "label" and session_of(exchange, trace.at) is not None else None


@rule("http.session-header", each=REFUSED, one_process=True, any_revision=True)
def message_without_id(message: Message, trace: Trace) -> Finding | None:
    """Likewise: a refused message, unless it is legal outside of sessions. A ping is legal before `initialize`."""
    exchange = message.exchange
    if exchange is None or message.limited_by(ALWAYS):
        return None
    sent = [each for each in exchange.messages if each.received]
    if any(each.era == "modern" or each.method in _OUTSIDE or each.rpc == "invalid" for each in sent):
        return None
    return _lacks_id(exchange, message, trace)


@rule("http.session-header", each=DENIED, methods={"DELETE"}, one_process=True)
def delete_without_id(exchange: Exchange, trace: Trace) -> Finding | None:
    """Likewise: a DELETE. A GET without an id asks for the old transport."""
    return None if exchange.limited_by(ALWAYS) else _lacks_id(exchange, None, trace)


def _lacks_id(exchange: Exchange, message: Message | None, trace: Trace) -> Finding | None:
    """Another process with this label may send a request before its own `initialize`, on another connection."""
    at, method = exchange.began.mono, exchange.fields.method
    session = open_session(at, trace)
    if trace.subject.kind != "label" or session is None or not exchange.is_endpoint:
        return None
    if method not in ("POST", "DELETE") or SESSION_ID in exchange.headers or is_modern(exchange):
        return None
    if message is not None and message.method == "ping":
        return UNCLEAR("a ping without Mcp-Session-Id, which is legal before initialize", session)
    remark = f"{method} without Mcp-Session-Id (client or gateway)"
    if not any(is_on_connection_of(each, exchange) for each in trace.seen.newest(SESSION, None, _MOST_SESSIONS)):
        if trace.seen.all(SESSION, since=at, until=at + trace.allowances.settle_s):
            return UNCLEAR(f"{remark}, perhaps of another process before its initialize", session)
        trace.sure.crossed(at, "settle_s", session)
    return FAIL(remark, session)


def open_session(at: float, trace: Trace) -> Session | None:
    """The newest session over HTTP that was open at a time, the client having its id."""
    newest = trace.seen.newest(SESSION, None, _MOST_SESSIONS)
    over_http = (each for each in newest if each.fact.transport == "http")
    return next((each for each in over_http if had_id(each, at) and not each.closed_by(at)), None)


def had_id(session: Session, at: float) -> bool:
    """True if the client had the answer to `initialize` before a time."""
    return session.answered is not None and session.answered.mono < at


def is_on_connection_of(session: Session, exchange: Exchange) -> bool:
    """True if one of the newest requests of a session before an exchange came on the same connection."""
    requests = reversed(session.scope.requests.values())
    newest = islice((each for each in requests if each.seq < exchange.seq), _MOST_REQUESTS)
    return exchange.connection is not None and any(each.place is exchange.connection for each in newest)

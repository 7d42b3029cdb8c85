"""Rules `http.*` about the heads of requests, and `security.*` about their addresses.

For Accept, Content-Type and the era they call the functions of `core/`: a refusal of the server and a finding rest on
one reading of the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final
from urllib.parse import unquote_plus

from ....core.inbound import HttpHead, acceptance, is_json
from ....core.modern_inbound import repeats
from ....views.clients import Session
from ....views.retention import members
from ....views.values import Exchange, Message
from ....wire.errors import Rejection
from ....wire.v2026.headers import HeaderValueError, decode, encode
from ....wire.v2026.meta import PROTOCOL_VERSION
from ...clients.moments import era_by_head
from ...clients.series import ALWAYS, NEVER
from ...retention import BOUNDS
from ...trace.findings import FAIL, PASSED, UNCLEAR, WARN, Finding
from ...trace.opportunities import DENIED, EXCHANGE, MESSAGE, REFUSED, REQUEST, RESPONSE, SESSION
from ...trace.rules import member, rule
from ...trace.trace import MISSING_ENTRIES, Trace
from ...values import shown

SESSION_ID: Final = "mcp-session-id"
VERSION: Final = "mcp-protocol-version"
LAST_EVENT: Final = "last-event-id"
NO_IDS: Final = frozenset({"", "undefined", "null", "None"})
"""Programs without a session id send one of these in its place; the log shows them as they are."""


def is_post(exchange: Exchange) -> bool:
    """True for a POST to the endpoint with a body (RFC 9112 section 6.3; in HTTP/2 no header has to announce it).

    A POST without a body carries no message: health checks send such ones.
    """
    return exchange.is_endpoint and _posts_body(exchange.fields)


def is_modern(exchange: Exchange) -> bool:
    return era_by_head(exchange.fields) == "modern"


def one_value(head: HttpHead, name: str) -> str | None:
    """The value of a header; None without it, and for two different ones, as the server refuses these."""
    try:
        return head.get(name)
    except Rejection:
        return None


def parts(exchange: Exchange, name: str) -> Sequence[str]:
    """The values of a header; a gateway may have joined two of them with a comma."""
    return [part.strip(" \t") for value in exchange.fields.each(name) for part in value.split(",")]


# A client sends the same heads again and again; equal ones are one object.
@lru_cache(maxsize=64)
def _posts_body(head: HttpHead) -> bool:
    if head.method != "POST":
        return False
    length = head.each("content-length")[:1]
    if length:
        return length[0].strip("0") != ""
    return "transfer-encoding" in head.values or "content-type" in head.values


@lru_cache(maxsize=64)
def accepts(head: HttpHead, *kinds: str) -> Finding:
    """A range such as `*/*` covers media types, and every server takes it: WARN."""
    listed = {kind: acceptance(head, kind) for kind in kinds}
    if missing := [kind for kind, how in listed.items() if how == "not"]:
        return FAIL(f"Accept does not list {' and '.join(missing)} (client or gateway)")
    if covered := [kind for kind, how in listed.items() if how == "by range"]:
        return WARN(f"Accept covers {' and '.join(covered)} by a range")
    return PASSED


@lru_cache(maxsize=64)
def says_json(head: HttpHead) -> Finding:
    try:
        if is_json(head):
            return PASSED
    except Rejection:
        pass
    given = head.each("content-type")
    return FAIL(f"Content-Type is {', '.join(given)}" if given else "Content-Type is missing")


def left_at(exchange: Exchange) -> float:
    """When it was closed; `NEVER` while it is open."""
    return NEVER if exchange.closed is None else exchange.closed.mono


def session_id(exchange: Exchange) -> str | None:
    """The session of a request for the endpoint: its label, or the beginning of an id unknown to the server."""
    value = exchange.header(SESSION_ID)
    if value is None or value in NO_IDS or not exchange.is_endpoint or exchange.is_hidden(SESSION_ID):
        return None
    return exchange.request.named or value


_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_METHODS: Final = frozenset({"POST", "GET", "DELETE"})
# Methods outside of sessions, and the probe for the era of the server.
_OUTSIDE: Final = frozenset({"initialize", "server/discover"})


@rule("http.post-accept", each=EXCHANGE, methods={"POST"})
def accepts_both(exchange: Exchange, trace: Trace) -> Finding | None:
    return accepts(exchange.fields, _JSON, _EVENTS) if is_post(exchange) else None


@rule("http.get-accept", each=EXCHANGE, methods={"GET"})
def accepts_events(exchange: Exchange, trace: Trace) -> Finding | None:
    """A browser on the address has no session id, and is not judged."""
    has_session = exchange.is_endpoint and SESSION_ID in exchange.headers
    return accepts(exchange.fields, _EVENTS) if has_session and not is_modern(exchange) else None


@rule("http.content-type", each=EXCHANGE, methods={"POST"})
def content_type(exchange: Exchange, trace: Trace) -> Finding | None:
    return says_json(exchange.fields) if is_post(exchange) else None


def session_of(exchange: Exchange, at: float) -> Session | None:
    """The session of a request for the endpoint, if the client had the answer to `initialize` before it.

    "If the client does not support the version in the server's response, it SHOULD disconnect": for a DELETE right
    after the answer the client need not know the revision.
    """
    session, method = exchange.session, exchange.fields.method
    if session is None or not exchange.is_endpoint or not _had_id(session, exchange.began.mono):
        return None
    if method == "DELETE" and (session.initialized is None or session.initialized.at >= at):
        asked = None if session.initialize is None else session.initialize.params.get("protocolVersion")
        return session if asked == session.revision else None
    return session if method in _METHODS else None


@rule("http.version-header", each=EXCHANGE)
def names_version(exchange: Exchange, trace: Trace) -> Finding | None:
    session = session_of(exchange, trace.at)
    is_owed = session is not None and session.revision in trace.rule.revisions
    return PASSED if is_owed and VERSION in exchange.headers else None


@rule("http.version-header", each=RESPONSE)
def names_no_version(exchange: Exchange, trace: Trace) -> Finding | None:
    """An `initialize` in a session is judged by another rule."""
    session = None if VERSION in exchange.headers else session_of(exchange, trace.at)
    if session is None or session.revision not in trace.rule.revisions:
        return None
    if any(message.method == "initialize" for message in exchange.messages):
        return None
    trace.sure.whole(f"{MISSING_ENTRIES}; the request may be an initialize", session, since=exchange.began.mono)
    return FAIL(f"{exchange.fields.method} without MCP-Protocol-Version (client or gateway)", session)


@rule("http.version-header-negotiated", each=EXCHANGE)
def names_negotiated(exchange: Exchange, trace: Trace) -> Finding | None:
    """A request with a revision without sessions is no request of the session, although it carries its id."""
    session, named = session_of(exchange, trace.at), exchange.fields.each(VERSION)
    if session is None or session.revision not in trace.rule.revisions or not named or is_modern(exchange):
        return None
    if one_value(exchange.fields, VERSION) == session.revision:
        return PASSED
    return FAIL(f"MCP-Protocol-Version is {', '.join(named)}, negotiated was {session.revision}", session)


@rule("http.session-header", each=EXCHANGE, one_process=True)
def has_session_id(exchange: Exchange, trace: Trace) -> Finding | None:
    """Without a label a request without an id belongs to no client."""
    return PASSED if trace.subject.kind == "label" and session_of(exchange, trace.at) is not None else None


@rule("http.session-header", each=REFUSED, one_process=True, any_revision=True)
def message_without_id(message: Message, trace: Trace) -> Finding | None:
    """A refused message is a breach unless it is legal outside of sessions, such as a ping before `initialize`."""
    exchange = message.exchange
    if exchange is None or message.limited_by(ALWAYS):
        return None
    sent = [each for each in exchange.messages if each.received]
    if any(each.era == "modern" or each.method in _OUTSIDE or each.rpc == "invalid" for each in sent):
        return None
    return _lacks_id(exchange, message, trace)


@rule("http.session-header", each=DENIED, methods={"DELETE"}, one_process=True)
def delete_without_id(exchange: Exchange, trace: Trace) -> Finding | None:
    """A GET without an id asks for the old transport and is no breach."""
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
    if not any(is_on_connection_of(each, exchange) for each in trace.seen.newest(SESSION)):
        if trace.seen.all(SESSION, since=at, until=at + trace.allowances.settle_s):
            return UNCLEAR(f"{remark}, perhaps of another process before its initialize", session)
        trace.sure.crossed(at, "settle_s", session)
    trace.sure.whole(f"{MISSING_ENTRIES}; {remark}, unless the session had ended", session, since=session.opened.mono)
    return FAIL(remark, session)


def open_session(at: float, trace: Trace) -> Session | None:
    """The newest session over HTTP that was open at a time, with its id at the client."""
    newest = trace.seen.newest(SESSION)
    over_http = (each for each in newest if each.fact.transport == "http")
    return next((each for each in over_http if _had_id(each, at) and not each.closed_by(at)), None)


def _had_id(session: Session, at: float) -> bool:
    return session.answered is not None and session.answered.mono < at


def is_on_connection_of(session: Session, exchange: Exchange) -> bool:
    """True if one of the newest requests of a session came before an exchange on the same connection."""
    requests = reversed(session.scope.requests.values())
    newest = islice((each for each in requests if each.seq < exchange.seq), BOUNDS.searched)
    return exchange.connection is not None and any(each.place is exchange.connection for each in newest)


_METHOD: Final = "mcp-method"
_NAME: Final = "mcp-name"
_MEMBERS: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


def head_of(message: Message) -> Exchange | None:
    """The HTTP request of a message; None for a part of an array, and where the log lacks the head.

    An array is the fault of `jsonrpc.no-batch`, and one head cannot repeat several messages.
    """
    return message.post if message.batch is None else None


@rule("http.meta-version-header", each=REQUEST)
def names_meta_version(request: Message, trace: Trace) -> Finding | None:
    """For notifications "header requirements … are not defined by this revision".

    Two different headers are judged by `http.meta-version-equal`.
    """
    exchange = head_of(request)
    if exchange is None or not isinstance(request.meta.get(PROTOCOL_VERSION), str):
        return None
    values = parts(exchange, VERSION)
    if not values:
        return FAIL("MCP-Protocol-Version is missing (client or gateway)")
    if len(values) == 1:
        return PASSED
    if len(set(values)) == 1:
        return WARN(f"MCP-Protocol-Version stands {len(values)} times")
    return UNCLEAR(f"MCP-Protocol-Version has {len(values)} values")


@rule("http.meta-version-equal", each=REQUEST)
def same_version(request: Message, trace: Trace) -> Finding | None:
    exchange, named = head_of(request), request.meta.get(PROTOCOL_VERSION)
    if exchange is None or not isinstance(named, str) or VERSION not in exchange.headers:
        return None
    values = set(parts(exchange, VERSION))
    if values == {named}:
        return PASSED
    return FAIL(f"MCP-Protocol-Version is {', '.join(sorted(values))}, _meta says {named} (client or gateway)")


@rule("http.mcp-method", each=REQUEST)
def repeats_method(request: Message, trace: Trace) -> Finding | None:
    """The log clips a very long method; the message has all of it."""
    exchange, method = head_of(request), members(request.value).get("method")
    if exchange is None or not isinstance(method, str):
        return None
    found = exchange.fields.each(_METHOD)
    if repeats(exchange.fields, _METHOD, method):
        return PASSED
    if not found:
        return FAIL("Mcp-Method is missing (client or gateway)")
    if set(parts(exchange, _METHOD)) == {method}:
        return WARN("Mcp-Method stands more than once")
    if method != encode(method):
        return UNCLEAR("no header can carry this method")
    return FAIL(f"Mcp-Method is {', '.join(map(shown, found))}, the method is {shown(method)} (client or gateway)")


@rule("http.mcp-name", each=REQUEST, methods={"tools/call", "prompts/get", "resources/read"})
@rule("http.mcp-name-task", each=REQUEST, methods={"tasks/get", "tasks/update", "tasks/cancel"})
def repeats_name(request: Message, trace: Trace) -> Finding | None:
    source = _MEMBERS[request.method or ""]
    exchange, name = head_of(request), member(request, f"/params/{source}")
    if exchange is None or not isinstance(name, str):
        return None
    found = exchange.fields.each(_NAME)
    if not found:
        return FAIL("Mcp-Name is missing (client or gateway)")
    # A missing encoding is the fault of another rule.
    blame = FAIL if any(value.startswith("=?base64?") and value.endswith("?=") for value in found) else UNCLEAR
    try:
        if repeats(exchange.fields, _NAME, name, encoded=True):
            return PASSED
        if {decode(value) for value in found} == {name}:
            return WARN("Mcp-Name stands more than once")
    except HeaderValueError as error:
        return blame(f"Mcp-Name {error}")
    remark = f"Mcp-Name is {', '.join(map(shown, found))}, params.{source} is {shown(name)} (client or gateway)"
    return (FAIL if name == encode(name) else blame)(remark)


@rule("http.no-posted-responses", each=MESSAGE)
def posts_no_responses(message: Message, trace: Trace) -> Finding | None:
    """In a session, with its id, they are legal."""
    exchange = message.post
    if exchange is None or SESSION_ID in exchange.headers or message.rpc == "invalid":
        return None
    return FAIL("a response was posted") if message.rpc in ("response", "error") else PASSED


@rule("http.no-session-remains", each=REQUEST)
def request_without_remains(request: Message, trace: Trace) -> Finding | None:
    exchange = request.post
    if exchange is None or holds_session(exchange, trace):
        return None
    remains = [name for name in (SESSION_ID, LAST_EVENT) if name in exchange.headers]
    return _left_over(f"{' and '.join(remains)} in a request of this revision", exchange, trace) if remains else PASSED


@rule("http.no-session-remains", each=EXCHANGE, methods={"GET", "DELETE"})
def no_get_or_delete(exchange: Exchange, trace: Trace) -> Finding | None:
    if not exchange.is_endpoint or not is_modern(exchange) or holds_session(exchange, trace):
        return None
    return _left_over(
        f"{exchange.request.method} with MCP-Protocol-Version {exchange.header(VERSION)}", exchange, trace
    )


def holds_session(exchange: Exchange, trace: Trace) -> bool:
    """True if the client opened a legacy session before, or may have done so: there GET and the rest are legal."""
    named = exchange.request.named is not None
    return named or trace.subject.kind == "nothing" or trace.seen.last(SESSION, until=trace.at) is not None


def _left_over(remark: str, exchange: Exchange, trace: Trace) -> Finding:
    trace.sure.whole(remark)
    return FAIL(remark, at=exchange)


_SECRETS: Final = frozenset({"access_token", "token", "api_key", "apikey", "key", "authorization", "secret"})


@rule("security.session-id-kept", each=EXCHANGE)
def keeps_session_id(exchange: Exchange, trace: Trace) -> Finding | None:
    """The server compares before it hides anything.

    The sentence is of 2025-11-25: of an id in an address alone it must be known that its session is of that revision.
    """
    session, bound = exchange.session, set(trace.rule.revisions)
    named = None if session is None or session.seq > exchange.seq or not session.is_legacy else session.revision
    if not exchange.request.session_in_query:
        return PASSED if named in bound else None
    opened = {each.revision for each in trace.seen.newest(SESSION)}
    revisions = {named} if named is not None else opened
    if revisions == bound and (named is not None or not trace.gap_in(NEVER, trace.at)):
        return FAIL("the id of a session stands in the address (client or gateway)")
    if revisions & bound or not revisions:
        return UNCLEAR("the id of a session of an unknown revision stands in the address")
    return None


@rule("security.secrets-not-in-query", each=EXCHANGE)
def keeps_secrets(exchange: Exchange, trace: Trace) -> Finding | None:
    """A person gives the address, and some gateways demand it."""
    request = exchange.request
    if not request.query or not (exchange.is_endpoint or request.path.rstrip("/").endswith("/ws")):
        return None
    found = _SECRETS & _names(request.query)
    return FAIL(f"{' and '.join(sorted(found))} in the query of the address") if found else PASSED


@lru_cache(maxsize=256)
def _names(query: str) -> frozenset[str]:
    parts = (part.partition("=") for part in query.split("&"))
    return frozenset(unquote_plus(name).lower() for name, _, value in parts if value)

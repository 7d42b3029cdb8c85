"""Rules `http.*` of 2026-07-28: the head of a request repeats its body, and has no remains of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....core.modern_inbound import repeats
from ....views.retention import members
from ....views.values import Exchange, Message
from ....wire.v2026.headers import HeaderValueError, decode, encode
from ....wire.v2026.meta import PROTOCOL_VERSION
from ...trace.findings import FAIL, PASS, UNCLEAR, WARN, Finding
from ...trace.member import member
from ...trace.opportunities import EXCHANGE, MESSAGE, REQUEST, SESSION
from ...trace.rules import rule
from ...trace.trace import Trace
from .heads import LAST_EVENT, SESSION_ID, VERSION, is_modern, parts

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
def names_version(request: Message, trace: Trace) -> Finding | None:
    """Names the protocol version on every POST.

    For notifications "header requirements … are not defined by this revision". Two different headers are judged by
    `http.meta-version-equal`.
    """
    exchange = head_of(request)
    if exchange is None or not isinstance(request.meta.get(PROTOCOL_VERSION), str):
        return None
    values = parts(exchange, VERSION)
    if not values:
        return FAIL("MCP-Protocol-Version is missing (client or gateway)")
    if len(values) == 1:
        return PASS()
    if len(set(values)) == 1:
        return WARN(f"MCP-Protocol-Version stands {len(values)} times")
    return UNCLEAR(f"MCP-Protocol-Version has {len(values)} values")


@rule("http.meta-version-equal", each=REQUEST)
def same_version(request: Message, trace: Trace) -> Finding | None:
    """Names the same version in header and `_meta`."""
    exchange, named = head_of(request), request.meta.get(PROTOCOL_VERSION)
    if exchange is None or not isinstance(named, str) or VERSION not in exchange.headers:
        return None
    values = set(parts(exchange, VERSION))
    if values == {named}:
        return PASS()
    return FAIL(f"MCP-Protocol-Version is {', '.join(sorted(values))}, _meta says {named} (client or gateway)")


@rule("http.mcp-method", each=REQUEST)
def repeats_method(request: Message, trace: Trace) -> Finding | None:
    """Repeats the method in Mcp-Method. The log clips a very long method; the message has all of it."""
    exchange, method = head_of(request), members(request.value).get("method")
    if exchange is None or not isinstance(method, str):
        return None
    found = exchange.fields.each(_METHOD)
    if repeats(exchange.fields, _METHOD, method):
        return PASS()
    if not found:
        return FAIL("Mcp-Method is missing (client or gateway)")
    if set(parts(exchange, _METHOD)) == {method}:
        return WARN("Mcp-Method stands more than once")
    if method != encode(method):
        return UNCLEAR("no header can carry this method")
    return FAIL(f"Mcp-Method is {', '.join(found)}, the method is {method} (client or gateway)")


@rule("http.mcp-name", each=REQUEST, methods={"tools/call", "prompts/get", "resources/read"})
@rule("http.mcp-name-task", each=REQUEST, methods={"tasks/get", "tasks/update", "tasks/cancel"})
def repeats_name(request: Message, trace: Trace) -> Finding | None:
    """Repeats name, uri or task id in Mcp-Name."""
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
            return PASS()
        if {decode(value) for value in found} == {name}:
            return WARN("Mcp-Name stands more than once")
    except HeaderValueError as error:
        return blame(f"Mcp-Name {error}")
    remark = f"Mcp-Name is {', '.join(found)}, params.{source} is {name} (client or gateway)"
    return (FAIL if name == encode(name) else blame)(remark)


@rule("http.no-posted-responses", each=MESSAGE)
def posts_no_responses(message: Message, trace: Trace) -> Finding | None:
    """Posts no responses. In a session, with its id, they are legal."""
    exchange = message.post
    if exchange is None or SESSION_ID in exchange.headers or message.rpc == "invalid":
        return None
    return FAIL("a response was posted") if message.rpc in ("response", "error") else PASS()


@rule("http.no-session-remains", each=REQUEST)
def request_without_remains(request: Message, trace: Trace) -> Finding | None:
    """Leaves sessions, GET and Last-Event-ID behind."""
    exchange = request.post
    if exchange is None or holds_session(exchange, trace):
        return None
    remains = [name for name in (SESSION_ID, LAST_EVENT) if name in exchange.headers]
    return _left_over(f"{' and '.join(remains)} in a request of this revision", exchange, trace) if remains else PASS()


@rule("http.no-session-remains", each=EXCHANGE, methods={"GET", "DELETE"})
def no_get_or_delete(exchange: Exchange, trace: Trace) -> Finding | None:
    """Likewise: a GET or DELETE."""
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

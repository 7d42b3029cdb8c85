"""Rule `refused.by-server`: errors of the server that no other rule explains.

It is asked last, and waits for rules that wait. A refusal by a limit or the end of the server is no fault; one that a
model, a person or a restart may have caused, and that of a method that is tried once, is not decided.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from ....settings.server import Limits
from ....views.clients import Session
from ....views.retention import members
from ....views.values import LIMIT_REFUSALS, Exchange, Message
from ....wire.errors import CLIENT_CODES, Code, Refusal
from ....wire.jsonrpc import clip
from ...clients.series import ALWAYS, NEVER
from ...trace.findings import FAIL, UNCLEAR, Finding, Seen
from ...trace.opportunities import DENIED, FAILED, REFUSED, REQUEST
from ...trace.rules import rule
from ...trace.trace import MISSING_ENTRIES, Trace

# A refusal under another name that comes of a limit ends with the name of its setting.
_SETTING: Final = re.compile(r"\((\w+)\)$")
_SETTINGS: Final = frozenset(field.name for field in fields(Limits))
_LONGEST: Final = 200
_MINUTE_S: Final = 60.0

# Refusals that a limit of the server caused; one of them is how long it keeps the events of a stream.
_LIMITS: Final = LIMIT_REFUSALS | {Refusal.EVENTS_GONE.name}
# Refusals that need not be the client's doing, and why.
_EXCUSED: Final[Mapping[str, str]] = {
    Refusal.UNKNOWN_SESSION.name: "the session may have ended without the client's doing",
    Refusal.FORBIDDEN_HOST.name: "the settings of the server say which hosts it serves",
    Refusal.FORBIDDEN_ORIGIN.name: "the settings of the server say which origins it serves",
    Refusal.UNKNOWN_TOOLS.name: "a person may have written the URL that names the tools",
    Refusal.CLIENT_LABEL.name: "a person may have written the URL that names the client",
    Refusal.UNSUPPORTED_VERSION.name: "a client may try a version that this server does not have",
    Refusal.UNSUPPORTED_PROTOCOL_VERSION.name: "a client may try a version that this server does not have",
    Refusal.MISSING_CAPABILITY.name: "a client learns by it what the request needs",
    Refusal.PARSE_ERROR.name: "this server does not read all that may be JSON",
}
_NAMED: Final = "a model or a person may have named it"
# That is how a client learns of it.
_ONCE: Final = "a client may try a method once"
# So the server refuses what a client sends as if it had a session.
_WITHOUT_SESSION: Final = frozenset({Refusal.MISSING_SESSION.name, Refusal.INVALID_META.name})
# These name things that a model or a person chose, or that have ended meanwhile.
_NAMING: Final = frozenset(
    {"tools/call", "prompts/get", "completion/complete", "resources/read", "resources/subscribe"}
    | {"resources/unsubscribe", "tasks/get", "tasks/result", "tasks/cancel", "tasks/update", "stream/resume"}
    | {"stream/poll", "skills/get", "resources/directory/read"}
)
_BY_NAME: Final = frozenset({Code.INVALID_PARAMS, Code.RESOURCE_NOT_FOUND, Code.METHOD_NOT_FOUND})
# By these a client asks whether the server offers something; so do browsers and the health checks of proxies.
_ASKING: Final = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})


@rule("refused.by-server", each=REFUSED, general=True)
def refused_message(message: Message, trace: Trace) -> Finding | None:
    """A message over HTTP is judged with its response, as other rules may see the fault there only.

    An answer without its question is the business of `jsonrpc.response-id`.
    """
    exchange, problem = _over_http(message), getattr(message.refused and message.refused.fact, "problem", "")
    if exchange is not None:
        trace.passed(*((trace.at, "settle_s") if exchange.response is None else (exchange.response.mono, 0.0)))
        if exchange.response is None:
            return None
    if message.refusal in _LIMITS or message.limited_by(ALWAYS) or _names_limit(problem):
        return None
    if message.rpc in ("response", "error") and message.in_session is not None:
        return None
    tried = _tries(message, trace) if message.refusal == Refusal.METHOD_NOT_FOUND.name else ()
    return _judged(_looked_at(message), None if tried else _doubt(message, trace), problem, trace, *tried)


def _doubt(message: Message, trace: Trace) -> str | None:
    name, is_naming = message.refusal or "", message.method in _NAMING
    if name == Refusal.METHOD_NOT_FOUND.name:
        return _ONCE
    if name in _WITHOUT_SESSION and message.era != "modern" and _was_initialize_refused(trace):
        return "the server had refused initialize, so there was no session"
    if message.method == "ping" and message.pipe is not None and message.in_session is None and name not in _EXCUSED:
        # 2025-11-25 basic/lifecycle: no "requests other than pings" before the answer to `initialize`.
        return "a ping may come before initialize"
    return _NAMED if name == Refusal.INVALID_PARAMS.name and is_naming else _EXCUSED.get(name)


def _tries(request: Message, trace: Trace) -> Sequence[Message]:
    """The try of the same method before. `polite.refused-not-hammered` finds many a minute later."""

    def is_unknown(each: Message) -> bool:
        is_error = trace.seen.error_of(each) == Code.METHOD_NOT_FOUND
        return each.seq < request.seq and (is_error or each.refusal == Refusal.METHOD_NOT_FOUND.name)

    tried = trace.seen.newest(REQUEST, request.method, 1, is_unknown)
    if tried and request.transport == "http":
        trace.passed(trace.at, _MINUTE_S)
    return tried


def _was_initialize_refused(trace: Trace) -> bool:
    asked = trace.seen.last(REQUEST, "initialize", until=trace.asked)
    return asked is not None and (asked.refused is not None or trace.seen.error_of(asked) is not None)


@rule("refused.by-server", each=FAILED, general=True)
def answered_with_error(request: Message, trace: Trace) -> Finding | None:
    if request.answer is None:
        return None
    error = members(request.answer.error)
    code, said, doubt = error.get("code"), f"{error.get('message')}", None
    tried = _tries(request, trace) if code == Code.METHOD_NOT_FOUND else ()
    if request.refused is not None or code not in CLIENT_CODES or _names_limit(said):
        return None
    if code == Code.MISSING_CLIENT_CAPABILITY:
        doubt = _EXCUSED[Refusal.MISSING_CAPABILITY.name]
    elif code in _BY_NAME and request.method in _NAMING:
        doubt = _NAMED
    elif code == Code.METHOD_NOT_FOUND and not tried:
        doubt = _ONCE
    elif code == Code.RESUMED_TOO_EARLY and _is_in_tolerance(error.get("data"), trace):
        doubt = "a timer may be early by a little"
    return _judged(_looked_at(request), doubt, said, trace, request.answer, *tried)


def _is_in_tolerance(data: Any, trace: Trace) -> bool:
    early_ms = members(data).get("retryAfterMs")
    return isinstance(early_ms, (int, float)) and early_ms <= trace.allowances.retry_tolerance_ms


@rule("refused.by-server", each=DENIED, general=True)
def refused_exchange(exchange: Exchange, trace: Trace) -> Finding | None:
    """The server refused it before there was a message."""
    name, method = exchange.refusal or "", exchange.request.method
    problem = getattr(exchange.response and exchange.response.fact, "problem", None) or f"HTTP status {exchange.status}"
    if not name or name in _LIMITS or _names_limit(problem) or any(each.refused for each in exchange.messages):
        return None
    doubt = _EXCUSED.get(name)
    if doubt is None and method in _ASKING and name != Refusal.UNKNOWN_EVENT_ID.name:
        doubt = f"{method} may ask what the server offers"
    is_found = exchange.unreadable is not None and trace.found_by_others(exchange.unreadable) is not None
    return None if is_found else _judged((exchange,), doubt, problem, trace)


def _judged(views: Sequence[Seen], doubt: str | None, said: str, trace: Trace, *shown_by: Seen) -> Finding | None:
    """The finding, unless another rule has found a fault in one of the views, or could not decide.

    A rule cannot decide without what the log lacks, and need not say so: of a message in a session since its opening,
    and of any other since the beginning.
    """
    words, at = f"the server refused it: {clip(said, _LONGEST)}", trace.at
    if _is_explained(views, trace):
        return None
    if doubt is not None:
        return UNCLEAR(f"{doubt}: {words}", *shown_by)
    session: Session | None = getattr(views[0], "in_session", None)
    since = NEVER if session is None else session.opened.mono
    if trace.gap_in(since, trace.passed(at, "settle_s")):
        return UNCLEAR(f"{MISSING_ENTRIES}: {words}", *shown_by)
    return None if _is_explained(views, trace) else FAIL(words, *shown_by)


def _is_explained(views: Sequence[Seen], trace: Trace) -> bool:
    return trace.found_by_others(*views) is not None or trace.doubted_by_others(*views)


def _looked_at(message: Message) -> Sequence[Seen]:
    exchange = _over_http(message)
    return (message,) if exchange is None else (message, exchange, *exchange.messages)


def _over_http(message: Message) -> Exchange | None:
    return message.exchange if message.exchange is not None and message.exchange.head is not None else None


def _names_limit(problem: str) -> bool:
    found = _SETTING.search(problem)
    return found is not None and found[1] in _SETTINGS

"""Rules `lifecycle.*`: initialize, and what follows it."""

from __future__ import annotations

import re
from typing import Any, Final

from ....log.bounded import Newest
from ....views.clients import Connection, Session
from ....views.values import Message
from ....wire.revisions import MODERN
from ...clients.moments import ClientEnd
from ...clients.series import NEVER
from ...clients.subject import FREE
from ...trace.findings import FAIL, PASS, UNCLEAR, WARN, Finding
from ...trace.opportunities import END, FIRST, MESSAGE, NOTIFICATION, PIPE_END, REQUEST, SESSION, UNREAD
from ...trace.rules import form, rule
from ...trace.trace import Trace
from ...values import shown
from ..transports.session import is_deleted
from .meta import is_object, is_text

_INITIALIZED: Final = "notifications/initialized"
_SESSION_HEADER: Final = "mcp-session-id"
_MOST_PIPES: Final = 1_000


class _First:
    """The message that came first on a pipe, or over HTTP (None), perhaps too early; None once that is decided."""

    def __init__(self) -> None:
        self.held: Newest[Connection | None, Message | None] = Newest(_MOST_PIPES)


@rule("lifecycle.initialize-first", each=MESSAGE, any_revision=True)
def begins(message: Message, trace: Trace) -> Finding | None:
    """Begins with initialize.

    A message without any word of its era may be of a modern client that forgot its `_meta`. So what came first is held
    until the client says which era it speaks: then it is a fault of this rule, or one of `meta.protocol-version`.
    A request with the id of a session belongs to that session, be it one of an earlier run.
    """
    place, held = message.pipe, trace.kept(_First).held
    early = held.get(place)
    if message.method == "initialize":
        held.store(place, None)
        return PASS() if early is None else _too_early(early, trace, message)
    if message.in_session is not None or (early is None and place in held):
        return None
    if message.era == "modern":
        held.store(place, None)
    elif early is None and message.method != "ping" and message.rpc != "invalid" and not _names_session(message):
        is_sure = message.method == _INITIALIZED
        held.store(place, None if is_sure else message)
        return _too_early(message, trace) if is_sure else None
    return None


@rule("lifecycle.initialize-first", each=PIPE_END)
def ends_without_initialize(pipe: Connection, trace: Trace) -> Finding | None:
    """A connection that ends without it is one of the legacy era."""
    held = trace.kept(_First).held
    early = held.get(pipe)
    held.store(pipe, None)
    return None if early is None else _too_early(early, trace)


@rule("lifecycle.initialize-first", each=END)
def never_initializes(end: ClientEnd, trace: Trace) -> Finding | None:
    """Likewise a client."""
    held = trace.kept(_First).held.values()
    return next((_too_early(early, trace) for early in held if early is not None), None)


def _too_early(early: Message, trace: Trace, *shown_by: Message) -> Finding:
    remark = f"{early.method or f'a {early.rpc}'} came before any initialize"
    doubt = None if early.pipe is not None else trace.several()
    if trace.gap_in(NEVER, trace.at):
        doubt = "entries of the log are missing"
    if early.limited_by(trace.at):
        return UNCLEAR(f"{early.method or f'a {early.rpc}'} was refused for a limit", *shown_by, at=early)
    return FAIL(remark, *shown_by, at=early) if doubt is None else UNCLEAR(f"{doubt}; {remark}", *shown_by, at=early)


def _names_session(message: Message) -> bool:
    exchange = message.exchange
    if exchange is None or exchange.head is None:
        return False
    return _SESSION_HEADER in exchange.headers or exchange.request.session_in_query


def is_name(value: Any) -> bool:
    """True for a string that is not empty."""
    return isinstance(value, str) and value != ""


def has_info(request: Message, trace: Trace) -> bool:
    """True where clientInfo is an object, so that its members are what is wrong."""
    return isinstance(request.params.get("clientInfo"), dict)


for _name, _must in (("protocolVersion", is_text), ("capabilities", is_object), ("clientInfo", is_object)):
    form(
        "lifecycle.initialize-complete",
        each=REQUEST,
        methods={"initialize"},
        member=f"/params/{_name}",
        must=_must,
        needed=True,
    )
for _name in ("name", "version"):
    form(
        "lifecycle.initialize-complete",
        each=REQUEST,
        methods={"initialize"},
        where=has_info,
        member=f"/params/clientInfo/{_name}",
        must=is_name,
        nearly=is_text,
        needed=True,
    )

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@rule("lifecycle.version-known", each=REQUEST, methods={"initialize"})
def known_version(request: Message, trace: Trace) -> Finding | None:
    """Asks for a protocol version that exists; one newer than this program is a date like the others."""
    version = request.params.get("protocolVersion")
    if not isinstance(version, str):
        return None
    if version in MODERN:
        return WARN(f"initialize asks for {version}, which has no initialize")
    if _DATE.fullmatch(version):
        return PASS()
    if version.upper().startswith("DRAFT") or _DATE.match(version):
        return WARN(f"protocolVersion is {shown(version)}, a version before its release")
    return FAIL(f"protocolVersion is {shown(version)}")


@rule("lifecycle.initialized-sent", each=MESSAGE, methods={_INITIALIZED, "initialized"}, any_revision=True)
def says_initialized(message: Message, trace: Trace) -> Finding | None:
    """Sends notifications/initialized."""
    if message.in_session is None:
        return None
    return PASS() if message.method == _INITIALIZED else FAIL('the notification is named "initialized"')


@rule("lifecycle.initialized-sent", each=FIRST, any_revision=True)
def owes_initialized(request: Message, trace: Trace) -> Finding | None:
    """A slow client may send it late: as long as the session lasts, its absence is not certain."""
    session = request.in_session
    if session is None:
        return None
    since, until = session.opened.mono, request.at + trace.allowances.answer_s
    if trace.gap_in(since, request.at) or not _is_owed(session, request.at) or _was_sent(session, until, trace):
        return None
    trace.sure.had_time(request.at, "answer_s", session)
    return UNCLEAR("a request came, and notifications/initialized has not come yet", session)


@rule("lifecycle.initialized-sent", each=SESSION)
def ends_uninitialized(session: Session, trace: Trace) -> Finding | None:
    """At the end of the session it is.

    A client that was killed behind its first request may have been about to send it: it must have done something else
    later, deleted the session, or held its pipe.
    """
    if session.initialized is not None:
        return None
    end, allowed = trace.sure.ended(session), trace.allowances
    first = trace.seen.first_request(session)
    if first is None or not _is_owed(session, end) or _was_sent(session, end, trace):
        return None
    if trace.gap_in(session.opened.mono, end):
        return None
    remark = "a request came, and notifications/initialized did not"
    held = first.pipe is not None and end - first.at >= allowed.answer_s
    is_sure = is_deleted(session) or held or trace.seen.acted(session, first.at + allowed.arrival_s, end)
    return (FAIL if is_sure else UNCLEAR)(remark, first)


def _is_owed(session: Session, at: float) -> bool:
    return session.initialize is not None and session.initialize.answered_by(at)


def _was_sent(session: Session, until: float, trace: Trace) -> bool:
    """True if the notification may have come: also under a wrong name, without the session or unread."""
    since, first = session.opened.mono, trace.seen.first_request(session)
    sent = trace.seen.all(NOTIFICATION, _INITIALIZED, "initialized", since=since, until=until)
    unread = trace.seen.all(UNREAD, since=since, until=until)
    if any(each.in_session in (None, session) for each in sent):
        return True
    if first is not None and first.limited_by(until):
        return True
    return any(each.session in (None, session) for each in unread)


@rule("lifecycle.initialized-before-requests", each=NOTIFICATION, methods={_INITIALIZED})
def requests_before(message: Message, trace: Trace) -> Finding | None:
    """Sends notifications/initialized before its first request.

    Two connections may change the places of two messages; on a pipe their order is certain.
    """
    session = message.in_session
    early = None if session is None or session.initialized is not message else trace.seen.first_request(session)
    if early is None or early.at > message.at or early.limited_by(message.at):
        return None
    ahead = message.at - early.at
    if message.pipe is None and ahead <= trace.allowances.arrival_s:
        return PASS(early)
    return WARN(f"{early.method} came {ahead:.1f} s before {_INITIALIZED}", message, at=early)


@rule("lifecycle.initialized-before-requests", each=FIRST)
def requests_after(request: Message, trace: Trace) -> Finding | None:
    """The first request after it is right."""
    session = request.in_session
    told = None if session is None else session.initialized
    if told is None or told.at > request.at:
        return None
    return PASS(told)


@rule("lifecycle.waits-for-initialize", each=REQUEST, any_revision=True)
def waits(request: Message, trace: Trace) -> Finding | None:
    """Waits for the answer to initialize before its other requests.

    Without a session id a request over HTTP belongs to an initialize only where both have the label of one client.
    """
    session, at = request.in_session, request.at
    if request.method in FREE or request.era == "modern":
        return None
    before = trace.seen.last(REQUEST, "initialize", until=at, scope=request.scope)
    pending = before if session is None else session.initialize
    if pending is None:
        return None
    if pending.answered_by(at):
        is_first = session is not None and trace.seen.first_request(session) is request
        return PASS(session) if session is not None and is_first else None
    is_over = pending.dropped_by(at) or (pending.exchange is not None and pending.exchange.closed_by(at))
    if is_over or (request.pipe is None and (trace.several() is not None or _names_session(request))):
        return None
    return FAIL(f"{request.method} came before the answer to initialize", pending)


@rule("lifecycle.initialized-once", each=NOTIFICATION, methods={_INITIALIZED})
def once(message: Message, trace: Trace) -> Finding | None:
    """Sends notifications/initialized once per session; a POST that a transport repeats at once does not count."""
    first = None if message.in_session is None else message.in_session.initialized
    if message.in_session is None or first is None or first is message:
        return PASS() if message.in_session is not None else None
    response = None if first.exchange is None else first.exchange.response
    is_lost = first.pipe is None and (response is None or response.mono > message.at)
    if is_lost or message.at - first.at < trace.allowances.arrival_s:
        return None
    return WARN(f"{_INITIALIZED} came again", first)

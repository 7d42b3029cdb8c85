"""Rules `lifecycle.*` and `version.*`: initialize, its result, and the era of a client."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ....views.clients import Connection, Session
from ....views.retention import ForgottenError, members
from ....views.values import Message
from ....wire.errors import Code
from ....wire.revisions import MODERN
from ....wire.v2026.meta import CLIENT_CAPABILITIES
from ...clients.beginnings import INITIALIZED, names_session
from ...clients.moments import ClientEnd, declared_in, lacks_session
from ...clients.series import NEVER
from ...clients.subject import FREE
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, WARN, Finding, Undecided
from ...trace.opportunities import (
    ANSWERED,
    END,
    FAILED,
    FIRST,
    MESSAGE,
    NOTIFICATION,
    PIPE_END,
    REQUEST,
    SESSION,
    UNREAD,
)
from ...trace.rules import form, rule
from ...trace.trace import MISSING_ENTRIES, Trace, has_made_room
from ...values import shown
from ..transports.session import is_deleted
from .meta import is_object, is_text


@rule("lifecycle.initialize-first", each=MESSAGE, methods={"initialize", INITIALIZED}, any_revision=True)
def begins(message: Message, trace: Trace) -> Finding | None:
    early = trace.subject.beginnings.early(message)
    if early is not None:
        return _too_early(early, trace, *(() if early is message else (message,)))
    return PASSED if message.method == "initialize" else None


@rule("lifecycle.initialize-first", each=PIPE_END)
def ends_without_initialize(pipe: Connection, trace: Trace) -> Finding | None:
    early = trace.subject.beginnings.early(pipe)
    return None if early is None else _too_early(early, trace)


@rule("lifecycle.initialize-first", each=END)
def never_initializes(end: ClientEnd, trace: Trace) -> Finding | None:
    """A client over HTTP, or on a connection that is still open, never began."""
    early = trace.subject.beginnings.undecided()
    return None if early is None else _too_early(early, trace)


def _too_early(early: Message, trace: Trace, *shown_by: Message) -> Finding:
    if has_made_room(early):
        raise ForgottenError  # its response may have been that of a limit
    remark = f"{early.method or f'a {early.rpc}'} came before any initialize"
    doubt = None if early.pipe is not None else trace.several()
    if trace.gap_in(NEVER, trace.at):
        doubt = "entries of the log are missing"
    if early.limited_by(trace.at):
        return UNCLEAR(f"{early.method or f'a {early.rpc}'} was refused for a limit", *shown_by, at=early)
    return FAIL(remark, *shown_by, at=early) if doubt is None else UNCLEAR(f"{doubt}; {remark}", *shown_by, at=early)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _has_info(request: Message, trace: Trace) -> bool:
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
        where=_has_info,
        member=f"/params/clientInfo/{_name}",
        must=_is_name,
        nearly=is_text,
        needed=True,
    )

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@rule("lifecycle.version-known", each=REQUEST, methods={"initialize"})
def known_version(request: Message, trace: Trace) -> Finding | None:
    """A version newer than this program is a date like the others."""
    version = request.params.get("protocolVersion")
    if not isinstance(version, str):
        return None
    if version in MODERN:
        return WARN(f"initialize asks for {version}, which has no initialize")
    if _DATE.fullmatch(version):
        return PASSED
    if version.upper().startswith("DRAFT") or _DATE.match(version):
        return WARN(f"protocolVersion is {shown(version)}, a version before its release")
    return FAIL(f"protocolVersion is {shown(version)}")


@rule("lifecycle.initialized-sent", each=MESSAGE, methods={INITIALIZED, "initialized"}, any_revision=True)
def says_initialized(message: Message, trace: Trace) -> Finding | None:
    if message.in_session is None:
        return None
    return PASSED if message.method == INITIALIZED else FAIL('the notification is named "initialized"')


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
    """At the end of the session its absence is certain.

    A client that was killed behind its first request may have been about to send it: it must have done something else
    later, deleted the session, or held its pipe.
    """
    if session.initialized is not None:
        return None
    end, allowed = trace.sure.ended(session), trace.allowances
    first = trace.subject.firsts.get(session)
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
    since, first = session.opened.mono, trace.subject.firsts.get(session)
    sent = trace.seen.all(NOTIFICATION, INITIALIZED, "initialized", since=since, until=until)
    unread = trace.seen.all(UNREAD, since=since, until=until)
    if any(each.in_session in (None, session) for each in sent):
        return True
    if first is not None and first.limited_by(until):
        return True
    return any(each.session in (None, session) for each in unread)


@rule("lifecycle.initialized-before-requests", each=NOTIFICATION, methods={INITIALIZED})
def requests_before(message: Message, trace: Trace) -> Finding | None:
    """Two connections may change the places of two messages; on a pipe their order is certain."""
    session = message.in_session
    early = None if session is None or session.initialized is not message else trace.subject.firsts.get(session)
    if session is None or early is None or early.at > message.at or early.limited_by(message.at):
        return None
    ahead = message.at - early.at
    if message.pipe is None and ahead <= trace.allowances.arrival_s:
        return PASS(early)
    trace.sure.whole(f"{MISSING_ENTRIES}; {INITIALIZED} may be among them", early, since=session.opened.mono)
    return WARN(f"{early.method} came {ahead:.1f} s before {INITIALIZED}", message, at=early)


@rule("lifecycle.initialized-before-requests", each=FIRST)
def requests_after(request: Message, trace: Trace) -> Finding | None:
    session = request.in_session
    told = None if session is None else session.initialized
    if told is None or told.at > request.at:
        return None
    return PASS(told)


@rule("lifecycle.waits-for-initialize", each=REQUEST, any_revision=True)
def waits(request: Message, trace: Trace) -> Finding | None:
    """Over HTTP a request without a session id belongs to an initialize only under one label."""
    session, at = request.in_session, request.at
    if request.method in FREE or request.era == "modern" or lacks_session(request):
        return None
    if session is None:
        pending = trace.seen.last(REQUEST, "initialize", until=at, scope=request.scope)
    else:
        pending = session.initialize
    if pending is None:
        return None
    if has_made_room(pending):
        opened = trace.seen.all(SESSION, since=pending.at, until=at) if session is None else [session]
        if any(each.answered is not None and each.answered.mono < at for each in opened):
            return None
        raise ForgottenError
    if pending.answered_by(at):
        is_first = session is not None and trace.subject.firsts.get(session) is request
        return PASS(session) if session is not None and is_first else None
    is_over = pending.dropped_by(at) or (pending.exchange is not None and pending.exchange.closed_by(at))
    if is_over or (request.pipe is None and (trace.several() is not None or names_session(request))):
        return None
    remark = f"{request.method} came before the answer to initialize"
    # The answer may be among what is missing.
    if trace.gap_in(pending.at, at):
        raise Undecided(f"entries of the log are missing; {remark}", pending)
    return FAIL(remark, pending)


@rule("lifecycle.initialized-once", each=NOTIFICATION, methods={INITIALIZED})
def once(message: Message, trace: Trace) -> Finding | None:
    """A POST that a transport repeats at once does not count."""
    first = None if message.in_session is None else message.in_session.initialized
    if message.in_session is None or first is None or first is message:
        return PASSED if message.in_session is not None else None
    response = None if first.exchange is None else first.exchange.response
    is_lost = first.pipe is None and (response is None or response.mono > message.at)
    if is_lost or message.at - first.at < trace.allowances.arrival_s:
        return None
    return WARN(f"{INITIALIZED} came again", first)


_OF_METHOD: Final[Mapping[str, str]] = {
    "prompts": "prompts",
    "resources": "resources",
    "completion": "completions",
    "tasks": "tasks",
    "logging": "logging",
    "tools": "tools",
}
_WITH_TASKS: Final = "2025-11-25"
# The side that works on a task sends it. A client works on tasks that the server asks it for, and declares that.
_STATUS: Final = "notifications/tasks/status"


@rule("lifecycle.capabilities-respected", each=REQUEST)
def uses_declared(request: Message, trace: Trace) -> Finding | None:
    """A client of 2026-07-28 need not ask, so only a server/discover at the same URL or on the same pipe counts.

    Tasks are left to the extension and to `jsonrpc.methods-of-revision` where the revision has none. tools/list at a
    server without tools is common and harmless.
    """
    capability = _OF_METHOD.get((request.method or "").partition("/")[0])
    if capability is None or (capability == "tasks" and request.revision != _WITH_TASKS):
        return None
    told = _told(request, trace)
    offered = None if told is None else _offered(told, trace)
    if told is None or offered is None or _may_not_know(request, told, trace):
        return None
    if capability in offered:
        return PASS(told)
    return (WARN if capability == "tools" else FAIL)(
        f"{request.method}, and the server did not declare {capability}", told
    )


def _told(request: Message, trace: Trace) -> Message | None:
    session = request.in_session
    if session is not None:
        asked = session.initialize
        return asked if asked is not None and asked.answered_by(request.at) else None
    url = _url(request)
    if url is None:
        return None
    discoveries = trace.seen.newest(
        ANSWERED, "server/discover", 1, lambda each: _url(each) == url and _offered(each, trace) is not None
    )
    return discoveries[0] if discoveries else None


def _offered(told: Message, trace: Trace) -> Mapping[str, Any] | None:
    if told.opened is not None:
        return trace.subject.known.offered.get(told.opened)
    result = None if told.answer is None else members(told.answer.result)
    return None if result is None or not isinstance(result.get("capabilities"), dict) else result["capabilities"]


def _may_not_know(request: Message, told: Message, trace: Trace) -> bool:
    """True on a pipe where the client may not have read the answer yet."""
    session = request.in_session
    ready = None if session is None else session.initialized
    if request.pipe is None or (ready is not None and ready.at < request.at):
        return False
    return request.at - (told.answered or 0.0) < trace.allowances.settle_s


def _url(request: Message) -> tuple[str, str] | None:
    """What names the server to a client of the modern era; None over HTTP where the log lacks the head."""
    if request.pipe is not None:
        return request.pipe.label, ""
    exchange = request.post
    return None if exchange is None else (exchange.request.path, exchange.request.query)


@rule("lifecycle.capabilities-respected", each=NOTIFICATION, methods={_STATUS})
def declares_tasks(message: Message, trace: Trace) -> Finding | None:
    """The client has to declare tasks of its own before it sends their status."""
    session = message.in_session
    if session is None or message.revision != _WITH_TASKS:
        return None
    shown_by = () if session.initialize is None else (session.initialize,)
    if "tasks" in declared_in(session):
        return PASS(*shown_by)
    return FAIL(f"{_STATUS}, and the client did not declare tasks", *shown_by)


_DISCOVER: Final = "server/discover"
# The time for which an answer of server/discover without a ttl may be kept.
_TTL_S: Final = 60.0
_WINDOW_S: Final = 600.0
_FEWEST_REQUESTS: Final = 10
_FEW_PROBES: Final = 3
_MANY_PROBES: Final = 10
_SPAN_S: Final = 60.0
_AGAIN_S: Final = 60.0
_TOO_OFTEN: Final = 3


@dataclass
class _Probing:
    """How often a client probed, and when it did so needlessly."""

    began: float
    requests: int = 0
    probes: int = 0
    last: Message | None = None
    needless: deque[float] = field(default_factory=lambda: deque(maxlen=_MANY_PROBES + 1))
    is_judged: bool = False


def _is_modern(request: Message) -> bool:
    return request.era == "modern" and request.answer is not None and request.answer.rpc == "response"


@rule("version.era-remembered", each=REQUEST, any_revision=True, one_process=True)
def remembers_era(request: Message, trace: Trace) -> Finding | None:
    """A new process knows nothing, so a probe counts that follows another on the same connection.

    It counts only while the answer to that may still be kept.
    """
    at, method = request.at, request.method
    is_back = method == "initialize" and trace.seen.first(ANSWERED, None, _is_modern, until=at) is not None
    if request.era != "modern" and not is_back:
        return None
    known = trace.kept(lambda: _Probing(at))
    known.requests += 1
    if method in (_DISCOVER, "initialize"):
        return _probes(request, known, trace)
    if known.is_judged or known.requests < _FEWEST_REQUESTS or at - known.began < _SPAN_S:
        return None
    known.is_judged = True
    return PASSED if known.probes <= _FEW_PROBES else None


def _probes(request: Message, known: _Probing, trace: Trace) -> Finding | None:
    at, before, known.last = request.at, known.last, request
    known.probes += 1
    told = trace.seen.last(ANSWERED, _DISCOVER, until=at)
    page = None if told is None else trace.subject.known.pages.get(told.seq)
    ttl_s = _TTL_S if page is None or page.ttl_ms is None else page.ttl_ms / 1000
    if before is None or before.place is None or before.place is not request.place or at - before.at >= ttl_s:
        return None
    known.needless.append(at)
    often = len(known.needless) > _MANY_PROBES and at - known.needless[0] <= _WINDOW_S
    if not often or known.requests < _FEWEST_REQUESTS or known.probes * 2 < known.requests:
        return None
    trace.sure.whole(f"{MISSING_ENTRIES}; other requests may be among them", since=known.began)
    return FAIL(f"{known.probes} probes in {known.requests} requests")


@rule("version.missing-capability-learned", each=FAILED)
def learns_capability(request: Message, trace: Trace) -> Finding | None:
    """A model may try a tool once more, so it takes three within a minute."""
    had = trace.at
    if trace.seen.error_of(request) != Code.MISSING_CLIENT_CAPABILITY:
        return None
    before = trace.subject.alike.series(request, None).between(had - _AGAIN_S, had, _TOO_OFTEN)[1 - _TOO_OFTEN :]
    if len(before) + 1 >= _TOO_OFTEN:
        lacks = ", ".join(sorted(trace.subject.alike.lacked(request) or ()))
        return FAIL(f"{request.method} was sent again without {lacks}", *before)
    if before:
        return None
    trace.sure.had_time(had, _AGAIN_S)
    return PASSED if trace.seen.acted(None, had, had + _AGAIN_S) else None


@rule("version.missing-capability-learned", each=REQUEST)
def declares_lacked(request: Message, trace: Trace) -> Finding | None:
    lacked = trace.subject.alike.lacked(request)
    declared = members(request.meta.get(CLIENT_CAPABILITIES)).keys()
    return PASSED if lacked is not None and lacked <= declared else None

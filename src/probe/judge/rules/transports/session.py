"""Rules `session.*`: sessions over HTTP."""

from __future__ import annotations

from typing import Final

from ....log.event_log import Entry
from ....views.clients import Session
from ....views.values import Exchange, Message
from ...clients.moments import ProcessChange
from ...retention import BOUNDS
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, WARN, Finding
from ...trace.opportunities import DENIED, EXCHANGE, PROCESS, REQUEST, RESPONSE, SESSION, SESSION_END
from ...trace.rules import rule
from ...trace.trace import MISSING_ENTRIES, Trace
from .http import NO_IDS, SESSION_ID, is_modern, session_id
from .processes import why_ended

_GONE: Final = "404"


def _refused_ids(until: float, trace: Trace) -> set[str]:
    found = (session_id(each) for each in trace.seen.all(RESPONSE, _GONE, until=until)[-BOUNDS.searched :])
    return {each for each in found if each is not None}


@rule("session.reinitialize-without-id", each=REQUEST, methods={"initialize"})
def begins_without_id(request: Message, trace: Trace) -> Finding | None:
    """The sentence is about an `initialize` after a 404.

    Before one, an id, perhaps of an earlier run, breaks no rule; the session cannot begin. A header such as `undefined`
    is judged by another rule.
    """
    exchange = request.post
    given = None if exchange is None else exchange.header(SESSION_ID)
    if given is None:
        return PASSED
    if given in NO_IDS:
        return None
    if _refused_ids(request.at, trace):
        return FAIL("initialize with a session id after a 404 (client or gateway)")
    return WARN("initialize with a session id (client or gateway)")


@rule("session.dead-id-abandoned", each=EXCHANGE, one_process=True, after=DENIED)
def uses_dead_id(exchange: Exchange, trace: Trace) -> Finding | None:
    """Workers of a client may hold the old id for some seconds, and a DELETE does no harm."""
    named, at = exchange.session, trace.at
    if exchange.fields.method == "DELETE" or (named is not None and not named.closed_by(at)):
        return None
    session = trace.seen.last(SESSION, until=at)
    if session is None:
        return None
    told, id = session.answered, session_id(exchange)
    if told is None or id is None or session.fact.transport != "http" or at <= told.mono + trace.allowances.settle_s:
        return None
    if id not in _refused_ids(told.mono, trace):
        return None
    return FAIL(f"{exchange.fields.method} with the id of a session that was answered 404", session)


@rule("session.dead-id-abandoned", each=SESSION, one_process=True)
def leaves_dead_id(session: Session, trace: Trace) -> Finding | None:
    opened = trace.at
    if session.fact.transport != "http" or not _refused_ids(opened, trace):
        return None
    until = trace.sure.had_time(opened, "alive_s")
    return PASSED if trace.seen.acted(session, opened + trace.allowances.settle_s, until) else None


@rule("session.id-as-given", each=EXCHANGE)
def known_id(exchange: Exchange, trace: Trace) -> Finding | None:
    """A word such as `undefined` is none."""
    value = exchange.header(SESSION_ID)
    if value is None or not exchange.is_endpoint or is_modern(exchange):
        return None
    if value in NO_IDS:
        return FAIL(f"Mcp-Session-Id is {value or 'empty'}")
    return None if exchange.request.named is None else PASSED


@rule("session.id-as-given", each=DENIED)
def id_of_earlier_run(exchange: Exchange, trace: Trace) -> Finding | None:
    """Ids of an earlier run are unknown and innocent."""
    is_unknown = exchange.request.named is None and session_id(exchange) is not None
    return PASSED if exchange.status == 404 and is_unknown else None


@rule("session.deleted", each=SESSION_END)
def deletes(session: Session, trace: Trace) -> Finding | None:
    """After a long silence the client may still be there."""
    why = None if session.closed is None else getattr(session.closed.fact, "why", "")
    if session.fact.transport != "http":
        return None
    if why == "deleted":
        return PASS(*(() if session.asked_to_end is None else (session.asked_to_end,)))
    is_silent = why == "idle" and not has_tried(session, trace.at)
    return UNCLEAR("fell silent without DELETE; nothing says whether the client has gone") if is_silent else None


@rule("session.deleted", each=SESSION)
def replaces(session: Session, trace: Trace) -> Finding | None:
    """Sessions were left if new ones replace them again and again, and no request names the old ones."""
    at = trace.at
    left = [
        each
        for each in trace.seen.newest(SESSION)
        if each.closed is not None
        and each.closed.mono < at
        and getattr(each.closed.fact, "why", "") == "idle"
        and not has_tried(each, at)
        and not trace.seen.acted(each, each.closed.mono, at)
    ]
    if session.fact.transport != "http" or len(left) < trace.allowances.survival_tries:
        return None
    trace.sure.whole(
        f"{MISSING_ENTRIES}; a DELETE may be among them", *left, since=min(each.opened.mono for each in left)
    )
    return FAIL(f"{len(left)} sessions were replaced without DELETE; {what_to_send(*left)}", *left)


@rule("session.deleted", each=PROCESS)
def leaves(change: ProcessChange, trace: Trace) -> Finding | None:
    """The end of the client's process counts, unless it was killed or crashed."""
    if change.fact.what != "exited":
        return None
    newest = trace.seen.newest(SESSION)
    over_http = [each for each in reversed(newest) if each.fact.transport == "http" and not each.closed_by(change.at)]
    left = [each for each in over_http if not has_tried(each, change.at)]
    why = why_ended(change, trace)
    if left and why is not None:
        return UNCLEAR(why, *left[1:], change, at=left[0])
    left = [each for each in left if not has_tried(each, change.at + trace.allowances.end_after_s)]
    if not left:
        return None
    trace.sure.crossed(change.at, "end_after_s", *left)
    remark = f"the client's process ended, and no DELETE came; {what_to_send(*left)}"
    return FAIL(remark, *left[1:], change, at=left[0])


def has_tried(session: Session, at: float) -> bool:
    """True if a DELETE asked for its end before a time."""
    return session.asked_to_end is not None and session.asked_to_end.began.mono < at


def what_to_send(*sessions: Session) -> str:
    """The request that each of these sessions lacks, such as `DELETE /mcp` with `Mcp-Session-Id`."""
    first = sessions[0].initialize
    exchange = None if first is None else first.exchange
    path = "/mcp" if exchange is None or exchange.head is None else exchange.request.path
    labels = ", ".join(session.label for session in sessions)
    return f"right, before the client ends: `DELETE {path}` with the Mcp-Session-Id that the client got for {labels}"


# A request from before a DELETE may arrive so long after it.
_UNDER_WAY_S: Final = 1.0


@rule("session.nothing-after-delete", each=EXCHANGE)
def uses_deleted(exchange: Exchange, trace: Trace) -> Finding | None:
    """A second DELETE is harmless, and a client cannot know that another one has ended its session."""
    session, method = exchange.session, exchange.fields.method
    deleted = session.closed if session is not None and is_deleted(session) else None
    if session is None or deleted is None or trace.at <= deleted.mono or method == "DELETE":
        return None
    if not _has_deleted(session, deleted, trace):
        return None
    if trace.at < deleted.mono + _UNDER_WAY_S and not _is_behind(exchange, session.asked_to_end):
        return UNCLEAR(f"{method} came right after the DELETE of its session; it may have been under way", deleted.seq)
    return FAIL(f"{method} with the id of a session that was deleted", deleted.seq)


def _has_deleted(session: Session, deleted: Entry, trace: Trace) -> bool:
    """True if the DELETE came from this client, by the label of its URL or as the session's own."""
    label, subject = deleted.context.label, trace.subject
    if label is not None:
        return (subject.kind, subject.label) == ("label", label)
    return session.client is None or (subject.kind, subject.label) == (session.client.kind, session.client.label)


def _is_behind(exchange: Exchange, end: Exchange | None) -> bool:
    """True if a request came behind the answer to a DELETE on its connection.

    On others it may have been sent before: the log has a connection from its first request on.
    """
    answered = None if end is None else end.response
    if end is None or answered is None or exchange.connection is None or exchange.connection is not end.connection:
        return False
    return exchange.began.mono > answered.mono and exchange.request.http_version.startswith("1")


@rule("session.nothing-after-delete", each=SESSION_END)
def leaves_deleted(session: Session, trace: Trace) -> Finding | None:
    deleted = trace.at
    if not is_deleted(session):
        return None
    until = trace.sure.crossed(deleted, "alive_s")
    after = trace.seen.all(EXCHANGE, since=deleted, until=until) if trace.seen.acted(session, deleted, until) else ()
    return None if any(each.session is session and each.fields.method != "DELETE" for each in after) else PASSED


def is_deleted(session: Session) -> bool:
    """True if the client ended it with DELETE."""
    return session.closed is not None and getattr(session.closed.fact, "why", "") == "deleted"


# Sessions are counted in this time, and so many without a request are too many.
_WINDOW_S: Final = 600.0
_MANY: Final = 5


@rule("session.not-churned", each=SESSION, one_process=True)
def uses_sessions(session: Session, trace: Trace) -> Finding | None:
    """Health checks, and several users behind one address, have no label."""
    opened, until = trace.at, trace.at + trace.allowances.answer_s
    newest = trace.seen.newest(SESSION, None, BOUNDS.compared)
    recent = [each for each in newest if each.fact.transport == "http" and each.opened.mono > opened - _WINDOW_S]
    if trace.subject.kind != "label" or session not in recent or len(recent) < _MANY:
        return None
    unused = [each for each in recent if not _is_used(each, until)]
    if len(unused) < _MANY:
        return PASSED
    trace.sure.had_time(opened, "answer_s")
    why = f"{MISSING_ENTRIES}; requests may be among them"
    trace.sure.whole(why, *unused, since=min(each.opened.mono for each in unused))
    remark = f"{len(unused)} sessions within {_WINDOW_S / 60:g} minutes in which nothing was asked"
    return FAIL(remark, *unused)


def _is_used(session: Session, at: float) -> bool:
    first = next((each for each in session.scope.requests.values() if each.method != "initialize"), None)
    return session.scope.forgot > 0 or (first is not None and first.at < at)

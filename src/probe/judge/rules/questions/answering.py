"""Shared by the rules about answers to the server: their form, and if a client serves its declared capabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ....views.retention import ForgottenError, members
from ...clients.questions import Question, Reply
from ...clients.series import NEVER
from ...trace.findings import FAIL, PASSED, UNCLEAR, WARN, CutShort, Finding, Seen, Undecided
from ...trace.opportunities import REPLY
from ...trace.trace import MISSING_ENTRIES, Trace, has_made_room
from ..messages.schemas import misfit

_METHOD_NOT_FOUND: Final = -32601
# One refusal may be a slip at the start of a client. The report shows the newest three.
_PATTERN: Final = 2
_SHOWN: Final = 3


def has_form(reply: Reply, revision: str, definition: str) -> Finding:
    """An answer fits a definition of the schema.

    null for an optional member is a WARN: libraries with fixed fields write it, and the specification calls an empty
    content only "typically omitted".
    """
    hidden, at = reply.message.hidden, reply.pointer
    found = misfit(revision, definition, reply.value, hidden, at=at)
    if found is None:
        return PASSED
    without = misfit(revision, definition, _without_nulls(reply.value), hidden, at=at)
    remark = f"the answer to {reply.method} does not fit {definition}: {found}"
    return (WARN if without is None else FAIL)(remark, reply.question)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(each) for name, each in value.items() if each is not None}


def has_result(reply: Reply) -> bool:
    return reply.error is None


def serves(
    reply: Reply,
    trace: Trace,
    is_served: Callable[[Reply], bool],
    other: Callable[[Question, Trace], Question | None] | None = None,
) -> Finding | None:
    """A client serves a declared capability.

    Only -32601 to every question is certain: another error may have a reason in the moment. Other rules judge a
    malformed result. `other` finds an earlier question without an answer, if this is the first refusal.
    """
    question = reply.question
    if not question.is_declared:
        return None
    if is_served(reply):
        return PASSED
    if _knows_method(reply):
        return None if has_result(reply) else UNCLEAR(f"the answer is the error {_code(reply)}", question)
    found: list[Seen] = [*trace.seen.newest(REPLY, question.method, _SHOWN, _is_declared)]
    if len(found) == 1 and other is not None and (before := other(question, trace)) is not None:
        found.append(before)
    return never_serves(question, trace, "-32601", found)


def never_serves(question: Question, trace: Trace, what: str, shown_by: Sequence[Seen]) -> Finding:
    """A question was not served. FAIL takes two of them in `shown_by`, and none that was ever served."""
    if len(shown_by) < _PATTERN or trace.seen.first(REPLY, question.method, _knows_method, until=trace.at) is not None:
        return UNCLEAR(f"{what} to this question, though it is declared", *shown_by, at=question)
    remark = f"{what} to every such question, though it is declared"
    trace.sure.knows_all(REPLY, question.method, NEVER, remark)
    return FAIL(remark, *shown_by, at=question)


def is_silent(question: Question, trace: Trace, seconds: float, *, given_up: bool) -> bool:
    """No answer came to a declared question within some seconds, and other messages of its session did.

    It is inconclusive if the server has `given_up` before. In 2026-07-28 a client need not retry.
    """
    had, until, session = question.had, question.had + seconds, question.sent.in_session
    if session is None or question.key is not None or not question.is_declared:
        return False
    if question.replied_by(until) or session.closed_by(until):
        return False
    # An answer, or the end of the session, may still come in this time.
    trace.sure.had_time(had, seconds)
    if given_up:
        raise CutShort("the server gave the question up before an answer came")
    if not trace.seen.acted(session, had, until):
        return False
    # An answer can be there before the delivery, and the request of the question may have been answered or left.
    since = question.sent.at if question.sent.request is not None else session.opened.mono
    if trace.gap_in(since, had):
        raise Undecided(MISSING_ENTRIES)
    if question.sent.request is not None and has_made_room(question.sent.request):
        raise ForgottenError  # it may have been answered or left
    return True


def _is_declared(reply: Reply) -> bool:
    return reply.question.is_declared


def _knows_method(reply: Reply) -> bool:
    return reply.question.is_declared and _code(reply) != _METHOD_NOT_FOUND


def _code(reply: Reply) -> Any:
    return members(reply.error).get("code")

"""Rules `http.*` about answers, and about comments and empty events in event streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, cast

from ....log import events
from ....views.values import Exchange, Message
from ...clients.given_up import (
    AT_ONCE_S,
    CANCELLED,
    cancelled_request,
    ended_at_comment,
    first_comment,
    place_of,
)
from ...clients.series import NEVER
from ...clients.tasks import task_of
from ...retention import BOUNDS
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, Finding, Undecided
from ...trace.opportunities import ANSWERED, CONTROL, EXCHANGE, LEFT, NOTIFICATION, REQUEST
from ...trace.rules import rule
from ...trace.trace import MISSING_ENTRIES, Trace, has_made_room
from .session import has_tried

_EVENTS: Final = "text/event-stream"
_FORMS: Final = frozenset({"application/json", _EVENTS})
_AFTER_EMPTY: Final = "after the answer on a stream with an empty event"
_UNKNOWN: Final = "an answer before it may have been understood"


def form_of(request: Message) -> str | None:
    """The form of the result of a request; None for an error, and for a result on a resumed stream."""
    exchange, answer = request.exchange, request.answer
    if exchange is None or exchange.response is None or answer is None or answer.delivered is None:
        return None
    if answer.rpc != "response" or answer.delivered.context.exchange != exchange.number:
        return None
    kind = cast("events.HttpResponse", exchange.response.fact).content_type.partition(";")[0]
    return kind if kind in _FORMS else None


def is_missed(request: Message, at: float, trace: Trace) -> bool:
    """True if a request was first cancelled by then, and long after its answer: its sender still waited.

    After an answer with a task the call still runs.
    """
    asked, answered = request.asked_to_cancel, request.answered
    if asked is None or answered is None or asked.at > at or task_of(request.answer) is not None:
        return False
    return asked.at - answered > trace.allowances.end_after_s


def missed_by(message: Message, trace: Trace) -> Message | None:
    request = cancelled_request(message)
    if request is None or request.asked_to_cancel is not message:
        return None
    return request if is_missed(request, message.at, trace) else None


@dataclass(slots=True)
class _Forms:
    """By form: the newest answer, the first other request after one, and the number of missed answers."""

    newest: dict[str, Message] = field(default_factory=dict)
    went_on: dict[str, Message] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)


@rule("http.both-answer-forms", each=ANSWERED)
def is_answered(request: Message, trace: Trace) -> Finding | None:
    known, form = trace.kept(_Forms), form_of(request)
    if form is not None and form not in known.went_on:
        known.newest[form] = request
    return None


@rule("http.both-answer-forms", each=REQUEST)
def goes_on(message: Message, trace: Trace) -> Finding | None:
    """People, models and scripts repeat calls, so a repetition is no evidence."""
    known = trace.kept(_Forms)
    went_on = [form for form, request in known.newest.items() if not _is_repetition(message, request)]
    for form in went_on:
        del known.newest[form]
        known.went_on[form] = message
    both = went_on and len(known.went_on) == len(_FORMS)
    return PASS(*known.went_on.values()) if both and not known.missed else None


def _is_repetition(message: Message, request: Message) -> bool:
    if message.method != request.method:
        return False
    return message.params == request.params or {**message.params, "_meta": 0} == {**request.params, "_meta": 0}


@rule("http.both-answer-forms", each=NOTIFICATION, methods={CANCELLED})
def misses_a_form(message: Message, trace: Trace) -> Finding | None:
    """Without a parser for a form all its answers are missed: an answer without a cancellation excuses."""
    request, known = missed_by(message, trace), trace.kept(_Forms)
    form = None if request is None else form_of(request)
    if request is None or request.answered is None or form is None:
        return None
    known.missed[form] = count = known.missed.get(form, 0) + 1
    (other,) = _FORMS - {form}
    if not 1 < count <= BOUNDS.searched or other not in known.went_on or other in known.missed:
        return None
    before = [each for each in trace.seen.all(ANSWERED, until=request.answered) if form_of(each) == form]
    if len(before) + 1 != count:
        return None
    _know_all_answers(request.answered, trace)
    waited = message.at - request.answered
    remark = f"cancelled a request {waited:.1f} s after its answer as {form}, and so all that had such an answer"
    return FAIL(remark, *(each.asked_to_cancel or each for each in before))


def _know_all_answers(until: float, trace: Trace) -> None:
    """Raise `Undecided` unless all answers before a time show their forms."""
    trace.sure.knows_all(ANSWERED, None, NEVER, _UNKNOWN)
    if any(map(has_made_room, trace.seen.all(ANSWERED, until=until))):
        raise Undecided(_UNKNOWN)


@rule("http.sse-empty-data", each=REQUEST, after=CONTROL)
def goes_on_after_empty(message: Message, trace: Trace) -> Finding | None:
    """The fault shows later, as a cancellation of an answered request.

    A new session is no sign of it: programs begin one for each call, on a pooled connection or on one of their own.
    """
    request = primed_before(message.at, trace)
    if request is None:
        return None
    if message.method != "initialize":
        return PASS(message, at=request)
    is_elsewhere = message.place is None or message.place is not request.place
    if is_elsewhere or (request.session is not None and has_tried(request.session, message.at)):
        return None
    return UNCLEAR(f"began a new session {_AFTER_EMPTY}; it may use one for each call", message, at=request)


@rule("http.sse-empty-data", each=EXCHANGE, methods={"DELETE"})
def ends_after_empty(exchange: Exchange, trace: Trace) -> Finding | None:
    request = primed_before(trace.at, trace)
    return None if request is None else PASS(exchange, at=request)


@rule("http.sse-empty-data", each=NOTIFICATION, methods={CANCELLED})
def misses_after_empty(message: Message, trace: Trace) -> Finding | None:
    request = missed_by(message, trace)
    if request is None or not is_primed(request):
        return None
    remark, count = f"cancelled a request {_AFTER_EMPTY}", trace.nth()
    if count == 1:
        return UNCLEAR(f"{remark}, once", message, at=request)
    answered = request.answered or 0
    before = trace.seen.all(ANSWERED, until=answered) if count <= BOUNDS.searched else ()
    primed = [each for each in before if is_primed(each)]
    if len(primed) + 1 != count:
        return None
    _know_all_answers(answered, trace)
    return FAIL(remark, message, *primed, at=request)


def is_primed(request: Message) -> bool:
    """True if the answer came on an event stream with an event without data."""
    stream = None if request.answer is None else request.answer.stream
    if stream is None or form_of(request) != _EVENTS or request.answered is None:
        return False
    controls = (each for each in stream.controls if each.mono < request.answered)
    return any(cast("events.StreamControl", each.fact).what == "priming" for each in controls)


def primed_before(at: float, trace: Trace) -> Message | None:
    """The request with such an answer, if the client sent no other request since then."""
    request = trace.seen.last(ANSWERED, until=at)
    if request is None or request.answered is None or not is_primed(request) or is_missed(request, at, trace):
        return None
    last = trace.seen.last(REQUEST, until=at)
    return None if last is not None and last.at > request.answered else request


@rule("http.sse-comments", each=ANSWERED, after=CONTROL)
def outlives_comments(request: Message, trace: Trace) -> Finding | None:
    exchange, asked = request.exchange, request.asked_to_cancel
    if exchange is None or first_comment(exchange, trace.at) is None or (asked is not None and asked.at < trace.at):
        return None
    return PASSED


@rule("http.sse-comments", each=LEFT)
def leaves_at_comment(exchange: Exchange, trace: Trace) -> Finding | None:
    """A timer of the client may end a stream together with a comment, as both follow a silence.

    And the server sends a comment to a peer that seems gone: then the end is its cause.
    """
    return _ended(exchange, trace.at, trace) if exchange.ended_by == "client" else None


@rule("http.sse-comments", each=NOTIFICATION, methods={CANCELLED})
def cancels_at_comment(message: Message, trace: Trace) -> Finding | None:
    request = cancelled_request(message)
    exchange = None if request is None else request.exchange
    return None if exchange is None else _ended(exchange, message.at, trace)


def _ended(exchange: Exchange, at: float, trace: Trace) -> Finding | None:
    comment, place = ended_at_comment(exchange, at, trace.settings), place_of(exchange)
    if comment is None or trace.has_passed:
        return None
    ends = trace.subject.given_up.at_comments(at)
    if len(ends) < trace.allowances.survival_tries:
        return UNCLEAR(f"ended {(at - comment) * 1000:.0f} ms after the first comment", exchange, at=place)
    remark = f"ended {len(ends)} streams within {AT_ONCE_S * 1000:.0f} ms of the first comment"
    # A stream that went on after a comment may be among what is missing, and messages before a comment.
    trace.sure.whole(f"{MISSING_ENTRIES}; {remark}", *ends)
    return FAIL(remark, *ends, at=place)

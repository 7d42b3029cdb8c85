"""Rules `http.*` about answers, and about comments and empty events in event streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, cast

from ....log import events
from ....log.bounded import Newest
from ....views.clients import Session
from ....views.values import Exchange, Message
from ....wire.jsonrpc import is_id
from ...clients.series import ALWAYS, NEVER
from ...clients.tasks import task_of
from ...retention import BOUNDS
from ...trace.findings import FAIL, PASS, UNCLEAR, Finding
from ...trace.opportunities import ANSWERED, CONTROL, EXCHANGE, LEFT, NOTIFICATION, REQUEST
from ...trace.rules import rule
from ...trace.trace import Trace

_CANCELLED: Final = "notifications/cancelled"
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
    id = message.params.get("requestId")
    request = trace.seen.request_with_id(message, id, message.at) if is_id(id) else None
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


@rule("http.both-answer-forms", each=NOTIFICATION, methods={_CANCELLED})
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
    trace.sure.knows_all(ANSWERED, None, NEVER, _UNKNOWN)
    waited = message.at - request.answered
    remark = f"cancelled a request {waited:.1f} s after its answer as {form}, and so all that had such an answer"
    return FAIL(remark, *(each.asked_to_cancel or each for each in before))


@rule("http.sse-empty-data", each=REQUEST, after=CONTROL)
def goes_on_after_empty(message: Message, trace: Trace) -> Finding | None:
    """The fault shows later: the request is cancelled although its answer came, or the connection begins a new session.

    A new process begins a session as well, and has a connection of its own.
    """
    request = primed_before(message.at, trace)
    if request is None:
        return None
    if message.method != "initialize":
        return PASS(message, at=request)
    if message.place is None or message.place is not request.place:
        return None
    return _missed_empty(request, message, f"began a new session {_AFTER_EMPTY}", trace)


@rule("http.sse-empty-data", each=EXCHANGE, methods={"DELETE"})
def ends_after_empty(exchange: Exchange, trace: Trace) -> Finding | None:
    request = primed_before(trace.at, trace)
    return None if request is None else PASS(exchange, at=request)


@rule("http.sse-empty-data", each=NOTIFICATION, methods={_CANCELLED})
def misses_after_empty(message: Message, trace: Trace) -> Finding | None:
    request = missed_by(message, trace)
    if request is None or not is_primed(request):
        return None
    return _missed_empty(request, message, f"cancelled a request {_AFTER_EMPTY}", trace)


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


def _missed_empty(request: Message, by: Message, remark: str, trace: Trace) -> Finding | None:
    count = trace.nth()
    if count == 1:
        return UNCLEAR(f"{remark}, once", by, at=request)
    before = trace.seen.all(ANSWERED, until=request.answered or 0) if count <= BOUNDS.searched else ()
    primed = [each for each in before if is_primed(each)]
    if len(primed) + 1 != count:
        return None
    trace.sure.knows_all(ANSWERED, None, NEVER, _UNKNOWN)
    return FAIL(remark, by, *primed, at=request)


# Failing on a comment, a client ends its stream within this time.
_AT_ONCE_S: Final = 0.2
# Timers of clients and proxies are set to multiples of this.
_TIMER_S: Final = 5.0
# Two times closer than this are the same.
_NEAR_S: Final = 0.3
# Streams that a report names.
_MANY_ENDS: Final = 10


@rule("http.sse-comments", each=ANSWERED, after=CONTROL)
def outlives_comments(request: Message, trace: Trace) -> Finding | None:
    exchange, asked = request.exchange, request.asked_to_cancel
    if exchange is None or first_comment(exchange, trace.at) is None or (asked is not None and asked.at < trace.at):
        return None
    return PASS()


@rule("http.sse-comments", each=LEFT)
def leaves_at_comment(exchange: Exchange, trace: Trace) -> Finding | None:
    """A comment counts after a silence of `keep_alive_s` only, and not at a multiple of five seconds.

    A timer of the client may end a stream together with a comment, as both follow a silence. And the server sends a
    comment to a peer that seems gone: then the end is its cause.
    """
    return _ended(exchange, trace.at, trace) if exchange.ended_by == "client" else None


@rule("http.sse-comments", each=NOTIFICATION, methods={_CANCELLED})
def cancels_at_comment(message: Message, trace: Trace) -> Finding | None:
    id = message.params.get("requestId")
    request = trace.seen.request_with_id(message, id, message.at) if is_id(id) else None
    exchange = None if request is None else request.exchange
    return None if exchange is None else _ended(exchange, message.at, trace)


class _Ends:
    """The newest streams that ended at their first comment, with the time from request to comment."""

    def __init__(self) -> None:
        self.after: Newest[Exchange, float] = Newest(_MANY_ENDS)


def _ended(exchange: Exchange, at: float, trace: Trace) -> Finding | None:
    """Streams with an equal time from request to comment count once."""
    comment, place, ends = _ends_at_comment(exchange, at, trace), _place(exchange), trace.kept(_Ends).after
    if comment is None or place is None:
        return None
    after = comment - exchange.began.mono
    if all(abs(after - each) > _NEAR_S for each in ends.values()):
        ends.store(exchange, after)
    if trace.has_passed:
        return None
    if len(ends) < trace.allowances.survival_tries:
        return UNCLEAR(f"ended {(at - comment) * 1000:.0f} ms after the first comment", exchange, at=place)
    remark = f"ended {len(ends)} streams within {_AT_ONCE_S * 1000:.0f} ms of the first comment"
    return FAIL(remark, *ends, at=place)


def _place(exchange: Exchange) -> Message | Session | None:
    return next((each for each in exchange.messages if each.rpc == "request" and each.received), exchange.session)


def _ends_at_comment(exchange: Exchange, at: float, trace: Trace) -> float | None:
    """When the first comment came, if the stream ended at once and no timer explains that."""
    found = first_comment(exchange, at)
    if found is None:
        return None
    comment, silence = found
    is_timer = not is_keep_alive(silence, trace) or _is_timer(comment - exchange.began.mono)
    return None if is_timer or at - comment > _AT_ONCE_S else comment


def first_comment(exchange: Exchange, at: float) -> tuple[float, float] | None:
    """When the first comment before a time came on an exchange, and the silence before it in seconds."""
    stream = exchange.stream
    if stream is None:
        return None
    own = (each for each in stream.controls if each.context.exchange == exchange.number)
    comment = next((each.mono for each in own if cast("events.StreamControl", each.fact).what == "comment"), ALWAYS)
    if comment >= at:
        return None
    began = exchange.response or exchange.began
    times = [began.mono, *(each.had for each in stream.sent.values() if each.had is not None)]
    times += [each.mono for each in stream.controls]
    return comment, comment - max((each for each in times if each < comment), default=comment)


def is_keep_alive(silence: float, trace: Trace) -> bool:
    """True for the silence before a keep-alive comment, unless a timer of the peer may end it, too."""
    keep_alive_s = trace.settings.get("keep_alive_s")
    return isinstance(keep_alive_s, (int, float)) and silence >= keep_alive_s - 0.05 and not _is_timer(silence)


def _is_timer(seconds: float) -> bool:
    rest = seconds % _TIMER_S
    return min(rest, _TIMER_S - rest) <= _NEAR_S

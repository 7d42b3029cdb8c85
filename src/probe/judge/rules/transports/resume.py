"""Rules `resume.*`: event streams that break, and how a client goes on with them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import nextafter
from typing import Final, Literal, TypeAlias, cast

from ....log import events
from ....views.clients import Session
from ....views.retention import ForgottenError
from ....views.values import Exchange, Message
from ....views.work import Stream
from ...clients.moments import ClientEnd
from ...clients.series import ALWAYS, NEVER
from ...retention import BOUNDS
from ...trace.findings import FAIL, MEASURED, PASS, PASSED, UNCLEAR, Finding
from ...trace.opportunities import ANSWERED, DENIED, END, EXCHANGE, LEFT, REQUEST, RESPONSE
from ...trace.rules import rule
from ...trace.trace import MISSING_ENTRIES, Trace, has_made_room
from .http import LAST_EVENT, left_at

# Ends of a response without a loss: the client left, or the stream was complete.
_NOT_LOST: Final = frozenset({None, "", "client", "end of stream", "displaced by a newer connection"})
# Time for a client to come back, beyond the value of `retry`.
_BACK_S: Final = 30.0
# Some SDKs give a stream up after so many returns.
_PATIENT: Final = 2


def last_event(exchange: Exchange) -> tuple[str, int | None] | None:
    """The stream and the position in the Last-Event-ID of a GET for the endpoint."""
    fields = exchange.fields
    last = exchange.header(LAST_EVENT) if fields.method == "GET" and exchange.is_endpoint else None
    if last is None:
        return None
    stream, _, number = last.rpartition("-")
    return stream, int(number) if number.isascii() and number.isdecimal() and len(number) <= 12 else None


def _named_stream(exchange: Exchange) -> Stream | None:
    event, session = last_event(exchange), exchange.session
    return None if event is None or session is None else session.streams.get(event[0])


def lost(exchange: Exchange, at: float) -> Stream | None:
    """The stream of a request, if the server ended its response before the answer and an event with an id had come.

    All messages of a session's streams over HTTP have one.
    """
    stream = exchange.stream
    if stream is None or exchange.ended_by in _NOT_LOST or stream.purpose != "response" or not _is_owed(stream, at):
        return None
    controls = (each for each in stream.controls if each.mono < at)
    marked = any(cast("events.StreamControl", each.fact).event_id is not None for each in controls)
    return stream if marked or any(each.had_by(at) for each in stream.sent.values()) else None


def owed_until(stream: Stream) -> float:
    """The time from which on no answer was due on a stream: delivered, cancelled, or the session over."""
    request, session = stream.request, stream.session
    if request is None or session is None:
        return NEVER
    cancelled = ALWAYS if request.asked_to_cancel is None else request.asked_to_cancel.at
    closed = ALWAYS if session.closed is None else session.closed.mono
    return min(cancelled, closed, ALWAYS if request.answered is None else request.answered)


def _since(stream: Stream) -> float:
    """The time from which on the log has to be whole, so that it shows what became of a stream."""
    return NEVER if stream.request is None else stream.request.at


def _is_owed(stream: Stream, at: float) -> bool:
    return owed_until(stream) >= at


def retry_s(stream: Stream, at: float) -> float:
    facts = (cast("events.StreamControl", each.fact) for each in reversed(stream.controls) if each.mono < at)
    return next((fact.retry_ms / 1000 for fact in facts if fact.retry_ms is not None), 0.0)


def returns(stream: Stream, since: float, until: float, trace: Trace) -> Sequence[Exchange]:
    gets = trace.seen.all(EXCHANGE, "GET", since=since, until=until)
    return [each for each in gets if each.session is stream.session and (last_event(each) or ("",))[0] == stream.id]


@rule("resume.comes-back", each=LEFT)
def comes_back(exchange: Exchange, trace: Trace) -> Finding | None:
    """After two returns it may give up. Without an act long after the time for it, the client may have ended."""
    left, stream = trace.at, lost(exchange, trace.at)
    session = None if stream is None else stream.session
    if stream is None or session is None or session.revision not in trace.rule.revisions:
        return None
    primed = any(cast("events.StreamControl", each.fact).what == "priming" for each in stream.controls)
    if not primed or exchange.ended_by != "hang-up":
        return None
    pause = max(retry_s(stream, left), 1.0)
    until = left + pause + _BACK_S
    if back := returns(stream, left, until, trace):
        return PASS(back[0])
    if _is_owed(stream, until):
        trace.sure.had_time(left, pause + _BACK_S)
    if not _is_owed(stream, until) or not trace.seen.acted(session, left + pause + trace.allowances.settle_s, until):
        return None
    trace.sure.whole(f"{MISSING_ENTRIES}; a return or the answer may be among them", since=_since(stream))
    tries = sum(each.since.mono < left for each in stream.readings) - 1
    if tries >= _PATIENT:
        return MEASURED(reconnections_before_it_gave_up=tries)
    if stream.request is not None and has_made_room(stream.request):
        raise ForgottenError  # it may have been cancelled or answered
    return FAIL(f"went on, and did not come back for stream {stream.id} within {pause + _BACK_S:.0f} s")


@rule("resume.last-event-id", each=EXCHANGE, methods={"GET"})
def says_last_event(exchange: Exchange, trace: Trace) -> Finding | None:
    stream = _named_stream(exchange)
    reader = None if stream is None else stream.reader_by(trace.at)
    if reader is None or not reader.closed_by(trace.at) or lost(reader, left_at(reader)) is None:
        return None
    return PASS(reader)


@rule("resume.last-event-id", each=EXCHANGE, methods={"GET"})
def says_no_last_event(exchange: Exchange, trace: Trace) -> Finding | None:
    """A GET without it opens another stream beside the lost one, and another GET may follow."""
    session, at = exchange.session, trace.at
    if session is None or not exchange.is_endpoint or last_event(exchange):
        return None
    found = _newest_loss(session, at, trace)
    if found is None:
        return None
    stream, loss = found
    pause = retry_s(stream, at) + trace.allowances.settle_s
    if returns(stream, at, at + pause, trace) or not _is_owed(stream, at + pause):
        return None
    trace.sure.had_time(at, pause, loss)
    trace.sure.whole(f"{MISSING_ENTRIES}; a return or the answer may be among them", loss, since=_since(stream))
    return FAIL(f"GET without Last-Event-ID, and none with it for stream {stream.id}", loss)


def _newest_loss(session: Session, at: float, trace: Trace) -> tuple[Stream, Exchange] | None:
    """The newest lost stream of a session without a return yet."""
    for exchange in reversed(trace.seen.all(LEFT, since=at - _BACK_S, until=at)):
        stream = lost(exchange, left_at(exchange))
        is_open = stream is not None and stream.session is session and _is_owed(stream, at)
        if stream is not None and is_open and not returns(stream, left_at(exchange), at, trace):
            return stream, exchange
    return None


@rule("resume.position-true", each=RESPONSE, methods={"GET"})
def true_position(exchange: Exchange, trace: Trace) -> Finding | None:
    """An older event than the last is innocent: later ones may not have arrived.

    A socket may have taken a part of an event without a delivery in the log.
    """
    event, last, stream = last_event(exchange), exchange.header(LAST_EVENT), _named_stream(exchange)
    if event is None or exchange.session is None:
        return None
    if exchange.refusal == "UNKNOWN_EVENT_ID":
        return FAIL(f"Last-Event-ID {last} was never given in this session")
    if exchange.refusal in ("EVENTS_GONE", "NOTHING_FOLLOWS"):
        return PASSED
    if exchange.status != 200 or stream is None:
        return None
    taken = next((place for place in reversed(stream.sent) if stream.sent[place].had_by(trace.at)), 0)
    if event[1] is not None and event[1] > taken and not trace.gap_in(NEVER, trace.at):
        return UNCLEAR(f"Last-Event-ID {last} names what no socket took whole")
    return PASSED


Needless: TypeAlias = Literal["read", "late"]


def needless(exchange: Exchange, trace: Trace) -> Needless | None:
    """The evidence in a return for an answer at the client: the event is its last, or it comes long after."""
    event, stream, at = last_event(exchange), _named_stream(exchange), exchange.began.mono
    request = None if stream is None or stream.purpose != "response" else stream.request
    if event is None or request is None or request.answer is None or request.answered is None:
        return None
    if not request.answered_by(at):
        return None
    if request.answer.position == event[1]:
        return "read"
    return "late" if at >= request.answered + trace.allowances.settle_s else None


@rule("resume.stops-when-answered", each=EXCHANGE, methods={"GET"})
def comes_in_vain(exchange: Exchange, trace: Trace) -> Finding | None:
    """One return may be under way, or the last bytes were lost: it takes two for one stream.

    With the event of the answer as its last one the client has read the answer: two of those are enough, on any streams
    and at any time.
    """
    how, stream = needless(exchange, trace), _named_stream(exchange)
    if how is None or stream is None or stream.request is None:
        return None
    for other, before in islice(trace.fates(EXCHANGE, needless, "GET", before=exchange), BOUNDS.compared):
        if how == before == "read":
            remark = f"came back with the event of the answer to {stream.id} as its last"
            return FAIL(remark, other, exchange, at=stream.request)
        if how == "late" and before is not None and _named_stream(other) is stream:
            return FAIL(f"came back again for stream {stream.id} after its answer", other, exchange, at=stream.request)
    return None


@rule("resume.stops-when-answered", each=END)
def stays_away(end: ClientEnd, trace: Trace) -> Finding | None:
    came = {_named_stream(each) for each in trace.seen.all(EXCHANGE, "GET") if needless(each, trace)}
    for request in reversed(trace.seen.all(ANSWERED)):
        stream = None if request.exchange is None else request.exchange.stream
        is_own = stream is not None and stream.request is request and stream.purpose == "response"
        if is_own and stream not in came and request.in_session is not None and request.transport == "http":
            return PASS(at=request)
    return None


# The refused request and three more; and the returns that are still patience.
_FEW: Final = 4
_MANY: Final = 10


@rule("resume.gives-up", each=DENIED, methods={"GET"})
def gives_up(exchange: Exchange, trace: Trace) -> Finding | None:
    """With longer and longer waits any number of returns is polite."""
    status, last, at = exchange.status, exchange.header(LAST_EVENT), trace.at
    if status not in (400, 410) or last_event(exchange) is None:
        return None

    def tries(since: float, until: float) -> Sequence[Exchange]:
        found = trace.seen.all(RESPONSE, str(status), since=since, until=until)
        return [each for each in found if each.session is exchange.session and each.header(LAST_EVENT) == last]

    within = trace.allowances.repeat_s
    if before := tries(at - within, at):
        if len(before) < _MANY:
            return None
        remark = f"{len(before) + 1} times the same refused Last-Event-ID within {within:g} s"
        return FAIL(remark, *before)
    trace.sure.had_time(at, "repeat_s")
    count = len(tries(at, at + within))
    if count <= _FEW:
        return PASSED
    return UNCLEAR(f"{count} times the same refused Last-Event-ID") if count <= _MANY else None


# A repetition within this time is an act of the client rather than of a person.
_AT_ONCE_S: Final = 5.0


@rule("resume.no-second-call", each=LEFT)
def calls_once(exchange: Exchange, trace: Trace) -> Finding | None:
    """Equal calls side by side are no repetition."""
    left, stream = trace.at, lost(exchange, trace.at)
    request = None if stream is None else stream.request
    if stream is None or request is None or request.method != "tools/call" or _has_twin(request, trace):
        return None
    until = left + _BACK_S
    back = next(iter(returns(stream, left, until, trace)), None)
    calls = trace.seen.all(REQUEST, "tools/call", since=left, until=until if back is None else back.began.mono)
    again = next((each for each in calls if _is_owed(stream, each.at) and is_equal(each, request)), None)
    if again is not None:
        if back is None:
            # Perhaps a call of its own, and a return for the first one may follow.
            trace.sure.had_time(left, retry_s(stream, left), exchange)
        remark = f"the same call again {again.at - left:.1f} s after its stream broke, in place of Last-Event-ID"
        knows_all = not trace.gap_in(NEVER, again.at) and not any(map(has_made_room, _calls(trace)))
        is_sure = again.at - left <= _AT_ONCE_S and knows_all
        return (FAIL if is_sure else UNCLEAR)(remark, exchange, at=again)
    if back is not None:
        return PASS(back)
    if _is_owed(stream, until):
        trace.sure.had_time(left, _BACK_S)
    over = min(until, nextafter(owed_until(stream), ALWAYS))
    return PASSED if trace.seen.acted(stream.session, left, over) else None


def _has_twin(request: Message, trace: Trace) -> bool:
    return any(each is not request and is_equal(each, request) for each in _calls(trace))


def _calls(trace: Trace) -> Sequence[Message]:
    return trace.seen.newest(REQUEST, "tools/call", BOUNDS.compared)


def is_equal(one: Message, other: Message) -> bool:
    """True for two calls of one session with the same name and arguments."""
    if one.in_session is not other.in_session:
        return False
    return all(one.params.get(name) == other.params.get(name) for name in ("name", "arguments"))

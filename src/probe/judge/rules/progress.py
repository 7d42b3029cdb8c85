"""Rules `progress.*`: progress tokens. And how progress changes how long a client waits (`lifecycle.*`)."""

from __future__ import annotations

from typing import Final

from ...views.values import Exchange, Message
from ...wire.jsonrpc import is_id
from ..clients.given_up import CANCELLED, cancelled_call, left_call
from ..trace.findings import FAIL, MEASURED, PASS, PASSED, UNCLEAR, WARN, Finding, Undecided
from ..trace.opportunities import ANSWERED, LEFT, NOTIFICATION, REQUEST, TOLD
from ..trace.rules import form, member, rule
from ..trace.trace import MISSING_ENTRIES, Trace
from ..values import is_whole, number_or_type, shown

# Two waits that differ by less are of one timer.
_SAME_WAIT: Final = 0.1
_PROGRESS: Final = "notifications/progress"

form(
    "progress.token-type",
    each=REQUEST,
    member="/params/_meta/progressToken",
    must=is_id,
    nearly=is_whole,
    words=number_or_type,
)


@rule("progress.token-unique", each=REQUEST, with_meta=True)
def own_token(request: Message, trace: Trace) -> Finding | None:
    """Over HTTP, what ends the first request can be on its way on another connection."""
    running, other = trace.subject.tokens.beside(request)
    if running is None:
        return None if other is None else PASS(other)
    if trace.gap_in(running.at, request.at):
        raise Undecided("entries of the log are missing; they may end the request with this token", running)
    if type(running.token) is not type(request.token):
        return WARN(f"progressToken {shown(request.token)} and that of a running request differ in type only", running)
    if running.raw == request.raw and request.at - running.at <= trace.allowances.repeat_s:
        return None  # the same POST once more, by a transport that got no response
    if request.transport == "http":
        at = trace.sure.crossed(request.at, "arrival_s", running)
        if running.dropped_by(at) or running.cancelled_by(at):
            return None
    remark = f"progressToken {shown(request.token)} is that of a request that still runs"
    trace.sure.one_sender(request, running, remark, running)
    return FAIL(remark, running)


@rule("progress.asked-for", each=REQUEST, methods={"tools/call"})
def asked_for(request: Message, trace: Trace) -> Finding | None:
    """A fact of the card, never a fault."""
    if "progressToken" in request.meta:
        return PASS(measured={"asks for progress": "yes"})
    is_first = trace.seen.last(REQUEST, "tools/call", until=request.at) is None
    return MEASURED(asks_for_progress="no") if is_first else None


@rule("progress.only-for-server-tokens", each=NOTIFICATION, methods={_PROGRESS})
def server_tokens(message: Message, trace: Trace) -> Finding | None:
    """A token that is missing, or is none, is left to the rules about the form of messages."""
    token = member(message, "/params/progressToken")
    if not is_id(token):
        return None
    if trace.subject.tokens.question(token, message.at + trace.allowances.arrival_s) is not None:
        return PASSED
    trace.sure.crossed(message.at, "arrival_s")
    if trace.subject.tokens.may_miss_questions:
        return UNCLEAR("the server gave more tokens than are remembered")
    trace.sure.whole("the server may have given the token before the log begins")
    return FAIL("the client or a gateway sent progress for a token that the server never gave")


@rule("progress.increases", each=NOTIFICATION, methods={_PROGRESS})
def increases(message: Message, trace: Trace) -> Finding | None:
    """Over HTTP two notifications can change places on the way, and a transport may repeat a POST."""
    before = trace.subject.tokens.reported_before(message)
    if before is None:
        return None
    now = message.params["progress"]
    if now > before.progress:
        return PASS(before)
    remark = f"progress was {shown(before.progress)}, then {shown(now)}"
    if now < before.progress and _may_overtake(message, message.at - before.at, trace):
        return UNCLEAR(f"{remark}; the two may have changed places on the way", before)
    if message.transport == "http" and message.place is not before.place and hash(message.raw) == before.digest:
        return UNCLEAR("the same bytes came again on another connection, as a transport repeats", before)
    return FAIL(remark, before)


@rule("progress.stops", each=NOTIFICATION, methods={_PROGRESS})
def stops(message: Message, trace: Trace) -> Finding | None:
    """Over HTTP the answer can overtake a notification that was sent before it."""
    token = member(message, "/params/progressToken")
    question = trace.subject.tokens.question(token, message.at) if is_id(token) else None
    if question is None:
        return None
    answers = trace.seen.answers(question, message.at)
    if not answers and question.at <= trace.subject.dialogue.forgot:
        return UNCLEAR("more questions were answered than are remembered", question)
    if not answers:
        return PASS(question)
    late = message.at - answers[0].at
    remark = f"{question.method} was answered {late:.1f} s before"
    if _may_overtake(message, late, trace):
        return UNCLEAR(f"{remark}; the answer may have overtaken it on the way", answers[0])
    # A newer question with this token may be among what is missing.
    trace.sure.whole(f"{MISSING_ENTRIES}; {remark}", answers[0], since=question.at)
    return FAIL(remark, answers[0])


def _may_overtake(message: Message, seconds: float, trace: Trace) -> bool:
    return message.transport == "http" and seconds < trace.allowances.arrival_s


@rule("lifecycle.progress-extends-patience", each=NOTIFICATION, methods={CANCELLED})
def cancels_progressing(message: Message, trace: Trace) -> Finding | None:
    """Measured, as a client may do without."""
    return _gave_up(cancelled_call(message), message.at, trace)


@rule("lifecycle.progress-extends-patience", each=LEFT)
def leaves_progressing(exchange: Exchange, trace: Trace) -> Finding | None:
    return _gave_up(left_call(exchange, trace.at), trace.at, trace) if exchange.ended_by == "client" else None


@rule("lifecycle.progress-extends-patience", each=ANSWERED, methods={"tools/call"}, after=TOLD)
def waits_for_progress(request: Message, trace: Trace) -> Finding | None:
    waited = trace.at - request.at
    if not _is_longer(waited, trace) or not request.progressed_by(trace.at):
        return None
    return PASS(measured={"waited with progress": round(waited, 1)})


def _gave_up(call: Message | None, at: float, trace: Trace) -> Finding | None:
    if call is None:
        return None
    waited = at - call.at
    if not call.progressed_by(at):
        return MEASURED(gave_up_a_silent_call_after=round(waited, 1))
    if not _is_longer(waited, trace):
        return MEASURED(gave_up_in_spite_of_progress_after=round(waited, 1))
    return PASS(at=call, measured={"waited with progress": round(waited, 1)})


def _is_longer(waited: float, trace: Trace) -> bool:
    patience = trace.subject.given_up.silent_s(trace.at)
    return patience is not None and waited > patience * (1 + _SAME_WAIT)

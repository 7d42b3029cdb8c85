"""Rules `progress.*`: progress tokens. And how progress changes how long a client waits (`lifecycle.*`)."""

from __future__ import annotations

from typing import Final

from ...views.values import Exchange, Message
from ...wire.jsonrpc import is_id
from ..clients.series import NEVER
from ..trace.findings import FAIL, MEASURED, PASS, WARN, Finding
from ..trace.opportunities import ANSWERED, ASKED, LEFT, NOTIFICATION, REQUEST, TOLD
from ..trace.rules import MISSING, form, member, rule
from ..trace.trace import Trace
from ..values import is_whole, number_or_type, shown
from .transports.http import left_at

# Two waits that differ by less are of one timer.
_SAME_WAIT: Final = 0.1
_CANCELLED: Final = "notifications/cancelled"
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
    """The client can have read a question before its delivery is in the log.

    A token that is missing, or is none, is left to the rules about the form of messages.
    """
    token = member(message, "/params/progressToken")
    if token is MISSING or not is_id(token):
        return None
    given = trace.subject.tokens.given(token)
    if given is not None and given < message.at + trace.allowances.arrival_s:
        return PASS()
    trace.sure.crossed(message.at, "arrival_s")
    trace.sure.knows_all(ASKED, None, NEVER, "the server may have given the token before the log begins")
    return FAIL("the client or a gateway sent progress for a token that the server never gave")


@rule("lifecycle.progress-extends-patience", each=NOTIFICATION, methods={_CANCELLED})
def cancels_progressing(message: Message, trace: Trace) -> Finding | None:
    """Measured, as a client may do without."""
    call = _cancelled(message, trace)
    return None if call is None else _gave_up(call, message.at, trace)


@rule("lifecycle.progress-extends-patience", each=LEFT)
def leaves_progressing(exchange: Exchange, trace: Trace) -> Finding | None:
    call = _left(exchange)
    return None if call is None else _gave_up(call, trace.at, trace)


@rule("lifecycle.progress-extends-patience", each=ANSWERED, methods={"tools/call"}, after=TOLD)
def waits_for_progress(request: Message, trace: Trace) -> Finding | None:
    waited = trace.at - request.at
    if not request.progressed_by(trace.at) or not _is_longer(waited, _patience(trace)):
        return None
    return PASS(measured={"waited with progress": round(waited, 1)})


def _gave_up(call: Message, at: float, trace: Trace) -> Finding | None:
    waited = at - call.at
    if not call.progressed_by(at):
        return MEASURED(gave_up_a_silent_call_after=round(waited, 1))
    if not _is_longer(waited, _patience(trace)):
        return MEASURED(gave_up_in_spite_of_progress_after=round(waited, 1))
    return PASS(at=call, measured={"waited with progress": round(waited, 1)})


def _is_longer(waited: float, patience: float | None) -> bool:
    return patience is not None and waited > patience * (1 + _SAME_WAIT)


def _patience(trace: Trace) -> float | None:
    """How long the client waited at most for a silent call before it gave that up."""
    cancelled = ((_cancelled(each, trace), each.at) for each in trace.seen.newest(NOTIFICATION, _CANCELLED))
    left = ((_left(each), left_at(each)) for each in trace.seen.newest(LEFT, "client"))
    silent = [at - call.at for call, at in (*cancelled, *left) if call is not None and not call.progressed_by(at)]
    return max(silent, default=None)


def _cancelled(message: Message, trace: Trace) -> Message | None:
    """The call that a cancellation gives up."""
    id = message.params.get("requestId")
    request = trace.seen.request_with_id(message, id, message.at) if is_id(id) else None
    is_call = request is not None and request.method == "tools/call" and not request.was_answered(message.at)
    return request if is_call else None


def _left(exchange: Exchange) -> Message | None:
    """The call that the client gives up as it hangs up."""
    at = left_at(exchange)
    calls = (each for each in exchange.messages if each.rpc == "request" and each.method == "tools/call")
    return next((each for each in calls if not each.was_answered(at)), None) if exchange.ended_by == "client" else None

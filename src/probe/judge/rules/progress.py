"""Rules `progress.*`: progress tokens. And how progress changes how long a client waits (`lifecycle.*`)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ...views.values import Exchange, Message
from ...wire.jsonrpc import is_id
from ..clients.series import NEVER
from ..trace.findings import FAIL, MEASURED, PASS, WARN, Finding
from ..trace.opportunities import ANSWERED, ASKED, LEFT, NOTIFICATION, REQUEST
from ..trace.rules import MISSING, form, member, rule
from ..trace.trace import Trace
from ..values import is_whole, number_or_type, shown

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


@rule("progress.token-unique", each=REQUEST)
def own_token(request: Message, trace: Trace) -> Finding | None:
    """Gives each active request its own progress token.

    Over HTTP, what ends the first request can be on its way on another connection.
    """
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


class Called(Struct):
    """What is known of a client's calls: whether it has called any tool."""

    before: bool = False


@rule("progress.asked-for", each=REQUEST, methods={"tools/call"})
def asked_for(request: Message, trace: Trace) -> Finding | None:
    """Asks for progress. A fact of the card, never a fault."""
    called = trace.kept(Called)
    is_first, called.before = not called.before, True
    if "progressToken" in request.meta:
        return PASS(measured={"asks for progress": "yes"})
    return MEASURED(asks_for_progress="no") if is_first else None


@rule("progress.only-for-server-tokens", each=NOTIFICATION, methods={_PROGRESS})
def server_tokens(message: Message, trace: Trace) -> Finding | None:
    """Sends progress only for tokens of the server.

    The client can have read a question before the log says that it was delivered. A token that is missing, or is none,
    is the business of the rules about the form of messages.
    """
    token = member(message, "/params/progressToken")
    if token is MISSING or not is_id(token):
        return None
    if trace.seen.gave_token(token, message.at + trace.allowances.arrival_s):
        return PASS()
    trace.sure.crossed(message.at, "arrival_s")
    trace.sure.knows_all(ASKED, None, NEVER, "the server may have given the token before the log begins")
    return FAIL("the client or a gateway sent progress for a token that the server never gave")


class _Patience(Struct):
    """How long the client waited for a silent call before it gave that up, the longest."""

    silent_s: float | None = None


@rule("lifecycle.progress-extends-patience", each=NOTIFICATION, methods={_CANCELLED})
def cancels_progressing(message: Message, trace: Trace) -> Finding | None:
    """Waits longer for a call that reports progress. Measured, as a client may do without."""
    id = message.params.get("requestId")
    request = trace.seen.request_with_id(message, id, message.at) if is_id(id) else None
    if request is None or request.was_answered(message.at):
        return None
    return _gave_up(request, message.at, trace)


@rule("lifecycle.progress-extends-patience", each=LEFT)
def leaves_progressing(exchange: Exchange, trace: Trace) -> Finding | None:
    """Likewise where it hangs up."""
    at = trace.at
    if exchange.ended_by != "client":
        return None
    given_up = (each for each in exchange.messages if each.rpc == "request" and not each.was_answered(at))
    return next((found for found in (_gave_up(each, at, trace) for each in given_up) if found is not None), None)


@rule("lifecycle.progress-extends-patience", each=ANSWERED, methods={"tools/call"})
def waits_for_progress(request: Message, trace: Trace) -> Finding | None:
    """Likewise where it waits to the end."""
    patience, waited = trace.kept(_Patience).silent_s, trace.at - request.at
    if patience is None or waited <= patience * (1 + _SAME_WAIT) or not request.progressed_by(trace.at):
        return None
    return PASS(measured={"waited with progress": round(waited, 1)})


def _gave_up(request: Message, at: float, trace: Trace) -> Finding | None:
    if request.method != "tools/call":
        return None
    patience, waited = trace.kept(_Patience), at - request.at
    if not request.progressed_by(at):
        patience.silent_s = max(waited, patience.silent_s or 0)
        return MEASURED(gave_up_a_silent_call_after=round(waited, 1))
    if patience.silent_s is None or waited <= patience.silent_s * (1 + _SAME_WAIT):
        return MEASURED(gave_up_in_spite_of_progress_after=round(waited, 1))
    return PASS(at=request, measured={"waited with progress": round(waited, 1)})

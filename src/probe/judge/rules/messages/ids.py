"""Rules `jsonrpc.*` about the ids of requests and answers."""

from __future__ import annotations

from typing import Final

from ....views.retention import members
from ....views.values import Message
from ....wire.jsonrpc import RequestId, clip, is_id
from ...clients.series import NEVER
from ...trace.findings import FAIL, PASS, UNCLEAR, WARN, Finding
from ...trace.opportunities import ANSWER, REQUEST
from ...trace.rules import rule
from ...trace.trace import Trace
from ..words import numeric

_REFUSED: Final = 400


def _shown(id: RequestId | None) -> str:
    return clip(repr(id))


@rule("jsonrpc.id-unused-before", each=REQUEST)
def new_id(request: Message, trace: Trace) -> Finding | None:
    """Never uses a request id twice in one session.

    A transport that believes a POST lost sends the same bytes again, on another connection and whether or not it was
    answered, so equal bytes count only on one connection where the first request was answered, and in one batch. A
    request that a limit of the server refused is sent again by design.
    """
    scope, first = request.scope, request.same_id
    if request.in_session is None or request.id is None or scope is None:
        return None
    if first is None:
        return PASS() if scope.forgot or next(iter(scope.requests)) < request.seq else None
    if first.limited_by(request.at):
        return UNCLEAR("the first request with this id was refused for a limit", first)
    if first.raw == request.raw:
        if request.transport == "http" and request.place is not first.place:
            return UNCLEAR("the same bytes came again on another connection, as a transport repeats", first)
        in_one_batch = request.batch is not None and request.exchange is first.exchange
        if not in_one_batch and not first.answered_by(request.at):
            return UNCLEAR("the same bytes came again before the first request was answered", first)
    return FAIL(f"{request.method} has the id {_shown(request.id)} of {first.method}", first)


@rule("jsonrpc.id-not-in-flight", each=REQUEST)
def free_id(request: Message, trace: Trace) -> Finding | None:
    """Does not give two requests in flight the same id.

    Over HTTP one program may have several instances of a client under its label, each with a count of its own: only
    what one connection carried comes from one sender.
    """
    first, at = request.same_id, request.at
    if request.id is None:
        return None
    if first is None or not _is_in_flight(first, at, trace):
        scope = request.scope
        before = trace.seen.newest(REQUEST, None, 2, lambda each: each.scope is scope and each.era == "modern")[1:]
        return PASS(*before) if before and _is_in_flight(before[0], at, trace) else None
    remark = f"the id {_shown(request.id)} is that of {first.method}, which has no answer yet"
    if first.cancelled_by(at):
        return UNCLEAR("the first request with this id was cancelled", first)
    trace.sure.one_sender(request, first, remark, first)
    trace.sure.whole(f"entries of the log are missing; {remark}", first)
    if request.transport == "http" and first.raw == request.raw:
        return UNCLEAR("the same bytes came again before the first request was answered", first)
    return FAIL(remark, first)


def _is_in_flight(request: Message, at: float, trace: Trace) -> bool:
    """True if a response was still to come: the client had none, nor has it left, nor can one be on its way to it."""
    exchange, answer = request.exchange, request.answer
    if exchange is not None and exchange.head is not None:
        refused = exchange.response is not None and exchange.response.mono < at and (exchange.status or 0) >= _REFUSED
        if refused or exchange.closed_by(at):
            return False
    if answer is not None and 0 < at - answer.at <= trace.allowances.token_grace_s:
        return False
    return not request.answered_by(at) and not request.dropped_by(at)


@rule("jsonrpc.response-id", each=ANSWER)
def answers_with_id(message: Message, trace: Trace) -> Finding | None:
    """Answers with the id of the question, with its JSON type.

    A late answer has an id that was used. One whose id differs from that of a question in its JSON type only may stand
    beside the right one.
    """
    id = members(message.value).get("id")
    if message.question is not None:
        return PASS(message.question)
    if message.in_session is None or trace.gap_in(NEVER, message.at):
        return None
    if not is_id(id):
        # JSON-RPC 2.0, 5: an error may have no id, as it may answer what could not be read.
        return FAIL("the answer has no id") if id is None and message.rpc == "response" else None
    return None if trace.seen.question_with_id(message, id, message.at) is not None else _unknown(message, id, trace)


def _unknown(message: Message, id: RequestId, trace: Trace) -> Finding | None:
    asked, at = trace.subject.dialogue.asked, message.at
    twin = trace.seen.question_with_id(message, numeric(id) if isinstance(id, str) else str(id), at)
    if twin is not None and trace.seen.replies(twin, at + trace.allowances.answer_s):
        return None
    if twin is not None:
        trace.sure.crossed(at, "answer_s", twin)
        return FAIL(f"the answer to {_shown(twin.id)} has the id {_shown(id)}", twin)
    if asked.full < at:
        return UNCLEAR("more questions were asked than are remembered")
    if asked.anywhere(id, at):
        return WARN(f"the id {_shown(id)} is that of a question in another session")
    return FAIL(f"no question had the id {_shown(id)}")


@rule("jsonrpc.answers-once", each=ANSWER)
def answers_once(message: Message, trace: Trace) -> Finding | None:
    """Answers each question once.

    The same bytes again are a POST that a transport has repeated. A question can be delivered again to a client that
    resumes a stream.
    """
    question = trace.seen.question_of(message)
    if question is None:
        return None
    first = next((each for each in trace.seen.answers(question) if each.rpc in ("response", "error")), message)
    if first.raw == message.raw:
        return PASS(question, first)
    return WARN(f"another answer to {question.method}", question, first)

"""Rules `cancel.*`: how requests are given up, by the client and by the server."""

from __future__ import annotations

from ...views.retention import members
from ...views.values import Exchange, Message
from ...wire.jsonrpc import RequestId, is_id
from ..clients.given_up import CANCELLED, request_with_id, scopes_of
from ..clients.tasks import task_of
from ..trace.findings import FAIL, PASS, PASSED, UNCLEAR, WARN, Finding, Undecided
from ..trace.opportunities import ANSWER, LEFT, NOTIFICATION, REQUEST, TOLD, UNREADABLE
from ..trace.rules import MISSING, member, rule
from ..trace.trace import MISSING_ENTRIES, Trace
from ..values import is_whole, number_or_type, numeric, shown
from .transports.session import is_deleted


def cancelled_id(message: Message) -> RequestId | None:
    """The id that a cancellation names, where it can cancel anything.

    Over HTTP the requests of a message without a session are not known, and the modern era has no such notification:
    `cancel.modern-closes-stream` is about those.
    """
    id = member(message, "/params/requestId", below=True)
    if not is_id(id) or (message.in_session is None and message.pipe is None):
        return None
    return id


def _task_by(request: Message | None, at: float) -> str | None:
    return task_of(request.answer) if request is not None and request.answered_by(at) else None


@rule("cancel.own-request", each=NOTIFICATION, methods={CANCELLED}, general=True)
def own_request(message: Message, trace: Trace) -> Finding | None:
    """Over HTTP the request can arrive after its cancellation, or be lost on the way.

    So only an id that differs in type from a request's, or that of an open question of the server, shows a mistake; and
    only where this client has no ids of that type, as ids of both sides count from 1. A cancellation that names a task
    is the fault of another rule.
    """
    id = cancelled_id(message)
    if id is None:
        return None
    over_http = message.transport == "http"
    until = message.at + (trace.allowances.arrival_s if over_http else 0)
    request = request_with_id(message, id, until)
    if request is not None:
        return PASS(request)
    if over_http:
        trace.sure.crossed(message.at, "arrival_s")
    if trace.found_by_others() is not None:
        return None
    why = f"no request with the id {shown(id)} is known, and not all are"
    trace.sure.whole(why)
    has_forgot = any(scope.forgot for scope in scopes_of(message))
    if message.scope is None or has_forgot or trace.seen.all(UNREADABLE, until=until):
        return UNCLEAR(why)
    return _unknown(message, id, until, trace)


def _unknown(message: Message, id: RequestId, until: float, trace: Trace) -> Finding:
    over_http = message.transport == "http"
    unknown = f"no request had the id {shown(id)}" + ("; it may have been lost on the way" if over_http else "")
    if _has_id_like(message, id, until):
        return UNCLEAR(unknown) if over_http else WARN(unknown)
    twin: RequestId = str(id) if isinstance(id, int) else numeric(id)
    request = request_with_id(message, twin, until) if twin != id else None
    if request is not None:
        return FAIL(f"requestId is {shown(id)}, and the request has {shown(twin)}", request)
    question = trace.seen.question_with_id(message, id, until)
    if question is not None and not trace.seen.replies(question, until):
        return FAIL(f"{shown(id)} is the id of a question of the server", question)
    return WARN(unknown)


def _has_id_like(message: Message, id: RequestId, until: float) -> bool:
    requests = (each for scope in scopes_of(message) for each in scope.requests.values())
    return any(type(each.id) is type(id) and each.at < until for each in requests)


@rule("cancel.in-progress", each=NOTIFICATION, methods={CANCELLED})
def in_progress(message: Message, trace: Trace) -> Finding | None:
    """`cancel.not-initialize` and `cancel.not-task` judge some."""
    id = cancelled_id(message)
    request = None if id is None else request_with_id(message, id, message.at)
    if request is None or request.method == "initialize" or _task_by(request, message.at) is not None:
        return None
    answered = request.answered if request.answered_by(message.at) else None
    if answered is None or message.began - answered < trace.allowances.settle_s:
        return PASS(request)
    # A newer request with this id may be among what is missing.
    trace.sure.whole(since=request.at)
    late = trace.sure.began(message, request) - answered
    return WARN(f"its answer was delivered {late:.0f} s before", request)


@rule("cancel.not-initialize", each=NOTIFICATION, methods={CANCELLED})
def not_initialize(message: Message, trace: Trace) -> Finding | None:
    id = cancelled_id(message)
    if id is None:
        return None
    request = request_with_id(message, id, message.at)
    if request is not None and request.method == "initialize":
        return FAIL("requestId is that of initialize", request)
    return PASSED


@rule("cancel.not-task", each=REQUEST, methods={"tasks/cancel"})
@rule("cancel.not-task-ext", each=REQUEST, methods={"tasks/cancel"})
def cancels_task(request: Message, trace: Trace) -> Finding | None:
    return PASSED


@rule("cancel.not-task", each=NOTIFICATION, methods={CANCELLED})
def not_task(message: Message, trace: Trace) -> Finding | None:
    id = cancelled_id(message)
    request = None if id is None else request_with_id(message, id, message.at)
    return None if id is None else _is_task(message, id, request, trace)


def _is_task(message: Message, id: RequestId, request: Message | None, trace: Trace) -> Finding | None:
    if request is None or _task_by(request, message.at) is None or request.answered is None:
        return None
    remark = f"requestId {shown(id)} is that of a call that runs as a task"
    trace.sure.whole(f"{MISSING_ENTRIES}; {remark}", request, since=request.at)
    return _knowing(message, request.answered, remark, trace, request)


def _knowing(message: Message, had: float, remark: str, trace: Trace, *shown_by: Message) -> Finding | None:
    """A client cannot know of a task before it has read the handle, which was delivered at `had`."""
    passed = message.began - had
    if passed < 0:
        return None
    if passed < trace.allowances.arrival_s:
        unread = f"its CreateTaskResult was delivered {passed:.1f} s before, and may not have been read"
        return UNCLEAR(f"{remark}; {unread}", *shown_by)
    trace.sure.began(message, *shown_by)
    return FAIL(remark, *shown_by)


@rule("cancel.not-task-ext", each=NOTIFICATION, methods={CANCELLED})
def not_extension_task(message: Message, trace: Trace) -> Finding | None:
    id = member(message, "/params/requestId", below=True)
    if not is_id(id):
        return None
    task = trace.subject.dialogue.tasks.find(id)
    created = None if task is None else task.created
    if created is not None and created < message.at:
        return _knowing(message, created, "requestId is the id of a task", trace)
    if message.scope is None or (message.scope.kind == "client" and trace.several() is not None):
        return None
    return _is_task(message, id, request_with_id(message, id, message.at), trace)


@rule("cancel.shape", each=NOTIFICATION, methods={CANCELLED})
def shape(message: Message, trace: Trace) -> Finding | None:
    """Params that are no object are left to the rule about these."""
    if not isinstance(members(message.value).get("params", {}), dict):
        return None
    id, reason = member(message, "/params/requestId", below=True), member(message, "/params/reason", below=True)
    if id is MISSING:
        # The schema of 2025-11-25 has it optional, and its text does not.
        return (WARN if message.revision in (None, "2025-11-25") else FAIL)("requestId is missing")
    if not is_id(id):
        return (WARN if is_whole(id) else FAIL)(f"requestId is {number_or_type(id)}")
    if not (reason is MISSING or isinstance(reason, str)):
        return FAIL(f"reason is {number_or_type(reason)}, not a string")
    return PASSED


@rule("cancel.explicit", each=LEFT)
def explicit(exchange: Exchange, trace: Trace) -> Finding | None:
    """Closing is not cancelling, and may be the network's: the client may come back for the stream, or be gone.

    One that deletes its session gives up all calls. A stream of `stream/resume` is no call's own.
    """
    stream, session, left = exchange.stream, exchange.session, trace.at
    if exchange.ended_by != "client" or session is None or not session.is_legacy or stream is None:
        return None
    request = next((each for each in exchange.messages if each.rpc == "request" and not each.was_answered(left)), None)
    if stream.purpose != "response" or request is None or request.id is None:
        return None
    until = left + trace.allowances.alive_s
    if request.asked_to_cancel is not None and request.asked_to_cancel.at < until:
        return PASS(exchange, at=request)
    if stream.was_read_by_another(exchange, until) or (is_deleted(session) and session.closed_by(until)):
        trace.passed(left, "alive_s")  # the cancellation may still come
        return None
    trace.sure.had_time(left, "alive_s", exchange)
    if trace.gap_in(request.at, left):
        raise Undecided("entries of the log are missing; the answer may be among them", exchange)
    if trace.seen.acted(session, left + trace.allowances.settle_s, until):
        what = f"hung up on {request.method} {shown(request.id)}"
        return WARN(f"the client or a gateway {what}, and no {CANCELLED} came", exchange, at=request)
    return UNCLEAR("the client hung up, and nothing came from it later", exchange, at=request)


@rule("cancel.modern-closes-stream", each=NOTIFICATION, methods={CANCELLED}, general=True)
def no_notification(message: Message, trace: Trace) -> Finding | None:
    """A notification that names a task, or is malformed, is judged by another rule."""
    if message.era != "modern" or trace.found_by_others() is not None:
        return None
    return WARN(f"sent {CANCELLED} over HTTP, where closing the stream cancels")


@rule("cancel.modern-closes-stream", each=LEFT)
def closes_stream(exchange: Exchange, trace: Trace) -> Finding | None:
    given_up = [each for each in exchange.messages if each.rpc == "request" and each.era == "modern"]
    if exchange.ended_by == "client" and given_up and not given_up[0].was_answered(trace.at):
        return PASS(exchange, at=given_up[0])
    return None


@rule("cancel.server-withdrawal", each=TOLD, methods={CANCELLED})
def withdrawn(withdrawal: Message, trace: Trace) -> Finding | None:
    """A person's answer may cross the withdrawal, and a client may be unable to stop what it has begun."""
    id, had, place = withdrawal.params.get("requestId"), trace.at, withdrawal.in_session or withdrawal.pipe
    question = trace.seen.question_with_id(withdrawal, id, had) if is_id(id) else None
    until = had + trace.allowances.alive_s
    replies = () if question is None else trace.seen.replies(question, until)
    if any(_late(reply, had, trace) for reply in replies) or place is None:
        return None
    trace.sure.had_time(had, "alive_s")
    return PASSED if trace.seen.acted(place, had, until) else None


@rule("cancel.server-withdrawal", each=ANSWER)
def late_answer(message: Message, trace: Trace) -> Finding | None:
    question = trace.subject.dialogue.asked.of(message)
    withdrawal = None if question is None else trace.subject.dialogue.withdrawn.get(question)
    if withdrawal is None or withdrawal.had is None or withdrawal.had >= message.at:
        return None
    if not _late(message, withdrawal.had, trace):
        return None
    after = trace.sure.began(message, withdrawal) - withdrawal.had
    return WARN(f"answered a question {after:.0f} s after the server withdrew it", withdrawal)


def _late(reply: Message, withdrawn: float, trace: Trace) -> bool:
    return reply.began - withdrawn >= trace.allowances.settle_s

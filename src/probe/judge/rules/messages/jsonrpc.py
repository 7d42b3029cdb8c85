"""Rules `jsonrpc.*`: envelopes and methods, ids of requests and answers, and the schema of each message."""

from __future__ import annotations

from typing import Any, Final

from ....views.clients import Session
from ....views.retention import ForgottenError, members
from ....views.values import Message
from ....wire.jsonrpc import RequestId, clip, is_id
from ....wire.revisions import LEGACY, MODERN
from ...clients.moments import Unreadable
from ...clients.series import NEVER
from ...clients.tokens import is_in_flight
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, WARN, Finding
from ...trace.opportunities import ANSWER, MESSAGE, NOTIFICATION, REQUEST, SESSION, UNREADABLE
from ...trace.rules import form, rule
from ...trace.trace import MISSING_ENTRIES, Trace, has_made_room
from ...values import is_whole, numeric, shown
from . import schemas

_ENVELOPE: Final = frozenset({"method", "result", "error"})
_NOTIFICATIONS: Final = "notifications/"


@rule("jsonrpc.utf8-json", each=MESSAGE)
def json_text(message: Message, trace: Trace) -> Finding | None:
    """An array counts once."""
    return None if message.batch else PASSED


@rule("jsonrpc.utf8-json", each=UNREADABLE)
def no_json(unreadable: Unreadable, trace: Trace) -> Finding | None:
    """Only what the grammar of JSON forbids is a fault, and no depth, number or escape that this server does not read.

    A POST without a body and without a JSON media type is the health check of a proxy. Text on standard input may stand
    between messages, or be one of several lines: the rules of that transport know.
    """
    fact, fault, exchange = unreadable.fact, unreadable.fault, unreadable.exchange
    if fault == "incomplete" or (fact.declared or 0) > fact.size:
        return UNCLEAR(f"only {fact.size} bytes of the body came")
    if fault == "number":
        return UNCLEAR(f"a number that this server does not read: {fact.problem}")
    if fault != "encoding" and (fault != "syntax" or is_line(unreadable)):
        return None
    if not fact.size:
        is_check = exchange is not None and "json" not in (exchange.header("content-type") or "")
        return None if is_check else FAIL("the message is empty")
    return FAIL(f"the message is no {'UTF-8' if fault == 'encoding' else 'JSON'}: {clip(fact.head)}")


def is_line(of: Unreadable | Message) -> bool:
    """True for a line of standard input, also where the log lacks the beginning of its connection."""
    if of.pipe is not None:
        return of.pipe.transport == "stdio" or of.pipe.opened is None
    return of.exchange is None or of.exchange.head is None


def is_message(message: Message, trace: Trace) -> bool:
    """True for an object with a member that makes it a message; what has none is left to `jsonrpc.wire-schema`."""
    return message.rpc != "invalid" or bool(_ENVELOPE & members(message.value).keys())


def _is_two(version: Any) -> bool:
    return isinstance(version, str) and version == "2.0"


def has_request_id(message: Message, trace: Trace) -> bool:
    """True for a request by its method; a notification with an id has a rule of its own."""
    return message.method is not None and not message.method.startswith(_NOTIFICATIONS)


form("jsonrpc.version", each=MESSAGE, where=is_message, member="/jsonrpc", must=_is_two, needed=True)
form("jsonrpc.request-id-type", each=MESSAGE, where=has_request_id, member="/id", must=is_id, nearly=is_whole)


@rule("jsonrpc.notification-without-id", each=MESSAGE)
def no_id(message: Message, trace: Trace) -> Finding | None:
    if message.method is None or not message.method.startswith(_NOTIFICATIONS):
        return None
    return FAIL(f"{message.method} has an id") if "id" in members(message.value) else PASSED


@rule("jsonrpc.params-object", each=MESSAGE)
def params_object(message: Message, trace: Trace) -> Finding | None:
    if message.method is None:
        return None
    params = members(message.value).get("params", {})
    return PASSED if isinstance(params, dict) else FAIL(f"the params of {message.method} are {shown(params)}")


def _is_array(message: Message) -> bool:
    return message.batch is not None or isinstance(message.value, list)


def _is_early(message: Message) -> bool:
    return message.revision is None and _is_array(message)


@rule("jsonrpc.no-batch", each=MESSAGE, any_revision=True)
def one_message(message: Message, trace: Trace) -> Finding | None:
    """An array before the revision is known is judged when it is."""
    revision = message.revision
    if revision is None:
        is_first = _is_array(message) and trace.seen.first(MESSAGE, None, _is_early) is message
        return UNCLEAR("an array came before the revision was known") if is_first else None
    if revision not in trace.rule.revisions:
        return None
    if not _is_array(message):
        return PASSED
    return None if message.batch else FAIL(f"an array of messages, which {revision} does not have")


@rule("jsonrpc.no-batch", each=SESSION)
def early_array(session: Session, trace: Trace) -> Finding | None:
    """2025-03-26 has arrays, and the client may have learnt them there: an early one is no more than a WARN."""
    array = trace.seen.first(MESSAGE, None, _is_early, until=trace.at)
    if array is None or trace.nth() > 1 or session.revision not in trace.rule.revisions:
        return None
    remark = f"an array of messages, before {session.revision} was negotiated"
    # A session of 2025-03-26 may have been opened there.
    if trace.gap_in(NEVER, array.at):
        return UNCLEAR(f"entries of the log are missing; {remark}", session, at=array)
    return WARN(remark, session, at=array)


@rule("jsonrpc.batch-without-initialize", each=REQUEST, methods={"initialize"})
def initialize_alone(message: Message, trace: Trace) -> Finding | None:
    return PASSED if message.batch is None else FAIL("initialize is part of an array")


@rule("jsonrpc.response-shape", each=MESSAGE, rpcs={"response", "error", "invalid"})
def answer_shape(message: Message, trace: Trace) -> Finding | None:
    if trace.subject.dialogue.asked.of(message) is None:
        return None
    value = members(message.value)
    error, has = value.get("error"), _ENVELOPE & value.keys()
    if len(has) != 1:
        return FAIL("the answer has both result and error" if has else "the answer has no result or error")
    if "result" in has:
        return PASSED if isinstance(value["result"], dict) else FAIL(f"the result is {shown(value['result'])}")
    if not isinstance(error, dict):
        return FAIL(f"the error is {shown(error)}")
    code, text = error.get("code"), error.get("message")
    if not isinstance(code, int) or isinstance(code, bool):
        return (WARN if is_whole(code) else FAIL)(f"the code of the error is {shown(code)}")
    return PASSED if isinstance(text, str) else FAIL(f"the message of the error is {shown(text)}")


_SERVERS: Final = frozenset(
    {"sampling/createMessage", "elicitation/create", "roots/list", "notifications/message"}
    | {"notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/updated"}
    | {"notifications/resources/list_changed", "notifications/elicitation/complete"}
)
"""Methods of the core protocol that only servers send."""

_CORE: Final = frozenset().union(*(schemas.client_methods(revision) for revision in (*LEGACY, *MODERN))) | _SERVERS
# The tasks extension of 2026-07-28 has these again.
_EXTENSION: Final = frozenset({"tasks/get", "tasks/cancel", "tasks/update"})


@rule("jsonrpc.methods-of-revision", each=MESSAGE)
def known_method(message: Message, trace: Trace) -> Finding | None:
    """Methods of no revision belong to extensions."""
    method, revision = message.method, message.revision
    if method is None or revision is None or method not in _CORE:
        return None
    if schemas.request_of(revision, method) is not None or (revision in MODERN and method in _EXTENSION):
        return PASSED
    return FAIL(f"{method} is sent by servers only" if method in _SERVERS else f"{revision} has no {method}")


@rule("jsonrpc.id-unused-before", each=REQUEST)
def new_id(request: Message, trace: Trace) -> Finding | None:
    """A transport that believes a POST lost sends the same bytes again, on another connection.

    So equal bytes count only on one connection where the first request was answered, and in one batch. A request that a
    limit of the server refused is sent again by design.
    """
    scope, first = request.scope, request.same_id
    if request.in_session is None or request.id is None or scope is None:
        return None
    if first is None:
        return PASSED if scope.forgot or next(iter(scope.requests), request.seq) < request.seq else None
    if first.limited_by(request.at):
        return UNCLEAR("the first request with this id was refused for a limit", first)
    if first.raw == request.raw:
        if request.transport == "http" and request.place is not first.place:
            return UNCLEAR("the same bytes came again on another connection, as a transport repeats", first)
        in_one_batch = request.batch is not None and request.exchange is first.exchange
        if not in_one_batch and not first.answered_by(request.at):
            return UNCLEAR("the same bytes came again before the first request was answered", first)
    is_taken = first.answered_by(request.at) and first.answer is not None and first.answer.rpc == "response"
    if not is_taken:
        trace.sure.whole(
            f"{MISSING_ENTRIES}; the first request may have been refused for a limit", first, since=first.at
        )
    return FAIL(f"{request.method} has the id {shown(request.id)} of an earlier {first.method}", first)


@rule("jsonrpc.id-not-in-flight", each=REQUEST)
def free_id(request: Message, trace: Trace) -> Finding | None:
    """Over HTTP one program may have several clients under its label, each with a count of its own.

    Only what one connection carried comes from one sender.
    """
    first, at = trace.subject.reused_ids.get(request.seq), request.at
    if request.id is None:
        return None
    if first is None:
        scope, grace_s = request.scope, trace.allowances.token_grace_s
        before = trace.seen.newest(REQUEST, None, 2, lambda each: each.scope is scope and each.era == "modern")[1:]
        is_known = before and not has_made_room(before[0])
        return PASS(*before) if is_known and is_in_flight(before[0], at, grace_s) else None
    if has_made_room(first):
        raise ForgottenError  # it may have been cancelled
    remark = f"the id {shown(request.id)} is that of {first.method}, which has no answer yet"
    if first.cancelled_by(at):
        return UNCLEAR("the first request with this id was cancelled", first)
    trace.sure.one_sender(request, first, remark, first)
    trace.sure.whole(f"entries of the log are missing; {remark}", first)
    if request.transport == "http" and first.raw == request.raw:
        return UNCLEAR("the same bytes came again before the first request was answered", first)
    return FAIL(remark, first)


@rule("jsonrpc.response-id", each=ANSWER)
def answers_with_id(message: Message, trace: Trace) -> Finding | None:
    """A late answer has an id that was used.

    An answer with the id of a question in another JSON type may stand beside the right one.
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
        return FAIL(f"the answer to {shown(twin.id)} has the id {shown(id)}", twin)
    if asked.full < at:
        return UNCLEAR("more questions were asked than are remembered")
    if asked.anywhere(id, at):
        return WARN(f"the id {shown(id)} is that of a question in another session")
    return FAIL(f"no question had the id {shown(id)}")


@rule("jsonrpc.answers-once", each=ANSWER)
def answers_once(message: Message, trace: Trace) -> Finding | None:
    """The same bytes again are a POST that a transport has repeated.

    A question can be delivered again to a client that resumes a stream.
    """
    question = trace.subject.dialogue.asked.of(message)
    if question is None:
        return None
    first = next((each for each in trace.seen.answers(question) if each.rpc in ("response", "error")), message)
    if first.raw == message.raw:
        return PASS(question, first)
    return WARN(f"another answer to {question.method}", question, first)


# Rules of their own know more of these members than the schema.
_OWN_RULES: Final = frozenset({"/id", "/jsonrpc", "/params/_meta/progressToken", "/params/cursor"})
_OWN_PARTS: Final = ("/result/content", "/params/inputResponses")


@rule("jsonrpc.wire-schema", each=MESSAGE, rpcs={"invalid"}, general=True)
def any_message(message: Message, trace: Trace) -> Finding | None:
    """A bare value on standard input may be a part of a message: its rules look at that."""
    value = message.value
    if isinstance(value, list) or (not isinstance(value, dict) and is_line(message)):
        return None
    return None if trace.found_by_others() is not None else FAIL(_why_no_message(value))


def _why_no_message(value: Any) -> str:
    if not isinstance(value, dict):
        return f"{shown(value)} is no message: a message is an object"
    if "method" in value:
        return f"the method is {shown(value['method'])}"
    return "an object without method, result and error is no message"


@rule("jsonrpc.wire-schema", each=REQUEST, general=True)
@rule("jsonrpc.wire-schema", each=NOTIFICATION, general=True)
def fits_schema(message: Message, trace: Trace) -> Finding | None:
    """An initialize that asks for another revision than it gets may be written by the schema of that."""
    revision, method = message.revision or "", message.method or ""
    definition = schemas.request_of(revision, method) if revision else None
    if definition is None or (method == "initialize" and message.params.get("protocolVersion") != revision):
        return None
    wrong = _hidden_argument(message) if method == "prompts/get" else None
    if wrong is None:
        return _judged(message, definition, message.value, "", trace)
    if trace.found_by_others() is not None:
        return None
    return FAIL(f"{method} does not fit {definition} at {wrong[0]}: a string, got a hidden {wrong[1]}")


@rule("jsonrpc.wire-schema", each=ANSWER, general=True)
def result_fits_schema(message: Message, trace: Trace) -> Finding | None:
    question, revision = message.question, message.revision
    if question is None or revision is None or message.rpc != "response":
        return None
    definition = schemas.result_of(revision, question.method or "")
    if "task" in question.params and "task" in members(message.result) and revision == LEGACY[-1]:
        definition = "CreateTaskResult"
    return None if definition is None else _judged(message, definition, message.result, "/result", trace)


def _judged(message: Message, definition: str, value: Any, at: str, trace: Trace) -> Finding | None:
    """Other rules know more of some members: they are asked before, and what they found is left to them."""
    if trace.found_by_others() is not None:
        return None
    found = schemas.misfits(message.revision or "", definition, value, message.hidden, at=at)
    if not found:
        return PASSED
    own = [each for each in found if each.pointer not in _OWN_RULES and not each.pointer.startswith(_OWN_PARTS)]
    return FAIL(f"{message.method or 'the answer'} does not fit {definition} at {own[0]}") if own else None


def _hidden_argument(message: Message) -> tuple[str, str] | None:
    """The place and the type of an argument that the log hides and that is no string, as those of a prompt are."""
    prefix = "/params/arguments/"
    arguments = (each for each in message.hidden if each[0].startswith(prefix) and "/" not in each[0][len(prefix) :])
    return next((each for each in arguments if each[1] != "string"), None)

"""Rules `jsonrpc.*` about the form of single messages."""

from __future__ import annotations

from typing import Any, Final

from ....wire.jsonrpc import clip
from ....wire.revisions import LEGACY, MODERN
from ...projection.views import Message, Session, Unreadable, members
from ...values import shown
from .. import schemas
from ..predicate import Predicate, judges
from ..schemas import misfits

_ENVELOPE: Final = frozenset({"method", "result", "error"})
_NOTIFICATIONS: Final = "notifications/"
# Rules of their own judge these members, which know more than the schema.
_OWN_RULES: Final = frozenset({"/id", "/jsonrpc", "/params/_meta/progressToken", "/params/cursor"})


@judges("jsonrpc.utf8-json")
class JsonrpcUtf8Json(Predicate):
    """Sends messages that are JSON in UTF-8.

    Only what the grammar of JSON forbids counts: a depth, a number or an escape that this server does not read may be
    legal JSON. A body that was cut short says nothing of its JSON. A POST without a body and without a JSON media type
    is the health check of a proxy. Of text on standard input the rules of that transport say what it is: between
    messages, or a message on several lines.
    """

    def on_message(self, message: Message) -> None:
        if not message.batch:
            self.ok(message)

    def on_unreadable(self, unreadable: Unreadable) -> None:
        fault, exchange = unreadable.fault, unreadable.exchange
        if fault == "incomplete" or (unreadable.declared or 0) > unreadable.size:
            self.unclear(unreadable, f"only {unreadable.size} bytes of the body came")
        elif fault == "number":
            self.unclear(unreadable, f"a number that this server does not read: {unreadable.problem}")
        elif fault == "encoding" or (fault == "syntax" and not _is_line(unreadable)):
            if exchange is not None and not unreadable.size and "json" not in (exchange.header("content-type") or ""):
                return
            what = "is no UTF-8" if fault == "encoding" else "is no JSON"
            if unreadable.size:
                self.fail(unreadable, f"the message {what}: {clip(unreadable.head)}")
            else:
                self.fail(unreadable, "the message is empty")


def _is_line(of: Unreadable | Message) -> bool:
    """Whether it was a line of standard input, or may have been: where it came on is missing in the log."""
    return of.exchange is None if of.pipe is None else of.pipe.transport == "stdio"


@judges("jsonrpc.version")
class JsonrpcVersion(Predicate):
    """Marks every message with jsonrpc 2.0."""

    def on_message(self, message: Message) -> None:
        value = members(message.value)
        if message.rpc == "invalid" and not _ENVELOPE & value.keys():
            return
        version = value.get("jsonrpc")
        if version == "2.0":
            self.ok(message)
        else:
            self.fail(message, "jsonrpc is missing" if "jsonrpc" not in value else f"jsonrpc is {shown(version)}")


@judges("jsonrpc.request-id-type")
class JsonrpcRequestIdType(Predicate):
    """Gives each request a string or integer id, never null.

    1.0 has the value of an integer in languages that have no integers.
    """

    def on_message(self, message: Message) -> None:
        method, value = message.method, members(message.value)
        if method is None or "id" not in value or method.startswith(_NOTIFICATIONS):
            return
        id = value["id"]
        if isinstance(id, (str, int)) and not isinstance(id, bool):
            self.ok(message)
        elif isinstance(id, float) and id.is_integer():
            self.warn(message, f"the id is {shown(id)}, with a fraction of zero")
        else:
            self.fail(message, f"the id of {method} is {shown(id)}")


@judges("jsonrpc.notification-without-id")
class JsonrpcNotificationWithoutId(Predicate):
    """Sends notifications without an id."""

    def on_message(self, message: Message) -> None:
        if message.method is not None and message.method.startswith(_NOTIFICATIONS):
            if "id" in members(message.value):
                self.fail(message, f"{message.method} has an id")
            else:
                self.ok(message)


@judges("jsonrpc.params-object")
class JsonrpcParamsObject(Predicate):
    """Sends params as an object, or not at all."""

    def on_message(self, message: Message) -> None:
        if message.method is None:
            return
        value = members(message.value)
        if "params" in value and not isinstance(value["params"], dict):
            self.fail(message, f"the params of {message.method} are {shown(value['params'])}")
        else:
            self.ok(message)


@judges("jsonrpc.no-batch")
class JsonrpcNoBatch(Predicate):
    """Sends one message at a time.

    An array that comes before the revision is known is judged when it is; 2025-03-26 has batches, so that the client
    may have learnt them there, and an early array is no more than a warning.
    """

    any_revision = True
    _early: Message | None = None

    def on_message(self, message: Message) -> None:
        is_array = message.batch is not None or isinstance(message.value, list)
        if message.revision is None:
            if is_array and self._early is None:
                self._early = message
                self.unclear(message, "an array came before the revision was known")
        elif message.revision not in self.rule.revisions:
            return
        elif not is_array:
            self.ok(message)
        elif not message.batch:
            self.fail(message, f"an array of messages, which {message.revision} does not have")

    def on_session(self, session: Session) -> None:
        early, self._early = self._early, None
        if early is not None and session.revision in self.rule.revisions:
            self.warn(early, f"an array of messages, before {session.revision} was negotiated", session.seq)


@judges("jsonrpc.batch-without-initialize")
class JsonrpcBatchWithoutInitialize(Predicate):
    """Keeps initialize out of batches."""

    methods = frozenset({"initialize"})

    def on_request(self, message: Message) -> None:
        if message.batch is None:
            self.ok(message)
        else:
            self.fail(message, "initialize is part of an array")


@judges("jsonrpc.response-shape")
class JsonrpcResponseShape(Predicate):
    """Answers with exactly one of result and error, and errors with code and message."""

    def on_message(self, message: Message) -> None:
        if message.rpc not in ("response", "error", "invalid") or self.life.dialogue.asked.of(message) is None:
            return
        value = members(message.value)
        has = _ENVELOPE & value.keys()
        error = value.get("error")
        if len(has) != 1:
            self.fail(message, "the answer has both result and error" if has else "the answer has no result or error")
        elif "result" in has:
            self._check(message, isinstance(value["result"], dict), f"the result is {shown(value['result'])}")
        elif not isinstance(error, dict):
            self.fail(message, f"the error is {shown(error)}")
        elif isinstance(error.get("code"), float) and error["code"].is_integer():
            self.warn(message, f"the code of the error is {shown(error['code'])}, with a fraction of zero")
        elif not isinstance(error.get("code"), int) or isinstance(error["code"], bool):
            self.fail(message, f"the code of the error is {shown(error.get('code'))}")
        else:
            what = f"the message of the error is {shown(error.get('message'))}"
            self._check(message, isinstance(error.get("message"), str), what)

    def _check(self, message: Message, good: bool, remark: str) -> None:
        if good:
            self.ok(message)
        else:
            self.fail(message, remark)


@judges("jsonrpc.wire-schema")
class JsonrpcWireSchema(Predicate):
    """Sends messages that fit the schema of their revision.

    Other rules know more of some members than the schema, so this one comes last and leaves to them what they found.
    An initialize that asks for another revision than it gets may be written by the schema of that. A line of standard
    input that holds a bare string or number may be a part of a message: the rules of that transport look at it.
    """

    general = True

    def on_message(self, message: Message) -> None:
        if message.rpc != "invalid" or message.found is not None or isinstance(message.value, list):
            return
        if isinstance(message.value, dict) or not _is_line(message):
            self.fail(message, _why_no_message(message.value))

    def on_request(self, message: Message) -> None:
        self._defined(message)

    def on_notification(self, message: Message) -> None:
        self._defined(message)

    def on_answer(self, message: Message) -> None:
        question, revision = message.question, message.revision
        if question is None or revision is None or message.rpc != "response" or message.found is not None:
            return
        definition = schemas.result_of(revision, question.method or "")
        if "task" in question.params and "task" in members(message.result) and revision == LEGACY[-1]:
            definition = "CreateTaskResult"
        if definition is not None:
            self._judge(message, definition, message.result, "/result")

    def _defined(self, message: Message) -> None:
        revision, method = message.revision, message.method
        if revision is None or method is None or message.found is not None:
            return
        definition = schemas.request_of(revision, method)
        if definition is None or (method == "initialize" and message.params.get("protocolVersion") != revision):
            return
        wrong = _hidden_argument(message) if method == "prompts/get" else None
        if wrong is None:
            self._judge(message, definition, message.value, "")
        else:
            self.fail(message, f"{method} does not fit {definition} at {wrong[0]}: a string, got a hidden {wrong[1]}")

    def _judge(self, message: Message, definition: str, value: Any, at: str) -> None:
        found = misfits(message.revision or "", definition, value, message.hidden, at=at)
        own = [misfit for misfit in found if misfit.pointer not in _OWN_RULES and not _is_answer(misfit.pointer)]
        if own:
            self.fail(message, f"{message.method or 'the answer'} does not fit {definition} at {own[0]}")
        elif not found:
            self.ok(message)


def _hidden_argument(message: Message) -> tuple[str, str] | None:
    """The place and the type of an argument that the log hides and that is no string, as those of a prompt are."""
    prefix = "/params/arguments/"
    arguments = (each for each in message.hidden if each[0].startswith(prefix) and "/" not in each[0][len(prefix) :])
    return next((each for each in arguments if each[1] != "string"), None)


def _is_answer(pointer: str) -> bool:
    """Whether a member belongs to what a person entered, or to an input that was asked for; other rules know more."""
    return pointer.startswith(("/result/content", "/params/inputResponses"))


def _why_no_message(value: Any) -> str:
    if not isinstance(value, dict):
        return f"{shown(value)} is no message: a message is an object"
    if "method" in value:
        return f"the method is {shown(value['method'])}"
    return "an object without method, result and error is no message"


_SERVERS: Final = frozenset(
    {"sampling/createMessage", "elicitation/create", "roots/list", "notifications/message"}
    | {"notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/updated"}
    | {"notifications/resources/list_changed", "notifications/elicitation/complete"}
)
"""Methods of the core protocol that only servers send."""

_CORE: Final = frozenset().union(*(schemas.client_methods(revision) for revision in (*LEGACY, *MODERN))) | _SERVERS
# The tasks extension of 2026-07-28 has these again.
_EXTENSION: Final = frozenset({"tasks/get", "tasks/cancel", "tasks/update"})


@judges("jsonrpc.methods-of-revision")
class JsonrpcMethodsOfRevision(Predicate):
    """Uses only methods that its revision has.

    Methods of no revision belong to extensions, so nothing is said of them.
    """

    def on_message(self, message: Message) -> None:
        method, revision = message.method, message.revision
        if method is None or revision is None or method not in _CORE:
            return
        if schemas.request_of(revision, method) is not None or (revision in MODERN and method in _EXTENSION):
            self.ok(message)
        elif method in _SERVERS:
            self.fail(message, f"{method} is sent by servers only")
        else:
            self.fail(message, f"{revision} has no {method}")

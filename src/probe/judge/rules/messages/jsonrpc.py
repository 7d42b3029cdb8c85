"""Rules `jsonrpc.*` about single messages: their envelope and their method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ....views.clients import Session
from ....views.retention import members
from ....views.values import Message
from ....wire.jsonrpc import clip, is_id
from ....wire.revisions import LEGACY, MODERN
from ...clients.moments import Unreadable
from ...trace.findings import FAIL, PASS, UNCLEAR, WARN, Finding
from ...trace.opportunities import MESSAGE, REQUEST, SESSION, UNREADABLE
from ...trace.rules import form, rule
from ...trace.trace import Trace
from ...values import shown
from ..words import is_whole
from . import schemas

_ENVELOPE: Final = frozenset({"method", "result", "error"})
_NOTIFICATIONS: Final = "notifications/"


@rule("jsonrpc.utf8-json", each=MESSAGE)
def json_text(message: Message, trace: Trace) -> Finding | None:
    """Sends messages that are JSON in UTF-8. An array counts once."""
    return None if message.batch else PASS()


@rule("jsonrpc.utf8-json", each=UNREADABLE)
def no_json(unreadable: Unreadable, trace: Trace) -> Finding | None:
    """Only what the grammar of JSON forbids is a fault.

    A depth, a number or an escape that this server does not read may be legal JSON. A body that was cut short says
    nothing of its JSON. A POST without a body and without a JSON media type is the health check of a proxy. Text on
    standard input may stand between messages, or be one of several lines: the rules of that transport know.
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
    """True for a line of standard input, and for what may be one as the log lacks the beginning of its connection."""
    if of.pipe is not None:
        return of.pipe.transport == "stdio" or of.pipe.opened is None
    return of.exchange is None or of.exchange.head is None


def is_message(message: Message, trace: Trace) -> bool:
    """True for an object with a member that makes it a message; what has none is left to `jsonrpc.wire-schema`."""
    return message.rpc != "invalid" or bool(_ENVELOPE & members(message.value).keys())


def is_two(version: Any) -> bool:
    """True for the version of JSON-RPC that MCP has."""
    return isinstance(version, str) and version == "2.0"


def has_request_id(message: Message, trace: Trace) -> bool:
    """True for a request by its method; a notification with an id has a rule of its own."""
    return message.method is not None and not message.method.startswith(_NOTIFICATIONS)


form("jsonrpc.version", each=MESSAGE, where=is_message, member="/jsonrpc", must=is_two, needed=True)
form("jsonrpc.request-id-type", each=MESSAGE, where=has_request_id, member="/id", must=is_id, nearly=is_whole)


@rule("jsonrpc.notification-without-id", each=MESSAGE)
def no_id(message: Message, trace: Trace) -> Finding | None:
    """Sends notifications without an id."""
    if message.method is None or not message.method.startswith(_NOTIFICATIONS):
        return None
    return FAIL(f"{message.method} has an id") if "id" in members(message.value) else PASS()


@rule("jsonrpc.params-object", each=MESSAGE)
def params_object(message: Message, trace: Trace) -> Finding | None:
    """Sends params as an object, or not at all."""
    if message.method is None:
        return None
    params = members(message.value).get("params", {})
    return PASS() if isinstance(params, dict) else FAIL(f"the params of {message.method} are {shown(params)}")


@dataclass
class _Early:
    """The first array before the revision was known."""

    array: Message | None = None


@rule("jsonrpc.no-batch", each=MESSAGE, any_revision=True)
def one_message(message: Message, trace: Trace) -> Finding | None:
    """Sends one message at a time. An array before the revision is known is judged when it is."""
    is_array, revision = message.batch is not None or isinstance(message.value, list), message.revision
    if revision is None:
        early = trace.kept(_Early)
        if not is_array or early.array is not None:
            return None
        early.array = message
        return UNCLEAR("an array came before the revision was known")
    if revision not in trace.rule.revisions:
        return None
    if not is_array:
        return PASS()
    return None if message.batch else FAIL(f"an array of messages, which {revision} does not have")


@rule("jsonrpc.no-batch", each=SESSION)
def early_array(session: Session, trace: Trace) -> Finding | None:
    """2025-03-26 has arrays, and the client may have learnt them there: an early one is no more than a WARN."""
    early = trace.kept(_Early)
    array, early.array = early.array, None
    if array is None or session.revision not in trace.rule.revisions:
        return None
    return WARN(f"an array of messages, before {session.revision} was negotiated", session, at=array)


@rule("jsonrpc.batch-without-initialize", each=REQUEST, methods={"initialize"})
def initialize_alone(message: Message, trace: Trace) -> Finding | None:
    """Keeps initialize out of batches."""
    return PASS() if message.batch is None else FAIL("initialize is part of an array")


@rule("jsonrpc.response-shape", each=MESSAGE, rpcs={"response", "error", "invalid"})
def answer_shape(message: Message, trace: Trace) -> Finding | None:
    """Answers with exactly one of result and error, and errors with code and message."""
    if trace.seen.question_of(message) is None:
        return None
    value = members(message.value)
    error, has = value.get("error"), _ENVELOPE & value.keys()
    if len(has) != 1:
        return FAIL("the answer has both result and error" if has else "the answer has no result or error")
    if "result" in has:
        return PASS() if isinstance(value["result"], dict) else FAIL(f"the result is {shown(value['result'])}")
    if not isinstance(error, dict):
        return FAIL(f"the error is {shown(error)}")
    code, text = error.get("code"), error.get("message")
    if not isinstance(code, int) or isinstance(code, bool):
        return (WARN if is_whole(code) else FAIL)(f"the code of the error is {shown(code)}")
    return PASS() if isinstance(text, str) else FAIL(f"the message of the error is {shown(text)}")


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
    """Uses only methods that its revision has. Methods of no revision belong to extensions."""
    method, revision = message.method, message.revision
    if method is None or revision is None or method not in _CORE:
        return None
    if schemas.request_of(revision, method) is not None or (revision in MODERN and method in _EXTENSION):
        return PASS()
    return FAIL(f"{method} is sent by servers only" if method in _SERVERS else f"{revision} has no {method}")

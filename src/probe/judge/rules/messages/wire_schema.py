"""Rule `jsonrpc.wire-schema`: the general rule about the form of messages."""

from __future__ import annotations

from typing import Any, Final

from ....views.retention import members
from ....views.values import Message
from ....wire.revisions import LEGACY
from ...trace.findings import FAIL, PASS, Finding
from ...trace.opportunities import ANSWER, MESSAGE, NOTIFICATION, REQUEST
from ...trace.rules import rule
from ...trace.trace import Trace
from ...values import shown
from . import schemas
from .jsonrpc import is_line

# Rules of their own know more of these members than the schema.
_OWN_RULES: Final = frozenset({"/id", "/jsonrpc", "/params/_meta/progressToken", "/params/cursor"})
_OWN_PARTS: Final = ("/result/content", "/params/inputResponses")


@rule("jsonrpc.wire-schema", each=MESSAGE, rpcs={"invalid"}, general=True)
def any_message(message: Message, trace: Trace) -> Finding | None:
    """Sends only what is a message. A bare value on standard input may be a part of one: its rules look at that."""
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
    """Sends requests and notifications that fit the schema of their revision.

    An initialize that asks for another revision than it gets may be written by the schema of that.
    """
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
    """Sends results that fit the schema of their revision."""
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
        return PASS()
    own = [each for each in found if each.pointer not in _OWN_RULES and not each.pointer.startswith(_OWN_PARTS)]
    return FAIL(f"{message.method or 'the answer'} does not fit {definition} at {own[0]}") if own else None


def _hidden_argument(message: Message) -> tuple[str, str] | None:
    """The place and the type of an argument that the log hides and that is no string, as those of a prompt are."""
    prefix = "/params/arguments/"
    arguments = (each for each in message.hidden if each[0].startswith(prefix) and "/" not in each[0][len(prefix) :])
    return next((each for each in arguments if each[1] != "string"), None)

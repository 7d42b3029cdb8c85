"""Rules `lifecycle.*`: what was negotiated is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ....views.retention import members
from ....views.values import Message
from ...clients.moments import declared_in
from ...trace.findings import FAIL, PASS, WARN, Finding
from ...trace.opportunities import ANSWERED, NOTIFICATION, REQUEST
from ...trace.rules import rule
from ...trace.trace import Trace

_OF_METHOD: Final[Mapping[str, str]] = {
    "prompts": "prompts",
    "resources": "resources",
    "completion": "completions",
    "tasks": "tasks",
    "logging": "logging",
    "tools": "tools",
}
_WITH_TASKS: Final = "2025-11-25"
# The side that works on a task sends it. A client works on tasks that the server asks it for, and declares that.
_STATUS: Final = "notifications/tasks/status"


@rule("lifecycle.capabilities-respected", each=REQUEST)
def uses_declared(request: Message, trace: Trace) -> Finding | None:
    """Uses only what was declared.

    A client of 2026-07-28 need not ask for that, so only the result of a server/discover that it got at the same URL
    or on the same pipe counts. Tasks are left to the extension and to `jsonrpc.methods-of-revision` where the revision
    has none. tools/list at a server without tools is common and harmless.
    """
    capability = _OF_METHOD.get((request.method or "").partition("/")[0])
    if capability is None or (capability == "tasks" and request.revision != _WITH_TASKS):
        return None
    told = _told(request, trace)
    offered = None if told is None else _offered(told, trace)
    if told is None or offered is None or _may_not_know(request, told, trace):
        return None
    if capability in offered:
        return PASS(told)
    return (WARN if capability == "tools" else FAIL)(
        f"{request.method}, and the server did not declare {capability}", told
    )


def _told(request: Message, trace: Trace) -> Message | None:
    """The request by whose answer the client knows what the server offers."""
    session, at, url = request.in_session, request.at, _url(request)
    if session is not None:
        return session.initialize if session.initialize is not None and session.initialize.answered_by(at) else None
    discoveries = trace.seen.newest(
        ANSWERED, "server/discover", 1, lambda each: _url(each) == url and _offered(each, trace) is not None
    )
    return discoveries[0] if discoveries else None


def _offered(told: Message, trace: Trace) -> Mapping[str, Any] | None:
    if told.opened is not None:
        return trace.subject.known.offered.get(told.opened)
    result = None if told.answer is None else members(told.answer.result)
    return None if result is None or not isinstance(result.get("capabilities"), dict) else result["capabilities"]


def _may_not_know(request: Message, told: Message, trace: Trace) -> bool:
    """True on a pipe where the client may not have read the answer yet, nor has it said that it has."""
    session = request.in_session
    ready = None if session is None else session.initialized
    if request.pipe is None or (ready is not None and ready.at < request.at):
        return False
    return request.at - (told.answered or 0.0) < trace.allowances.settle_s


def _url(request: Message) -> tuple[str, str]:
    if request.pipe is not None:
        return request.pipe.label, ""
    exchange = request.exchange
    return ("", "") if exchange is None or exchange.head is None else (exchange.request.path, exchange.request.query)


@rule("lifecycle.capabilities-respected", each=NOTIFICATION, methods={_STATUS})
def declares_tasks(message: Message, trace: Trace) -> Finding | None:
    """Likewise the client itself, for the status of its own tasks."""
    session = message.in_session
    if session is None or message.revision != _WITH_TASKS:
        return None
    shown_by = () if session.initialize is None else (session.initialize,)
    if "tasks" in declared_in(session):
        return PASS(*shown_by)
    return FAIL(f"{_STATUS}, and the client did not declare tasks", *shown_by)

"""Rules `tools.*`: how tools are called, and how a client takes what they answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, Literal

from msgspec import Struct

from ....views.clients import Connection, Scope, Session
from ....views.retention import members
from ....views.values import Exchange, Message
from ...clients.listings import ListedTool, Lists
from ...clients.series import NEVER
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, WARN, Finding, Undecided
from ...trace.opportunities import ANSWERED, LARGE, LARGEST, LEFT, MESSAGE, PIPE_END, REQUEST, SESSION_END, TOLD
from ...trace.rules import MISSING, member, rule
from ...trace.trace import MISSING_ENTRIES, Trace, has_made_room
from ...values import shown
from ..transports.session import is_deleted

_CALL: Final = frozenset({"tools/call"})
_TYPES: Final = {bool: "a boolean", int: "a number", float: "a number", list: "an array"}
# A client that initializes so soon after a large result has lost what was before.
_ANEW_S: Final = 10.0
# A tool error, and an internal error.
_SURVIVED: Final = frozenset({0, -32603})
# Good results after which a client went on, before an end after an error is one because of the error.
_WENT_ON: Final = 2


@rule("tools.listed-name", each=REQUEST, methods=_CALL)
def calls_listed(request: Message, trace: Trace) -> Finding | None:
    return PASSED if trace.seen.lists().listed(request.target, trace.at) is not None else None


@rule("tools.listed-name", each=ANSWERED, methods=_CALL)
def calls_unlisted(request: Message, trace: Trace) -> Finding | None:
    """A model can invent a name.

    The client's fault is a listed name with other case, spaces, `-` or `_`, such as `Get-User` for `get_user`. The
    server may have a tool without listing it, such as one that needs a capability.
    """
    name, lists, at = request.target, trace.seen.lists(), trace.at
    if lists.listed(name, at) is not None or not lists.has("tools/list", at):
        return None
    if trace.seen.error_of(request) in (None, 0):
        return PASSED
    meant = next((each for each in sorted(lists.names(at)) if _plain(each) == _plain(name)), None)
    if meant is None:
        return UNCLEAR(f"no list had {shown(name)}; a model or a person may have made it up")
    why = f"called {shown(name)}; not all lists are known"
    trace.sure.whole(why)
    if lists.forgot < at:
        raise Undecided(why)
    return WARN(f"called {shown(name)}, and the list has {shown(meant)}")


@lru_cache(maxsize=1_000)
def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.casefold())


@rule("tools.arguments-object", each=REQUEST, methods=_CALL)
def passes_object(request: Message, trace: Trace) -> Finding | None:
    """Those of a prompt are left to `jsonrpc.wire-schema`."""
    if not isinstance(members(request.value).get("params"), dict):
        return None
    arguments = member(request, "/params/arguments")
    return PASSED if arguments is MISSING or isinstance(arguments, dict) else FAIL(f"arguments is {_what(arguments)}")


def _what(value: Any) -> str:
    if value is None:
        return "null; without arguments the member is left out"
    if isinstance(value, str):
        return "JSON text in a string" if value.lstrip()[:1] in "{[" else "a string"
    return _TYPES[type(value)]


def listed_in(session: Session, call: Message, trace: Trace) -> ListedTool | None:
    """The tool that is called, as the lists of its session have it; None where that is not known."""
    return trace.seen.lists(session).tool(call.target, call.began, trace.allowances.settle_s)


def know_lists(lists: Lists, call: Message, remark: str, trace: Trace, revision: str | None = None) -> None:
    """Raise `Undecided` where the log may lack a list that described the called tool in another way.

    Only the newest list counts, but for one that had just come when the call began.
    """
    began = trace.sure.began(call)
    listed = lists.listed(call.target, began, revision) or NEVER
    is_fresh = began - listed < trace.allowances.settle_s
    trace.sure.whole(f"{MISSING_ENTRIES}, and a list may be among them; {remark}", since=NEVER if is_fresh else listed)


def offers_tasks(session: Session, trace: Trace) -> bool:
    """True if the answer to `initialize` offers tool calls as tasks."""
    requests = members(members(trace.subject.known.offered.get(session, {}).get("tasks")).get("requests"))
    return "call" in members(requests.get("tools"))


@rule("tools.task-required", each=REQUEST, methods=_CALL)
def runs_as_task(request: Message, trace: Trace) -> Finding | None:
    """Another form of task is left to `jsonrpc.wire-schema`."""
    session = request.in_session
    if session is None or not trace.seen.lists(session).need_tasks:
        return None
    tool = listed_in(session, request, trace)
    if tool is None or tool.task_support != "required" or not offers_tasks(session, trace):
        return None
    if "task" not in request.params:
        remark = f"ignores taskSupport: {tool.name} runs only as a task, and the call has no task"
        know_lists(trace.seen.lists(session), request, remark, trace)
        return FAIL(remark)
    return PASSED if isinstance(request.params["task"], dict) else None


@rule("tools.task-forbidden", each=REQUEST, methods=_CALL)
def runs_no_other_as_task(request: Message, trace: Trace) -> Finding | None:
    session = request.in_session if isinstance(request.params.get("task"), dict) else None
    if session is None or not offers_tasks(session, trace):
        return None
    tool = listed_in(session, request, trace)
    if tool is None:
        return UNCLEAR("nothing says which list the client took the tool from")
    if tool.task_support in ("optional", "required"):
        return PASSED
    changed = trace.seen.last(TOLD, "notifications/tools/list_changed", until=request.at)
    if changed is not None and request.began - (changed.had or 0) < trace.allowances.settle_s:
        return UNCLEAR("the list had just changed", changed)
    remark = f"called {tool.name} as a task; its taskSupport is {tool.task_support or 'not given'}"
    know_lists(trace.seen.lists(session), request, remark, trace)
    return FAIL(remark)


def unfollowed(scope: Scope | None, at: float, trace: Trace) -> Message | None:
    """The newest call answered in a scope before a time, if the client has not gone on since.

    A further call shows that it went on after a good result. A list does not: some clients check the result against the
    schema, and end.
    """
    call = None if scope is None else trace.seen.last(ANSWERED, "tools/call", until=at, scope=scope)
    if call is None or call.answered is None:
        return None
    failed = trace.seen.error_of(call) in _SURVIVED
    kind, method = (MESSAGE, None) if failed else (REQUEST, "tools/call")
    newest = trace.seen.last(kind, method, until=at, scope=scope)
    return call if newest is not None and newest.at < call.answered else None


class Habits(Struct):
    """Acts of one client after results: how often it went on, and the last end after an error."""

    went_on: int = 0
    ended_well: bool = False
    ended: Message | None = None


@rule("tools.error-survived", each=MESSAGE)
def goes_on(message: Message, trace: Trace) -> Finding | None:
    """An `initialize` begins anew. A client that went on often enough shows more only after an error."""
    habits = trace.kept(Habits)
    if habits.went_on >= _WENT_ON and not trace.subject.known.errors:
        return None
    call = None if message.method == "initialize" else unfollowed(message.scope, message.at, trace)
    if call is None or (message.scope is not None and message.scope.kind == "client" and trace.several() is not None):
        return None
    if trace.seen.error_of(call) in _SURVIVED:
        return PASS(message, at=call)
    habits.went_on += message.method == "tools/call"
    return None


@rule("tools.error-survived", each=SESSION_END)
def deletes_session(session: Session, trace: Trace) -> Finding | None:
    return ends(session.scope, trace) if is_deleted(session) else None


@rule("tools.error-survived", each=PIPE_END)
def closes_pipe(pipe: Connection, trace: Trace) -> Finding | None:
    scope = pipe.scope if pipe.session is None else pipe.session.scope
    return ends(scope, trace) if pipe.ended_by == "client" else None


def ends(scope: Scope | None, trace: Trace) -> Finding | None:
    """A client for one call ends after each: it must have gone on after good results, and never after an error."""
    call = unfollowed(scope, trace.at, trace)
    if call is None or call.answered is None or trace.at - call.answered > trace.allowances.end_after_s:
        return None
    if trace.gap_in(call.answered, trace.at):
        return None
    habits = trace.kept(Habits)
    if trace.seen.error_of(call) not in _SURVIVED:
        habits.ended_well = True
        return None
    before, habits.ended = habits.ended, call
    if before is None or habits.went_on < _WENT_ON or trace.has_passed or habits.ended_well:
        return UNCLEAR("ended after an error; whether because of it, its other calls do not tell", at=call)
    remark = "ended after two errors, and after no good result"
    # It may have gone on after an error, or ended after a good result, in what is missing.
    trace.sure.whole(f"{MISSING_ENTRIES}; {remark}", before, call)
    return FAIL(remark, before, at=call)


@rule("tools.large-result", each=MESSAGE, after=LARGE)
def reads_large(message: Message, trace: Trace) -> Finding | None:
    scope = message.scope
    call = None if scope is None else trace.seen.last(ANSWERED, "tools/call", until=message.at, scope=scope)
    if call is None or not _is_large(call) or message.method == "initialize":
        return None
    before = trace.seen.last(MESSAGE, until=message.at, scope=scope)
    return PASS(message, at=call) if before is not None and before.at < (call.answered or 0) else None


@rule("tools.large-result", each=LEFT)
def leaves_large(exchange: Exchange, trace: Trace) -> Finding | None:
    return cut_off(exchange.messages, trace) if exchange.ended_by == "client" else None


@rule("tools.large-result", each=PIPE_END)
def closes_on_large(pipe: Connection, trace: Trace) -> Finding | None:
    scope = pipe.scope if pipe.session is None else pipe.session.scope
    return None if scope is None or pipe.ended_by != "client" else cut_off(list(scope.running.values()), trace)


def cut_off(messages: Iterable[Message], trace: Trace) -> Finding | None:
    """Judge a connection closed by the client: it may come back for the rest, or cancel the call.

    A gateway may have a limit by intention. Over HTTP, the modern era cancels by closing the stream.
    """
    at, until = trace.at, trace.at + trace.allowances.alive_s
    open_calls = (each for each in messages if each.method == "tools/call" and not each.answered_by(at))
    call = next((each for each in open_calls if each.was_answered(at) and _is_large(each)), None)
    if call is None or call.answer is None or call.answered_by(until):
        return None
    trace.sure.had_time(at, "alive_s", call, call.answer)
    closing_cancels = call.transport == "http" and call.era == "modern"
    if closing_cancels or (call.asked_to_cancel is not None and call.asked_to_cancel.at < until):
        return UNCLEAR("cancelled while the result was written", call.answer, at=call)
    size = call.answer.size
    trace.sure.whole(f"{MISSING_ENTRIES}; the delivery of the result may be among them", call, since=call.at)
    return FAIL(f"the client or a gateway closed before all of {size} bytes was written", call.answer, at=call)


def _is_large(call: Message) -> bool:
    return call.answer is not None and call.answer.size > LARGEST


@rule("tools.large-result", each=LARGE, methods=_CALL)
def begins_anew(call: Message, trace: Trace) -> Finding | None:
    """Another window of the same client also initializes, and the first one goes on later.

    A client with a session for each call also initializes after small results.
    """
    if call.answer is None:
        return None
    had, anew = trace.at, initialized_after(call, trace)
    if anew is None or went_on(call, trace) != "anew":
        return None
    due = anew.at + trace.allowances.person_s
    if trace.seen.has(MESSAGE, since=had, until=due, scope=call.scope):
        return None
    trace.sure.had_time(anew.at, "person_s", anew)
    newest = trace.seen.last(MESSAGE, until=due) or call
    fates = trace.fates(ANSWERED, went_on, "tools/call", before=newest)
    others = {fate for other, fate in fates if other is not call and not _is_large(other)}
    goes_on = "on" in others and "anew" not in others
    knows_all = not trace.gap_in(NEVER, due)
    if goes_on and knows_all and not any(map(has_made_room, trace.seen.all(ANSWERED, "tools/call", until=due))):
        return FAIL(f"the client or a gateway initialized anew after a result of {call.answer.size} bytes", anew)
    return UNCLEAR("initialized anew after a large result; it may do so after each", anew)


def initialized_after(call: Message, trace: Trace) -> Message | None:
    """The `initialize` that came soon after the result of a call."""
    had = call.answered or 0.0
    trace.passed(had, _ANEW_S)
    return next(iter(trace.seen.all(REQUEST, "initialize", since=had, until=had + _ANEW_S)), None)


def went_on(call: Message, trace: Trace) -> Literal["on", "anew", "nothing"]:
    """The first act after a result: a message where that was delivered, or an `initialize`."""
    had, scope = call.answered, call.scope
    if had is None or scope is None or scope.kind == "client":
        return "nothing"
    anew = initialized_after(call, trace)
    if trace.seen.has(MESSAGE, since=had, until=had + _ANEW_S if anew is None else anew.at, scope=scope):
        return "on"
    return "nothing" if anew is None else "anew"

"""Rules `tools.*`: how tools are called, and how a client takes what they answer."""

from __future__ import annotations

import re
from typing import Any, Final

from ....log.bounded import Newest
from ...projection.listings import ListedTool, known_tool
from ...projection.views import Exchange, Message, Pipe, Scope, Sent, Session, members
from ...values import shown
from ..predicate import Predicate, Wait, judges

_TYPES: Final = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", list: "an array"}
_INTERNAL_ERROR: Final = -32603
# "A result of several megabytes" begins here.
_LARGE: Final = 1_000_000
# A client that initializes so soon after a large result has lost what was before.
_ANEW_S: Final = 10.0
# Twice, because one end after an error may be a coincidence.
_ENDS: Final = 2
_MOST_SCOPES: Final = 1_000


@judges("tools.listed-name")
class ToolsListedName(Predicate):
    """Calls tools by the names it was given.

    A model can invent a name, so only one that differs from a listed one by case, spaces, `-` and `_` is the client's;
    and only where the server has no such tool, as not every tool is in every list.
    """

    methods = frozenset({"tools/call"})

    def on_request(self, message: Message) -> None:
        name = message.params.get("name")
        if isinstance(name, str) and self.life.lists.has_tool(name):
            self.ok(message)

    def on_answered(self, request: Message) -> None:
        name, lists = request.params.get("name"), self.life.lists
        if not isinstance(name, str) or lists.has_tool(name) or not lists.has("tools/list") or request.answer is None:
            return
        if request.answer.rpc == "response":
            # Tools that need a capability are in no list of a client without it.
            self.ok(request)
            return
        meant = next((each for each in sorted(set(lists.names())) if _plain(each) == _plain(name)), None)
        if meant is None:
            self.unclear(request, f"no list had {shown(name)}; a model or a person may have made it up")
        elif self.life.whole and not lists.fell_out:
            self.warn(request, f"called {shown(name)}, and the list has {shown(meant)}")
        else:
            self.unclear(request, f"called {shown(name)}; not all lists are known")


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.casefold())


@judges("tools.arguments-object")
class ToolsArgumentsObject(Predicate):
    """Passes arguments as an object, or not at all. Those of a prompt are left to `jsonrpc.wire-schema`."""

    methods = frozenset({"tools/call"})

    def on_request(self, message: Message) -> None:
        if not isinstance(members(message.value).get("params"), dict):
            return
        arguments = message.params.get("arguments", {})
        if not isinstance(arguments, dict):
            self.fail(message, f"arguments is {_what(arguments)}")
        else:
            self.ok(message)


def _what(value: Any) -> str:
    if value is None:
        return "null; without arguments the member is left out"
    if isinstance(value, str):
        return "JSON text in a string" if value.lstrip()[:1] in "{[" else "a string"
    return _TYPES.get(type(value), "an object")


class _AsTasks(Predicate):
    """Judges calls by the tool as the list of this session has it."""

    methods = frozenset({"tools/call"})

    def tool_of(self, message: Message) -> ListedTool | None:
        """The tool that is called, as this session knows it; None where nobody can say that."""
        session, name = message.session, message.params.get("name")
        if session is None or not isinstance(name, str):
            return None
        return known_tool(session.lists, name, message.began, self.allowances.settle_s)


def _offers_tasks(session: Session | None) -> bool:
    """Whether the server said in the answer to initialize that it takes tool calls as tasks."""
    answer = None if session is None or session.initialize is None else session.initialize.answer
    tasks = members(members({} if answer is None else answer.result.get("capabilities")).get("tasks"))
    return "call" in members(members(tasks.get("requests")).get("tools"))


@judges("tools.task-required")
class ToolsTaskRequired(_AsTasks):
    """Runs tools as tasks that only run as tasks."""

    def on_request(self, message: Message) -> None:
        tool = self.tool_of(message)
        if tool is None or tool.task_support != "required" or not _offers_tasks(message.session):
            return
        if isinstance(message.params.get("task"), dict):
            self.ok(message)
        elif "task" not in message.params:
            self.fail(message, f"ignores taskSupport: {tool.name} runs only as a task, and the call has no task")


@judges("tools.task-forbidden")
class ToolsTaskForbidden(_AsTasks):
    """Runs no tool as a task that does not say so."""

    def on_request(self, message: Message) -> None:
        session = message.session
        if not isinstance(message.params.get("task"), dict) or session is None or not _offers_tasks(session):
            return
        tool, changed = self.tool_of(message), session.lists.changed.get("tools/list")
        if tool is None:
            self.unclear(message, "nothing says which list the client took the tool from")
        elif tool.task_support in ("optional", "required"):
            self.ok(message)
        elif changed is not None and message.began - changed < self.allowances.settle_s:
            self.unclear(message, "the list had just changed")
        else:
            self.fail(message, f"called {tool.name} as a task; its taskSupport is {tool.task_support or 'not given'}")


@judges("tools.error-survived")
class ToolsErrorSurvived(Predicate):
    """Goes on after a tool error and after a protocol error.

    A client for one call ends after each call, so the ends after errors count only where it went on after all good
    results, and never after an error. Only a further call shows that it went on: some clients ask for the list of tools
    after a good result, to check that against the schema, and end then.
    """

    def setup(self) -> None:
        # The newest answer of each session or connection that nothing has followed yet, and whether it is an error.
        self._open: Newest[Scope, tuple[Message, bool]] = Newest(_MOST_SCOPES)
        self._went_on = 0
        self._survived = 0
        self._ended_well = 0
        self._ended: tuple[Message, ...] = ()

    def on_answered(self, request: Message) -> None:
        if request.method == "tools/call" and request.answer is not None:
            if request.scope.kind == "client" and not self.life.is_one_process:
                return
            self._open.store(request.scope, (request, _is_error(request.answer)))

    def on_message(self, message: Message) -> None:
        if not self._open:
            return
        call, failed = self._open.get(message.scope, (None, False))
        if call is None or not (failed or message.method == "tools/call"):
            return
        del self._open[message.scope]
        if failed:
            self._survived += 1
            self.ok(call, message.seq)
        else:
            self._went_on += 1

    def on_session_end(self, session: Session) -> None:
        if session.why == "deleted":
            self._end(session.scope)

    def on_pipe_end(self, pipe: Pipe) -> None:
        if pipe.by == "client":
            self._end(pipe.scope if pipe.session is None else pipe.session.scope)

    def on_gap(self) -> None:
        self._open.clear()

    def _end(self, scope: Scope) -> None:
        call, failed = self._open.pop(scope, (None, False))
        if call is None or self.now - (call.answered or 0) > self.allowances.end_after_s:
            return
        if not failed:
            self._ended_well += 1
            return
        self._ended = (*self._ended[-1:], call)
        alone = len(self._ended) < _ENDS or self._went_on < _ENDS
        if alone or self._survived or self._ended_well:
            self.unclear(call, "ended after an error; whether because of it, its other calls do not tell")
        else:
            self.fail(call, "ended after two errors, and after no good result", self._ended[0].seq)


def _is_error(answer: Sent) -> bool:
    return answer.result.get("isError") is True or answer.error.get("code") == _INTERNAL_ERROR


@judges("tools.large-result")
class ToolsLargeResult(Predicate):
    """Reads a result of several megabytes.

    One that starts a session for each call does so after small results, too; it is compared with those.
    """

    def setup(self) -> None:
        self._open: Newest[Scope, tuple[Message, int]] = Newest(_MOST_SCOPES)
        self._anew_after_small = 0
        self._went_on = 0
        self._cancelled: Newest[tuple[Scope, Any], None] = Newest(_MOST_SCOPES)

    def on_answered(self, request: Message) -> None:
        if request.method == "tools/call" and request.answer is not None:
            self._open.store(request.scope, (request, len(request.answer.raw)))

    def on_notification(self, message: Message) -> None:
        if message.method == "notifications/cancelled":
            id = message.params.get("requestId")
            if isinstance(id, (str, int)):
                self._cancelled.store((message.scope, id), None)

    def on_message(self, message: Message) -> None:
        if not self._open:
            return
        if message.method == "initialize":
            self._anew(message)
            return
        call, size = self._open.pop(message.scope, (None, 0))
        if call is None:
            return
        if size > _LARGE:
            self.ok(call, message.seq)
        else:
            self._went_on += 1

    def on_left(self, exchange: Exchange) -> None:
        if exchange.by == "client":
            for message in exchange.messages:
                self._left(message)

    def on_pipe_end(self, pipe: Pipe) -> None:
        if pipe.by == "client":
            scope = pipe.scope if pipe.session is None else pipe.session.scope
            for message in scope.requests.values():
                self._left(message)

    def on_gap(self) -> None:
        self._open.clear()

    def _left(self, message: Message) -> None:
        answer = message.answer
        if message.method != "tools/call" or answer is None or answer.delivered is not None:
            return
        if len(answer.raw) > _LARGE:
            # It may come back for the rest, or say that it has cancelled the call.
            self.give_time(self.now + self.allowances.alive_s, self._look, message, answer, of=message)

    def is_decided_at_end(self, wait: Wait) -> bool:
        if isinstance(wait.arguments[-1], Sent):
            return wait.arguments[-1].delivered is not None
        scope, call, _ = wait.arguments
        return self._open.get(scope, (None, 0))[0] is not call

    def _look(self, message: Message, answer: Sent) -> None:
        if answer.delivered is not None:
            return
        # Over HTTP, closing the stream is how the modern era cancels.
        closing_cancels = message.transport == "http" and message.era == "modern"
        if closing_cancels or (message.scope, message.id) in self._cancelled:
            self.unclear(message, "cancelled while the result was written", answer.seq)
        else:
            size = len(answer.raw)
            self.fail(message, f"the client or a gateway closed before all of {size} bytes was written", answer.seq)

    def _anew(self, message: Message) -> None:
        for scope, (call, size) in list(self._open.items()):
            if scope.kind == "client" or message.at - (call.answered or 0) > _ANEW_S:
                continue
            if size > _LARGE:
                # It may be another window of the same client, and the first one goes on later.
                due = message.at + self.allowances.person_s
                self.give_time(due, self._look_anew, scope, call, message, of=call, also=(message.seq,))
            else:
                del self._open[scope]
                self._anew_after_small += 1

    def _look_anew(self, scope: Scope, call: Message, message: Message) -> None:
        known, size = self._open.get(scope, (None, 0))
        if known is not call:
            return
        del self._open[scope]
        if self._went_on and not self._anew_after_small:
            self.fail(call, f"the client or a gateway initialized anew after a result of {size} bytes", message.seq)
        else:
            self.unclear(call, "initialized anew after a large result; it may do so after each", message.seq)

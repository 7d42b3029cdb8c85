"""Rules `progress.*`: progress tokens. And how progress changes how long a client waits (`lifecycle.*`)."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from ....log.bounded import Newest
from ....wire.jsonrpc import ProgressToken, is_id
from ...projection.asked import is_one_connection
from ...projection.tasks import TERMINAL, task_of
from ...projection.views import Exchange, Message, Scope, Sent, TaskNews, members
from ...values import shown
from ..predicate import Predicate, judges

Typed: TypeAlias = tuple[type, ProgressToken]
"""A token with its type: 1 and "1" differ."""

_MOST_SCOPES: Final = 1_000
_MOST_TOKENS: Final = 5_000
_MOST_CALLS: Final = 1_000
_COMES_BACK: Final = frozenset({"hang-up", "displaced by a newer connection"})
# Two waits that differ by less are of one timer.
_SAME_WAIT: Final = 0.1


@judges("progress.token-type")
class ProgressTokenType(Predicate):
    """Uses strings or integers as progress tokens."""

    def on_request(self, message: Message) -> None:
        meta = message.meta
        if "progressToken" not in meta or (message.hidden and message.hides("/params/_meta/progressToken")):
            return
        token = meta["progressToken"]
        if is_id(token):
            self.ok(message)
        elif isinstance(token, float) and token.is_integer():
            # Some languages have no integers.
            self.warn(message, f"progressToken is {shown(token)}, a number with a point")
        else:
            self.fail(message, f"progressToken is {_told(token)}")


def _told(token: Any) -> str:
    if token is None:
        return "null"
    return repr(token) if isinstance(token, (bool, float)) else f"of type {type(token).__name__}"


@judges("progress.token-unique")
class ProgressTokenUnique(Predicate):
    """Gives each active request its own progress token.

    A request is active until its answer is on the way, or the client has cancelled it or hung up; one that runs as a
    task, until the task has ended at the server.
    """

    def setup(self) -> None:
        self._active: Newest[Scope, Newest[Typed, Message]] = Newest(_MOST_SCOPES)
        self._cancelled: Newest[int, None] = Newest(_MOST_CALLS)
        # The tasks that run, each with the token of the call that began it.
        self._tasks: Newest[str, tuple[Scope, Typed]] = Newest(_MOST_CALLS)

    def on_request(self, message: Message) -> None:
        token = message.meta.get("progressToken")
        if not is_id(token) or message.hides("/params/_meta/progressToken"):
            return
        key = (type(token), token)
        active = self._active.get(message.scope)
        if active is None:
            active = Newest(_MOST_TOKENS)
            self._active.store(message.scope, active)
        self._judge(message, key, active)
        active.store(key, message)

    def on_answered(self, request: Message) -> None:
        token, answer = request.meta.get("progressToken"), request.answer
        active = self._active.get(request.scope)
        if active is None or not is_id(token) or answer is None:
            return
        key, task = (type(token), token), task_of(answer)
        if task is not None:
            self._tasks.store(task, (request.scope, key))
        elif active.get(key) is request:
            del active[key]

    def on_notification(self, message: Message) -> None:
        id = message.params.get("requestId")
        if message.method == "notifications/cancelled" and is_id(id):
            request = message.scope.requests.get(id)
            if request is not None:
                self._cancelled.store(request.seq, None)

    def on_task(self, task: TaskNews) -> None:
        if task.status in TERMINAL and task.id in self._tasks:
            scope, key = self._tasks.pop(task.id)
            self._active.get(scope, Newest[Typed, Message](1)).pop(key, None)

    def _judge(self, message: Message, key: Typed, active: Newest[Typed, Message]) -> None:
        first = self._running(active, key)
        if first is not None:
            if self._is_repeat(first, message):
                return
            # Over HTTP, what ends the first request can be on its way on another connection.
            if message.transport == "http":
                due = message.at + self.allowances.arrival_s
                self.let_cross(due, self._found, message, first, key[1], of=message, also=(first.seq,))
            else:
                self._found(message, first, key[1])
            return
        kind, token = key
        twin: Typed | None = (str, str(token)) if kind is int else None
        if isinstance(token, str) and token.removeprefix("-").isdecimal() and len(token) < 20:
            twin = (int, int(token))
        first = None if twin is None else self._running(active, twin)
        if first is not None:
            self.warn(
                message, f"progressToken {shown(token)} and that of a running request differ in type only", first.seq
            )
        elif (other := self._any(active)) is not None:
            self.ok(message, other.seq)

    def _found(self, message: Message, first: Message, token: ProgressToken) -> None:
        if first.dropped is not None or first.seq in self._cancelled:
            return
        remark = f"progressToken {shown(token)} is that of a request that still runs"
        if message.scope.kind == "client" and not (self.life.is_one_process and is_one_connection(message, first)):
            self.unclear(message, f"{remark}; two clients may have this name", first.seq)
        else:
            self.fail(message, remark, first.seq)

    def _is_repeat(self, first: Message, message: Message) -> bool:
        """Whether it is the same POST once more, by a transport that got no response."""
        return first.raw == message.raw and message.at - first.at <= self.allowances.repeat_s

    def _running(self, active: Newest[Typed, Message], key: Typed) -> Message | None:
        request = active.get(key)
        if request is not None and self._is_over(request):
            del active[key]
            return None
        return request

    def _any(self, active: Newest[Typed, Message]) -> Message | None:
        """The newest request that is active."""
        while active:
            key = next(reversed(active))
            request = self._running(active, key)
            if request is not None:
                return request
        return None

    def _is_over(self, request: Message) -> bool:
        answer, exchange = request.answer, request.exchange
        if request.refusal is not None or request.dropped is not None or request.seq in self._cancelled:
            return True
        # A client comes back for a stream that the server closed by intention; after another end it may not.
        if exchange is not None and exchange.left is not None and exchange.by not in _COMES_BACK:
            return True
        if answer is None:
            return False
        task = task_of(answer)
        if task is not None and answer.delivered is not None:
            return task not in self._tasks
        # The client can have read what the log does not say yet was delivered.
        return answer.delivered is not None or self.now - answer.at <= self.allowances.token_grace_s


@judges("progress.asked-for")
class ProgressAskedFor(Predicate):
    """Asks for progress. A fact of the card, never a fault."""

    methods = frozenset({"tools/call"})

    def on_request(self, message: Message) -> None:
        if "progressToken" in message.meta:
            self.ok(message)
            self.measure("asks for progress", "yes")
        elif not self.tally.measured:
            self.measure("asks for progress", "no")


@judges("progress.only-for-server-tokens")
class ProgressOnlyForServerTokens(Predicate):
    """Sends progress only for tokens of the server."""

    def setup(self) -> None:
        self._given: Newest[Typed, None] = Newest(_MOST_TOKENS)

    def on_asked(self, question: Sent) -> None:
        token = members(question.params.get("_meta")).get("progressToken")
        if is_id(token):
            self._given.store((type(token), token), None)

    def on_notification(self, message: Message) -> None:
        # A token that is missing, or is none, is the business of the rules about the form of messages.
        if message.method != "notifications/progress" or message.hides("/params/progressToken"):
            return
        if not is_id(message.params.get("progressToken")):
            return
        # The client can have read a question before the log says that it was delivered.
        self.let_cross(message.at + self.allowances.arrival_s, self._look, message, of=message)

    def _look(self, message: Message) -> None:
        token = message.params["progressToken"]
        if (type(token), token) in self._given:
            self.ok(message)
        elif self.life.whole and len(self._given) < _MOST_TOKENS:
            self.fail(message, "the client or a gateway sent progress for a token that the server never gave")
        else:
            self.unclear(message, "the server may have given the token before the log begins")


@judges("lifecycle.progress-extends-patience")
class LifecycleProgressExtendsPatience(Predicate):
    """Waits longer for a call that reports progress. Measured, as a client may do without."""

    def setup(self) -> None:
        # How long the client waited for a silent call before it gave that up, the longest.
        self._patience: float | None = None
        self._progressed: Newest[int, None] = Newest(_MOST_CALLS)

    def on_told(self, notification: Sent) -> None:
        if notification.method == "notifications/progress" and notification.request is not None:
            self._progressed.store(notification.request.seq, None)

    def on_notification(self, message: Message) -> None:
        id = message.params.get("requestId")
        if message.method == "notifications/cancelled" and is_id(id):
            request = message.scope.requests.get(id)
            if request is not None and request.answer is None:
                self._gave_up(request, message.at)

    def on_left(self, exchange: Exchange) -> None:
        if exchange.by == "client":
            for message in exchange.messages:
                if message.rpc == "request" and message.answer is None:
                    self._gave_up(message, self.now)

    def on_answered(self, request: Message) -> None:
        waited = self.now - request.at
        if request.seq not in self._progressed or self._patience is None:
            return
        if waited > self._patience * (1 + _SAME_WAIT):
            self.ok(request)
            self.measure("waited with progress", round(waited, 1))

    def _gave_up(self, request: Message, at: float) -> None:
        if request.method != "tools/call":
            return
        waited = at - request.at
        if request.seq not in self._progressed:
            self._patience = max(waited, self._patience or 0)
            self.measure("gave up a silent call after", round(waited, 1))
        elif self._patience is None or waited <= self._patience * (1 + _SAME_WAIT):
            self.measure("gave up in spite of progress after", round(waited, 1))
        else:
            self.ok(request)
            self.measure("waited with progress", round(waited, 1))

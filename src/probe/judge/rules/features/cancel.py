"""Rules `cancel.*`: how requests are given up, by the client and by the server."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ....log.bounded import Newest
from ....wire.jsonrpc import RequestId, is_id
from ...projection.tasks import task_of
from ...projection.views import Exchange, Message, Scope, Sent, ServerStream, Unreadable
from ...values import members, shown
from ..predicate import Predicate, Wait, judges

_CANCELLED: Final = "notifications/cancelled"
_MOST: Final = 2_000


class _Cancellations(Predicate):
    """Looks at the `notifications/cancelled` of the client that name a request.

    Over HTTP the modern era has none; `cancel.modern-closes-stream` sees those.
    """

    methods: ClassVar[frozenset[str] | None] = frozenset({_CANCELLED})

    def on_notification(self, message: Message) -> None:
        if message.method != _CANCELLED:
            return
        id = message.params.get("requestId")
        if is_id(id) and not message.hides("/params/requestId") and _can_cancel(message):
            self.judge(message, id, _request_of(message, id))

    def judge(self, message: Message, id: RequestId, request: Message | None) -> None:
        """Judge a cancellation; `request` is the newest one with this typed id in the same session or connection."""


def _can_cancel(message: Message) -> bool:
    # Over HTTP nothing says whose requests a message without a session is about.
    return message.session is not None or message.pipe is not None


def _request_of(message: Message, id: RequestId) -> Message | None:
    """The request that a cancellation names.

    On a pipe with a legacy session there can be requests of the modern era, too, and a notification says no revision.
    """
    request = message.scope.requests.get(id)
    return message.pipe.scope.requests.get(id) if request is None and message.pipe is not None else request


def _task_of(request: Message) -> str | None:
    """The task that a call was answered with, once the client had the answer."""
    return None if request.answered is None else task_of(request.answer)


@judges("cancel.own-request")
class CancelOwnRequest(_Cancellations):
    """Cancels only requests that it made.

    Over HTTP the request can arrive after its cancellation. One that never came may have been lost on the way, so only
    an id that differs in type from a request's, or that of an open question of the server, shows a mistake; and only
    where this client has no ids of that type, as ids of both sides count from 1.
    """

    # It hears of the questions of the server, too.
    methods = None
    # A cancellation that names a task is the fault of another rule.
    general = True

    def setup(self) -> None:
        self._questions: Newest[tuple[Scope | None, RequestId], Sent] = Newest(_MOST)
        self._unread = False

    def on_asked(self, question: Sent) -> None:
        if question.id is not None:
            self._questions.store((_scope_of(question), question.id), question)

    def on_unreadable(self, unreadable: Unreadable) -> None:
        self._unread = True

    def judge(self, message: Message, id: RequestId, request: Message | None) -> None:
        if request is not None:
            self.ok(message, request.seq)
        elif message.transport == "http":
            self.let_cross(message.at + self.allowances.arrival_s, self._look, message, id, of=message)
        else:
            self._look(message, id)

    def _look(self, message: Message, id: RequestId) -> None:
        requests = message.scope.requests
        twin: RequestId = str(id) if isinstance(id, int) else _number(id)
        if message.found is not None:
            return
        request = _request_of(message, id)
        if request is not None:
            self.ok(message, request.seq)
        elif not self.life.whole or requests.is_full or message.scope.fell_out or self._unread:
            self.unclear(message, f"no request with the id {shown(id)} is known, and not all are")
        elif any(type(known) is type(id) for known in requests):
            self._unknown(message, id)
        elif twin in requests:
            self.fail(message, f"requestId is {shown(id)}, and the request has {shown(twin)}", requests[twin].seq)
        elif (question := self._questions.get((message.scope, id))) is not None and not question.answers:
            self.fail(message, f"{shown(id)} is the id of a question of the server", question.seq)
        else:
            self.warn(message, _no_request(message, id))

    def _unknown(self, message: Message, id: RequestId) -> None:
        say = self.unclear if message.transport == "http" else self.warn
        say(message, _no_request(message, id))


def _no_request(message: Message, id: RequestId) -> str:
    lost = "; it may have been lost on the way" if message.transport == "http" else ""
    return f"no request had the id {shown(id)}{lost}"


def _number(id: str) -> RequestId:
    """The number that a text is, in the way in which JSON has it; else the text."""
    return int(id) if len(id) < 20 and id.isascii() and id.isdecimal() and str(int(id)) == id else id


def _scope_of(sent: Sent) -> Scope | None:
    if sent.session is not None:
        return sent.session.scope
    return None if sent.pipe is None else sent.pipe.scope


@judges("cancel.in-progress")
class CancelInProgress(_Cancellations):
    """Cancels only what still runs."""

    def judge(self, message: Message, id: RequestId, request: Message | None) -> None:
        # `cancel.not-initialize` and `cancel.not-task` judge these.
        if request is None or request.method == "initialize" or _task_of(request) is not None:
            return
        answered = request.answered
        if answered is None or message.began - answered < self.allowances.settle_s:
            self.ok(message, request.seq)
        else:
            self.warn(message, f"its answer was delivered {message.began - answered:.0f} s before", request.seq)


@judges("cancel.not-initialize")
class CancelNotInitialize(_Cancellations):
    """Does not cancel initialize."""

    def judge(self, message: Message, id: RequestId, request: Message | None) -> None:
        if request is not None and request.method == "initialize":
            self.fail(message, "requestId is that of initialize", request.seq)
        else:
            self.ok(message)


class _Tasks(_Cancellations):
    """Tasks are cancelled by `tasks/cancel`. Before the task's id was delivered the client cannot know it."""

    methods = frozenset({_CANCELLED, "tasks/cancel"})

    def on_request(self, message: Message) -> None:
        if message.method == "tasks/cancel":
            self.ok(message)

    def judge(self, message: Message, id: RequestId, request: Message | None) -> None:
        if request is None or _task_of(request) is None:
            return
        if message.began - (request.answered or 0) >= self.allowances.arrival_s:
            self.fail(message, f"requestId {shown(id)} is that of a call that runs as a task", request.seq)


@judges("cancel.not-task")
class CancelNotTask(_Tasks):
    """Cancels tasks with tasks/cancel."""


@judges("cancel.not-task-ext")
class CancelNotTaskExt(_Tasks):
    """Cancels extension tasks with tasks/cancel."""

    methods = frozenset({_CANCELLED, "tasks/cancel", "tools/call"})

    def setup(self) -> None:
        self._tasks: Newest[str, float] = Newest(_MOST)

    def on_answered(self, request: Message) -> None:
        task = _task_of(request)
        if task is not None:
            self._tasks.store(task, self.now)

    def on_notification(self, message: Message) -> None:
        id = message.params.get("requestId")
        if message.method != _CANCELLED or not is_id(id) or message.hides("/params/requestId"):
            return
        known = None if isinstance(id, int) else self._tasks.get(id)
        if known is not None and message.began - known >= self.allowances.arrival_s:
            self.fail(message, "requestId is the id of a task")
        elif message.scope.kind != "client" or self.life.is_one_process:
            self.judge(message, id, _request_of(message, id))


@judges("cancel.shape")
class CancelShape(Predicate):
    """Names the request and nothing but text as reason. Params that are no object are left to the rule about these."""

    methods = frozenset({_CANCELLED})

    def on_notification(self, message: Message) -> None:
        if not isinstance(members(message.value).get("params", {}), dict):
            return
        if message.hides("/params/requestId") or message.hides("/params/reason"):
            return
        params = message.params
        id, reason = params.get("requestId"), params.get("reason", "")
        if "requestId" not in params:
            # The schema of 2025-11-25 has it optional, and its text does not.
            say = self.warn if message.revision == "2025-11-25" else self.fail
            say(message, "requestId is missing")
        elif isinstance(id, float) and id.is_integer():
            self.warn(message, f"requestId is {shown(id)}, a number with a point")
        elif not is_id(id):
            self.fail(message, f"requestId is {_json(id)}")
        elif not isinstance(reason, str):
            self.fail(message, f"reason is {_json(reason)}, not a string")
        else:
            self.ok(message)


def _json(value: Any) -> str:
    if value is None:
        return "null"
    return repr(value) if isinstance(value, (bool, int, float)) else f"of type {type(value).__name__}"


@judges("cancel.explicit")
class CancelExplicit(Predicate):
    """Says that it gives up a call instead of just hanging up.

    Closing is not cancelling, and may be the network's: the client may come back for the stream, or be gone for good.
    """

    def setup(self) -> None:
        self._cancelled: Newest[tuple[Scope, RequestId], None] = Newest(_MOST)

    def on_notification(self, message: Message) -> None:
        id = message.params.get("requestId")
        if message.method == _CANCELLED and is_id(id):
            self._cancelled.store((message.scope, id), None)

    def on_left(self, exchange: Exchange) -> None:
        stream, session = exchange.stream, exchange.session
        if exchange.by != "client" or session is None or stream is None or stream.purpose != "response":
            return
        for message in exchange.messages:
            if message.rpc == "request" and message.answer is None:
                due = self.now + self.allowances.alive_s
                self.give_time(due, self._look, message, exchange, stream, of=message, also=(exchange.seq,))

    def is_decided_at_end(self, wait: Wait) -> bool:
        return self._has_gone_on(*wait.arguments)

    def _has_gone_on(self, message: Message, exchange: Exchange, stream: ServerStream) -> bool:
        """Whether the client cancelled the call, came back for its stream, or ended the session and so all calls."""
        session = exchange.session
        if session is None or message.id is None:
            return True
        cancelled = (message.scope, message.id) in self._cancelled
        if cancelled:
            self.ok(message, exchange.seq)
        return cancelled or stream.readers[-1:] != [exchange] or session.closed is not None

    def _look(self, message: Message, exchange: Exchange, stream: ServerStream) -> None:
        session, left = exchange.session, exchange.left or 0
        if self._has_gone_on(message, exchange, stream) or session is None:
            return
        if session.last_act > left + self.allowances.settle_s:
            what = f"hung up on {message.method} {shown(message.id)}"
            self.warn(message, f"the client or a gateway {what}, and no {_CANCELLED} came", exchange.seq)
        else:
            self.unclear(message, "the client hung up, and nothing came from it later", exchange.seq)


@judges("cancel.modern-closes-stream")
class CancelModernClosesStream(Predicate):
    """Cancels by closing the stream."""

    # A notification that names a task, or is malformed, is judged by another rule.
    general = True

    def on_notification(self, message: Message) -> None:
        if message.method != _CANCELLED or message.era != "modern":
            return
        if message.found is None:
            self.warn(message, f"sent {_CANCELLED} over HTTP, where closing the stream cancels")

    def on_left(self, exchange: Exchange) -> None:
        if exchange.by == "client":
            for message in exchange.messages:
                if message.rpc == "request" and message.era == "modern" and message.answer is None:
                    self.ok(message, exchange.seq)


@judges("cancel.server-withdrawal")
class CancelServerWithdrawal(Predicate):
    """Does not answer a question that was withdrawn.

    A person's answer may cross the withdrawal, and a client may be unable to stop what it has begun.
    """

    def setup(self) -> None:
        self._withdrawn: Newest[tuple[Scope | None, RequestId], Sent] = Newest(_MOST)
        self._late: Newest[int, None] = Newest(_MOST)

    def on_told(self, notification: Sent) -> None:
        id = notification.params.get("requestId") if notification.method == _CANCELLED else None
        if is_id(id) and notification.delivered is not None:
            self._withdrawn.store((_scope_of(notification), id), notification)
            self.give_time(notification.delivered + self.allowances.alive_s, self._look, notification, of=notification)

    def on_answer(self, message: Message) -> None:
        id = message.id if message.question is None else message.question.id
        if id is None or not self._withdrawn:
            return
        scope = message.scope if message.question is None else _scope_of(message.question)
        withdrawal = self._withdrawn.get((scope, id))
        if withdrawal is None:
            return
        late = message.began - (withdrawal.delivered or 0)
        if late >= self.allowances.settle_s:
            self._late.store(withdrawal.seq, None)
            self.warn(message, f"answered a question {late:.0f} s after the server withdrew it", withdrawal.seq)

    def _look(self, withdrawal: Sent) -> None:
        session, pipe = withdrawal.session, withdrawal.pipe
        place = session or pipe
        if withdrawal.seq not in self._late and place is not None and place.last_act > (withdrawal.delivered or 0):
            self.ok(withdrawal)

"""Which requests are in flight beside each other, with their tokens, and what a client reports for the server's."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from ...log.bounded import Newest
from ...views.clients import Connection, Scope
from ...views.values import Exchange, Message
from ...wire.jsonrpc import ProgressToken, is_id
from ..retention import BOUNDS
from .tasks import Tasks, task_of

# The first status that says no.
_REFUSED: Final = 400
_COMES_BACK: Final = frozenset({"hang-up", "displaced by a newer connection"})


class Beside(NamedTuple):
    """The requests that ran in the scope of a new one: one with a like token, and the newest with any token."""

    alike: Message | None
    newest: Message | None


_NOTHING: Final = Beside(None, None)


class Report(NamedTuple):
    """A progress notification of the client, without its content, which may make room."""

    seq: int
    at: float
    progress: float
    place: Connection | None
    exchange: Exchange | None
    digest: int


class Tokens:
    """Fed with what has a token, in the order of the log: requests of both sides, and the client's progress.

    A request runs until its answer is on the way, or the client has cancelled it or hung up; one that runs as a task,
    until the task has ended at the server.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._scopes: Newest[Scope, Newest[str, Message]] = Newest(BOUNDS.places)
        self._beside: Newest[int, Beside] = Newest(BOUNDS.views)
        # By the token of the server; several where a log has several runs of it.
        self._questions: Newest[tuple[type, ProgressToken], deque[Message]] = Newest(BOUNDS.places)
        # By the number of the question, and by that of the notification that follows.
        self._last: Newest[int, Report] = Newest(BOUNDS.places)
        self._before: Newest[int, Report] = Newest(BOUNDS.places)

    def add(self, request: Message, grace_s: float) -> None:
        """One more. An answer counts for `grace_s` before its delivery, as the client can have read it by then."""
        scope, token = request.scope, str(request.token)
        if scope is None:
            return
        running = self._scopes.get(scope)
        if running is None:
            running = Newest(BOUNDS.views)
            self._scopes.store(scope, running)
        alike = running.get(token)
        if alike is not None and self._is_over(alike, request.at, grace_s):
            alike = None
        newest = self._newest(running, request.at, grace_s)
        if newest is not None:
            self._beside.store(request.seq, Beside(alike, newest))
        running.store(token, request)

    def give(self, question: Message) -> None:
        """One more question of the server, emitted: the client can have it before its delivery is in the log."""
        token = question.meta.get("progressToken")
        if is_id(token):
            same = self._questions.get((type(token), token), deque[Message](maxlen=BOUNDS.parts))
            same.append(question)
            self._questions.store((type(token), token), same)

    @property
    def may_miss_questions(self) -> bool:
        """True if some may have made room."""
        return self._questions.is_full

    def question(self, token: ProgressToken, until: float) -> Message | None:
        """The newest question with a token, among those made before a time."""
        same = self._questions.get((type(token), token), ())
        return next((question for question in reversed(same) if question.at < until), None)

    def report(self, message: Message) -> None:
        """One more notification. The same progress once more, as the first POST had no response, is the same one."""
        if message.method != "notifications/progress":
            return
        token, progress = message.params.get("progressToken"), message.params.get("progress")
        question = self.question(token, message.at) if is_id(token) else None
        if question is None or message.hides("/params/progress"):
            return
        if not isinstance(progress, int | float) or isinstance(progress, bool):
            return
        report = Report(message.seq, message.at, progress, message.place, message.exchange, hash(message.raw))
        last = self._last.get(question.seq)
        if last is not None:
            unanswered = last.exchange is not None and last.exchange.response is None
            if message.transport == "http" and unanswered and last.digest == report.digest:
                return
            self._before.store(message.seq, last)
        self._last.store(question.seq, report)

    def reported_before(self, message: Message) -> Report | None:
        """The report on the same question before this one; None for the first, and for what is no number."""
        return self._before.get(message.seq)

    def beside(self, request: Message) -> Beside:
        return self._beside.get(request.seq, _NOTHING)

    def _newest(self, running: Newest[str, Message], now: float, grace_s: float) -> Message | None:
        while running:
            token = next(reversed(running))
            if not self._is_over(running[token], now, grace_s):
                return running[token]
            del running[token]
        return None

    def _is_over(self, request: Message, now: float, grace_s: float) -> bool:
        answer, exchange = request.answer, request.exchange
        if request.refused is not None or request.dropped_by(now) or request.asked_to_cancel is not None:
            return True
        # A client comes back for a stream that the server closed by intention; after another end it may not.
        if exchange is not None and exchange.closed is not None and exchange.ended_by not in _COMES_BACK:
            return True
        if answer is None:
            return False
        task = task_of(answer)
        if task is not None and answer.delivered is not None:
            known = self._tasks.find(task)
            return known is not None and known.is_over
        return answer.delivered is not None or now - answer.at <= grace_s


def is_in_flight(request: Message, at: float, grace_s: float) -> bool:
    """True if the client has no answer, has not left, and none is on its way: one is for `grace_s` from its making."""
    exchange, answer = request.exchange, request.answer
    if exchange is not None and exchange.head is not None:
        refused = exchange.response is not None and exchange.response.mono < at and (exchange.status or 0) >= _REFUSED
        if refused or exchange.closed_by(at):
            return False
    if answer is not None and 0 < at - answer.at <= grace_s:
        return False
    return not request.answered_by(at) and not request.dropped_by(at)

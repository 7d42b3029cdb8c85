"""Which requests are in flight beside each other, and which progress tokens they have."""

from __future__ import annotations

from typing import Final, NamedTuple

from ...log.bounded import Newest
from ...views.clients import Scope
from ...views.values import Message
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


class Tokens:
    """Fed with the requests of one client that have a token, in order.

    A request runs until its answer is on the way, or the client has cancelled it or hung up; one that runs as a task,
    until the task has ended at the server.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._scopes: Newest[Scope, Newest[str, Message]] = Newest(BOUNDS.places)
        self._beside: Newest[int, Beside] = Newest(BOUNDS.views)

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

"""The common part of the rules about both kinds of tasks: how often and how long a client asks, and when it stops."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Final

from ....log.bounded import Newest
from ....wire.revisions import LEGACY
from ...projection.life import Life
from ...projection.questions import METHODS, Reply
from ...projection.tasks import TaskView, Told
from ...projection.views import Message, Session, TaskNews
from ..predicate import Place, Predicate, Wait

MOST_TASKS: Final = 1_000
"""Tasks of one subject that a rule remembers something of."""

# Polls after which a client that follows a task has looked again.
_POLLS: Final = 10
# A share needs so many gaps to be one; a client is given the benefit of the first ones.
_LEAST_GAPS: Final = 5
_FIRST_GAPS: Final = 3
_MOST_GAPS: Final = 200
# A client that asks again has had more than one look; a person who reloads a page asks a few times.
_GETS_AFTER_END: Final = 2
_MANY_GETS_AFTER_END: Final = 5


def patience(task: TaskView, least_s: float) -> float:
    """How long a client that follows a task takes to look again, in seconds; at least `least_s`."""
    return max(_POLLS * (task.poll_s or 0.0), least_s)


def speaker(task: TaskView, life: Life) -> Session | Life:
    """The one that has to follow a task: its session, or the whole client where there are no sessions."""
    return life if task.session is None else task.session


def is_gone(task: TaskView, life: Life) -> bool:
    """Whether the client that should follow a task has left: its session, or every connection where it has none."""
    if task.session is not None:
        pipes = [pipe for pipe in life.pipes.values() if pipe.session is task.session]
    else:
        pipes = list(life.pipes.values()) if task.request is not None and task.request.pipe is not None else []
    ended = task.session is not None and task.session.closed is not None
    return ended or (bool(pipes) and all(pipe.closed is not None for pipe in pipes))


@dataclass(slots=True)
class _Look:
    """A `tasks/get`; `interval` is the poll interval that its answer delivered, None until then."""

    message: Message
    interval: float | None = None


class Polling(Predicate):
    """Polls tasks no faster than the interval that was delivered last.

    Arrivals at the server jitter, so a share of the gaps counts, never one gap. After news of the task, an answer to
    its question or another request about it an early look is right.
    """

    methods: ClassVar[frozenset[str] | None] = METHODS | {
        "tasks/get",
        "tasks/result",
        "tasks/update",
        "tasks/cancel",
        "notifications/tasks/status",
        "notifications/tasks",
    }

    def setup(self) -> None:
        self._looks: Newest[tuple[Session | None, str], _Look] = Newest(MOST_TASKS)
        self._news: Newest[str, float] = Newest(MOST_TASKS)
        self._gaps = self._short = 0
        self._shares: deque[float] = deque(maxlen=_MOST_GAPS)

    def on_request(self, message: Message) -> None:
        task = self.life.dialogue.tasks.named_by(message)
        if task is None:
            return
        key = _key(message, task.id)
        if message.method != "tasks/get":
            self._looks.pop(key, None)
            return
        look = self._looks.get(key)
        self._looks.store(key, _Look(message))
        if look is not None and look.interval and self._news.get(task.id, 0.0) < look.message.at:
            self._measure(message, look.message, look.interval)

    def on_task_told(self, told: Told) -> None:
        if told.request is None:
            self._news.store(told.task.id, told.at)
            return
        look = self._looks.get(_key(told.request, told.task.id))
        if look is not None and look.message is told.request:
            look.interval = told.task.poll_s

    def on_reply(self, reply: Reply) -> None:
        id = reply.question.related_task
        if id is not None:
            self._looks.pop(_key(reply.message, id), None)

    def on_gap(self) -> None:
        self._looks.clear()

    def _measure(self, message: Message, before: Message, interval: float) -> None:
        if self.life.suspended is not None and self.life.suspended >= before.at:
            return
        gap = message.at - before.at
        self._gaps += 1
        self._shares.append(gap / interval)
        worst, middle = min(self._shares), median(self._shares)
        self.measure(
            "gaps between polls, shares of the interval", {"worst": round(worst, 2), "median": round(middle, 2)}
        )
        early = interval - max(interval * self.allowances.poll_tolerance, self.allowances.retry_tolerance_ms / 1000)
        if gap >= early:
            if self._gaps >= _FIRST_GAPS:
                self.ok(message, before.seq)
            return
        self._short += 1
        if self._gaps >= _LEAST_GAPS and self._short >= self.allowances.poll_share * self._gaps:
            said = f"{self._short} of {self._gaps} polls came before the interval of {interval:g} s was over"
            self.warn(message, f"{said}: at worst after {worst:.0%} of it, {middle:.0%} in the middle", before.seq)


def _key(message: Message, id: str) -> tuple[Session | None, str]:
    """Two readers of one task in two sessions do not poll together."""
    return message.session, id


class Unfollowed(Predicate):
    """A task that nobody follows: the wait for somebody begins when it has ended and its handle was delivered."""

    def setup(self) -> None:
        self._open: Newest[str, Told] = Newest(MOST_TASKS)
        self._after: Newest[str, Wait] = Newest(MOST_TASKS)

    def on_gap(self) -> None:
        # A missing entry may have told the end of any of them; open waits are INCONCLUSIVE already.
        self._open.clear()

    def begin(self, told: Told) -> None:
        """The handle of a task was delivered."""
        self._open.store(told.task.id, told)
        self._arm(told.task)

    def follow(self, task: TaskView, of: Place) -> None:
        """The client did what was to be done about a task."""
        told = self._open.get(task.id)
        if told is not None:
            self.forget(task)
            self.ok(of, told.seq)

    def forget(self, task: TaskView) -> None:
        """Nobody needs to follow a task any more."""
        self._open.pop(task.id, None)
        wait = self._after.pop(task.id, None)
        if wait is not None:
            wait.cancel()

    def on_task(self, task: TaskNews) -> None:
        known = self.life.dialogue.tasks.find(task.id)
        if known is not None:
            self._arm(known)

    def _arm(self, task: TaskView) -> None:
        told = self._open.get(task.id)
        if told is None or task.ended is None or task.id in self._after:
            return
        since = max(task.ended, told.at)
        due = since + patience(task, self.allowances.alive_s)
        self._after.store(task.id, self.give_time(due, self._look, told, since, of=told))

    def is_decided_at_end(self, wait: Wait) -> bool:
        told, _ = wait.arguments
        return self._is_nobodys(told)

    def _is_nobodys(self, told: Told) -> bool:
        unknown = told.revision in LEGACY and told.task.session is None
        return unknown or is_gone(told.task, self.life)

    def _look(self, told: Told, since: float) -> None:
        self.forget(told.task)
        who = speaker(told.task, self.life)
        if self._is_nobodys(told) or who.last_act <= since:
            return
        if who.last_request > since:
            self.warn(told, f"nobody asked for the task in the {self.now - since:.0f} s after its end")
        else:
            self.unclear(told, "nobody asked for the task after its end, or for anything else")


class Stopping(Predicate):
    """Stops polling when the task has ended; a page that a person reloads may ask a few times more."""

    methods: ClassVar[frozenset[str] | None] = frozenset({"tasks/get", "notifications/tasks"})

    def setup(self) -> None:
        self._gets: Newest[tuple[Session | None, str], int] = Newest(MOST_TASKS)

    def on_task_told(self, told: Told) -> None:
        if not told.is_terminal:
            return
        key = (told.sent.session, told.task.id)
        if key not in self._gets:
            self._gets.store(key, 0)
            self.give_time(told.at + self.allowances.alive_s, self._look, told, key, of=told)

    def on_request(self, message: Message) -> None:
        task = self.life.dialogue.tasks.named_by(message)
        if task is None or task.over is None or message.at <= task.over:
            return
        key = _key(message, task.id)
        if key not in self._gets:
            return
        self._gets[key] += 1
        if self._gets[key] == _MANY_GETS_AFTER_END + 1:
            self.warn(message, f"more than {_MANY_GETS_AFTER_END} tasks/get after the task had ended")

    def is_decided_at_end(self, wait: Wait) -> bool:
        told, key = wait.arguments
        restless = self._gets.get(key, 0) > _GETS_AFTER_END
        if restless:
            self._look(told, key)
        return restless

    def _look(self, told: Told, key: tuple[Session | None, str]) -> None:
        gets = self._gets.get(key, 0)
        if gets <= _GETS_AFTER_END:
            self.ok(told)
        elif gets <= _MANY_GETS_AFTER_END:
            self.unclear(told, f"{gets} tasks/get after the task had ended")

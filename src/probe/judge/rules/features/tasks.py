"""Rules `tasks.*`: tasks of 2025-11-25."""

from __future__ import annotations

from typing import Final

from ....log.bounded import Newest
from ...projection.questions import METHODS, RELATED_TASK, Reply
from ...projection.tasks import Told
from ...projection.views import Message
from ...values import members
from ..predicate import Predicate, Wait, judges
from .polling import MOST_TASKS, Polling, Stopping, Unfollowed, is_gone

# A client that asks more often for a task that is gone has not understood the answer.
_GETS_OF_UNKNOWN: Final = 3
_MANY_GETS_OF_UNKNOWN: Final = 10
_INVALID_PARAMS: Final = -32602


@judges("tasks.poll-interval")
class TasksPollInterval(Polling):
    """Polls tasks no faster than pollInterval."""


@judges("tasks.polls-to-end")
class TasksPollsToEnd(Unfollowed):
    """Follows a task to its end.

    A client may come back for a task days later, so silence counts only where its session asked for other things.
    """

    methods = frozenset(
        {"tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tools/call", "notifications/tasks/status"}
    )

    def on_task_told(self, told: Told) -> None:
        if told.method == "tools/call":
            self.begin(told)
        elif told.request is not None and (told.is_terminal or told.status == "input_required"):
            self.follow(told.task, told)
        elif told.is_terminal:
            # Nobody need ask for what was told.
            self.forget(told.task)

    def on_request(self, message: Message) -> None:
        task = self.life.dialogue.tasks.named_by(message)
        if task is not None and message.method == "tasks/result":
            self.follow(task, message)
        elif task is not None and message.method == "tasks/cancel":
            self.forget(task)


@judges("tasks.result-fetched")
class TasksResultFetched(Predicate):
    """Fetches the result of a finished task.

    A result may be wanted much later, so silence counts only where the session asked for other things meanwhile.
    """

    methods = frozenset({"tasks/get", "tasks/result"})

    def setup(self) -> None:
        self._fetched: Newest[str, int] = Newest(MOST_TASKS)
        self._owed: Newest[str, Wait | None] = Newest(MOST_TASKS)
        self._missing = 0.0

    def on_gap(self) -> None:
        self._missing = self.now

    def on_request(self, message: Message) -> None:
        task = self.life.dialogue.tasks.named_by(message)
        if task is None or message.method != "tasks/result":
            return
        self._fetched.store(task.id, message.seq)
        wait = self._owed.get(task.id)
        if wait is not None and not wait.over:
            wait.cancel()
            self.ok(message, wait.of.seq)

    def on_task_told(self, told: Told) -> None:
        if told.method != "tasks/get" or told.status != "completed" or told.task.id in self._owed:
            return
        fetched = self._fetched.get(told.task.id)
        if fetched is not None:
            self._owed.store(told.task.id, None)
            self.ok(told, fetched)
        else:
            self._owed.store(told.task.id, self.give_time(told.at + self.allowances.alive_s, self._look, told, of=told))

    def is_decided_at_end(self, wait: Wait) -> bool:
        told: Told = wait.arguments[0]
        return told.task.session is None or is_gone(told.task, self.life)

    def _look(self, told: Told) -> None:
        session = told.task.session
        if session is None or is_gone(told.task, self.life) or session.last_act <= told.at:
            return
        if (told.task.created or 0.0) <= self._missing:
            self.unclear(told, "tasks/result may be among the entries that are missing")
        elif session.last_request > told.at:
            self.warn(told, f"no tasks/result within {self.allowances.alive_s:g} s, and other requests came")
        else:
            self.unclear(told, "no tasks/result came, and no other request")


@judges("tasks.input-required")
class TasksInputRequired(Predicate):
    """Calls tasks/result when a task wants input.

    One that is still open does, and so does an answer to the question, which may have come on the GET stream.
    """

    methods = METHODS | {"tasks/get", "tasks/result", "notifications/tasks/status"}

    def setup(self) -> None:
        self._open: Newest[str, Message] = Newest(MOST_TASKS)
        self._owed: Newest[str, Wait | None] = Newest(MOST_TASKS)
        self._polled: Newest[str, float] = Newest(MOST_TASKS)
        self._missing = 0.0

    def on_gap(self) -> None:
        self._missing = self.now

    def on_request(self, message: Message) -> None:
        task = self.life.dialogue.tasks.named_by(message)
        if task is None:
            return
        if message.method == "tasks/get":
            self._polled.store(task.id, message.at)
            return
        self._open.store(task.id, message)
        wait = self._owed.get(task.id)
        if wait is None or wait.over:
            return
        wait.cancel()
        asked = wait.due - self.allowances.alive_s
        if message.at <= asked + self.allowances.answer_s:
            self.ok(message, wait.of.seq)
        else:
            self.unclear(message, f"tasks/result came {message.at - asked:.0f} s after input_required", wait.of.seq)

    def on_reply(self, reply: Reply) -> None:
        task = reply.question.related_task
        wait = None if task is None else self._owed.get(task)
        if wait is not None and not wait.over:
            wait.cancel()
            self.ok(reply.message, wait.of.seq)

    def on_task_told(self, told: Told) -> None:
        id = told.task.id
        if told.status != "input_required":
            wait = self._owed.pop(id, None)
            if wait is not None and not wait.over:
                wait.cancel()
                self.unclear(told, f"the task became {told.status} before tasks/result came", wait.of.seq)
        elif id not in self._owed:
            holds = self._open.get(id)
            if holds is not None and holds.answered is None and holds.dropped is None:
                self._owed.store(id, None)
                self.ok(told, holds.seq)
            else:
                self._owed.store(id, self.give_time(told.at + self.allowances.alive_s, self._look, told, of=told))

    def is_decided_at_end(self, wait: Wait) -> bool:
        told: Told = wait.arguments[0]
        return told.task.cancelled is not None

    def _look(self, told: Told) -> None:
        if told.task.cancelled is not None:
            return
        if (told.task.created or 0.0) <= self._missing:
            self.unclear(told, "tasks/result may be among the entries that are missing")
        elif self._polled.get(told.task.id, 0.0) > told.at:
            self.warn(told, f"it polled on, and no tasks/result came within {self.allowances.alive_s:g} s")
        else:
            self.unclear(told, "neither tasks/result nor tasks/get came")


@judges("tasks.related-task")
class TasksRelatedTask(Predicate):
    """Names the task in its answers to a task's questions."""

    def on_reply(self, reply: Reply) -> None:
        asked = reply.question.related_task
        if asked is None or not isinstance(reply.value, dict) or reply.hides("_meta", RELATED_TASK):
            return
        related = members(members(reply.value).get("_meta")).get(RELATED_TASK)
        if related is None:
            # The word that the catalogue promises: few libraries send it.
            self.fail(reply.message, f"_meta has no {RELATED_TASK} (common)", reply.question.seq)
        elif members(related).get("taskId") != asked:
            self.fail(reply.message, f"{RELATED_TASK} names another task than the question", reply.question.seq)
        else:
            self.ok(reply.message)


@judges("tasks.no-related-task")
class TasksNoRelatedTask(Predicate):
    """Leaves related-task out of tasks/get, tasks/result and tasks/cancel."""

    methods = frozenset({"tasks/get", "tasks/result", "tasks/cancel"})

    def on_request(self, message: Message) -> None:
        if RELATED_TASK in message.meta:
            self.fail(message, f"_meta of {message.method} has {RELATED_TASK}")
        else:
            self.ok(message)


@judges("tasks.stops-when-terminal")
class TasksStopsWhenTerminal(Stopping):
    """Stops polling when the task has ended."""


@judges("tasks.unknown-left-alone")
class TasksUnknownLeftAlone(Predicate):
    """Gives up a task that is gone."""

    methods = frozenset({"tasks/get"})

    def setup(self) -> None:
        self._asked: Newest[str, int] = Newest(MOST_TASKS)

    def on_answered(self, request: Message) -> None:
        id = request.params.get("taskId")
        if request.answer is None or not isinstance(id, str) or request.refusal is not None:
            return
        # A client that tries so many ids is guessing, and is not asking for a task of its own.
        if id in self._asked or len(self._asked) >= MOST_TASKS:
            return
        if request.answer.error.get("code") == _INVALID_PARAMS:
            self._asked.store(id, 0)
            self.give_time(self.now + self.allowances.alive_s, self._look, id, request, of=request)

    def on_request(self, message: Message) -> None:
        id = message.params.get("taskId")
        if not isinstance(id, str) or id not in self._asked:
            return
        self._asked[id] += 1
        if self._asked[id] == _MANY_GETS_OF_UNKNOWN + 1:
            self.warn(message, f"more than {_MANY_GETS_OF_UNKNOWN} tasks/get for a task that is unknown")

    def is_decided_at_end(self, wait: Wait) -> bool:
        id, request = wait.arguments
        restless = self._asked.get(id, 0) > _GETS_OF_UNKNOWN
        if restless:
            self._look(id, request)
        return restless

    def _look(self, id: str, request: Message) -> None:
        asked = self._asked.get(id, 0)
        if asked <= _GETS_OF_UNKNOWN:
            self.ok(request)
        elif asked <= _MANY_GETS_OF_UNKNOWN:
            self.unclear(request, f"{asked} more tasks/get for a task that is unknown")

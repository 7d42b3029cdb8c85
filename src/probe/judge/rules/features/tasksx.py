"""Rules `tasksx.*`: the tasks extension of 2026-07-28.

There are no sessions, so a task belongs to whoever has its id. Where nothing says that a client is one process, another
one may be following the task, and nobody can be accused of silence.
"""

from __future__ import annotations

from typing import Final

from ....log.bounded import Newest
from ....wire.v2026.meta import CLIENT_CAPABILITIES
from ...projection.questions import METHODS, Question, Reply
from ...projection.rounds import are_equal
from ...projection.tasks import EXTENSION, TaskView, Told
from ...projection.views import Message, TaskNews
from ...values import members, pointer, shown
from ..predicate import Predicate, Wait, judges
from .polling import MOST_TASKS, Polling, Stopping, Unfollowed, patience

# One handle that is ignored may be kept for later, and so may a second one.
_IGNORED_TASKS: Final = 3
# A call that is repeated so soon after its handle was taken for one that gave nothing, in seconds.
_REPEATED_S: Final = 5.0
# A program that answers by itself has answered within twice the time that it took before.
_TWICE: Final = 2
_INVALID_PARAMS: Final = -32602
_CAPABILITIES: Final = pointer("params", "_meta", CLIENT_CAPABILITIES)


@judges("tasksx.polymorphic")
class TasksxPolymorphic(Predicate):
    """Understands a task handle as the answer to a call.

    A client may keep a handle for later, so only three of three that were ignored, the first of them for minutes, by a
    client that was alive for long enough after each, show that it does not know what a handle is.
    """

    one_process = True
    methods = frozenset({"tools/call", "tasks/get", "tasks/cancel", "tasks/update", "subscriptions/listen"})

    def setup(self) -> None:
        self._open: Newest[str, Wait] = Newest(MOST_TASKS)
        self._repeated: Newest[str, Message] = Newest(MOST_TASKS)
        self._ignored: tuple[Told, ...] = ()
        self._used = False

    def on_task_told(self, told: Told) -> None:
        if told.method == "tools/call" and told.request is not None and _declares(told.request):
            due = told.at + patience(told.task, self.allowances.alive_s)
            # Whether the client was alive until then is known a while later.
            wait = self.give_time(due + self.allowances.alive_s, self._look, told, due, of=told)
            self._open.store(told.task.id, wait)

    def on_request(self, message: Message) -> None:
        if message.method == "tools/call":
            self._note_repetition(message)
        elif message.method == "subscriptions/listen":
            wanted = members(message.params.get("notifications")).get("taskIds")
            for id in wanted if isinstance(wanted, list) else ():
                self._use(id, message)
        else:
            self._use(message.params.get("taskId"), message)

    def _use(self, id: object, message: Message) -> None:
        self._used = self._used or self.life.dialogue.tasks.find(id) is not None
        wait = self._open.pop(id, None) if isinstance(id, str) else None
        if wait is not None:
            wait.cancel()
            self.ok(message, wait.of.seq)

    def _note_repetition(self, message: Message) -> None:
        for id in reversed(self._open):
            task = self.life.dialogue.tasks.find(id)
            if task is None or task.request is None or task.created is None:
                continue
            if message.at - task.created > _REPEATED_S:
                return
            if are_equal(message, task.request):
                self._repeated.store(id, message)

    def _look(self, told: Told, until: float) -> None:
        self._open.pop(told.task.id, None)
        repeated, alive = told.task.id in self._repeated, self.life.last_act >= until
        if not alive and not repeated:
            return
        if self.life.last_request <= told.at:
            self.unclear(told, "nothing was asked for, the task or anything else")
            return
        self._ignored = (*self._ignored[1 - _IGNORED_TASKS :], told) if alive else ()
        what = "the call was made again, and its task" if repeated else "the task"
        long = bool(self._ignored) and self.now - self._ignored[0].at >= self.allowances.person_s
        if not self._used and len(self._ignored) == _IGNORED_TASKS and long and self.life.whole:
            remark = f"{what} was not asked for; so it was with three of three"
            self.fail(told, remark, *(each.seq for each in self._ignored))
        else:
            self.warn(told, f"{what} was not asked for")


@judges("tasksx.poll-interval")
class TasksxPollInterval(Polling):
    """Polls tasks no faster than pollIntervalMs."""

    one_process = True


@judges("tasksx.polls-to-end")
class TasksxPollsToEnd(Unfollowed):
    """Follows a task to its end or cancels it.

    A client may come back for a task days later, so silence counts only where it asked for other things.
    """

    one_process = True
    methods = frozenset({"tasks/get", "tasks/cancel", "tools/call", "notifications/tasks"})

    def on_task_told(self, told: Told) -> None:
        if told.is_terminal:
            # A handle may tell the end at once.
            self.begin(told)
            self.follow(told.task, told)
        elif told.method == "tools/call":
            self.begin(told)

    def on_request(self, message: Message) -> None:
        task = self.life.dialogue.tasks.named_by(message)
        if task is not None and message.method == "tasks/cancel":
            self.follow(task, message)

    def on_answered(self, request: Message) -> None:
        # The client has learned that the task is gone, which is an end, too.
        task = self.life.dialogue.tasks.named_by(request)
        if task is not None and request.answer is not None and request.answer.error.get("code") == _INVALID_PARAMS:
            self.follow(task, request)


@judges("tasksx.update")
class TasksxUpdate(Predicate):
    """Answers a task's questions with tasks/update.

    A person may take minutes. Silence counts after five minutes of polling, or sooner where the same client has
    answered such a question of a round in far less time than the task left it.
    """

    one_process = True
    methods = METHODS | {"tasks/get", "tasks/update", "tasks/cancel"}

    def setup(self) -> None:
        self._owed: Newest[str, tuple[Question, Wait]] = Newest(MOST_TASKS)
        self._polled: Newest[str, float] = Newest(MOST_TASKS)
        self._took: dict[str, float] = {}
        self._missing = 0.0

    def on_gap(self) -> None:
        self._missing = self.now

    def on_question(self, question: Question) -> None:
        if question.task is None or not question.is_declared or question.task in self._owed:
            return
        due = (question.delivered or self.now) + self.allowances.person_s
        self._owed.store(question.task, (question, self.give_time(due, self._look, question, of=question)))

    def on_reply(self, reply: Reply) -> None:
        asked = reply.question.delivered
        if reply.question.task is None and asked is not None:
            self._took[reply.method] = min(self._took.get(reply.method, reply.message.at), reply.message.at - asked)

    def on_request(self, message: Message) -> None:
        id = message.params.get("taskId")
        if not isinstance(id, str):
            return
        if message.method == "tasks/get":
            self._polled.store(id, message.at)
        elif id in self._owed:
            question, wait = self._owed.pop(id)
            if not wait.over:
                wait.cancel()
                if message.method == "tasks/update":
                    self.ok(message, question.seq)

    def on_task(self, task: TaskNews) -> None:
        known = self.life.dialogue.tasks.find(task.id)
        if known is None or not known.is_over or task.id not in self._owed:
            return
        question, wait = self._owed.pop(task.id)
        if not wait.over:
            wait.cancel()
            self._end(question, known)

    def _end(self, question: Question, task: TaskView) -> None:
        asked, ended = question.delivered or 0.0, task.ended or self.now
        polled, took = self._polled.get(task.id, 0.0) - asked, self._took.get(question.method)
        if (task.created or 0.0) <= self._missing:
            took = None
        if took is not None and min(polled, ended - asked) > max(_TWICE * took, self.allowances.answer_s):
            self.warn(question, f"the task ended without tasks/update, while it answered {question.method} in a round")
        else:
            self.unclear(question, "the task ended before tasks/update came")

    def _look(self, question: Question) -> None:
        task = None if question.task is None else self.life.dialogue.tasks.find(question.task)
        if task is None:
            return
        if (task.created or 0.0) <= self._missing:
            self.unclear(question, "tasks/update may be among the entries that are missing")
        elif self._polled.get(task.id, 0.0) >= self.now - patience(task, self.allowances.alive_s):
            self.warn(question, f"it polled for {self.allowances.person_s:g} s, and no tasks/update came")
        else:
            self.unclear(question, "neither tasks/update nor tasks/get came")


@judges("tasksx.update-keys")
class TasksxUpdateKeys(Predicate):
    """Answers with the keys of the questions.

    Keys that were emitted count as given, as the answer may be in the log before their delivery.
    """

    one_process = True
    methods = frozenset({"tasks/update"})

    def on_request(self, message: Message) -> None:
        task = self.life.dialogue.tasks.named_by(message)
        given = members(message.params.get("inputResponses"))
        if not given:
            return
        if task is None or not task.is_whole or not self.life.whole:
            self.unclear(message, "the log does not tell all that this task asked")
            return
        unknown = [key for key in given if key not in task.questions]
        if unknown:
            self.fail(message, f"inputResponses has {shown(unknown[0])}, which the task never asked", *_asked(task))
        else:
            self.ok(message)


@judges("tasksx.no-double-answer")
class TasksxNoDoubleAnswer(Predicate):
    """Answers each question of a task once; what is repeated before the acknowledgement has come is innocent."""

    one_process = True
    methods = frozenset({"tasks/update", "tasks/get", "notifications/tasks"})

    def setup(self) -> None:
        self._answered: Newest[tuple[str, str], Message] = Newest(MOST_TASKS)

    def on_gap(self) -> None:
        self._answered.clear()

    def on_request(self, message: Message) -> None:
        id = message.params.get("taskId")
        if message.method != "tasks/update" or not isinstance(id, str):
            return
        for key in members(message.params.get("inputResponses")):
            first = self._answered.get((id, key))
            acknowledged = None if first is None else first.answered
            if first is None or acknowledged is None:
                continue
            if message.at >= acknowledged + self.allowances.token_grace_s:
                self.warn(message, f"{shown(key)} was answered again", first.seq)

    def on_answered(self, request: Message) -> None:
        id = request.params.get("taskId")
        if request.method != "tasks/update" or not isinstance(id, str):
            return
        if request.answer is None or request.answer.rpc != "response":
            return
        task = self.life.dialogue.tasks.find(id)
        for key in members(request.params.get("inputResponses")):
            if task is not None and key in task.questions and (id, key) not in self._answered:
                self._answered.store((id, key), request)
                self.ok(request)

    def on_task_told(self, told: Told) -> None:
        # A question that is still asked after its answer may be answered again.
        body = told.sent.params if told.request is None else told.sent.result
        for key in members(body.get("inputRequests")):
            first = self._answered.get((told.task.id, key))
            if first is not None and told.request is not None and told.request.at > (first.answered or told.at):
                del self._answered[told.task.id, key]


@judges("tasksx.declared")
class TasksxDeclared(Predicate):
    """Declares the extension on every request about tasks."""

    methods = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})

    def on_request(self, message: Message) -> None:
        if message.hides(_CAPABILITIES):
            return
        if _declares(message):
            self.ok(message)
        else:
            self.warn(message, f"{message.method} came without {EXTENSION} in the capabilities of its _meta")


@judges("tasksx.stops-when-terminal")
class TasksxStopsWhenTerminal(Stopping):
    """Stops polling when the task has ended."""

    one_process = True


def _declares(message: Message) -> bool:
    return EXTENSION in members(members(message.meta.get(CLIENT_CAPABILITIES)).get("extensions"))


def _asked(task: TaskView) -> list[int]:
    """The entries that asked a task's questions, the last ones."""
    return sorted({question.seq for question in task.questions.values()})[-3:]

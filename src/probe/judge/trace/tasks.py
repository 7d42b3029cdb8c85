"""Tasks as a client was told of them: of 2025-11-25, and of the tasks extension of 2026-07-28."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...log.bounded import Newest
from ...views.contents import members
from ...views.values import Message, Session
from ...wire.revisions import V2025_11_25, V2026_07_28
from ...wire.v2026.meta import CLIENT_CAPABILITIES
from ..values import pointer
from .moments import TaskNews
from .questions import Question, Reply, input_questions

EXTENSION: Final = "io.modelcontextprotocol/tasks"
TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})

# Tasks of one subject, and questions of one task, that are remembered.
_MOST_TASKS: Final = 1_000
_MOST_QUESTIONS: Final = 200
_MOST_TOLD: Final = 1_000
# Requests and notifications that tell how a task stands.
_REQUESTS: Final = frozenset({"tasks/get", "tasks/cancel", "tasks/list"})
NOTIFICATIONS: Final = frozenset({"notifications/tasks/status", "notifications/tasks"})
"""The notifications by which a server says how a task stands."""


@dataclass(slots=True, eq=False)
class TaskView:
    """A task. `created` is when its handle was delivered, which `handle` is; `request` is the call that became it.

    `status` and `poll_s`, the poll interval in seconds, are those that were delivered last. `over` is when a terminal
    status was first delivered, `ended` when the task had one at the server. `cancelled` is the first `tasks/cancel`.
    `questions` are those of the extension by their keys, also those that were emitted only. `told` is what the client
    was told of it, in the order of the deliveries, the newest 1,000: a rule that decides as of a moment looks there.
    """

    id: str
    revision: str | None = None
    session: Session | None = None
    request: Message | None = None
    handle: Message | None = None
    created: float | None = None
    status: str = ""
    poll_s: float | None = None
    over: float | None = None
    ended: float | None = None
    cancelled: Message | None = None
    questions: Newest[str, Question] = field(default_factory=lambda: Newest(_MOST_QUESTIONS))
    told: deque[Told] = field(default_factory=lambda: deque(maxlen=_MOST_TOLD))

    @property
    def is_over(self) -> bool:
        """Whether it has ended at the server."""
        return self.ended is not None

    @property
    def is_whole(self) -> bool:
        """Whether all that it asked is remembered."""
        return self.handle is not None and len(self.questions) < _MOST_QUESTIONS


@dataclass(frozen=True, slots=True)
class Told:
    """The client was told how a task stands. `method` is that of the request or notification that told it.

    `request` is the client's request, None for a notification. `before` is the status that the client knew, `poll_s`
    the poll interval that it was told now, in seconds.
    """

    task: TaskView
    sent: Message
    method: str
    request: Message | None
    status: str
    before: str
    poll_s: float | None

    @property
    def revision(self) -> str | None:
        """The revision that the task is of."""
        return self.task.revision

    @property
    def seq(self) -> int:
        """The number of the entry of its emission."""
        return self.sent.seq

    @property
    def at(self) -> float:
        """When it was delivered."""
        return self.sent.at if self.sent.had is None else self.sent.had

    @property
    def is_terminal(self) -> bool:
        """Whether nothing more will come of the task."""
        return self.status in TERMINAL


@dataclass(slots=True)
class Tasks:
    """The tasks of one subject."""

    _known: Newest[str, TaskView] = field(default_factory=lambda: Newest(_MOST_TASKS))

    def find(self, id: Any) -> TaskView | None:
        """The task of an id, where the log has told of it."""
        return self._known.get(id) if isinstance(id, str) else None

    def named_by(self, message: Message) -> TaskView | None:
        """The task that a request such as `tasks/get` names."""
        return self.find(message.params.get("taskId"))

    def emitted(self, sent: Message) -> list[Question]:
        """A message was made: the questions in it that are new."""
        asked: list[Question] = []
        for body, place in _described(sent):
            task = self._task(str(body["taskId"]))
            task.revision = task.revision or _revision(body)
            task.session = task.session or sent.session
            if _is_handle(sent):
                task.handle, task.request = sent, sent.request
            if "inputRequests" not in body:
                continue
            # The capabilities declared with the call; a request that only asks for the task may say less.
            call = task.request or sent.request
            declared = {} if call is None else members(call.meta.get(CLIENT_CAPABILITIES))
            found = input_questions(sent, body, place + pointer("inputRequests"), declared, task.id)
            for key, question in found.items():
                if key not in task.questions:
                    task.questions.store(key, question)
                    asked.append(question)
        return asked

    def delivered(self, sent: Message) -> Iterator[tuple[Told, list[Question]]]:
        """A message was delivered: what it told, and which questions the client has now for the first time."""
        for body, _ in _described(sent):
            task = self._task(str(body["taskId"]))
            status, before = str(body.get("status")), task.status
            task.status = status
            interval = body.get("pollInterval", body.get("pollIntervalMs"))
            task.poll_s = interval / 1000 if isinstance(interval, (int, float)) else None
            if _is_handle(sent):
                task.created = sent.had
            if status in TERMINAL and task.over is None:
                task.over = sent.had
            keys = members(body.get("inputRequests"))
            new = [each for key, each in task.questions.items() if key in keys and each.delivered is None]
            for question in new:
                question.delivered = sent.had
            request = sent.request if sent.rpc == "response" else None
            method = sent.method if request is None else request.method
            told = Told(task, sent, str(method), request, status, before, task.poll_s)
            task.told.append(told)
            yield told, new

    def updated(self, message: Message) -> Iterator[Reply]:
        """The client sent `tasks/update`: its answers to questions that are known."""
        task = self.named_by(message)
        for key, value in members(message.params.get("inputResponses")).items() if task is not None else ():
            question = None if task is None else task.questions.get(key)
            if question is not None:
                yield Reply(question, message, value, None, pointer("params", "inputResponses", key))

    def cancelled(self, message: Message) -> None:
        """The client sent `tasks/cancel`."""
        task = self.named_by(message)
        if task is not None and task.cancelled is None:
            task.cancelled = message

    def changed(self, news: TaskNews) -> None:
        """A task has a new status at the server, which may come before its handle."""
        task = self._task(news.id)
        if news.status in TERMINAL and task.ended is None:
            task.ended = news.at

    def _task(self, id: str) -> TaskView:
        task = self._known.get(id)
        if task is None:
            task = TaskView(id)
            self._known.store(id, task)
        return task


def describes_tasks(sent: Message) -> bool:
    """True if a message of the server can say how a task stands."""
    if sent.rpc == "notification":
        return sent.method in NOTIFICATIONS
    if sent.request is None or sent.rpc != "response":
        return False
    # Looked for in the bytes: most results of calls are no tasks, and some are large.
    method = sent.request.method
    return method in _REQUESTS or (method == "tools/call" and b'"taskId"' in sent.raw)


def _described(sent: Message) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The tasks that a message describes that can do so, each with the JSON pointer of its description."""
    request = sent.request
    if request is None or sent.rpc == "notification":
        found = [(sent.params, "/params")]
    elif request.method == "tools/call":
        found = _handles(sent, request)
    elif request.method == "tasks/list":
        rows = members(sent.result).get("tasks")
        found = [(members(row), "/result/tasks") for row in rows] if isinstance(rows, list) else []
    else:
        found = [(members(sent.result), "/result")]
    for body, place in found:
        if isinstance(body.get("taskId"), str):
            yield body, place


def _handles(sent: Message, request: Message) -> list[tuple[Mapping[str, Any], str]]:
    if request.era == "modern":
        return [(members(sent.result), "/result")] if members(sent.result).get("resultType") == "task" else []
    return [(members(members(sent.result).get("task")), "/result/task")] if "task" in request.params else []


def _is_handle(sent: Message) -> bool:
    return sent.rpc == "response" and sent.request is not None and sent.request.method == "tools/call"


def task_of(answer: Message | None) -> str | None:
    """The id of the task that a call was answered with, as far as the answer is that of a call that became one."""
    if answer is None or answer.request is None or answer.request.method != "tools/call" or b"taskId" not in answer.raw:
        return None
    task = members(answer.result.get("task")).get("taskId", answer.result.get("taskId"))
    return task if isinstance(task, str) else None


def _revision(body: Mapping[str, Any]) -> str:
    """Both kinds of tasks say how long they live, by names of their own; the log may not tell of the session."""
    return V2026_07_28 if "ttlMs" in body else V2025_11_25

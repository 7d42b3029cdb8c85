"""Tasks at a client: of 2025-11-25, and of the tasks extension of 2026-07-28."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...log.bounded import Newest
from ...views.clients import Session
from ...views.retention import members
from ...views.values import Message
from ...views.work import Task
from ...wire.revisions import V2025_11_25, V2026_07_28
from ...wire.v2026.meta import CLIENT_CAPABILITIES
from ..retention import BOUNDS
from ..values import pointer
from .moments import TaskNews
from .questions import Question, Reply, input_questions
from .series import ALWAYS, Series

EXTENSION: Final = "io.modelcontextprotocol/tasks"
TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})

ABOUT_TASKS: Final = frozenset({"tasks/get", "tasks/result", "tasks/update", "tasks/cancel", "subscriptions/listen"})
_ASKING: Final = frozenset({"tasks/get", "notifications/tasks"})
# Requests with the status of a task in their result.
_REQUESTS: Final = frozenset({"tasks/get", "tasks/cancel", "tasks/list"})
NOTIFICATIONS: Final = frozenset({"notifications/tasks/status", "notifications/tasks"})
"""The notifications by which a server says how a task stands."""


@dataclass(slots=True, eq=False)
class TaskView:
    """A task. `created` is the delivery of its handle, which `handle` is; `request` is the call that became it.

    `work` is the task as `views/` has it. `status` is the one that was delivered last, `ended` is when the task had a
    terminal one at the server. `questions` are those of the extension by their keys, also those that were emitted only.
    `told` are the deliveries of its status, in order. `over` is the first delivery of its end, in answer to `tasks/get`
    or on a subscription, by legacy session. `requests` are all that name it, by method.
    """

    id: str
    work: Task | None = None
    revision: str | None = None
    request: Message | None = None
    handle: Message | None = None
    created: float | None = None
    status: str = ""
    ended: float | None = None
    questions: Newest[str, Question] = field(default_factory=lambda: Newest(BOUNDS.parts))
    told: Series[Told] = field(default_factory=Series)
    over: dict[Session | None, Told] = field(default_factory=dict)
    requests: defaultdict[str, Series[Message]] = field(default_factory=lambda: defaultdict(Series))

    @property
    def is_over(self) -> bool:
        return self.ended is not None

    def first_request(self, since: float, until: float) -> Message | None:
        found = (series.between(since, until)[:1] for series in self.requests.values())
        return min((each for some in found for each in some), key=lambda each: each.at, default=None)

    def is_whole(self, at: float) -> bool:
        """True if all its questions before a time are known."""
        return self.handle is not None and self.handle.at < at and len(self.questions) < BOUNDS.parts

    def asked_by(self, key: str, at: float) -> bool:
        """True if it had asked a question of this key before a time, delivered or not."""
        question = self.questions.get(key)
        return question is not None and question.sent.at < at


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """A delivery of the status of a task. `method` is that of the request or notification.

    `request` is the client's request, None for a notification. `before` is the status that the client knew, `poll_s`
    the poll interval now, in seconds. `asks` are the keys of the questions of the task.
    """

    task: TaskView
    sent: Message
    method: str
    request: Message | None
    status: str
    before: str
    poll_s: float | None
    asks: Collection[str]

    @property
    def session(self) -> Session | None:
        return self.sent.in_session if self.request is None else self.request.in_session

    @property
    def revision(self) -> str | None:
        return self.task.revision

    @property
    def seq(self) -> int:
        return self.sent.seq

    @property
    def at(self) -> float:
        return self.sent.at if self.sent.had is None else self.sent.had

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL


@dataclass(slots=True)
class Tasks:
    """The tasks of one subject.

    `used` is when it first made a request about a task with a known handle. `forgot`: there were more than are kept.
    """

    used: float = ALWAYS
    forgot: bool = False
    _known: Newest[str, TaskView] = field(default_factory=lambda: Newest(BOUNDS.places))

    def find(self, id: Any) -> TaskView | None:
        return self._known.get(id) if isinstance(id, str) else None

    def named_by(self, message: Message) -> TaskView | None:
        return self.find(message.params.get("taskId"))

    def emitted(self, sent: Message) -> list[Question]:
        asked: list[Question] = []
        for body, place in _described(sent):
            task = self._task(str(body["taskId"]))
            task.revision = task.revision or _revision(body)
            if _is_handle(sent):
                task.handle, task.request = sent, sent.request
            if "inputRequests" not in body:
                continue
            # The capabilities declared with the call; a request for the task alone may have fewer.
            call = task.request or sent.request
            declared = {} if call is None else members(call.meta.get(CLIENT_CAPABILITIES))
            found = input_questions(sent, body, place + pointer("inputRequests"), declared, task.id)
            for key, question in found.items():
                if key not in task.questions:
                    task.questions.store(key, question)
                    asked.append(question)
        return asked

    def delivered(self, sent: Message) -> Iterator[tuple[Told, list[Question]]]:
        """The statuses in a message, each with the questions that the client has now for the first time."""
        for body, _ in _described(sent):
            task = self._task(str(body["taskId"]))
            status, before = str(body.get("status")), task.status
            task.status = status
            if _is_handle(sent):
                task.created = sent.had
            keys = members(body.get("inputRequests"))
            new = [each for key, each in task.questions.items() if key in keys and each.delivered is None]
            for question in new:
                question.delivered = sent.had
            request = sent.request if sent.rpc == "response" else None
            method = str(sent.method if request is None else request.method)
            interval = body.get("pollInterval", body.get("pollIntervalMs"))
            poll_s = interval / 1000 if isinstance(interval, int | float) else None
            told = Told(task, sent, method, request, status, before, poll_s, tuple(keys))
            task.told.add(told.at, told)
            if status in TERMINAL and method in _ASKING:
                task.over.setdefault(told.session, told)
            yield told, new

    def requested(self, message: Message) -> None:
        listed = members(message.params.get("notifications")).get("taskIds")
        named = [message.params.get("taskId"), *(listed[: BOUNDS.places] if isinstance(listed, list) else ())]
        for id in {each for each in named if isinstance(each, str)}:
            task = self._task(id)
            task.requests[str(message.method)].add(message.at, message)
            if task.revision is not None or task.work is not None:
                self.used = min(self.used, message.at)

    def updated(self, message: Message) -> Iterator[Reply]:
        """The answers of a `tasks/update` to known questions."""
        task = self.named_by(message)
        for key, value in members(message.params.get("inputResponses")).items() if task is not None else ():
            question = None if task is None else task.questions.get(key)
            if question is not None:
                yield Reply(question, message, value, None, pointer("params", "inputResponses", key))

    def changed(self, news: TaskNews) -> None:
        """A task has a new status at the server, which may come before its handle."""
        task = self._task(news.id)
        task.work = news.task
        if news.status in TERMINAL and task.ended is None:
            task.ended = news.at

    def _task(self, id: str) -> TaskView:
        task = self._known.get(id)
        if task is None:
            task = TaskView(id)
            if self._known.store(id, task) is not None:
                self.forgot = True
        return task


def describes_tasks(sent: Message) -> bool:
    """True if a message of the server can have the status of a task."""
    if sent.rpc == "notification":
        return sent.method in NOTIFICATIONS
    if sent.request is None or sent.rpc != "response":
        return False
    # Looked for in the bytes: most results of calls are no tasks, and some are large.
    method = sent.request.method
    return method in _REQUESTS or (method == "tools/call" and b'"taskId"' in sent.raw)


def _described(sent: Message) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The descriptions of tasks in such a message, each with its JSON pointer."""
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
    """The id of the task that a call became."""
    if answer is None or answer.request is None or answer.request.method != "tools/call" or b"taskId" not in answer.raw:
        return None
    task = members(answer.result.get("task")).get("taskId", answer.result.get("taskId"))
    return task if isinstance(task, str) else None


def _revision(body: Mapping[str, Any]) -> str:
    """The revision by the names of members, as the log may lack the session."""
    return V2026_07_28 if "ttlMs" in body else V2025_11_25

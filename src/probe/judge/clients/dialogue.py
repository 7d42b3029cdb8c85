"""The questions of the server to a client, and its news of tasks: one projection for both eras.

In the legacy era a question is a request of the server, and its answer a message. In 2026-07-28 it is an entry of
`inputRequests`, in the result of a request (`rounds.py`) or of a task (`tasks.py`), and its answer an entry of
`inputResponses`. Rules see a `Question` and a `Reply` in both.

A question counts as asked from its emission on, as its answer can be in the log before its delivery. The server links
an answer to it (`Message.question`) only where it took it; `AskedQuestions` finds it by session and id for all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from ...log.bounded import Newest
from ...views.retention import members
from ...views.values import Message
from ...wire.jsonrpc import RequestId, is_id
from ..retention import BOUNDS
from ..values import pointer
from .moments import TaskNews, declared_in
from .questions import METHODS, PageVisit, Question, Reply
from .rounds import Retry, SubjectRounds
from .series import ALWAYS, NEVER
from .tasks import ABOUT_TASKS, NOTIFICATIONS, Tasks, Told, describes_tasks

Place: TypeAlias = str | None


class AskedQuestions:
    """The questions of the server. From `full` on not all of them are known."""

    def __init__(self) -> None:
        self._questions: Newest[tuple[Place, RequestId], Message] = Newest(BOUNDS.places)
        # The first question with each id, in whatever session.
        self._first: Newest[RequestId, Message] = Newest(BOUNDS.places)
        self.full = ALWAYS

    def ask(self, question: Message) -> None:
        if question.id is None:
            return
        self._first.store(question.id, self._first.get(question.id, question))
        if self._questions.store((place_of(question), question.id), question) is not None:
            self.full = min(self.full, question.at)

    def by_id(self, message: Message, id: RequestId) -> Message | None:
        return self._questions.get((place_of(message), id))

    def anywhere(self, id: RequestId, until: float) -> bool:
        """True if a question before a time had this id, in any session."""
        first = self._first.get(id)
        return first is not None and first.at < until

    def of(self, message: Message) -> Message | None:
        """The question that a message answers, or would answer if it were well formed."""
        if message.question is not None:
            return message.question
        value = members(message.value)
        id = value.get("id")
        return self.by_id(message, id) if is_id(id) and "method" not in value else None


def place_of(message: Message) -> Place:
    """The scope of an id: the session, else the pipe."""
    session, pipe = message.in_session, message.pipe
    if session is not None:
        return session.label
    return None if pipe is None else pipe.label


NEWS: Final = frozenset({"notifications/cancelled", *NOTIFICATIONS})
"""The notifications of the server that are about a question or a task."""


class Dialogue:
    """Questions, rounds and tasks of one subject. The finder notes the opportunities that it gives back.

    `asked` finds all requests of the server by their ids, its pings among them. The answers to a question from after
    `forgot` are all in `answers`.
    """

    def __init__(self) -> None:
        self.asked = AskedQuestions()
        self.rounds = SubjectRounds()
        self.tasks = Tasks()
        # The first withdrawal of each question.
        self.withdrawn: Newest[Message, Message] = Newest(BOUNDS.places)
        # All answers to a request of the server, also those that it could not take.
        self.answers: Newest[Message, list[Message]] = Newest(BOUNDS.places)
        self.forgot = NEVER
        # The first visit of each page, by its URL, that a program made at once.
        self.fetched: Newest[str | None, PageVisit] = Newest(BOUNDS.places)
        # By the message itself: the numbers of entries begin anew with each log.
        self._asked: Newest[Message, Question] = Newest(BOUNDS.places)

    def emitted(self, sent: Message) -> list[Question]:
        if sent.rpc == "request":
            self.asked.ask(sent)
            return [self._ask(sent)] if sent.method in METHODS else []
        if sent.rpc == "notification":
            if sent.method == "notifications/cancelled":
                self._withdraw(sent)
            return self.tasks.emitted(sent)
        if sent.rpc != "response":
            return []
        asked = self.rounds.emitted(sent)
        return [*asked, *self.tasks.emitted(sent)] if describes_tasks(sent) else asked

    def delivered(self, sent: Message) -> Iterator[Question | Reply | Retry | Told]:
        asked = self._asked.get(sent) if sent.rpc == "request" else None
        if asked is not None and asked.delivered is None:
            asked.delivered = sent.had
            yield asked
        elif sent.rpc == "response":
            for question in self.rounds.delivered(sent):
                yield question
        if describes_tasks(sent):
            for told, new in self.tasks.delivered(sent):
                for question in new:
                    yield question
                yield told

    def received(self, message: Message) -> Iterator[Question | Reply | Retry | Told]:
        if message.rpc == "request":
            if message.method in ABOUT_TASKS:
                self.tasks.requested(message)
                replies = self.tasks.updated(message) if message.method == "tasks/update" else ()
            else:
                retry = self.rounds.retried(message)
                if retry is None:
                    return
                yield retry
                replies = retry.replies()
            for reply in replies:
                reply.question.replies.append(reply)
                yield reply
            return
        if message.method is None:
            self._note_answer(message)
        question = None if message.question is None else self._asked.get(message.question)
        if question is not None:
            place = pointer("error" if message.rpc == "error" else "result")
            reply = Reply(question, message, message.result, message.error, place)
            question.replies.append(reply)
            yield reply

    def _note_answer(self, message: Message) -> None:
        asked = self.asked.of(message)
        if asked is not None:
            answers = self.answers.get(asked)
            if answers is None:
                oldest = self.answers.store(asked, [message])
                if oldest is not None:
                    self.forgot = oldest[0].at
            elif len(answers) < BOUNDS.parts:
                answers.append(message)

    def visited(self, visit: PageVisit) -> None:
        if visit.is_by_program and visit.is_at_once and visit.question.url not in self.fetched:
            self.fetched.store(visit.question.url, visit)

    def changed(self, news: TaskNews) -> None:
        self.tasks.changed(news)

    def _ask(self, sent: Message) -> Question:
        declared = {} if sent.session is None else declared_in(sent.session)
        question = Question(sent, str(sent.method), sent.params, declared, pointer("params"), sent.revision)
        self._asked.store(sent, question)
        return question

    def _withdraw(self, sent: Message) -> None:
        id = sent.params.get("requestId")
        asked = self.asked.by_id(sent, id) if is_id(id) else None
        if asked is not None and asked not in self.withdrawn:
            self.withdrawn.store(asked, sent)
        question = None if asked is None else self._asked.get(asked)
        if question is not None and question.withdrawn is None:
            question.withdrawn = sent.at

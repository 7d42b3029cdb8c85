"""The questions of the server to a client, and its news of tasks: one projection for both eras.

In the legacy era a question is a request of the server, and its answer is a message. In 2026-07-28 it is an entry of
`inputRequests`, in the result of a request (`rounds.py`) or of a task (`tasks.py`), and its answer an entry of
`inputResponses`. Predicates see a `Question` and a `Reply` in both.

A question counts as asked from its emission on, as an answer can be in the log before the delivery that it answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ...log.bounded import Newest
from ...wire.jsonrpc import is_id
from ..values import pointer
from .asked import AskedQuestions
from .questions import METHODS, Question, Reply
from .rounds import SubjectRounds
from .tasks import Tasks

if TYPE_CHECKING:
    from .views import Message, Sent, TaskNews

# Questions that a client can still answer; no server has more of them open.
_MOST_QUESTIONS: Final = 1_000


class Dialogue:
    """Questions, rounds and tasks of one subject. The projector feeds it and tells predicates what it gives back.

    `asked` finds all requests of the server by their ids, its pings among them.
    """

    def __init__(self) -> None:
        self.asked = AskedQuestions()
        self.rounds = SubjectRounds()
        self.tasks = Tasks()
        # By the message itself: the numbers of entries begin anew with each log.
        self._asked: Newest[Sent, Question] = Newest(_MOST_QUESTIONS)

    def emitted(self, sent: Sent) -> list[Question]:
        """The server made a message: the questions in it that are new."""
        if sent.rpc == "request":
            self.asked.ask(sent)
            return [self._ask(sent)] if sent.method in METHODS else []
        if sent.rpc == "notification":
            if sent.method == "notifications/cancelled":
                self._withdraw(sent)
            return self.tasks.emitted(sent)
        if sent.rpc != "response":
            return []
        return [*self.rounds.emitted(sent), *self.tasks.emitted(sent)]

    def delivered(self, sent: Sent) -> Iterator[tuple[str, Any]]:
        """The socket took a message: the moments that this is for predicates."""
        asked = self._asked.get(sent) if sent.rpc == "request" else None
        if asked is not None and asked.delivered is None:
            asked.delivered = sent.delivered
            yield "on_question", asked
        elif sent.rpc == "response":
            for question in self.rounds.delivered(sent):
                yield "on_question", question
        if sent.rpc in ("response", "notification"):
            for told, new in self.tasks.delivered(sent):
                for question in new:
                    yield "on_question", question
                yield "on_task_told", told

    def received(self, message: Message) -> Iterator[tuple[str, Any]]:
        """The client sent a message: the moments that this is for predicates."""
        if message.rpc == "request":
            if message.method == "tasks/cancel":
                self.tasks.cancelled(message)
                return
            if message.method == "tasks/update":
                replies = self.tasks.updated(message)
            else:
                retry = self.rounds.retried(message)
                if retry is None:
                    return
                yield "on_retry", retry
                replies = retry.replies()
            for reply in replies:
                reply.question.replies.append(reply)
                yield "on_reply", reply
        elif message.question is not None:
            question = self._asked.get(message.question)
            if question is not None:
                place = pointer("error" if message.rpc == "error" else "result")
                reply = Reply(question, message, message.result, message.error, place)
                question.replies.append(reply)
                yield "on_reply", reply

    def changed(self, news: TaskNews) -> None:
        """A task has a new status at the server."""
        self.tasks.changed(news)

    def _ask(self, sent: Sent) -> Question:
        declared = {} if sent.session is None else sent.session.capabilities
        question = Question(sent, str(sent.method), sent.params, declared, pointer("params"), sent.revision)
        self._asked.store(sent, question)
        return question

    def _withdraw(self, sent: Sent) -> None:
        id = sent.params.get("requestId")
        asked = self.asked.by_id(sent, id) if is_id(id) else None
        question = None if asked is None else self._asked.get(asked)
        if question is not None and question.withdrawn is None:
            question.withdrawn = sent.at

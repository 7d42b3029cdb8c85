"""The common part of the rules about declared capabilities: a client answers requests for what it declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ....log.bounded import Newest
from ...projection.questions import Question, Reply
from ...values import members
from ..predicate import Predicate, Wait

METHOD_NOT_FOUND: Final = -32601

# One refusal may be a slip of a client that is just starting; one of one is never a pattern.
_LEAST_REFUSALS: Final = 2
# Questions of one subject that wait for an answer; the server has no more of them open.
_MOST_QUESTIONS: Final = 1_000


class Serving(Predicate):
    """Answers the questions that it declared it answers.

    Only -32601 to every one of them is certain: any other error may have its reason in the moment.
    """

    def setup(self) -> None:
        self._served = False
        self._owed: Newest[Question, Wait] = Newest(_MOST_QUESTIONS)
        self._refused: tuple[int, ...] = ()

    def is_served(self, reply: Reply) -> bool:
        """Whether an answer shows that the client serves what it declares."""
        return reply.error is None

    def owe(self, question: Question, seconds: float, look: Callable[[Question], None]) -> None:
        """Look at a question that has no answer so many seconds after its delivery.

        In 2026-07-28 a client need not retry, and so owes nothing.
        """
        if question.replies or question.key is not None or not question.is_declared:
            return
        if question.delivered is not None:
            due = question.delivered + seconds
            self._owed.store(question, self.give_time(due, look, question, of=question))

    def on_reply(self, reply: Reply) -> None:
        """An answer to a question of the method of the rule."""
        wait = self._owed.pop(reply.question, None)
        if wait is not None:
            wait.cancel()
        if not reply.question.is_declared:
            return
        code = members(reply.error).get("code")
        if self.is_served(reply):
            self._served = True
            self.ok(reply.message)
        elif reply.error is None:
            # A result that is wrapped or malformed was an attempt to serve: its form is the business of other rules.
            self._served = True
        elif code != METHOD_NOT_FOUND:
            # An error of the moment says nothing of the method either way, but that it is known.
            self._served = True
            self.unclear(reply.message, f"the answer is the error {code}", reply.question.seq)
        else:
            self.deny(reply.message.seq, reply.question, "-32601 to every such question, though it is declared")

    def deny(self, seq: int, question: Question, remark: str) -> None:
        """A question was not served; a pattern only where none was."""
        self._refused = (*self._refused[-2:], seq)
        if self._served or not self.life.whole or len(self._refused) < _LEAST_REFUSALS:
            self.unclear(question, remark.replace("every such question", "this question"), seq)
        else:
            self.fail(question, remark, *self._refused)

    def is_decided_at_end(self, wait: Wait) -> bool:
        return not self.is_open(*wait.arguments)

    def is_open(self, question: Question) -> bool:
        """Whether the client still owes an answer: nobody withdrew the question, and its request goes on."""
        request = question.sent.request
        over = request is not None and (request.answer is not None or request.dropped is not None)
        return question.withdrawn is None and not question.replies and not over

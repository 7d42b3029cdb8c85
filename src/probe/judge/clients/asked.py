"""The questions of the server to one subject, by their session and id: also for answers that it could not take.

The server links an answer to its question (`Message.question`) only where it took it. An answer that is malformed,
comes twice or comes too late is linked to nothing, so the rules about answers look for the id themselves. A question is
known from its emission on: its answer can be in the log before its delivery.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ...log.bounded import Newest
from ...views.retention import members
from ...views.values import Message
from ...wire.jsonrpc import RequestId, is_id
from .series import ALWAYS

_MOST: Final = 1_000

Place: TypeAlias = str | None


class AskedQuestions:
    """Fed with the questions that the server made. `full` is since when it no longer knows all of them."""

    def __init__(self) -> None:
        self._questions: Newest[tuple[Place, RequestId], Message] = Newest(_MOST)
        # The first question with each id, in whatever session.
        self._first: Newest[RequestId, Message] = Newest(_MOST)
        self.full = ALWAYS

    def ask(self, question: Message) -> None:
        """One more question."""
        if question.id is None:
            return
        self._first.store(question.id, self._first.get(question.id, question))
        if self._questions.store((place_of(question), question.id), question) is not None:
            self.full = min(self.full, question.at)

    def by_id(self, message: Message, id: RequestId) -> Message | None:
        """The question with this id that was asked where a message came, or went."""
        return self._questions.get((place_of(message), id))

    def anywhere(self, id: RequestId, until: float) -> bool:
        """True if a question before a time had this id, in whatever session."""
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

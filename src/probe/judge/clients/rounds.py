"""Multi-round-trip requests as the client sees them (2026-07-28 basic/patterns/mrtr).

    request            ->    InputRequiredResult: a round, with questions and a state
    retry of it        ->    the next round, or the final result

A retry names its round by its state. One without a state can only belong to a round of an equal request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ...log.bounded import Newest
from ...views.retention import members
from ...views.values import Message
from ...wire.v2026.meta import CLIENT_CAPABILITIES
from ..retention import BOUNDS
from ..values import pointer
from .questions import Question, Reply, input_questions
from .series import ALWAYS

Kin: TypeAlias = Literal["same", "changed", "other"]
"""The relation of a retry to the request of its round: equal, the same with other arguments, or another request."""


@dataclass(slots=True, eq=False)
class Round:
    """An `InputRequiredResult`. `state` is its `requestState`, None where it has none.

    `first` is the request that all its rounds are of, `number` counts them from 1. `questions` are those of this round
    by their keys, `known` those of the rounds before it, too. `retried` is the time of the first retry,
    or from which a retry with its state no longer finds this round.
    """

    request: Message
    first: Message
    sent: Message
    state: str | None
    questions: Mapping[str, Question]
    known: Mapping[str, Question]
    number: int = 1
    retried: float = ALWAYS


@dataclass(frozen=True, slots=True)
class Retry:
    """A request with `inputResponses` or `requestState`. `round` is the one with its state, None without one.

    `candidates` are, where no round has its state, the open rounds of equal requests.
    """

    message: Message
    round: Round | None
    kin: Kin
    candidates: tuple[Round, ...] = ()

    @property
    def method(self) -> str | None:
        return self.message.method

    @property
    def revision(self) -> str | None:
        return self.message.revision

    @property
    def seq(self) -> int:
        return self.message.seq

    @property
    def at(self) -> float:
        return self.message.at

    @property
    def belongs(self) -> Round | None:
        """The round that it belongs to beyond doubt."""
        if self.round is not None:
            return self.round
        return self.candidates[0] if len(self.candidates) == 1 and "requestState" not in self.message.params else None

    def replies(self) -> Iterator[Reply]:
        round = self.belongs
        given = members(self.message.params.get("inputResponses"))
        for key, value in given.items() if round is not None else ():
            question = round.known.get(key) if round is not None else None
            if question is not None:
                yield Reply(question, self.message, value, None, pointer("params", "inputResponses", key))


@dataclass(slots=True)
class SubjectRounds:
    """The rounds of one subject. `open` are those without an equal retry.

    From `forgot` on not all of them are known.
    """

    forgot: float = ALWAYS
    open: Newest[Message, Round] = field(default_factory=lambda: Newest(BOUNDS.compared))
    _by_state: Newest[str, Round] = field(default_factory=lambda: Newest(BOUNDS.places))
    _by_sent: Newest[Message, Round] = field(default_factory=lambda: Newest(BOUNDS.places))
    _by_request: Newest[Message, Round] = field(default_factory=lambda: Newest(BOUNDS.places))
    _beside: Newest[Message, Round] = field(default_factory=lambda: Newest(BOUNDS.places))

    def emitted(self, sent: Message) -> list[Question]:
        request = sent.request
        if request is None or request.era != "modern" or b'"input_required"' not in sent.raw:
            return []
        if members(sent.result).get("resultType") != "input_required":
            return []
        declared = members(request.meta.get(CLIENT_CAPABILITIES))
        questions = input_questions(sent, members(sent.result), pointer("result", "inputRequests"), declared)
        state = members(sent.result).get("requestState")
        before = self._by_request.get(request)
        known = questions
        if before is not None:
            known = dict([*before.known.items(), *questions.items()][-BOUNDS.parts :])
        first, number = (request, 1) if before is None else (before.first, before.number + 1)
        round = Round(request, first, sent, state if isinstance(state, str) else None, questions, known, number)
        self._by_sent.store(sent, round)
        self.open.store(sent, round)
        if round.state is not None:
            self._store(round, round.state)
        return list(questions.values())

    def _store(self, round: Round, state: str) -> None:
        at = round.sent.at
        twin = self._by_state.get(state)
        oldest = self._by_state.store(state, round)
        if twin is not None:
            # A request was posted twice: what retries one of the two rounds retries both.
            round.retried = twin.retried
        if oldest is not None:
            self.forgot = min(self.forgot, at)
        for other in (twin, oldest):
            if other is not None:
                other.retried = min(other.retried, at)

    def of(self, question: Question) -> Round | None:
        return self._by_sent.get(question.sent)

    def delivered(self, sent: Message) -> Iterator[Question]:
        round = self._by_sent.get(sent)
        for question in () if round is None else round.questions.values():
            if question.delivered is None:
                question.delivered = sent.had
                yield question

    def retried(self, message: Message) -> Retry | None:
        """The retry that a request is; None for any other."""
        params = message.params
        if message.era != "modern":
            return None
        if "inputResponses" not in params and "requestState" not in params:
            newest = next((each for each in reversed(self.open.values()) if each.sent.had is not None), None)
            if newest is not None:
                self._beside.store(message, newest)
            return None
        state = params.get("requestState")
        round = self._by_state.get(state) if isinstance(state, str) else None
        if round is None:
            equal = tuple(each for each in self.open.values() if are_equal(each.request, message))
            return Retry(message, None, "other", equal)
        kin = self._kin(message, round)
        if kin == "same":
            self.open.pop(round.sent, None)
        if kin != "other":
            round.retried = min(round.retried, message.at)
        self._by_request.store(message, round)
        return Retry(message, round, kin)

    def beside(self, message: Message) -> Round | None:
        """The newest round that was open at the client when a request came that is no retry."""
        return self._beside.get(message)

    def _kin(self, message: Message, round: Round) -> Kin:
        if are_equal(message, round.request):
            return "same"
        if _target(message) != _target(round.request):
            return "other"
        others = (each for each in self.open.values() if each is not round)
        return "other" if any(are_equal(message, each.request) for each in others) else "changed"


def are_equal(one: Message, other: Message) -> bool:
    """True if two requests ask for the same, whatever their ids, `_meta` and answers."""
    return _target(one) == _target(other) and _arguments(one) == _arguments(other)


def _target(message: Message) -> tuple[str | None, Any, Any]:
    return message.method, message.params.get("name"), message.params.get("uri")


def _arguments(message: Message) -> Any:
    # Arguments that are left out, null and {} ask for the same.
    return message.params.get("arguments") or {}

"""Rules `mrtr.*`: requests that come again with what the server asked for (2026-07-28)."""

from __future__ import annotations

from typing import Any, Final

from ....wire.revisions import V2026_07_28
from ...projection.questions import Reply
from ...projection.rounds import Retry, Round
from ...projection.views import Message
from ...values import members, pointer, shown
from ..predicate import Predicate, judges
from ..schemas import result_of
from .shapes import judge_shape

# A text that has so much of a state in common with it was made from it.
_RESEMBLANCE: Final = 0.5
_STATE: Final = pointer("params", "requestState")
_ARGUMENTS: Final = pointer("params", "arguments")
_RESPONSES: Final = pointer("params", "inputResponses")
_SUPPORTED: Final = frozenset({"tools/call", "prompts/get", "resources/read"})


@judges("mrtr.state-echoed")
class MrtrStateEchoed(Predicate):
    """Gives requestState back exactly.

    An unknown state may be one of an earlier run of the server. It is a changed one where it resembles what an open
    round of an equal request was given, and it is none at all where it is no text.
    """

    one_process = True
    methods = _SUPPORTED

    def on_retry(self, retry: Retry) -> None:
        message, state = retry.message, retry.message.params.get("requestState")
        if retry.round is not None:
            self.ok(message, retry.round.sent.seq)
            return
        open_rounds = [round for round in retry.candidates if round.state is not None and round.sent.delivered]
        if message.hides(_STATE) or not self.life.whole or self.life.dialogue.rounds.forgot:
            self.unclear(message, "the log does not tell which round this belongs to")
        elif "requestState" not in message.params:
            self._judge_missing(message, open_rounds, len(retry.candidates))
        elif not open_rounds:
            # Nothing is open that it could belong to; a state of no round at all is mrtr.no-state-invented.
            self.warn(message, "requestState was never given here; it may be of an earlier run")
        elif not isinstance(state, str) or not state:
            self.fail(message, "requestState is empty or no text", open_rounds[-1].sent.seq)
        else:
            like = next((each for each in open_rounds if _resembles(state, str(each.state))), None)
            if like is not None:
                self.fail(message, "requestState is not the text that was given, but resembles it", like.sent.seq)
            else:
                self.warn(message, "requestState was never given here; it may be of an earlier run")

    def _judge_missing(self, message: Message, open_rounds: list[Round], candidates: int) -> None:
        if len(open_rounds) == candidates == 1:
            self.fail(message, "requestState is missing", open_rounds[0].sent.seq)
        elif open_rounds:
            self.unclear(message, "requestState is missing, and several rounds of this request are open")
        else:
            self.unclear(message, "requestState is missing, and no round of an equal request is open")


@judges("mrtr.new-id")
class MrtrNewId(Predicate):
    """Gives the retry a new id; the round is known by its state, so no other process is mixed up with this one."""

    methods = _SUPPORTED

    def on_retry(self, retry: Retry) -> None:
        if retry.round is None or retry.message.id is None or retry.kin == "other":
            return
        for before in {retry.round.request.seq: retry.round.request, retry.round.first.seq: retry.round.first}.values():
            if (type(before.id), before.id) != (type(retry.message.id), retry.message.id):
                continue
            remark = f"the retry has the id {shown(before.id)} of the request before it"
            # On another connection another process may go on, which counts its ids by itself.
            (self.fail if before.pipe is retry.message.pipe else self.warn)(retry.message, remark, before.seq)
            return
        self.ok(retry.message)


@judges("mrtr.isolation")
class MrtrIsolation(Predicate):
    """Uses answers and state only for the request they belong to.

    A retry whose arguments were changed is no other request (mrtr.same-request), unless a round of exactly those
    arguments is open.
    """

    methods = _SUPPORTED

    def on_retry(self, retry: Retry) -> None:
        if retry.round is not None and retry.kin == "other" and not _hides_target(retry):
            first = retry.round.request
            self.fail(retry.message, f"the state of {_named(first)} came with {_named(retry.message)}", first.seq)

    def on_request(self, message: Message) -> None:
        if "requestState" in message.params or "inputResponses" in message.params:
            return
        open_rounds = reversed(self.life.dialogue.rounds.open.values())
        newest = next((round.sent for round in open_rounds if round.sent.delivered is not None), None)
        if newest is not None and message.at - (newest.delivered or 0.0) < self.allowances.person_s:
            self.ok(message, newest.seq)


@judges("mrtr.same-request")
class MrtrSameRequest(Predicate):
    """Repeats the original parameters in the retry; `_meta` may differ."""

    methods = _SUPPORTED

    def on_retry(self, retry: Retry) -> None:
        if retry.round is None or retry.kin == "other" or _hides_target(retry):
            return
        if retry.kin == "same":
            self.ok(retry.message)
        else:
            self.warn(retry.message, "the arguments differ from those of the request before", retry.round.request.seq)


@judges("mrtr.inputs-first")
class MrtrInputsFirst(Predicate):
    """Retries with the inputs that were wanted; the server asks again for what is missing of several."""

    methods = _SUPPORTED

    def on_retry(self, retry: Retry) -> None:
        round = retry.round
        if round is None or retry.kin == "other" or not round.questions or retry.message.hides(_RESPONSES):
            return
        given = retry.message.params.get("inputResponses")
        if given is not None and not isinstance(given, dict):
            return
        missing = [key for key in round.questions if key not in (given or {})]
        if not given:
            self.fail(retry.message, f"the state came back without {', '.join(missing)}", round.sent.seq)
        elif missing:
            self.warn(retry.message, f"inputResponses lacks {', '.join(missing)}", round.sent.seq)
        else:
            self.ok(retry.message)


@judges("mrtr.keys")
class MrtrKeys(Predicate):
    """Answers with the keys of the questions, those of earlier rounds of the same request among them."""

    methods = _SUPPORTED

    def on_retry(self, retry: Retry) -> None:
        round, given = retry.belongs, members(retry.message.params.get("inputResponses"))
        if round is None or (retry.kin == "other" and retry.round is not None) or not given:
            return
        unknown = [key for key in given if key not in round.known]
        if unknown:
            self.warn(retry.message, f"inputResponses has {shown(unknown[0])}, which was not asked", round.sent.seq)
        else:
            self.ok(retry.message)


@judges("mrtr.answer-shape")
class MrtrAnswerShape(Predicate):
    """Writes each input as the result of its question.

    Faults with a rule of their own are left to it: an unknown action, a sampled message without its members.
    """

    general = True

    def on_reply(self, reply: Reply) -> None:
        if reply.question.key is None or reply.message.method not in _SUPPORTED or reply.message.found is not None:
            return
        if reply.is_wrapped:
            self.fail(reply.message, f"the answer to {reply.method} is wrapped: {', '.join(reply.value)}")
            return
        name = result_of(V2026_07_28, reply.method)
        if name is not None:
            judge_shape(self, reply, V2026_07_28, name)


def _named(message: Message) -> str:
    target = message.params.get("name") or message.params.get("uri")
    return f"{message.method} {target}" if target else str(message.method)


def _hides_target(retry: Retry) -> bool:
    """Whether redaction hid something that two requests are compared by."""
    requests = [retry.message] if retry.round is None else [retry.message, retry.round.request]
    return any(request.hides(_ARGUMENTS) for request in requests)


def _resembles(text: str, state: str) -> bool:
    """Whether a text was made from a state: cut, extended, quoted, in another case or with a part changed."""
    one, other = text.strip().casefold(), state.strip().casefold()
    if one in other or other in one:
        return len(one) >= _RESEMBLANCE * len(other)
    shared = _common(one, other) + _common(one[::-1], other[::-1])
    return shared >= _RESEMBLANCE * len(other)


def _common(one: Any, other: Any) -> int:
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)

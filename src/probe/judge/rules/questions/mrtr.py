"""Rules `mrtr.*`: retries with answers to the server's questions (2026-07-28)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ....views.retention import members
from ....views.values import Message
from ....wire.revisions import V2026_07_28
from ...clients.questions import Question, Reply
from ...clients.rounds import Retry, Round
from ...trace.findings import FAIL, MEASURED, PASS, PASSED, UNCLEAR, WARN, Finding
from ...trace.opportunities import QUESTION, REPLY, REQUEST, RETRY
from ...trace.rules import rule
from ...trace.trace import MISSING_ENTRIES, Trace
from ...values import pointer, shown
from ..messages.schemas import result_of
from .answering import has_form

# A text with so large a share of a state was made from it.
_RESEMBLANCE: Final = 0.5
_STATE: Final = pointer("params", "requestState")
_ARGUMENTS: Final = pointer("params", "arguments")
_RESPONSES: Final = pointer("params", "inputResponses")
# The other rules about what a retry brings.
_OF_ANSWERS: Final = ("elicit.", "mrtr.", "roots.", "sampling.")
_SUPPORTED: Final = frozenset({"tools/call", "prompts/get", "resources/read"})


@rule("mrtr.state-echoed", each=RETRY, methods=_SUPPORTED, one_process=True)
def echoes_state(retry: Retry, trace: Trace) -> Finding | None:
    """An unknown state may be of an earlier run of the server.

    It is a changed one if it resembles the state of an open round of an equal request.
    """
    if retry.round is not None:
        return PASS(retry.round.sent)
    why = "the log does not show which round this belongs to"
    if retry.message.hides(_STATE) or trace.subject.dialogue.rounds.forgot < retry.at:
        return UNCLEAR(why)
    trace.sure.whole(why)
    open_rounds = [each for each in retry.candidates if each.state is not None and each.sent.had_by(retry.at)]
    if "requestState" not in retry.message.params:
        return _misses_state(open_rounds, len(retry.candidates))
    state = retry.message.params["requestState"]
    if open_rounds and (not isinstance(state, str) or not state):
        return FAIL("requestState is empty or no text", open_rounds[-1].sent)
    like = next((each for each in open_rounds if _resembles(state, str(each.state))), None)
    if like is not None:
        return FAIL("requestState is not the text that was given, but resembles it", like.sent)
    # Without an open round it may be invented: mrtr.no-state-invented.
    return WARN("requestState was never given here; it may be of an earlier run")


def _misses_state(open_rounds: Sequence[Round], candidates: int) -> Finding:
    if len(open_rounds) == candidates == 1:
        return FAIL("requestState is missing", open_rounds[0].sent)
    several = "several rounds of this request are open" if open_rounds else "no round of an equal request is open"
    return UNCLEAR(f"requestState is missing, and {several}")


@rule("mrtr.new-id", each=RETRY, methods=_SUPPORTED)
def renews_id(retry: Retry, trace: Trace) -> Finding | None:
    """The round is known by its state, so no other process is mixed up with this one."""
    message, round = retry.message, retry.round
    if round is None or message.id is None or retry.kin == "other":
        return None
    typed = type(message.id), message.id
    same = next((each for each in (round.request, round.first) if (type(each.id), each.id) == typed), None)
    if same is None:
        return PASSED
    # On another connection another process may go on, with its own count of ids.
    remark = f"the retry has the id {shown(same.id)} of the request before it"
    return (FAIL if same.pipe is message.pipe else WARN)(remark, same)


@rule("mrtr.isolation", each=RETRY, methods=_SUPPORTED)
def keeps_rounds_apart(retry: Retry, trace: Trace) -> Finding | None:
    """Changed arguments are left to `mrtr.same-request`, unless a round with these arguments is open."""
    if retry.round is None or retry.kin != "other" or _hides_target(retry, retry.round):
        return None
    first = retry.round.request
    return FAIL(f"the state of {_named(first)} came with {_named(retry.message)}", first)


@rule("mrtr.isolation", each=REQUEST, methods=_SUPPORTED)
def leaves_round_alone(request: Message, trace: Trace) -> Finding | None:
    """A request beside an open round has neither its state nor answers."""
    round = trace.subject.dialogue.rounds.beside(request)
    if round is None or round.sent.had is None or request.at - round.sent.had >= trace.allowances.person_s:
        return None
    return PASS(round.sent)


@rule("mrtr.same-request", each=RETRY, methods=_SUPPORTED)
def repeats_request(retry: Retry, trace: Trace) -> Finding | None:
    if retry.round is None or retry.kin == "other" or _hides_target(retry, retry.round):
        return None
    if retry.kin == "same":
        return PASSED
    remark = "the arguments differ from those of the request before"
    _know_rounds(remark, trace, retry.round.request)
    return WARN(remark, retry.round.request)


@rule("mrtr.inputs-first", each=RETRY, methods=_SUPPORTED)
def brings_inputs(retry: Retry, trace: Trace) -> Finding | None:
    """The server asks again for a missing one of several, so that is a WARN."""
    round, given = retry.round, retry.message.params.get("inputResponses", {})
    if round is None or retry.kin == "other" or not round.questions or retry.message.hides(_RESPONSES):
        return None
    if not isinstance(given, dict | None):
        return None
    missing = [key for key in round.questions if key not in (given or {})]
    if not given:
        return FAIL(f"the state came back without {', '.join(missing)}", round.sent)
    return WARN(f"inputResponses lacks {', '.join(missing)}", round.sent) if missing else PASSED


@rule("mrtr.inputs-first", each=QUESTION)
def gives_up(question: Question, trace: Trace) -> Finding | None:
    """Measured: a person may leave a form, and SDKs end a request that asks again and again after ten rounds."""
    round = trace.subject.dialogue.rounds.of(question)
    patience_s = trace.allowances.person_s
    if round is None or round.number == 1 or round.retried < question.had + patience_s:
        return None
    trace.passed(question.had, patience_s)
    return MEASURED(rounds_answered_before_it_gave_up=round.number - 1)


@rule("mrtr.keys", each=RETRY, methods=_SUPPORTED)
def answers_by_key(retry: Retry, trace: Trace) -> Finding | None:
    """Keys of earlier rounds of the same request count, too."""
    round, given = retry.belongs, members(retry.message.params.get("inputResponses"))
    if round is None or (retry.kin == "other" and retry.round is not None) or not given:
        return None
    unknown = [key for key in given if key not in round.known]
    if not unknown:
        return PASSED
    remark = f"inputResponses has {shown(unknown[0])}, which was not asked"
    _know_rounds(remark, trace, round.sent)
    return WARN(remark, round.sent)


def _know_rounds(remark: str, trace: Trace, *shown_by: Message) -> None:
    """Raise `Undecided` where a round may be missing, to which the retry may belong as well."""
    trace.sure.whole(f"{MISSING_ENTRIES}, and a round may be among them; {remark}", *shown_by)


@rule("mrtr.answer-shape", each=REPLY, general=True)
def shapes_answers(reply: Reply, trace: Trace) -> Finding | None:
    """Faults with a rule of their own are left to it: an unknown action, a sampled message without its members."""
    if reply.question.key is None or reply.message.method not in _SUPPORTED:
        return None
    if (trace.found_by_others() or "").startswith(_OF_ANSWERS):
        return None
    if reply.is_wrapped:
        return FAIL(f"the answer to {reply.method} is wrapped: {', '.join(reply.value)}")
    definition = result_of(V2026_07_28, reply.method)
    return None if definition is None else has_form(reply, V2026_07_28, definition)


def _named(message: Message) -> str:
    target = message.params.get("name") or message.params.get("uri")
    return f"{message.method} {target}" if target else str(message.method)


def _hides_target(retry: Retry, round: Round) -> bool:
    return retry.message.hides(_ARGUMENTS) or round.request.hides(_ARGUMENTS)


def _resembles(text: str, state: str) -> bool:
    """True for a text made from a state: cut, extended, quoted, in another case or with a part changed."""
    one, other = text.strip().casefold(), state.strip().casefold()
    if one in other or other in one:
        return len(one) >= _RESEMBLANCE * len(other)
    shared = _common(one, other) + _common(one[::-1], other[::-1])
    return shared >= _RESEMBLANCE * len(other)


def _common(one: str, other: str) -> int:
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)

"""Multi-round-trip requests against a model of them: rounds in any order, partial, altered, replayed, elsewhere.

The model knows what each state was given for. A final result has exactly the answers that were right and came first; a
state that was altered, has expired, or was given for another request or by a stranger is never accepted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from ..support.legacy import RpcError
from ..support.modern import Modern
from ..support.probe import running
from ..support.questions import ANSWERS, ASKING, MISFITS, OTHER_ANSWERS, QUESTIONS, Asking

TTL_S = 100.0
REFUSED = "requestState is not from this server for this request"
OURS, FOREIGN = "0a" * 32, "0b" * 32
KINDS: Mapping[str, Mapping[str, Any]] = {"right": ANSWERS, "other": OTHER_ANSWERS, "misfit": MISFITS}


@dataclass(frozen=True)
class State:
    """A state that was given: by whom, for what, when, and what it remembers."""

    token: str
    stranger: bool
    request: Request
    known: Mapping[str, Any]
    given_at: float


@dataclass(frozen=True)
class Round:
    """One request of a story: a first one, or a retry with the state of an earlier answer, which `state` chooses.

    A retry repeats the request that the state was given for, unless `elsewhere` says in what it differs.
    """

    asking: Asking
    server: str
    elsewhere: str
    state: int | None
    change: str
    answers: Mapping[str, str]
    wait_s: float


@dataclass(frozen=True)
class Request:
    """What is asked, under which URL, with which params."""

    asking: Asking
    target: str
    params: Mapping[str, Any]


keys = st.sampled_from(["name", "capital", "roots", "surplus"])
# Nearly every retry is honest in all but one thing; otherwise few would reach what is refused last.
honest = st.fixed_dictionaries(
    {
        "asking": st.sampled_from(ASKING),
        "server": st.sampled_from(["one", "one", "two"]),
        "elsewhere": st.just("nowhere"),
        "state": st.none() | st.integers(-3, -1) | st.integers(-3, -1) | st.integers(0, 30),
        "change": st.just("none"),
        "answers": st.dictionaries(keys, st.sampled_from(["right", "right", "other"])),
        "wait_s": st.sampled_from([0.0, 0.0, 0.0, 30.0]),
    }
)
faults = st.sampled_from([
    *[{}] * 6,
    {"server": "stranger"},
    *({"elsewhere": what} for what in ("target", "params", "asking", "asking")),
    *({"change": change} for change in ("flip", "cut", "grow", "swap", "empty", "forge")),
    *({"answers": {key: "misfit"}} for key in ("name", "capital", "roots", "surplus")),
    {"wait_s": 70.0},
    {"wait_s": 101.0},
])  # fmt: skip
rounds = st.builds(lambda chosen, fault: Round(**{**chosen, **fault}), honest, faults)


def changed(token: str, change: str, other: str) -> str:
    """A token that is not the given one, unless nothing is changed."""
    middle = len(token) // 2
    changes = {
        "flip": token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1 :],
        "cut": token[:-1],
        "grow": token + "A",
        # the name of the key, the nonce and a little more of one, the rest of another
        "swap": token[:30] + other[30:],
        "empty": "",
        "forge": "e30",
    }
    return changes.get(change, token)


class Model:
    """What the servers must answer."""

    def __init__(self) -> None:
        self.states: list[State] = []

    def chosen(self, step: Round) -> State | None:
        return None if step.state is None or not self.states else self.states[step.state % len(self.states)]

    def known(self, token: str | None, step: Round, request: Request) -> dict[str, Any] | None:
        """What a request begins with; None where its state is not right for it."""
        if token is None:
            return {}
        for state in self.states:
            fresh = trio.current_time() < state.given_at + TTL_S
            same = state.request == request and state.stranger == (step.server == "stranger")
            if state.token == token and same and fresh:
                return dict(state.known)
        return None

    def outcome(self, asking: Asking, known: dict[str, Any], kinds: Mapping[str, str]) -> tuple[str, Any]:
        """What the work comes to: ("error", key), ("asks", missing keys) or ("final", None); `known` grows."""
        for group in asking.groups:
            fresh = [key for key in group if key not in known and key in kinds]
            wrong = [key for key in fresh if kinds[key] == "misfit"]
            if wrong:
                return "error", wrong
            known |= {key: KINDS[kinds[key]][key] for key in fresh}
            missing = [key for key in group if key not in known]
            if missing:
                return "asks", missing
        return "final", None


@pytest.mark.proves("2026-07-28/mrtr/5", "2026-07-28/mrtr/7", "2026-07-28/mrtr/19", "2026-07-28/mrtr/20")
# Each story has three engines of its own: 500 of them take half a minute.
@settings(max_examples=min(settings().max_examples, 500))
@given(story=st.lists(rounds, min_size=3, max_size=12))
def test_whatever_the_rounds_the_model_holds(story: list[Round]) -> None:
    trio.run(tell, story, clock=MockClock(autojump_threshold=0))


@asynccontextmanager
async def servers() -> AsyncIterator[Mapping[str, Any]]:
    """Two processes that share a key, and a stranger."""
    common: dict[str, Any] = {"toolsets": (QUESTIONS,), "tools": "questions", "request_state_ttl_s": TTL_S}
    async with (
        running(request_state_keys=OURS, **common) as one,
        running(request_state_keys=OURS, **common) as two,
        running(request_state_keys=FOREIGN, **common) as stranger,
    ):
        yield {"one": one.app, "two": two.app, "stranger": stranger.app}


async def tell(story: list[Round]) -> None:
    """Send each round and compare with the model."""
    async with servers() as apps:
        model = Model()
        for step in story:
            await trio.sleep(step.wait_s)
            await take(apps, model, step)


def requested(step: Round, state: State | None) -> Request:
    """The request of a round."""
    if state is None:
        return Request(step.asking, "/mcp", step.asking.params)
    own = state.request
    match step.elsewhere:
        case "target":
            return Request(own.asking, "/mcp?tools=all" if own.target == "/mcp" else "/mcp", own.params)
        case "params":
            others = [own.asking.params, *own.asking.others]
            return Request(own.asking, own.target, others[(others.index(own.params) + 1) % len(others)])
        case "asking":
            # with the same params where the other method can have them
            shared = (
                own.params if {"name"} == own.params.keys() and "name" in step.asking.params else step.asking.params
            )
            return Request(step.asking, own.target, shared)
    return own


async def take(apps: Mapping[str, Any], model: Model, step: Round) -> None:
    """One round."""
    state = model.chosen(step)
    request = requested(step, state)
    asking, client = request.asking, Modern(apps[step.server], request.target)
    given = {key: answer(key, kind) for key, kind in step.answers.items()}
    sent: dict[str, Any] = {**request.params, "inputResponses": given}
    token = None if state is None else changed(state.token, step.change, model.states[0].token)
    if token is not None:
        sent["requestState"] = token
    known = model.known(token, step, request)
    try:
        result = await client.call(asking.method, sent)
    except RpcError as error:
        check_error(error, model, step, asking, known)
        return
    assert known is not None, "what is not right is never accepted"
    kind, missing = model.outcome(asking, known, step.answers)
    if result["resultType"] == "complete":
        assert (kind, asking.heard(result)) == ("final", known)
        return
    assert (kind, list(result["inputRequests"])) == ("asks", missing)
    stranger = step.server == "stranger"
    model.states.append(State(result["requestState"], stranger, request, known, trio.current_time()))


def check_error(error: RpcError, model: Model, step: Round, asking: Asking, known: dict[str, Any] | None) -> None:
    """An error is one that the model expects."""
    assert error.code == -32602
    if known is None:
        assert REFUSED in error.message
        return
    kind, wrong = model.outcome(asking, known, step.answers)
    assert kind == "error"
    assert any(f"inputResponses['{key}']" in error.message for key in wrong)


def answer(key: str, kind: str) -> Any:
    """An answer to a question, or something for a question that nobody asks."""
    return 5 if key == "surplus" else KINDS[kind][key]

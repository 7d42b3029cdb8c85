"""A gateway that stops answering ends the run, and this is its only finding."""

from __future__ import annotations

import pytest
import trio

from probe.gateway import side
from probe.gateway.checks import judge
from probe.gateway.phases import step
from probe.gateway.report import FORMATS, Allowed, exit_code

from .proxy import Gateway, Reply, Request, Rules
from .runs import found, tried


class _Silent(Rules):
    """Stops answering in the step `errors`, at its first request: a body that is not JSON."""

    stops = True
    for_s = 1000.0

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.body.startswith(b'{"jsonrpc": "2.0", "id": 1') and not request.message:
            self.state.setdefault("until", trio.current_time() + self.for_s)
        if trio.current_time() < self.state.get("until", 0.0):
            await trio.sleep(self.state["until"] - trio.current_time())  # real time: a gateway that is silent
        return None


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side, "ANSWER_S", 1.0)


STEPS = ("ids", "errors", "failures", "results", "fast", "answers")


async def test_52_a_silent_gateway_is_said_to_be_silent_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "PATIENCE_S", 1.0)
    made = await tried(_Silent(), STEPS)
    assert set(found(made)) == {52}
    assert "| nothing | timed out, since step errors" in found(made)[52]
    assert made.partial.startswith("the gateway answers nothing any more since step errors: ")
    assert {trial.step for trial in made.trials}.isdisjoint({"failures", "results", "fast"})
    assert exit_code(judge(made), Allowed(), partial=True) == 1
    assert "gateway.silent" in FORMATS["table"](made, judge(made), Allowed())


async def test_a_gateway_that_was_busy_is_not_silent() -> None:
    class Busy(_Silent):
        """Answers again after a while, with two exchanges unanswered."""

        for_s = 2.5

    made = await tried(Busy(), STEPS)
    assert made.partial == ""
    assert 52 not in found(made)
    assert {trial.step for trial in made.trials} >= {"failures", "results", "fast"}

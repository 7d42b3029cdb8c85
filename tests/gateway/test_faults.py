"""Each fault of a gateway is found, and no other with it; a direct way has none."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from probe.gateway.behind import Behind, Row
from probe.gateway.checks import CHECKS, catalogue, judge
from probe.gateway.phases import STEPS as ALL_STEPS
from probe.gateway.phases import timing
from probe.gateway.trials import Trial

from .faults import RULES, CloseLate, Message, ModernRefused
from .proxy import Gateway, Reply, Request, Rules
from .runs import cheap, found, tried

# Steps that a fault needs beside the cheap ones.
MORE = {
    8: ("close.stream", "close.silent"),
    9: ("close.silent",),
    10: ("cancel",),
    11: ("cancel",),
    12: ("cancel",),
    13: ("resume",),
    15: ("quiet.stream", "quiet.comments"),
    16: ("quiet.stream", "quiet.call", "busy"),
    17: ("quiet.call", "busy"),
    18: ("break.before.modern", "break.before.legacy"),
    19: ("break.before.legacy",),
    20: ("break.after", "break.later"),
    21: ("break.after", "break.later"),
    22: ("encoding",),
    40: ("bodies",),
    45: ("tasks.legacy",),
}
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
# Faults that cause others: a limit of time leaves calls running; a session of another client has other capabilities and
# does not end with its client; without `notifications/initialized` a server may not send requests.
WITH = {17: {16}, 33: {31, 38}, 34: {31, 38, 51}, 51: {32} if THOROUGH else set()}
# The cheap steps do not show these, and some meet the fault's own time-out.
ALONE = (15, 16, 17, 18, 19, 20, 21)


def test_each_fault_has_one_check_and_each_check_its_steps() -> None:
    assert [check.number for check in CHECKS] == sorted(catalogue()) == [*range(1, 53)]
    known = {step.name for step in ALL_STEPS}
    assert all(set(check.steps) <= known for check in CHECKS)
    assert len({fault.name for fault in catalogue().values()}) == 52


@pytest.mark.parametrize("number", RULES)
async def test_a_fault_is_found_and_no_other(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if number != 2:
        # The pace of a real run is for networks with delayed acknowledgements.
        monkeypatch.setattr(timing, "STEP_MS", 60)
    own = MORE.get(number, ())
    check = next(check for check in CHECKS if check.number == number)
    # All cheap steps for each of fifty faults take minutes: `nox -s thorough` does them.
    names = [*own, *(check.steps if number not in MORE else ()), *(cheap() if THOROUGH and number not in ALONE else ())]
    made = await tried(RULES[number](), names, breaker=number in (18, 19, 20, 21), keep_alive_s=1.0)
    assert set(found(made)) == {number} | WITH.get(number, set()), found(made)
    if number == 8:
        assert " | never | " in found(made)[8]  # once for both closes, which are the same


@pytest.mark.parametrize(
    ("number", "names"),
    [
        (17, ["quiet.call", "busy"]),
        (20, ["break.after"]),
        (41, ["heads"]),
        (43, ["encoding"]),
        (48, ["load.quick"]),
    ],
)
async def test_a_fault_is_found_without_the_modern_revision(number: int, names: list[str]) -> None:
    rules = old(RULES[number])
    made = await tried(rules(), names, breaker=number == 20, keep_alive_s=1.0)
    # The client of a session may resume a cut call, so a call that runs on is no fault.
    assert set(found(made)) == {16 if number == 17 else number, 44}, found(made)


def old(rules: type[Rules]) -> type[Rules]:
    """These rules in a gateway without 2026-07-28."""

    class Old(rules):  # type: ignore[misc, valid-type]  # a base of each run
        async def request(self, request: Request, gateway: Gateway) -> Reply | None:
            refused = await ModernRefused.request(self, request, gateway)
            return refused or await super().request(request, gateway)  # type: ignore[no-any-return]

    return Old


class CutLater(Rules):
    """Collects the first bytes of an answer; a cut before that reaches the client."""

    def __init__(self) -> None:
        super().__init__()
        self.at_cut = "abort"

    def message(self, request: Request, message: Message) -> list[Message]:
        params = message.get("params") or {}
        self.at_cut = "complete" if params.get("progress", 0) >= 3 else "abort"
        return [message]


async def test_an_end_that_is_hidden_only_behind_later_events_is_found() -> None:
    made = await tried(CutLater(), ["break.after", "break.later"], breaker=True)
    assert set(found(made)) == {20}
    assert "1 of 2 broken streams look complete" in found(made)[20]


async def test_calls_are_serial_only_where_they_wait_for_each_other_and_each_time() -> None:
    made = await tried(Rules(), ["load.quick"])
    serial = await tried(RULES[48](), ["load.quick"])
    direct, through = made.of("load.quick", "direct")[0], made.of("load.quick", "through")[0]
    (waited,) = serial.of("load.quick", "through")
    others = [trial for trial in made.trials if trial.step != "load.quick"]
    busy = later_messages(through)
    for trials, expected in (
        # The machine was busy in one of two turns, or also while the direct way was asked.
        ((direct, waited, direct, through), set[int]()),
        ((direct, waited, later_messages(direct), waited), set[int]()),
        # All calls were at the probe at the same time.
        ((direct, busy, direct, busy), set[int]()),
        ((direct, waited, direct, waited), {48}),
    ):
        assert set(found(replace(made, trials=(*others, *trials)))) == expected


def later_messages(trial: Trial) -> Trial:
    """The trial with messages two seconds later."""
    exchanges = [
        replace(item, messages=tuple(replace(each, at=each.at + 2.0) for each in item.messages))
        for item in trial.exchanges
    ]
    return replace(trial, exchanges=tuple(exchanges))


async def test_the_clock_of_the_probe_may_be_another() -> None:
    names = ["progress.modern", "progress.legacy", "close.stream", "close.silent", "cancel"]
    for rules, expected in ((Rules(), set[int]()), (CloseLate(), {9})):
        made = await tried(rules, names)
        assert set(found(made)) == expected
        for ahead_s in (1000.0, -1000.0):
            shifted = [
                replace(trial, behind=Behind(tuple(later(row, ahead_s) for row in trial.behind.entries)))
                for trial in made.trials
            ]
            assert set(found(replace(made, trials=tuple(shifted)))) == expected, ahead_s


def later(row: Row, seconds: float) -> Row:
    return {**row, "at": row["at"] + seconds}


async def test_a_direct_way_has_no_fault() -> None:
    slow = ("close.stream", "close.silent", "cancel", "resume", "tasks.legacy", "bodies", "large.quick")
    made = await tried(None, [*cheap(), *slow], keep_alive_s=1.0)
    assert found(made) == {}
    assert {finding.verdict for finding in judge(made)} == {"same"}


async def test_a_right_gateway_has_no_fault() -> None:
    """Its connections to the server break, and it breaks those of its clients."""
    own = ("break.before.modern", "break.before.legacy", "break.after", "break.later")
    made = await tried(Rules(), [*cheap(), *own], breaker=True, keep_alive_s=1.0)
    assert found(made) == {}

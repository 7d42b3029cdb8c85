"""Rules `sampling.*`."""

from __future__ import annotations

from typing import Any

import pytest

from probe.judge.verdicts import Verdict

from .dialogues import SAMPLED, SAMPLING, WAYS, ask, asked, open_session, reply
from .logs import Log, judged

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
INCONCLUSIVE, NOT_OBSERVED = Verdict.INCONCLUSIVE, Verdict.NOT_OBSERVED
SAMPLE = "sampling/createMessage"
SHAPE, MOST, SERVED, TOOLS = (
    "sampling.result-shape",
    "sampling.max-tokens",
    "sampling.declared-served",
    "sampling.no-unasked-tools",
)
TOOL_USE = {"type": "tool_use", "id": "1", "name": "t", "input": {}}


def sampled(result: Any, **options: Any) -> Any:
    params = {**SAMPLING, **options.pop("params", {})}
    return judged(asked(SAMPLE, params, result, **options))["acme"]


def text(length: int) -> dict[str, Any]:
    return {**SAMPLED, "content": {"type": "text", "text": "x" * length}}


@pytest.mark.parametrize("way", WAYS)
def test_a_good_answer_on_every_way(way: str):
    found = sampled(SAMPLED, way=way)
    assert found.faults == {}
    assert {found[id] for id in (SHAPE, MOST, SERVED, TOOLS)} == {PASS}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lost", ["role", "content", "model"])
def test_each_member_is_needed(way: str, lost: str):
    found = sampled({name: value for name, value in SAMPLED.items() if name != lost}, way=way)
    assert found.faults == {SHAPE: FAIL}


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_list_is_content_since_2025_11_25(revision: str):
    found = sampled({**SAMPLED, "content": [SAMPLED["content"]]}, revision=revision)
    assert found.faults == ({} if revision == "2025-11-25" else {SHAPE: FAIL})


def test_a_message_of_the_user_is_a_warning():
    assert sampled({**SAMPLED, "role": "user"}).faults == {SHAPE: WARN}


@pytest.mark.parametrize("way", ["http", "round"])
def test_null_for_a_member_that_should_be_left_out_is_a_warning(way: str):
    assert sampled({**SAMPLED, "stopReason": None, "_meta": None}, way=way).faults == {SHAPE: WARN}
    assert sampled({**SAMPLED, "model": None}, way=way).faults == {SHAPE: FAIL}


def test_other_stop_reasons_and_more_members_are_right():
    assert sampled({**SAMPLED, "stopReason": "refusal", "usage": {"tokens": 1}}).faults == {}
    assert sampled({**SAMPLED, "stopReason": "refusal"}, revision="2025-03-26").faults == {}


def test_hidden_members_are_not_judged():
    found = sampled({**SAMPLED, "content": "[redacted]"}, hidden=(("/content", "object"),))
    assert (found.faults, found[SHAPE], found[MOST], found[TOOLS]) == ({}, PASS, NOT_OBSERVED, NOT_OBSERVED)


@pytest.mark.parametrize(("length", "verdict"), [(80, PASS), (81, INCONCLUSIVE), (160, INCONCLUSIVE), (161, WARN)])
@pytest.mark.parametrize("way", ["http", "round"])
def test_far_more_text_than_tokens_is_a_warning(length: int, verdict: Verdict, way: str):
    found = sampled(text(length), way=way)
    assert found[MOST] is verdict
    assert set(found.faults) <= {MOST}


def test_pictures_have_no_length():
    picture = {**SAMPLED, "content": {"type": "image", "data": "x" * 1000, "mimeType": "image/png"}}
    assert sampled(picture)[MOST] is NOT_OBSERVED


@pytest.mark.parametrize("way", ["http", "round"])
def test_tools_that_nobody_offered(way: str):
    assert sampled({**SAMPLED, "content": [TOOL_USE]}, way=way).faults == {TOOLS: WARN}
    assert sampled({**SAMPLED, "stopReason": "toolUse"}, way=way).faults == {TOOLS: WARN}
    offered = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    assert sampled({**SAMPLED, "content": [TOOL_USE]}, way=way, params=offered)[TOOLS] is NOT_OBSERVED


def test_a_person_may_refuse():
    found = sampled(None, error={"code": -1, "message": "User rejected sampling request"})
    assert (found[SERVED], found[SHAPE], found.faults) == (PASS, NOT_OBSERVED, {})


@pytest.mark.parametrize(
    ("codes", "verdict"),
    [((-32601, -32601), WARN), ((-32601,), INCONCLUSIVE), ((-32603, -32601, -32601), INCONCLUSIVE)],
)
def test_only_method_not_found_to_every_question_is_a_warning(codes: Any, verdict: Verdict):
    log = Log()
    session = open_session(log)
    for code in codes:
        question, call = ask(session, SAMPLE, SAMPLING)
        reply(session, question, {"jsonrpc": "2.0", "id": question.id, "error": {"code": code, "message": "no"}})
        session.answer(call, {"content": []})
    found = judged(log)["acme"]
    assert found[SERVED] is verdict
    assert set(found.faults) <= {SERVED}


def test_silent_and_gap():
    log = Log()
    session = open_session(log)
    ask(session, SAMPLE, SAMPLING)
    log.gap()
    found = judged(log)["acme"]
    assert {found[id] for id in (SHAPE, MOST, SERVED, TOOLS)} == {NOT_OBSERVED}

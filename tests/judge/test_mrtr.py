"""Rules `mrtr.*`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from probe.judge.verdicts import Verdict

from .dialogues import CALL, FORM, MODERN_CAPABILITIES, SAMPLED, SAMPLING, STATE, open_round, retry
from .logs import Http, Log, Pipe, judged

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
INCONCLUSIVE, NOT_OBSERVED = Verdict.INCONCLUSIVE, Verdict.NOT_OBSERVED
ECHOED, ID, ISOLATION, SAME, FIRST, KEYS, SHAPE = (
    "mrtr.state-echoed",
    "mrtr.new-id",
    "mrtr.isolation",
    "mrtr.same-request",
    "mrtr.inputs-first",
    "mrtr.keys",
    "mrtr.answer-shape",
)
ALL = (ECHOED, ID, ISOLATION, SAME, FIRST, KEYS, SHAPE)
ASKED = {"name": {"method": "elicitation/create", "params": FORM}}
GOOD = {"name": {"action": "accept", "content": {"name": "ada"}}}
BOTH = {**ASKED, "text": {"method": "sampling/createMessage", "params": SAMPLING}}
OTHER_STATE = "AAAAAAzyxwvutsrqponmlkjihgfedcba9876543210"
OTHER_CALL = {"name": "tool", "arguments": {"n": 2}}
WAYS: dict[str, Callable[[Log], Http | Pipe]] = {"http": Log.http, "websocket": Log.websocket, "stdio": Log.stdio}


def found(log: Log) -> Any:
    return judged(log)["acme"]


def story(answers: Any = GOOD, *, asks: Any = ASKED, way: str = "http", given: Any = STATE, **options: Any) -> Any:
    """A round and its retry; `given` is the state of the round."""
    log = Log()
    client = WAYS[way](log)
    open_round(client, asks, state=given)
    log.after(1)
    retry(client, answers, **options)
    return found(log)


@pytest.mark.parametrize("way", WAYS)
def test_a_good_retry(way: str):
    each = story(way=way)
    assert each.faults == {}
    assert {each[id] for id in ALL if id != ISOLATION} == {PASS}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("rule", "verdict", "options"),
    [
        (ECHOED, FAIL, {"state": None}),
        (ECHOED, FAIL, {"state": STATE[:-4]}),
        (ECHOED, FAIL, {"state": STATE + "="}),
        (ECHOED, FAIL, {"state": STATE.lower()}),
        (ECHOED, FAIL, {"state": STATE[:20] + "?" + STATE[21:]}),
        (ECHOED, FAIL, {"state": ""}),
        (ECHOED, FAIL, {"state": {"parsed": True}}),
        (ECHOED, WARN, {"state": OTHER_STATE}),
        (ID, FAIL, {"id": 1}),
        (ISOLATION, FAIL, {"call": {"name": "other", "arguments": {}}}),
        (SAME, WARN, {"call": OTHER_CALL}),
        (FIRST, FAIL, {"answers": None}),
        (FIRST, FAIL, {"answers": {}}),
        (FIRST, WARN, {"asks": BOTH}),
        (KEYS, WARN, {"answers": {**GOOD, "more": {"action": "cancel"}}}),
        (SHAPE, FAIL, {"answers": {"name": {"jsonrpc": "2.0", "id": 1, "result": GOOD["name"]}}}),
        (SHAPE, FAIL, {"answers": {"name": {"result": GOOD["name"]}}}),
        (SHAPE, FAIL, {"answers": {"name": {"action": "accept", "content": {"name": {"deep": 1}}}}}),
    ],
)
def test_a_bad_retry_breaks_one_rule(way: str, rule: str, verdict: Verdict, options: Any):
    assert story(way=way, **options).faults == {rule: verdict}


def test_a_list_of_roots_that_has_none_is_no_result():
    asks = {"roots": {"method": "roots/list", "params": {}}}
    assert story({"roots": {"folders": []}}, asks=asks).faults == {SHAPE: FAIL}
    assert story({"roots": {"roots": []}}, asks=asks)[SHAPE] is PASS


@pytest.mark.parametrize("content", [{"ratio": 0.25}, {"count": 5}, {"days": ["sat"]}, {"more": True}])
def test_a_number_is_content_whatever_the_schema_file_says(content: Any):
    assert story({"name": {"action": "accept", "content": content, "extra": 1}})[SHAPE] is PASS


@pytest.mark.parametrize(
    "answer", [{"action": "decline", "content": None}, {"action": "accept", "content": {"name": None}}]
)
def test_null_for_what_was_left_empty_is_a_warning(answer: Any):
    assert story({"name": answer}).faults == {SHAPE: WARN}


def test_what_is_hidden_is_not_judged():
    place = (("/params/inputResponses/name/content", "object"),)
    answers = {"name": {"action": "accept", "content": "[redacted]"}}
    assert story(answers, message={"hidden": place}).faults == {}
    arguments = {"message": {"hidden": (("/params/arguments/token", "string"),)}}
    each = story(call=OTHER_CALL, **arguments)
    assert (each.faults, each[SAME]) == ({}, NOT_OBSERVED)
    assert story(state="[redacted]", message={"hidden": (("/params/requestState", "string"),)})[ECHOED] is INCONCLUSIVE


def test_declining_is_an_answer():
    assert story({"name": {"action": "decline"}}).faults == {}
    assert story({"name": {"action": "cancel"}, "text": SAMPLED}, asks=BOTH).faults == {}


def test_arguments_that_are_left_out_are_equal_to_none_at_all():
    assert story(call={"name": "tool"}).faults == {}
    assert story(call={"name": "tool", "arguments": None})[SAME] is PASS


def test_answers_of_earlier_rounds_may_be_sent_along():
    log = Log()
    client = log.http()
    open_round(client, ASKED)
    more = {"answers": {"inputResponses": GOOD, "requestState": STATE}, "state": OTHER_STATE}
    open_round(client, {"second": {"method": "elicitation/create", "params": FORM}}, **more)
    retry(client, {**GOOD, "second": {"action": "cancel"}}, state=OTHER_STATE)
    each = found(log)
    assert (each.faults, each[KEYS]) == ({}, PASS)


@pytest.mark.parametrize(("id", "verdict"), [(1, FAIL), (2, FAIL), ("1", PASS), (3, PASS)])
def test_the_last_retry_has_another_id_than_both_before_it(id: Any, verdict: Verdict):
    log = Log()
    client = log.http()
    open_round(client, ASKED)
    answers = {"inputResponses": GOOD, "requestState": STATE}
    open_round(client, {"second": ASKED["name"]}, state=OTHER_STATE, answers=answers)
    retry(client, {"second": {"action": "cancel"}}, state=OTHER_STATE, id=id)
    assert found(log)[ID] is verdict


def test_another_process_counts_its_ids_by_itself():
    log = Log()
    first = log.stdio()
    open_round(first, ASKED)
    first.close()
    retry(log.stdio(), GOOD)
    assert found(log).faults == {ID: WARN}


def test_a_retry_that_is_posted_again_is_innocent():
    log = Log()
    client = log.http()
    open_round(client, ASKED)
    for _ in range(2):
        retry(client, GOOD, id=2)
    each = found(log)
    assert [each[id] for id in (ECHOED, ID, SAME, FIRST)] == [PASS] * 4
    assert each.faults.keys().isdisjoint(ALL)


def test_a_state_that_is_missing_where_two_rounds_are_open():
    log = Log()
    client = log.http()
    for state in (STATE, OTHER_STATE):
        open_round(client, ASKED, state=state)
    retry(client, GOOD, state=None)
    each = found(log)
    assert (each[ECHOED], each.faults) == (INCONCLUSIVE, {})


def test_answers_without_a_state_and_without_a_round():
    log = Log()
    retry(log.http(), GOOD, state=None)
    assert found(log)[ECHOED] is INCONCLUSIVE


def test_a_state_of_an_earlier_run_is_a_warning():
    log = Log()
    client = log.http()
    retry(client, GOOD)
    assert found(log).faults == {ECHOED: WARN}


def test_a_state_cannot_be_missed_in_a_log_with_a_gap():
    log = Log()
    client = log.http()
    log.gap()
    open_round(client, ASKED)
    retry(client, GOOD, state=STATE[:-2])
    retry(client, GOOD)
    each = found(log)
    assert (each[ECHOED], each.faults) == (INCONCLUSIVE, {})


def test_clients_that_nobody_can_tell_apart_are_not_accused_of_a_lost_state():
    log = Log()
    client = log.http(None)
    open_round(client, ASKED)
    retry(client, GOOD, state=None)
    [each] = judged(log).values()
    assert (each[ECHOED], each.faults) == (INCONCLUSIVE, {})


def test_two_calls_at_once_keep_their_states():
    log = Log()
    client = log.http()
    open_round(client, ASKED)
    open_round(client, ASKED, OTHER_CALL, state=OTHER_STATE)
    retry(client, GOOD, OTHER_CALL, state=OTHER_STATE)
    retry(client, GOOD)
    each = found(log)
    assert (each[ISOLATION], each.faults) == (PASS, {})


def test_two_calls_at_once_that_change_their_states():
    log = Log()
    client = log.http()
    open_round(client, ASKED)
    open_round(client, ASKED, OTHER_CALL, state=OTHER_STATE)
    retry(client, GOOD, OTHER_CALL)
    retry(client, GOOD, state=OTHER_STATE)
    assert found(log).faults == {ISOLATION: FAIL}


def test_a_state_that_fell_out_of_the_memory_is_not_missed():
    log = Log()
    client = log.http()
    for number in range(1_001):
        open_round(client, ASKED, state=f"{number}{STATE}")
    retry(client, GOOD, state="0" + STATE)
    assert found(log)[ECHOED] is INCONCLUSIVE


def test_a_question_that_the_judge_does_not_know_has_a_key():
    asks = {"later": {"method": "audio/record", "params": {}}}
    each = story({"later": {"data": ""}}, asks=asks)
    assert (each.faults, each[KEYS], each[FIRST], each[SHAPE]) == ({}, PASS, PASS, NOT_OBSERVED)


def test_a_round_without_questions_may_come_back_at_once():
    assert story(None, asks={}).faults == {}


def test_a_request_without_a_round_is_no_retry():
    log = Log()
    client = log.http()
    client.answer(client.modern("tools/call", CALL, capabilities=MODERN_CAPABILITIES), {"content": []})
    assert {found(log)[id] for id in ALL} == {NOT_OBSERVED}


def test_the_states_of_two_subjects_are_apart():
    log = Log()
    one, other = log.http("one"), log.http("other")
    open_round(one, ASKED)
    open_round(other, ASKED, state=OTHER_STATE)
    retry(other, GOOD, state=OTHER_STATE)
    retry(one, GOOD)
    for each in judged(log).values():
        assert each.faults == {}

"""Multi-round-trip requests: 2026-07-28 basic/patterns/mrtr, sentence by sentence, on each method that may ask."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.wire.v2026.registry import REQUESTS

from ..support.inside import SERVICES, engine_tasks
from ..support.legacy import ALL_CAPABILITIES, RpcError
from ..support.modern import PREFIX, WITH_TASKS, Modern
from ..support.probe import Probe, running
from ..support.questions import ANSWERS, ASKING, ASKS, MISFITS, OTHER_ANSWERS, QUESTIONS, Asking
from ..support.schemas import schema
from ..support.shown import as_value, newest

METHODS = pytest.mark.parametrize("asking", ASKING, ids=lambda asking: asking.method)
REFUSED = "Invalid params: requestState is not from this server for this request, or it has expired"
OLD, NEW = "0a" * 32, "0b" * 32


@asynccontextmanager
async def questions(**settings: Any) -> AsyncIterator[Modern]:
    async with running(toolsets=(QUESTIONS,), tools="questions", **settings) as probe:
        yield Modern(probe.app, "/mcp")


async def ask(client: Modern, asking: Asking, **retry: Any) -> dict[str, Any]:
    return await client.call(asking.method, {**asking.params, **retry})


def asked(result: Mapping[str, Any]) -> list[str]:
    assert result["resultType"] == "input_required"
    return list(result["inputRequests"])


def answers(*keys: str) -> dict[str, Any]:
    return {key: ANSWERS[key] for key in keys}


async def state_of(client: Modern, asking: Asking) -> str:
    return str((await ask(client, asking))["requestState"])


async def check_refused(client: Modern, method: str, params: Mapping[str, Any], state: Any) -> None:
    """Any state that is not right is refused with the same words, whatever is wrong with it, and with HTTP 200."""
    message = client.request(method, {**params, "requestState": state, "inputResponses": dict(ANSWERS)})
    async with client.post(message) as answer:
        body, status = await answer.json(), answer.status
    with pytest.raises(RpcError) as caught:
        client.result(body, method, message["id"])
    assert (status, caught.value.code, caught.value.message) == (200, -32602, REFUSED)
    assert "data" not in body["error"]


# The flow.


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/1", "2026-07-28/mrtr/12", "2026-07-28/basic/24")
async def test_the_result_asks_and_the_retry_with_the_answers_is_final(asking: Asking) -> None:
    async with questions() as client:
        retry: dict[str, Any] = {}
        for group in asking.groups:
            result = await ask(client, asking, **retry)
            assert asked(result) == list(group), "all that is needed now, in its order, and nothing asked before"
            assert result["inputRequests"] == {
                key: {"method": ASKS[key].method, "params": ASKS[key].params} for key in group
            }
            retry = {"requestState": result["requestState"], "inputResponses": answers(*group)}
        assert asking.heard(await ask(client, asking, **retry)) == answers(*asking.keys)


DEFINITIONS = {
    "elicitation/create": "ElicitRequest",
    "sampling/createMessage": "CreateMessageRequest",
    "roots/list": "ListRootsRequest",
}
ASKERS = {
    "elicit_form", "elicit_simple_form", "list_roots", "ask_several", "sampling_demo", "test_streaming_elicitation",
    "test_input_required_result_elicitation", "test_input_required_result_sampling",
    "test_input_required_result_list_roots", "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs", "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state", "test_input_required_result_capabilities",
    "recipe", "test_input_required_result_prompt", "greeting",
}  # fmt: skip


async def asks(client: Modern, method: str, params: dict[str, Any]) -> bool:
    """Whether a request without arguments asks something, each question valid."""
    try:
        result = await client.call(method, params)
    except RpcError:
        return False  # it needs arguments, or the tasks extension
    if result["resultType"] != "input_required":
        return False
    assert result["requestState"]
    assert result["inputRequests"]
    for request in result["inputRequests"].values():
        schema("2026-07-28").check(request, DEFINITIONS[request["method"]])
        assert request.keys() == {"method", "params"}
    return True


@pytest.mark.proves("2026-07-28/mrtr/4", "2026-07-28/mrtr/12")
async def test_every_tool_prompt_and_resource_that_asks_does_so_by_valid_requests_with_a_state(
    autojump_clock: MockClock,
) -> None:
    async with running(page_size=1000) as probe:
        client = probe.modern(capabilities=ALL_CAPABILITIES)
        calls = []
        for method, kind, member in (
            ("tools/call", "tools", "name"),
            ("prompts/get", "prompts", "name"),
            ("resources/read", "resources", "uri"),
        ):
            items = (await client.call(f"{kind}/list"))[kind]
            calls += [(method, item["name"], {member: item[member]}) for item in items]
        asking = {name for method, name, params in calls if await asks(client, method, params)}
    assert asking >= ASKERS


@pytest.mark.proves(
    "2026-07-28/mrtr/1", "2026-07-28/patterns/1", "2026-07-28/streamable-http/12", "2026-07-28/transports/2"
)
async def test_a_question_ends_a_stream_that_has_begun_and_no_request_is_ever_on_it(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern(tools="conformance")
    request = client.request("tools/call", {"name": "test_streaming_elicitation"}, meta={"progressToken": "p"})
    async with client.post(request) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        progress, result = [event.message async for event in answer.events()]
    assert progress["method"] == "notifications/progress"
    assert asked(client.result(result, "tools/call", request["id"])) == ["count"]
    assert [event for event in probe.events("message.emitted") if {"id", "method"} <= event["message"].keys()] == []


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, unless a key stands in it twice."""
    assert len({key for key, _ in pairs}) == len(pairs)
    return dict(pairs)


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/3")
async def test_keys_are_unique_within_a_request_and_its_rounds(asking: Asking) -> None:
    """JSON would let two equal keys stand in one object, of which most readers lose one."""
    async with questions() as client:
        retry: dict[str, Any] = {}
        seen: list[str] = []
        for group in asking.groups:
            request = client.request(asking.method, {**asking.params, **retry})
            async with client.post(request) as answer:
                text = (await answer.body()).decode()
            result = json.loads(text, object_pairs_hook=without_doubles)["result"]
            seen += result["inputRequests"]
            retry = {"requestState": result["requestState"], "inputResponses": answers(*group)}
        assert len(seen) == len(set(seen)) == len(asking.keys)


# Never elsewhere.


@pytest.mark.proves("2026-07-28/mrtr/2")
@pytest.mark.parametrize(
    "retry",
    [{}, {"inputResponses": dict(ANSWERS), "requestState": "forged"}, {"inputResponses": 5, "requestState": None}],
    ids=["plain", "like a retry", "malformed"],
)
async def test_no_other_method_asks_or_looks_at_what_a_retry_carries(retry: dict[str, Any], probe: Probe) -> None:
    client = probe.modern(tools="conformance")
    task = await client.tool("slow_compute", {"seconds": 60, "label": "x"})
    params: dict[str, dict[str, Any]] = {
        "completion/complete": {
            "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": ""},
        },
        "tasks/get": {"taskId": task["taskId"]},
        "tasks/update": {"taskId": task["taskId"], "inputResponses": {}},
        "tasks/cancel": {"taskId": task["taskId"]},
        "skills/get": {"uri": "skill://exercise-client/SKILL.md"},
        "resources/directory/read": {"uri": "skill://exercise-client"},
    }
    others = [method for method, row in REQUESTS.items() if not row.input_responses and "listen" not in method]
    assert len(others) == len(REQUESTS) - 4
    for method in others:
        own = params.get(method, {})
        assert (await client.call(method, {**retry, **own}))["resultType"] == "complete"


@pytest.mark.proves("2026-07-28/mrtr/2")
async def test_a_subscription_does_not_ask(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern(tools="conformance")
    params = {"notifications": {"toolsListChanged": True}, "requestState": "forged", "inputResponses": {}}
    async with client.post(client.request("subscriptions/listen", params)) as answer:
        with trio.fail_after(60):
            event = await anext(answer.events())
        assert client.heard(event)["method"] == "notifications/subscriptions/acknowledged"


@METHODS
@pytest.mark.proves("2026-07-28/caching/1")
async def test_what_asks_carries_no_caching_hints(asking: Asking) -> None:
    async with questions() as client:
        result = await ask(client, asking)
    assert not {"ttlMs", "cacheScope", "content", "messages", "contents"} & result.keys()


# Partial, surplus and misfitting answers.


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/19")
@pytest.mark.parametrize("one_by_one", [["name", "capital"], ["capital", "name"]])
async def test_what_is_missing_is_asked_again_and_what_came_is_kept(asking: Asking, one_by_one: list[str]) -> None:
    """In any order; the state remembers, so that no answer is asked for or sent twice."""
    first, second = one_by_one
    async with questions() as client:
        result = await ask(client, asking, requestState=await state_of(client, asking), inputResponses=answers(first))
        assert asked(result) == [second]
        result = await ask(client, asking, requestState=result["requestState"], inputResponses={})
        assert asked(result) == [second], "and again: nothing is lost by an empty retry"
        result = await ask(client, asking, requestState=result["requestState"], inputResponses=answers(second))
        if result["resultType"] == "input_required":
            assert asked(result) == ["roots"]
            result = await ask(client, asking, requestState=result["requestState"], inputResponses=answers("roots"))
        assert asking.heard(result) == answers(*asking.keys)


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/19")
async def test_a_retry_without_its_state_asks_for_what_only_the_state_knew(asking: Asking) -> None:
    """The state only remembers earlier answers: who sends all of them needs none."""
    async with questions() as client:
        partial = await ask(client, asking, inputResponses=answers("name"))
        assert asked(partial) == ["capital"]
        assert asked(await ask(client, asking, inputResponses=answers("capital"))) == ["name"]
        assert asking.heard(await ask(client, asking, inputResponses=answers(*asking.keys))) == answers(*asking.keys)


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/18")
@pytest.mark.parametrize("extra", [{"zzz": ANSWERS["name"]}, {"zzz": 5, "": None, "name ": []}, {"Name": MISFITS}])
async def test_answers_that_nobody_asked_for_are_ignored_whatever_they_are(asking: Asking, extra: Any) -> None:
    async with questions() as client:
        assert asked(await ask(client, asking, inputResponses=extra)) == list(asking.groups[0])
        state = await state_of(client, asking)
        result = await ask(client, asking, requestState=state, inputResponses={**extra, **ANSWERS})
        assert asking.heard(result) == answers(*asking.keys)


@METHODS
async def test_an_answer_that_came_stays_and_another_for_the_same_question_is_surplus(asking: Asking) -> None:
    async with questions() as client:
        result = await ask(client, asking, inputResponses=answers("name"))
        for given in (OTHER_ANSWERS, {**OTHER_ANSWERS, "name": MISFITS["name"]}):
            final = await ask(client, asking, requestState=result["requestState"], inputResponses=given)
            assert asking.heard(final) == {**{key: OTHER_ANSWERS[key] for key in asking.keys}, **answers("name")}


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/16", "2026-07-28/mrtr/17")
@pytest.mark.parametrize("key", ["name", "capital"])
async def test_an_answer_that_does_not_fit_its_question_is_an_error_that_names_it(asking: Asking, key: str) -> None:
    async with questions() as client:
        state = await state_of(client, asking)
        for misfit in (MISFITS[key], None, [], "x", {"error": {"code": -1, "message": "no"}}):
            with pytest.raises(RpcError) as caught:
                await ask(client, asking, requestState=state, inputResponses={**ANSWERS, key: misfit})
            assert caught.value.code == -32602
            assert f"params.inputResponses['{key}'] answers {ASKS[key].method}" in caught.value.message
        # The question stays open: the same state with the right answer goes on.
        result = await ask(client, asking, requestState=state, inputResponses=ANSWERS)
        assert asking.heard(result) == answers(*asking.keys)


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/16")
@pytest.mark.parametrize("member", ["inputResponses", "requestState"])
@pytest.mark.parametrize("value", [None, 5, True, [], [{}], "object or string"], ids=str)
async def test_what_is_no_object_and_no_string_is_refused(asking: Asking, member: str, value: Any) -> None:
    if value == "object or string":
        value = "x" if member == "inputResponses" else {}
    async with questions() as client:
        request = client.request(asking.method, {**asking.params, member: value})
        async with client.post(request) as answer:
            body = await answer.json()
            assert (answer.status, body["id"], body["error"]["code"]) == (400, request["id"], -32602)
            assert f"params.{member} must be" in body["error"]["message"]


@METHODS
async def test_declining_is_an_answer(asking: Asking) -> None:
    async with questions() as client:
        for action in ("decline", "cancel"):
            given = {**ANSWERS, "name": {"action": action}}
            assert asking.heard(await ask(client, asking, inputResponses=given))["name"] == {"action": action}


# Capabilities.


DECLARATIONS = [
    ({}, []),
    ({"elicitation": {}}, ["form"]),
    ({"elicitation": {"form": {}}}, ["form"]),
    ({"elicitation": {"url": {}}}, []),
    ({"sampling": {}}, ["completion"]),
    ({"roots": {}}, ["roots"]),
    ({"elicitation": {}, "roots": {"listChanged": True}}, ["form", "roots"]),
    ({"elicitation": {}, "sampling": {}, "roots": {}}, ["form", "completion", "roots"]),
    ({"elicitation": {"url": {}}, "com.example/forms": {}}, []),
]


@pytest.mark.proves("2026-07-28/mrtr/13", "2026-07-28/mrtr/14", "2026-07-28/basic/46")
@pytest.mark.parametrize(("capabilities", "keys"), DECLARATIONS)
async def test_only_what_the_request_declares_is_asked(capabilities: Any, keys: list[str], probe: Probe) -> None:
    """Of each kind by itself: without `elicitation` "the server MUST NOT include any `elicitation/create` requests"."""
    client = probe.modern(tools="features", capabilities=capabilities)
    result = await client.tool("ask_several")
    if keys:
        assert asked(result) == keys
    else:
        assert result["isError"] is True


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/13", "2026-07-28/basic/46", "2026-07-28/basic/47", "2026-07-28/basic/48")
@pytest.mark.parametrize("missing", ["elicitation", "sampling"])
async def test_what_cannot_go_on_without_a_capability_names_it(asking: Asking, missing: str) -> None:
    """-32021 "whose `data.requiredCapabilities` lists the missing capabilities", with HTTP 400."""
    async with questions() as client:
        client.capabilities = {name: {} for name in ("elicitation", "sampling", "roots") if name != missing}
        request = client.request(asking.method, {**asking.params, "inputResponses": dict(ANSWERS)})
        async with client.post(request) as answer:
            body = await answer.json()
            assert (answer.status, body["id"], body["error"]["code"]) == (400, request["id"], -32021)
            assert body["error"]["data"] == {"requiredCapabilities": {missing: {}}}
            schema("2026-07-28").check(body, "MissingRequiredClientCapabilityError")


@METHODS
@pytest.mark.proves("2026-07-28/basic/21", "2026-07-28/basic/46")
async def test_what_an_earlier_round_declared_does_not_count(asking: Asking) -> None:
    async with questions() as client:
        state = await state_of(client, asking)
        client.capabilities = {}
        with pytest.raises(RpcError) as caught:
            await ask(client, asking, requestState=state, inputResponses=dict(ANSWERS))
        assert caught.value.code == -32021


# State.


def altered(state: str) -> list[Any]:
    """What an attacker might try; each must be refused."""
    other = "A" if state[40] != "A" else "B"
    plain = json.dumps({"answers": ANSWERS})
    return [
        "",
        " ",
        "x",
        "null",
        plain,
        "eyJhbnN3ZXJzIjp7fX0",
        "A" * len(state),
        state + "-TAMPERED",
        state + "=",
        state + " ",
        " " + state,
        state[:-1],
        state[1:],
        state[:40] + other + state[41:],
        other + state[1:],
        state.swapcase(),
        state * 2,
        "é" + state,
        "x" * 1_000_000,
    ]


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/5", "2026-07-28/mrtr/6", "2026-07-28/mrtr/7", "2026-07-28/mrtr/20")
async def test_an_altered_state_is_refused_and_nothing_says_how_far_it_got(asking: Asking) -> None:
    async with questions() as client:
        state = await state_of(client, asking)
        for attempt in altered(state):
            await check_refused(client, asking.method, asking.params, attempt)
        assert asked(await ask(client, asking, requestState=state)) == list(asking.groups[0])


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/6", "2026-07-28/mrtr/7")
async def test_a_state_of_another_server_is_refused(asking: Asking) -> None:
    async with questions() as client, questions(request_state_keys=OLD) as other:
        await check_refused(client, asking.method, asking.params, await state_of(other, asking))
        await check_refused(other, asking.method, asking.params, await state_of(client, asking))


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/10")
async def test_a_state_is_refused_for_another_name_or_other_arguments(asking: Asking) -> None:
    async with questions() as client:
        state = await state_of(client, asking)
        for params in (*asking.others, {**asking.params, "more": 1}):
            await check_refused(client, asking.method, params, state)


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/10")
async def test_a_state_is_refused_by_the_other_methods(asking: Asking) -> None:
    async with questions() as client:
        state = await state_of(client, asking)
        for other in ASKING:
            if other is not asking:
                await check_refused(client, other.method, other.params, state)


@pytest.mark.proves("2026-07-28/mrtr/10")
@pytest.mark.parametrize(("one", "other"), [("tools/call", "prompts/get"), ("prompts/get", "tools/call")])
async def test_a_tool_and_a_prompt_of_one_name_do_not_share_their_states(one: str, other: str) -> None:
    async with questions() as client:
        state = (await client.call(one, {"name": "steps"}))["requestState"]
        await check_refused(client, other, {"name": "steps"}, state)
        assert asked(await client.call(one, {"name": "steps", "requestState": state})) == ["name", "capital"]


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/10")
async def test_a_state_is_refused_under_another_selection(asking: Asking) -> None:
    """What `?tools=` selects is another server to its client."""
    async with questions() as client:
        state = await state_of(client, asking)
        for query in ("all", "questions,steps"):
            await check_refused(Modern(client.app, f"/mcp?tools={query}"), asking.method, asking.params, state)
        same = Modern(client.app, "/mcp?tools=questions")
        assert asked(await ask(same, asking, requestState=state)) == list(asking.groups[0]), "the default, spelled out"


@METHODS
@pytest.mark.proves("2026-07-28/mrtr/9")
async def test_a_state_expires_and_each_round_begins_its_time_anew(asking: Asking, autojump_clock: MockClock) -> None:
    async with questions(request_state_ttl_s=100) as client:
        result = await ask(client, asking)
        await trio.sleep(99)
        fresh = await ask(client, asking, requestState=result["requestState"], inputResponses=answers("name"))
        await trio.sleep(2)
        await check_refused(client, asking.method, asking.params, result["requestState"])
        await trio.sleep(97)
        assert asked(await ask(client, asking, requestState=fresh["requestState"])) == ["capital"]
        await trio.sleep(2)
        await check_refused(client, asking.method, asking.params, fresh["requestState"])


@METHODS
async def test_a_state_can_be_replayed_until_it_expires_and_leads_to_the_same_place(asking: Asking) -> None:
    """No tool here does anything between rounds that must not be done twice."""
    async with questions() as client:
        result = await ask(client, asking, inputResponses=answers("name"))
        for _ in range(3):
            final = await ask(client, asking, requestState=result["requestState"], inputResponses=ANSWERS)
            assert asking.heard(final) == answers(*asking.keys)


# Who may answer.


@METHODS
@pytest.mark.proves("2026-07-28/basic/21", "2026-07-28/basic/23", "2026-07-28/basic/24")
async def test_each_round_may_reach_another_process_that_has_the_same_keys(asking: Asking) -> None:
    async with questions(request_state_keys=OLD) as one, questions(request_state_keys=OLD) as other:
        retry: dict[str, Any] = {}
        for client, group in zip((one, other), asking.groups, strict=False):
            result = await ask(client, asking, **retry)
            assert asked(result) == list(group)
            retry = {"requestState": result["requestState"], "inputResponses": answers(*group)}
        for client in (one, other):
            assert asking.heard(await ask(client, asking, **retry)) == answers(*asking.keys)


@METHODS
async def test_the_answers_may_come_from_another_client_and_under_any_id(asking: Asking) -> None:
    """What is bound is the request, not who sends it: clients have no identity here, and `_meta` may differ."""
    async with questions() as client:
        state = await state_of(client, asking)
        other = Modern(client.app, "/mcp", {**WITH_TASKS, "experimental": {}})
        params = {**asking.params, "requestState": state, "inputResponses": dict(ANSWERS), "task": {"ttl": 5}}
        meta = {PREFIX + "clientInfo": {"name": "another", "version": "2"}, "com.example/x": 1}
        assert asking.heard(await other.call(asking.method, params, meta=meta, id="retry")) == answers(*asking.keys)


@pytest.mark.proves("2026-07-28/mrtr/15")
async def test_nobody_waits_for_a_retry_that_never_comes(autojump_clock: MockClock) -> None:
    async with running(toolsets=(QUESTIONS,), tools="questions", max_calls=3) as probe:
        client = Modern(probe.app, "/mcp")
        for _ in range(20):
            for asking in ASKING:
                assert asked(await ask(client, asking)) == list(asking.groups[0])
        assert (probe.engine.modern.running, engine_tasks()) == (set(), SERVICES)
        records = [as_value(record) for record in newest(probe.engine.records, 100)]
        assert [record["outcome"] for record in records] == ["input_required"] * 20
        assert not any(record["done"] for record in records)


@pytest.mark.proves("2026-07-28/basic/22")
async def test_rounds_of_many_requests_do_not_mix(autojump_clock: MockClock) -> None:
    async with questions() as client:
        results: dict[int, Any] = {}

        async def talk(number: int) -> None:
            asking = ASKING[0]
            params = {"name": "steps", "arguments": {"n": number % 10}}
            named = {"action": "accept", "content": {"name": f"n{number}"}}
            given: Mapping[str, Any] = {**ANSWERS, "name": named}
            result, rounds = await client.rounds("tools/call", params, lambda key, request: given[key])
            assert rounds == 3
            results[number] = asking.heard(result)["name"]["content"]["name"]

        async with trio.open_nursery() as nursery:
            for number in range(30):
                nursery.start_soon(talk, number)
    assert results == {number: f"n{number}" for number in range(30)}


def test_the_methods_that_may_ask_are_the_three_of_the_specification() -> None:
    assert {method for method, row in REQUESTS.items() if row.input_responses} == {asking.method for asking in ASKING}

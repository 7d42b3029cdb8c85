"""A call through a tool host, in memory and in virtual time: arguments, result, progress, deadlines, failure."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.hosts import ECHO, PLAIN, Host, calling, hosting
from ..support.legacy import Legacy, RpcError
from ..support.modern import Modern
from ..support.probe import Probe

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


async def user(probe: Probe, revision: str, tools: str = "hosts") -> Legacy | Modern:
    return probe.modern(tools=tools) if revision == REVISIONS[-1] else await probe.client(revision, tools=tools)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_reaches_the_host_and_its_result_the_client(
    probe: Probe, host: Host, revision: str, autojump_clock: MockClock
) -> None:
    client = await user(probe, revision)
    async with calling(client, "demo__echo", {"word": "hi"}) as call:
        dispatch, params = await host.dispatched()
        assert params == {"tool": "echo", "arguments": {"word": "hi"}, "idleMs": 30000, "ceilingMs": 300000}
        await host.answer(dispatch, output={"word": "hi"})
    assert call.result["content"] == [{"type": "text", "text": '{"word":"hi"}'}]
    # The first revision knows no structured content.
    assert call.result.get("structuredContent") == (None if revision == "2025-03-26" else {"word": "hi"})
    assert "isError" not in call.result or call.result["isError"] is False
    assert await host.hear_all() == [], "nothing is cancelled that has an answer"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_text_is_all_that_a_plain_tool_gives(
    probe: Probe, host: Host, revision: str, autojump_clock: MockClock
) -> None:
    async with calling(await user(probe, revision), "demo__plain") as call:
        await host.answer((await host.dispatched())[0], text="done")
    assert call.result["content"] == [{"type": "text", "text": "done"}]
    assert "structuredContent" not in call.result


async def test_a_tool_without_output_schema_may_answer_with_any_object(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain", {"any": [1, None]}) as call:
        dispatch, params = await host.dispatched()
        assert params["arguments"] == {"any": [1, None]}
        await host.answer(dispatch, output={"n": 2**70, "half": 0.5})
    assert call.result["structuredContent"] == {"n": 2**70, "half": 0.5}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("arguments", [{"word": 5}, {"word": "x" * 21}])
async def test_arguments_that_do_not_fit_never_reach_the_host(
    probe: Probe, host: Host, revision: str, arguments: dict[str, Any], autojump_clock: MockClock
) -> None:
    client = await user(probe, revision, "hosts,probe")
    async with calling(client, "demo__echo", arguments) as call:
        pass
    async with calling(client, "simple_tool", {"delayMs": "soon"}) as local:
        pass
    assert call.response is not None
    assert local.response is not None
    if revision < "2025-11-25":
        assert (call.error["code"], local.error["code"]) == (-32602, -32602)
        said = call.error["message"]
    else:
        assert (call.result["isError"], local.result["isError"]) == (True, True)
        assert len(call.result["content"]) == len(local.result["content"])
        said = call.result["content"][0]["text"]
    assert "word" in said
    assert await host.hear_all() == []
    assert probe.events("dispatch.sent", "host.misuse") == []


async def test_a_fault_of_the_arguments_as_a_whole_is_told_too(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    await host.update({**ECHO, "inputSchema": {"type": "object", "required": ["word"], "additionalProperties": False}})
    client = probe.modern(tools="hosts")
    for arguments, why in (({}, "word is required"), ({"x" * 500: 1, "word": ""}, "False schema")):
        result = await client.tool("demo__echo", arguments)
        assert result["isError"] is True
        assert why in result["content"][0]["text"]
        assert len(result["content"][0]["text"]) < 600, "a client's own words are cut"
    assert await host.hear_all() == []


async def test_a_value_that_no_double_holds_is_judged_like_any_other(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    few = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}}
    await host.update({**PLAIN, "inputSchema": few})
    client = probe.modern(tools="hosts")
    assert (await client.tool("demo__plain", {"n": 10**400}))["isError"] is True
    async with calling(client, "demo__plain", {"n": -(10**400)}):
        dispatch, params = await host.dispatched()
        assert params["arguments"] == {"n": -(10**400)}
        await host.answer(dispatch, text="small")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_progress_reaches_the_client_with_its_token_and_before_the_result(
    probe: Probe, host: Host, revision: str, autojump_clock: MockClock
) -> None:
    async with calling(await user(probe, revision), "demo__plain", token="t") as call:
        dispatch, _ = await host.dispatched()
        await host.progress(dispatch, 1, total=3, message="one")
        await host.progress(dispatch, 1.5)
        await host.progress(dispatch, 3, total=3)
        await host.answer(dispatch, text="done")
    assert call.progress == [
        {"progressToken": "t", "progress": 1, "total": 3, "message": "one"},
        {"progressToken": "t", "progress": 1.5},
        {"progressToken": "t", "progress": 3, "total": 3},
    ]


async def test_a_flood_is_coalesced_and_its_last_value_comes_before_the_result(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    client = probe.modern(tools="hosts")
    async with calling(client, "demo__plain", token=7) as call:
        dispatch, _ = await host.dispatched()
        before = probe.engine.log.since(0, 1_000_000).entries[-1].seq
        await host.flood(dispatch, 5_000)
        await host.answer(dispatch, text="done")
    values = [report["progress"] for report in call.progress]
    assert all(one < other for one, other in pairwise(values))
    # All of it in one moment: the burst, and the last.
    assert (len(values), values[-1]) == (101, 4_999)
    (settled,) = probe.events("dispatch.settled")
    counts = {name: settled[name] for name in ("reports", "sent", "coalesced", "invalid")}
    assert counts == {"reports": 5_000, "sent": 101, "coalesced": 4_899, "invalid": 0}
    assert probe.engine.log.since(0, 1_000_000).entries[-1].seq - before < 300


async def test_a_flood_that_nobody_asked_for_does_not_fill_the_log_either(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    async with calling(await probe.client(tools="hosts"), "demo__plain") as call:
        dispatch, _ = await host.dispatched()
        for number in range(1_000):
            await host.progress(dispatch, number)
        await host.answer(dispatch, text="done")
    assert call.progress == []
    assert len(probe.events("call.progressed")) == 101
    assert probe.record()["steps_done"] == 999


async def test_silence_ends_at_the_idle_deadline_and_the_host_is_told(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
        began = trio.current_time()
        dispatch, _ = await host.dispatched()
        assert await host.cancelled() == {"dispatch": dispatch, "cause": "deadline"}
        assert trio.current_time() - began == pytest.approx(30)
    numbers = {"deadline": "idle", "elapsedMs": 30000, "idleMs": 30000, "ceilingMs": 300000, "progressCount": 0}
    assert call.result["isError"] is True
    assert call.result["_meta"]["mcp-probe/deadline"] == numbers
    await host.fail(dispatch, 2, "stopped")
    await wait_all_tasks_blocked()
    assert [event["how"] for event in probe.events("dispatch.stopped")] == ["acknowledged"]


@pytest.mark.parametrize("token", [None, "t"])
async def test_reports_keep_a_call_alive_up_to_the_ceiling_and_no_longer(
    probe: Probe, host: Host, token: str | None, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain", token=token) as call:
        began = trio.current_time()
        dispatch, _ = await host.dispatched()
        for number in range(10):
            await trio.sleep(29)
            await host.progress(dispatch, number)
        assert await host.cancelled() == {"dispatch": dispatch, "cause": "deadline"}
        assert trio.current_time() - began == pytest.approx(300)
    assert call.result["_meta"]["mcp-probe/deadline"]["deadline"] == "ceiling"
    assert len(call.progress) == (0 if token is None else 10)


async def test_reports_that_are_not_valid_do_not_move_the_deadline(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain", token="t") as call:
        dispatch, _ = await host.dispatched()
        began = trio.current_time()
        await host.progress(dispatch, 5, total=9)
        for bad in (5, 4.5, -1, 10**400):
            await trio.sleep(7)
            await host.progress(dispatch, bad)
        await host.progress(dispatch, 6, total=10**400)
        await host.cancelled()
        assert trio.current_time() - began == pytest.approx(30)
    assert call.progress == [{"progressToken": "t", "progress": 5, "total": 9}]
    (settled,) = probe.events("dispatch.settled")
    assert (settled["reports"], settled["invalid"]) == (1, 5)


async def test_a_tool_may_have_deadlines_of_its_own(autojump_clock: MockClock) -> None:
    async with hosting() as (probe, host):
        await host.update({**PLAIN, "idleMs": 2500, "ceilingMs": 4000}, {**ECHO, "idleMs": 100, "ceilingMs": 3600000})
        async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
            dispatch, params = await host.dispatched()
            assert (params["idleMs"], params["ceilingMs"]) == (2500, 4000)
            await trio.sleep(2)
            await host.progress(dispatch, 1)
            await host.cancelled()
        assert call.result["_meta"]["mcp-probe/deadline"] == {
            "deadline": "ceiling", "elapsedMs": 4000, "idleMs": 2500, "ceilingMs": 4000, "progressCount": 1,
        }  # fmt: skip
        async with calling(probe.modern(tools="hosts"), "demo__echo") as call:
            assert (await host.dispatched())[1]["ceilingMs"] == 3600000
            await host.cancelled()
        assert call.result["_meta"]["mcp-probe/deadline"]["elapsedMs"] == 100


FAILURES: dict[str, tuple[int, Any, dict[str, Any]]] = {
    "a failure": (1, {"code": "locked"}, {"code": "locked", "retryable": False}),
    "a failure with everything": (
        1,
        {"code": "locked", "retryable": True, "retryAfterMs": 500, "progress": 4, "total": 8, "more": 1},
        {"code": "locked", "retryable": True, "retryAfterMs": 500, "progress": 4, "total": 8},
    ),
    "a failure without data": (1, None, {"code": "host_error", "retryable": False}),
    "a failure with other data": (1, {"code": "Not A Word"}, {"code": "host_error", "retryable": False}),
    "a failure with a list for data": (1, [1], {"code": "host_error", "retryable": False}),
    "work that stopped unasked": (2, None, {"code": "host_stopped", "retryable": True}),
    "no such method": (-32601, None, {"code": "host_error", "retryable": False}),
    "a code of nobody": (2**70, {"code": "ignored"}, {"code": "host_error", "retryable": False}),
    "a code that is ours": (10, None, {"code": "host_error", "retryable": False}),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_an_error_of_the_host_is_a_tool_error_with_its_facts(
    probe: Probe, host: Host, name: str, autojump_clock: MockClock
) -> None:
    code, data, facts = FAILURES[name]
    async with calling(probe.modern(tools="hosts"), "demo__echo") as call:
        dispatch, _ = await host.dispatched()
        await host.fail(dispatch, code, "it is locked", data)
    told = dict(call.failure)
    assert "it is locked" in told.pop("message")
    assert told == {**facts, "host": "demo", "dispatch": dispatch}
    record = probe.record()
    assert (record["outcome"], record["answered"], record["done"]) == ("tool_error", True, False)
    misuse = code == 1 and facts["code"] == "host_error"
    assert [event["what"] for event in probe.events("host.misuse")] == (["invalid answer"] if misuse else [])


async def test_an_error_tells_how_far_the_work_got_by_its_last_valid_report(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    client = probe.modern(tools="hosts")
    async with calling(client, "demo__plain") as call:
        dispatch, _ = await host.dispatched()
        await host.progress(dispatch, 3, total=8)
        for value, more in ((2, {}), (10**400, {}), (4, {"total": 10**400}), (3, {"total": 9})):
            await host.progress(dispatch, value, **more)
        await host.fail(dispatch, 1, "no", {"code": "locked"})
    assert (call.failure["progress"], call.failure["total"]) == (3, 8)
    async with calling(client, "demo__plain") as call:
        dispatch, _ = await host.dispatched()
        await host.progress(dispatch, 3, total=8)
        await host.progress(dispatch, 4)
        await host.fail(dispatch, 1, "no", {"code": "locked"})
    assert call.failure["progress"] == 4
    assert "total" not in call.failure


async def test_a_long_message_is_cut(probe: Probe, host: Host, autojump_clock: MockClock) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__echo") as call:
        await host.fail((await host.dispatched())[0], 1, "x" * 100_000, {"code": "locked"})
    assert call.failure["message"] == "x" * 2000 + "…"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_record_and_the_events_tell_the_whole_story(
    probe: Probe, host: Host, revision: str, autojump_clock: MockClock
) -> None:
    async with calling(await user(probe, revision), "demo__echo", {"word": "hi"}, token="t"):
        dispatch, _ = await host.dispatched()
        await host.progress(dispatch, 1, total=2)
        await trio.sleep(1.5)
        await host.answer(dispatch, output={"word": "hi"})
    record = probe.record()
    expected = {
        "tool": "demo__echo",
        "toolset": "hosts",
        "arguments": {"word": "hi"},
        "outcome": "completed",
        "done": True,
        "answered": True,
        "steps_done": 1,
        "steps_total": 2,
        "duration_ms": 1500,
        "cancelled_by": None,
        "cancel_latency_ms": None,
    }
    assert {name: record[name] for name in expected} == expected
    kinds = ("call.started", "dispatch.sent", "host.message", "dispatch.extended", "dispatch.settled", "call.settled")
    events = [event for event in probe.events(*kinds) if event.get("call") == record["call"]]
    assert [event["kind"] for event in events] == [
        "call.started",
        "dispatch.sent",
        "host.message",
        "dispatch.extended",
        "host.message",
        "dispatch.settled",
        "call.settled",
    ]
    sent, answered = (event for event in events if event["kind"] == "host.message")
    assert [(event["direction"], event["rpc"], event["id"]) for event in (sent, answered)] == [
        ("sent", "request", dispatch),
        ("received", "response", dispatch),
    ]
    assert answered["message"]["result"] == {"output": {"word": "hi"}}
    about = {name: events[1][name] for name in ("tool", "host", "dispatch", "idle_ms", "ceiling_ms")}
    assert about == {
        "tool": "demo__echo", "host": "demo", "dispatch": dispatch, "idle_ms": 30000, "ceiling_ms": 300000,
    }  # fmt: skip


async def test_a_tool_of_a_host_does_not_run_as_a_task(probe: Probe, host: Host, autojump_clock: MockClock) -> None:
    client = await probe.client(tools="hosts")
    with pytest.raises(RpcError) as caught:
        await client.call("tools/call", {"name": "demo__echo", "arguments": {}, "task": {"ttl": 1000}})
    assert caught.value.code == -32601
    assert await host.hear_all() == []


async def test_a_parameter_of_a_host_may_be_mirrored_in_a_header(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    mirrored = {"type": "object", "properties": {"word": {"type": "string", "x-mcp-header": "Word"}}}
    await host.update({**PLAIN, "inputSchema": mirrored})
    client = probe.modern(tools="hosts")
    request = client.request("tools/call", {"name": "demo__plain", "arguments": {"word": "a"}})
    async with client.post(request, {"mcp-param-word": "b"}) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (400, -32020)
    assert await host.hear_all() == []
    async with trio.open_nursery() as nursery:

        async def answer_it() -> None:
            await host.answer((await host.dispatched())[0], text="same")

        nursery.start_soon(answer_it)
        async with client.post(request, {"mcp-param-word": "a"}) as answer:
            assert answer.status == 200
            await answer.body()


async def test_many_calls_at_once_get_each_their_own_answer(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    client = probe.modern(tools="hosts")
    results: dict[str, Any] = {}

    async def call(word: str) -> None:
        results[word] = (await client.tool("demo__echo", {"word": word}))["structuredContent"]["word"]

    async with trio.open_nursery() as nursery:
        for number in range(25):
            nursery.start_soon(call, str(number))
        dispatches = [await host.dispatched() for _ in range(25)]
        for dispatch, params in reversed(dispatches):
            await host.answer(dispatch, output=params["arguments"])
    assert results == {str(number): str(number) for number in range(25)}

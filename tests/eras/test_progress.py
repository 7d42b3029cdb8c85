"""Progress of calls (product contract, section 4; basic/utilities/progress, basic/patterns/progress)."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Integer, Tool, ToolResult, structured

from ..support.calls import ERAS, LEGACY, heard, slow, steps, tool_call
from ..support.inside import engine_tasks
from ..support.legacy import Legacy, RpcError
from ..support.modern import VERSION, Modern
from ..support.probe import Probe, running
from ..support.rows import each

each_era = pytest.mark.parametrize("revision", ERAS)
TOKENS = [0, -1, 7, 2**53 + 1, 10**30, "", "0", "a token", "é\u2028\U0001f600", "x" * 256]


async def tool(client: Legacy | Modern, name: str, token: Any = "t", **arguments: Any) -> dict[str, Any]:
    return await client.tool(name, arguments, meta={"progressToken": token})


def told(client: Legacy | Modern) -> list[dict[str, Any]]:
    return client.noted("notifications/progress")


def values(client: Legacy | Modern) -> list[float]:
    return [note["progress"] for note in told(client)]


# Custom tools that report as no built-in tool does.


async def _flood(context: ToolContext) -> ToolResult:
    count, pause_ms = context.arguments["count"], context.arguments["pauseMs"]
    for number in range(1, count + 1):
        if pause_ms:
            await context.sleep(pause_ms / 1000)
        context.report_progress(number, count, f"{number}")
    await context.sleep(context.arguments["restMs"] / 1000)
    return structured({"count": count})


async def _odd(context: ToolContext) -> ToolResult:
    context.report_progress(0.25)
    for invalid in (0.25, 0.2, -1, math.nan, math.inf, -math.inf):
        context.report_progress(invalid)
    context.report_progress(0.5, math.inf)
    context.report_progress(0.5, math.nan)
    context.report_progress(0.5, 1.5, "half")
    context.report_progress(10**12, message="")
    return structured({"ok": True})


FLOOD = Tool(
    name="flood",
    title="Flood",
    description="Reports much",
    run=_flood,
    params=(
        Integer("count", 1, 1_000_000, 10_000, "how many reports"),
        Integer("pauseMs", 0, 1000, 0, "between two of them"),
        Integer("restMs", 0, 10_000, 0, "after the last"),
    ),
)
ODD = Tool(name="odd", title="Odd", description="Reports nonsense among sense", run=_odd)
CUSTOM = [Toolset("custom", (FLOOD, ODD))]


# The token.


@pytest.mark.proves("2025-11-25/progress/1", "2025-11-25/progress/5")
@pytest.mark.proves("2026-07-28/progress/1", "2026-07-28/progress/5", "2026-07-28/progress/10")
@pytest.mark.parametrize("revision", [*LEGACY, VERSION])
@each("token", TOKENS)
async def test_the_token_comes_back_with_its_value_and_its_type(
    token: int | str, revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.of(revision)
    await tool(client, "progress", token, steps=2)
    assert [(type(note["progressToken"]), note["progressToken"]) for note in told(client)] == [(type(token), token)] * 2
    record = probe.record()
    assert record["progress_token"] == token
    assert record["progress_token_type"] == ("string" if isinstance(token, str) else "integer")


@pytest.mark.proves("2025-11-25/progress/5", "2025-11-25/progress/13")
@pytest.mark.proves("2026-07-28/progress/5", "2026-07-28/progress/10")
@each_era
@each("meta", [None, {"other": 1}])
async def test_without_a_token_there_is_no_progress(
    meta: dict[str, Any] | None, revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.of(revision)
    result = await client.tool("progress", {"steps": 3}, meta=meta)
    assert client.notes == []
    assert result["structuredContent"] == {"steps": 3, "notified": False, "done": True}
    assert (probe.record()["steps_done"], probe.record()["emitted"]) == (3, 0)


@pytest.mark.proves("2025-11-25/progress/1", "2026-07-28/progress/1")
@each_era
@each("token", [None, True, 1.5, [], {}, "x" * 257, 10**300])
async def test_a_token_of_another_type_is_an_error(
    token: Any, revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.of(revision)
    with pytest.raises(RpcError) as caught:
        await tool(client, "progress", token)
    assert caught.value.code == -32602
    assert "progressToken" in caught.value.message
    assert (client.notes, probe.events("call.started")) == ([], [])


@pytest.mark.proves("2025-11-25/transports/16", "2026-07-28/progress/2", "2026-07-28/progress/7")
@pytest.mark.parametrize(
    ("revision", "tokens"), [(LEGACY[-1], (1, 2, "1")), (VERSION, (1, "1", 1)), (VERSION, ("", 0, "0"))], ids=str
)
async def test_calls_at_the_same_time_do_not_mix(
    revision: str, tokens: tuple[Any, ...], probe: Probe, autojump_clock: MockClock
) -> None:
    """Each on its own stream. Modern clients may even have one token: no session tells them apart."""
    clients = [await probe.of(revision)] * 3 if revision != VERSION else [probe.modern() for _ in tokens]
    got: dict[int, list[dict[str, Any]]] = {}

    async def one(number: int) -> None:
        await trio.sleep(number / 10)
        request = slow(clients[number], number, steps=3 + number, token=tokens[number])
        async with clients[number].post(request) as answer:
            got[number] = await heard(clients[number], answer)

    async with trio.open_nursery() as nursery:
        for number in range(len(tokens)):
            nursery.start_soon(one, number)
    for number, messages in got.items():
        assert steps(messages) == [*range(1, 4 + number), None]
        kinds = {(type(note["params"]["progressToken"]), note["params"]["progressToken"]) for note in messages[:-1]}
        assert kinds == {(type(tokens[number]), tokens[number])}
        assert messages[-1]["id"] == number


@pytest.mark.proves("2025-11-25/progress/2", "2025-11-25/progress/10")
async def test_a_token_that_is_in_use_is_recorded_as_misuse(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        for token in (1, 1, "1"):
            nursery.start_soon(tool, client, "progress", token)
    assert [(event["what"], event["detail"]) for event in probe.events("client.misuse")] == [
        ("progress token in use", "token 1")
    ]
    assert len(told(client)) == 15
    await tool(client, "progress", 1)
    assert len(probe.events("client.misuse")) == 1


@pytest.mark.proves("2026-07-28/progress/6")
async def test_a_token_may_be_used_again_when_its_request_is_over(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    for _ in range(2):
        async with client.post(slow(client, steps=2)) as answer:
            assert steps(await heard(client, answer)) == [1, 2, None]


# The values.


@pytest.mark.proves("2025-11-25/progress/4", "2026-07-28/progress/3", "2026-07-28/progress/4")
@pytest.mark.parametrize("revision", [*LEGACY, VERSION])
async def test_each_step_is_told_when_its_work_is_done(revision: str, probe: Probe, autojump_clock: MockClock) -> None:
    """`progress == total` only when the work is done, so the first report comes after the first step."""
    client = await probe.of(revision)
    began = trio.current_time()
    async with client.post(tool_call(client, "progress", {"steps": 4, "step_ms": 250}, progressToken="t")) as answer:
        times = [
            (trio.current_time() - began, event.message.get("params", {}).get("message"))
            async for event in answer.events()
            if event.data
        ]
    said = [*(f"step {step}/4" for step in range(1, 5)), None]
    assert times == [(pytest.approx(at), words) for at, words in zip((0.25, 0.5, 0.75, 1, 1), said, strict=True)]


@pytest.mark.proves("2025-11-25/progress/3", "2025-11-25/progress/4", "2026-07-28/progress/3")
@each_era
@pytest.mark.parametrize(
    ("mode", "total", "words"), [("determinate", 100, "item 25 of 100"), ("indeterminate", None, "item 25...")]
)
async def test_a_total_is_told_only_where_it_is_known(
    mode: str, total: int | None, words: str, revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.of(revision)
    await tool(client, "sync_with_progress", itemCount=100, mode=mode)
    assert values(client) == list(range(1, 101))
    assert {note.get("total") for note in told(client)} == {total}
    assert told(client)[24]["message"] == f"Processing {words}"


@pytest.mark.proves("2025-11-25/progress/3", "2025-11-25/progress/14")
@pytest.mark.proves("2026-07-28/progress/3", "2026-07-28/progress/11")
@each_era
async def test_only_increasing_finite_values_are_passed_on(revision: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=CUSTOM) as probe:
        client = await probe.of(revision)
        result = await tool(client, "odd")
        assert result["structuredContent"] == {"ok": True}
        assert told(client) == [
            {"progressToken": "t", "progress": 0.25},
            {"progressToken": "t", "progress": 0.5, "total": 1.5, "message": "half"},
            {"progressToken": "t", "progress": 10**12, "message": ""},
        ]


# The rate.


async def test_a_hundred_steps_without_a_pause_are_all_told(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await tool(client, "progress", steps=100, step_ms=0)
    assert values(client) == list(range(1, 101))


@pytest.mark.proves("2025-11-25/progress/11", "2026-07-28/progress/8")
@each_era
async def test_a_flood_at_once_is_coalesced_and_its_last_report_kept(revision: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=CUSTOM, progress_burst=10) as probe:
        client = await probe.of(revision)
        await tool(client, "flood", count=10_000)
        assert values(client) == [*range(1, 11), 10_000]
        record = probe.record()
        assert (record["steps_done"], record["steps_total"]) == (10_000, 10_000)
        assert (record["emitted"], record["delivered"], record["coalesced"]) == (11, 11, 10_000 - 11)


@pytest.mark.proves("2025-11-25/progress/3", "2025-11-25/progress/11", "2026-07-28/progress/3", "2026-07-28/progress/8")
@each_era
async def test_a_lasting_flood_is_told_at_the_set_rate(revision: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=CUSTOM, progress_burst=5, progress_per_second=10) as probe:
        client = await probe.of(revision)
        await tool(client, "flood", count=2000, pauseMs=1)
        got = values(client)
        assert 20 <= len(got) <= 5 + 10 * 2 + 1
        assert got == sorted(set(got))
        assert got[-1] == 2000
        assert max(after - before for before, after in pairwise(got)) <= 101, "none waits too long"


@pytest.mark.parametrize("pause_ms", [0, 1])
async def test_the_latest_report_is_sent_as_soon_as_the_rate_allows(pause_ms: int, autojump_clock: MockClock) -> None:
    async with running(toolsets=CUSTOM, progress_burst=1, progress_per_second=2) as probe:
        client = await probe.client()
        arguments = {"count": 50, "pauseMs": pause_ms, "restMs": 3000}
        params = {"name": "flood", "arguments": arguments, "_meta": {"progressToken": "t"}}
        began = trio.current_time()
        async with client.post(client.request("tools/call", params)) as answer:
            (_, first, last) = await answer.first(3)
            assert (first.message["params"]["progress"], last.message["params"]["progress"]) == (1, 50)
            assert trio.current_time() - began == pytest.approx(0.5, abs=0.01)
            (response,) = [event.message for event in await client.read(answer)]
        assert "result" in response
        assert trio.current_time() - began == pytest.approx(3 + 50 * pause_ms / 1000)


@pytest.mark.proves("2025-11-25/progress/6", "2025-11-25/progress/12", "2026-07-28/progress/9")
@each_era
async def test_a_report_that_waits_goes_before_the_response_and_none_after(
    revision: str, autojump_clock: MockClock
) -> None:
    async with running(toolsets=CUSTOM, progress_burst=1, progress_per_second=1) as probe:
        client = await probe.of(revision)
        before = engine_tasks()
        async with client.post(tool_call(client, "flood", {"count": 3}, progressToken="t")) as answer:
            assert steps(await heard(client, answer)) == [1, 3, None]
        assert probe.record()["emitted"] == 2
        await trio.sleep(100)
        assert probe.record()["emitted"] == 2
        assert engine_tasks() == before


@each_era
async def test_the_rate_is_that_of_each_call(revision: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=CUSTOM, progress_burst=10) as probe:
        client = await probe.of(revision)
        async with trio.open_nursery() as nursery:
            for token in ("a", "b"):
                nursery.start_soon(lambda token=token: tool(client, "flood", token, count=1000))
        for token in ("a", "b"):
            got = [note["progress"] for note in told(client) if note["progressToken"] == token]
            assert got == [*range(1, 11), 1000]


# Tasks.


async def test_a_flooding_task_is_coalesced_as_well(autojump_clock: MockClock) -> None:
    flood = replace(FLOOD, task_support="required")
    async with running(toolsets=[Toolset("custom", (flood,))], progress_burst=10) as probe:
        client = await probe.client()
        async with trio.open_nursery() as nursery:
            await nursery.start(client.listen)
            await client.tool("flood", task={}, meta={"progressToken": "t"})
            await trio.sleep(10)
            nursery.cancel_scope.cancel()
        assert values(client) == [*range(1, 11), 10_000]
        assert client.notes[-1]["params"]["status"] == "completed"


async def test_a_task_sends_no_progress_but_says_it_in_its_status(probe: Probe, autojump_clock: MockClock) -> None:
    """Tasks extension: progress notifications are not supported on tasks."""
    client = probe.modern()
    handle = await tool(client, "task_with_progress", itemCount=3)
    messages = []

    async def pause() -> None:
        messages.append((await client.get_task(handle["taskId"]))["statusMessage"])
        await trio.sleep(0.5)

    await client.until(handle["taskId"], "completed", pause=pause)
    assert client.notes == []
    assert len(set(messages)) >= 3
    assert any("2" in message for message in messages)
    assert probe.record()["steps_done"] == 3

"""Progress notifications of calls (product contract, section 4; 2025-11-25 basic/utilities/progress)."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.params import Integer
from probe.engine.catalogue.tool import Tool, ToolResult, structured

from ..support.http import Event
from ..support.legacy import Legacy, RpcError
from ..support.probe import Probe, running

LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]
TOKENS = [0, -1, 7, 2**53 + 1, 10**30, "", "0", "a token", "é\u2028\U0001f600", "x" * 256]


async def tool(client: Legacy, name: str, token: Any = "t", **arguments: Any) -> dict[str, Any]:
    """Call with a progress token."""
    return await client.tool(name, arguments, _meta={"progressToken": token})


def heard(client: Legacy) -> list[dict[str, Any]]:
    return client.noted("notifications/progress")


def values(client: Legacy) -> list[float]:
    return [note["progress"] for note in heard(client)]


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
@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("token", TOKENS, ids=lambda token: f"{type(token).__name__} {str(token)[:20]!r}")
async def test_the_token_comes_back_with_its_value_and_its_type(
    token: int | str, revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    """ "Progress tokens MUST be a string or integer value"; a notification contains "The original progress token"."""
    client = await probe.client(revision)
    await tool(client, "progress", token, steps=2)
    assert [(type(note["progressToken"]), note["progressToken"]) for note in heard(client)] == [
        (type(token), token)
    ] * 2
    record = probe.record()
    assert record["progress_token"] == token
    assert record["progress_token_type"] == ("string" if isinstance(token, str) else "integer")


@pytest.mark.proves("2025-11-25/progress/5", "2025-11-25/progress/13")
@pytest.mark.parametrize("meta", [None, {}, {"other": 1}])
async def test_without_a_token_there_is_no_progress(
    meta: dict[str, Any] | None, probe: Probe, autojump_clock: MockClock
) -> None:
    """Progress notifications "MUST only reference tokens that [...] Were provided in an active request"."""
    client = await probe.client()
    result = await client.tool("progress", {"steps": 3}, **({} if meta is None else {"_meta": meta}))
    assert client.notes == []
    assert result["structuredContent"] == {"steps": 3, "notified": False, "done": True}
    assert (probe.record()["steps_done"], probe.record()["emitted"]) == (3, 0)


@pytest.mark.proves("2025-11-25/progress/1")
@pytest.mark.parametrize("token", [None, True, 1.5, [], {}, "x" * 257, 10**300])
async def test_a_token_of_another_type_is_an_error(token: Any, probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    with pytest.raises(RpcError) as caught:
        await tool(client, "progress", token)
    assert caught.value.code == -32602
    assert "progressToken" in caught.value.message
    assert client.notes == []


@pytest.mark.proves("2025-11-25/transports/16")
async def test_progress_goes_on_the_stream_of_its_request_only(probe: Probe, autojump_clock: MockClock) -> None:
    """basic/transports: messages on a POST's stream "SHOULD relate to the originating client request"."""
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        streams: dict[int, list[Event]] = {}

        async def one(token: int) -> None:
            params = {"name": "progress", "arguments": {"steps": 4}, "_meta": {"progressToken": token}}
            async with client.post(client.request("tools/call", params)) as answer:
                streams[token] = await client.read(answer)

        async with trio.open_nursery() as calls:
            for token in (1, 2, 3):
                calls.start_soon(one, token)
        nursery.cancel_scope.cancel()
    for token, events in streams.items():
        messages = [event.message for event in events if event.data]
        assert [message.get("params", {}).get("progressToken") for message in messages] == [token] * 4 + [None]


@pytest.mark.proves("2025-11-25/progress/2", "2025-11-25/progress/10")
async def test_a_token_that_is_in_use_is_recorded_as_misuse(probe: Probe, autojump_clock: MockClock) -> None:
    """Progress tokens "MUST be unique across all active requests"."""
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        for token in (1, 1, "1"):
            nursery.start_soon(tool, client, "progress", token)
    assert [(event["what"], event["detail"]) for event in probe.events("client.misuse")] == [
        ("progress token in use", "token 1")
    ]
    assert len(heard(client)) == 15
    await tool(client, "progress", 1)
    assert len(probe.events("client.misuse")) == 1


# The values.


@pytest.mark.proves("2025-11-25/progress/4")
@pytest.mark.parametrize("revision", LEGACY)
async def test_each_step_is_reported_when_its_work_is_done(
    revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    """`progress == total` only when the work is done, so the first report comes after the first step."""
    client = await probe.client(revision)
    began = trio.current_time()
    times = []
    params = {"name": "progress", "arguments": {"steps": 4, "step_ms": 250}, "_meta": {"progressToken": "t"}}
    async with client.post(client.request("tools/call", params)) as answer:
        async for event in answer.events():
            if event.data:
                client.check(event.message)
                times.append((trio.current_time() - began, event.message.get("params", {}).get("message")))
    assert times == [
        (pytest.approx(0.25), "step 1/4"),
        (pytest.approx(0.5), "step 2/4"),
        (pytest.approx(0.75), "step 3/4"),
        (pytest.approx(1.0), "step 4/4"),
        (pytest.approx(1.0), None),
    ]


@pytest.mark.proves("2025-11-25/progress/3", "2025-11-25/progress/4")
async def test_determinate_progress_tells_the_total(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await tool(client, "sync_with_progress", itemCount=100)
    assert [(note["progress"], note["total"]) for note in heard(client)] == [(item, 100) for item in range(1, 101)]
    assert heard(client)[24]["message"] == "Processing item 25 of 100"


@pytest.mark.proves("2025-11-25/progress/3", "2025-11-25/progress/4")
async def test_indeterminate_progress_has_no_total(probe: Probe, autojump_clock: MockClock) -> None:
    """ "Omit the total value if unknown"; it "MUST increase with each notification, even if the total is unknown"."""
    client = await probe.client()
    await tool(client, "sync_with_progress", itemCount=30, mode="indeterminate")
    assert values(client) == list(range(1, 31))
    assert all("total" not in note for note in heard(client))
    assert heard(client)[24]["message"] == "Processing item 25..."


@pytest.mark.proves("2025-11-25/progress/3", "2025-11-25/progress/14")
async def test_only_increasing_finite_values_are_passed_on(autojump_clock: MockClock) -> None:
    """ "The `progress` value MUST increase with each notification"; values "MAY be floating point"."""
    async with running(toolsets=CUSTOM) as probe:
        client = await probe.client()
        result = await tool(client, "odd")
        assert result["structuredContent"] == {"ok": True}
        assert heard(client) == [
            {"progressToken": "t", "progress": 0.25},
            {"progressToken": "t", "progress": 0.5, "total": 1.5, "message": "half"},
            {"progressToken": "t", "progress": 10**12, "message": ""},
        ]


# The rate.


async def test_a_hundred_steps_without_a_pause_are_all_told(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await tool(client, "progress", steps=100, step_ms=0)
    assert values(client) == list(range(1, 101))


@pytest.mark.proves("2025-11-25/progress/11")
async def test_a_flood_at_once_is_coalesced_and_its_last_report_kept(autojump_clock: MockClock) -> None:
    """ "Both parties SHOULD implement rate limiting to prevent flooding"."""
    async with running(toolsets=CUSTOM, progress_burst=10) as probe:
        client = await probe.client()
        await tool(client, "flood", count=10_000)
        assert values(client) == [*range(1, 11), 10_000]
        record = probe.record()
        assert (record["steps_done"], record["steps_total"]) == (10_000, 10_000)
        assert (record["emitted"], record["coalesced"]) == (11, 10_000 - 11)


@pytest.mark.proves("2025-11-25/progress/3", "2025-11-25/progress/11")
async def test_a_lasting_flood_is_told_at_the_set_rate(autojump_clock: MockClock) -> None:
    async with running(toolsets=CUSTOM, progress_burst=5, progress_per_second=10) as probe:
        client = await probe.client()
        await tool(client, "flood", count=10_000, pauseMs=1)
        told = values(client)
        assert 100 <= len(told) <= 5 + 10 * 10 + 1
        assert told == sorted(set(told))
        assert told[-1] == 10_000
        assert max(after - before for before, after in pairwise(told)) <= 101, "none waits too long"


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


@pytest.mark.proves("2025-11-25/progress/6", "2025-11-25/progress/12")
async def test_a_report_that_waits_goes_before_the_response(autojump_clock: MockClock) -> None:
    """ "Progress notifications MUST stop after completion"."""
    async with running(toolsets=CUSTOM, progress_burst=1, progress_per_second=1) as probe:
        client = await probe.client()
        async with client.post(
            client.request("tools/call", {"name": "flood", "arguments": {"count": 3}, "_meta": {"progressToken": "t"}})
        ) as answer:
            messages = [event.message for event in await client.read(answer)]
        assert [message.get("params", {}).get("progress") for message in messages] == [1, 3, None]
        emitted = probe.record()["emitted"]
        await trio.sleep(100)
        assert probe.record()["emitted"] == emitted == 2


async def test_the_rate_is_that_of_each_call(autojump_clock: MockClock) -> None:
    async with running(toolsets=CUSTOM, progress_burst=10) as probe:
        client = await probe.client()
        async with trio.open_nursery() as nursery:
            for token in ("a", "b"):
                nursery.start_soon(lambda token=token: tool(client, "flood", token, count=1000))
        for token in ("a", "b"):
            told = [note["progress"] for note in heard(client) if note["progressToken"] == token]
            assert told == [*range(1, 11), 1000]


async def test_a_flooding_task_is_coalesced_as_well(autojump_clock: MockClock) -> None:
    flood = Tool(FLOOD.name, FLOOD.title, FLOOD.description, FLOOD.run, FLOOD.params, task_support="required")
    async with running(toolsets=[Toolset("custom", (flood,))], progress_burst=10) as probe:
        client = await probe.client()
        async with trio.open_nursery() as nursery:
            await nursery.start(client.listen)
            await client.tool("flood", task={}, _meta={"progressToken": "t"})
            await trio.sleep(10)
            nursery.cancel_scope.cancel()
        assert values(client) == [*range(1, 11), 10_000]
        assert client.notes[-1]["params"]["status"] == "completed"

"""What the event log tells of a dispatch: sent, extended, expired, settled."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, structured
from probe.tools.catalogue import TOOLSETS

from ..support.probe import Probe, running
from .links import LINKS, Call, linked

KINDS = ("dispatch.sent", "dispatch.extended", "dispatch.expired", "dispatch.settled")


def dispatched(probe: Probe, *kinds: str) -> list[dict[str, Any]]:
    """The events about dispatches, in order, without what every event has."""
    common = ("seq", "cause", "at", "mono", "connection", "exchange", "label", "session", "task", "stream")
    return [
        {key: value for key, value in event.items() if key not in common} for event in probe.events(*(kinds or KINDS))
    ]


@pytest.mark.parametrize("token", ["token", None])
@pytest.mark.parametrize("link", LINKS)
async def test_a_call_that_completes(link: str, token: str | None, autojump_clock: MockClock) -> None:
    async with running() as probe, linked(probe, link) as make:
        await make(Call("progress", {"steps": 3, "step_ms": 700}, token))
        sent, *extended, settled = dispatched(probe)
        assert sent == {
            "kind": "dispatch.sent",
            "call": "c1",
            "tool": "progress",
            "idle_ms": 30_000,
            "ceiling_ms": 530_000,
            "host": None,
            "dispatch": None,
        }
        assert extended == [
            {"kind": "dispatch.extended", "call": "c1", "reports": 1, "deadline": "idle", "due_ms": 30_700},
            {"kind": "dispatch.extended", "call": "c1", "reports": 3, "deadline": "idle", "due_ms": 32_100},
        ]
        assert settled == {
            "kind": "dispatch.settled",
            "call": "c1",
            "outcome": "completed",
            "elapsed_ms": 2100,
            "reports": 3,
            "sent": 0 if token is None else 3,
            "coalesced": 0,
            "invalid": 0,
        }
        assert {event["session"] for event in probe.events(*KINDS)} == {probe.record()["session"]}
        assert {event["cause"] for event in probe.events(*KINDS)} == {probe.record()["seq"]}, "the call.started"


@pytest.mark.parametrize("link", LINKS)
async def test_a_call_that_expires(link: str, autojump_clock: MockClock) -> None:
    async with running() as probe, linked(probe, link) as make:
        await make(Call("progress_gap", {"intervalMs": 600, "gapMs": 9000}, "token"))
        assert [event["kind"] for event in dispatched(probe)] == [
            "dispatch.sent", "dispatch.extended", "dispatch.extended", "dispatch.expired", "dispatch.settled"
        ]  # fmt: skip
        assert dispatched(probe, "dispatch.expired") == [
            {
                "kind": "dispatch.expired",
                "call": "c1",
                "deadline": "idle",
                "elapsed_ms": 3800,
                "idle_ms": 2000,
                "ceiling_ms": 300_000,
                "reports": 3,
            }
        ]
        (settled,) = dispatched(probe, "dispatch.settled")
        assert (settled["outcome"], settled["elapsed_ms"], settled["reports"]) == ("timed_out", 3800, 3)
        story = probe.events("dispatch.expired", "call.cancelled", "dispatch.settled", "call.settled")
        assert [event["kind"] for event in story] == [
            "dispatch.expired", "call.cancelled", "dispatch.settled", "call.settled"
        ]  # fmt: skip


async def test_the_ceiling_is_named_once_it_is_what_comes_next(autojump_clock: MockClock) -> None:
    async with running() as probe, linked(probe, "legacy HTTP") as make:
        await make(Call("progress_beyond_ceiling", {"intervalMs": 1000}))
        extended = dispatched(probe, "dispatch.extended")
        assert [(event["deadline"], event["due_ms"]) for event in extended] == [
            ("idle", 3000), ("idle", 4000), ("ceiling", 5000), ("ceiling", 5000)
        ]  # fmt: skip
        (expired,) = dispatched(probe, "dispatch.expired")
        assert (expired["deadline"], expired["elapsed_ms"], expired["reports"]) == ("ceiling", 5000, 4)


async def test_a_flood_of_reports_is_noted_sparingly_and_counted_in_full(autojump_clock: MockClock) -> None:
    async def flood(context: ToolContext) -> ToolResult:
        for step in range(1, 301):
            await context.sleep(0.01)
            assert context.report_progress(step)
            assert not context.report_progress(step)
        return structured({"done": True})

    toolsets = [*TOOLSETS, Toolset("flood", (Tool("flood", "Flood", "Reports a hundred times a second", flood),))]
    async with (
        running(toolsets=toolsets, progress_per_second=10, progress_burst=5) as probe,
        linked(probe, "legacy HTTP") as make,
    ):
        told = await make(Call("flood", {}, "token"))
        assert [event["reports"] for event in dispatched(probe, "dispatch.extended")] == [1, 101, 201]
        (settled,) = dispatched(probe, "dispatch.settled")
        assert (settled["reports"], settled["invalid"]) == (300, 300)
        assert settled["sent"] == len(told.steps) < 300
        assert settled["sent"] + settled["coalesced"] == 300


@pytest.mark.parametrize("link", LINKS)
async def test_a_call_that_its_client_stops(link: str, autojump_clock: MockClock) -> None:
    """What waits for the rate when the call is stopped is not sent, and not counted as sent."""
    arguments = {"steps": 100, "step_ms": 10}
    async with (
        running(progress_burst=1, progress_per_second=1) as probe,
        linked(probe, link) as make,
    ):
        told = await make(Call("progress", arguments, "token", stop_after=0.505))
        assert told.result is None
        (settled,) = dispatched(probe, "dispatch.settled")
        outcome = "disconnected" if link == "modern HTTP" else "cancelled"
        assert (settled["outcome"], settled["reports"], settled["sent"]) == (outcome, 50, 1)
        assert dispatched(probe, "dispatch.expired") == []


async def test_work_that_goes_on_after_its_end_extends_nothing(autojump_clock: MockClock) -> None:
    async def tidy(context: ToolContext) -> ToolResult:
        context.report_progress(1)
        try:
            await context.sleep(100)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)
                assert not context.report_progress(2)
        return structured({})

    toolsets = [*TOOLSETS, Toolset("tidy", (Tool("tidy", "Tidy", "Cleans up", tidy),))]
    async with running(toolsets=toolsets) as probe, linked(probe, "legacy HTTP") as make:
        told = await make(Call("tidy", {}, "token"))
        assert told.steps == [1]
        (expired,), (settled,) = dispatched(probe, "dispatch.expired"), dispatched(probe, "dispatch.settled")
        assert (expired["elapsed_ms"], expired["reports"]) == (30_000, 1), "when it passed, not when it was noticed"
        assert (settled["elapsed_ms"], settled["reports"], settled["sent"]) == (35_000, 1, 1)


async def test_what_waits_for_nothing_and_what_is_refused_is_no_dispatch(autojump_clock: MockClock) -> None:
    async with running() as probe:
        client, modern = await probe.client(), probe.modern()
        for arguments in ({}, {"nonsense": 1}):
            await client.tool("chatty", arguments)
            await modern.tool("chatty", arguments)
        await client.tool("silent_call", {"silentMs": -1})
        await modern.tool("silent_call", {"silentMs": -1})
        await client.call("ping")
        assert dispatched(probe) == []


async def test_a_task_is_no_dispatch(autojump_clock: MockClock) -> None:
    """Product contract, section 7: its bound is the ttl."""
    async with running(idle_deadline_s=1) as probe:
        client, modern = await probe.client(), probe.modern()
        id = (await client.tool("task_with_progress", task={}))["task"]["taskId"]
        await client.call("tasks/result", {"taskId": id})
        await modern.tool("task_with_progress")
        await trio.sleep(60)
        assert {event["status"] for event in probe.events("task.changed")} >= {"completed"}
        assert dispatched(probe) == []


async def test_a_task_whose_ttl_passes_is_no_dispatch_either(autojump_clock: MockClock) -> None:
    async with running() as probe:
        client = await probe.client()
        await client.tool("pure_task", {"durationMs": 60_000}, task={"ttl": 1000})
        await trio.sleep(60)
        assert [event["by"] for event in probe.events("call.cancelled")] == ["ttl"]
        assert dispatched(probe) == []


@pytest.mark.parametrize(("name", "outcome"), [("bulk_export", "tool_error"), ("ask_several", "input_required")])
async def test_every_other_end_is_told_too(name: str, outcome: str, autojump_clock: MockClock) -> None:
    """Of a call that asks its client, each round is a dispatch of its own."""
    arguments = {"failAtPage": 2} if name == "bulk_export" else {}
    async with running() as probe:
        await probe.modern().tool(name, arguments)
        assert [event["kind"] for event in dispatched(probe) if event["kind"] != "dispatch.extended"] == [
            "dispatch.sent", "dispatch.settled"
        ]  # fmt: skip
        assert dispatched(probe, "dispatch.settled")[0]["outcome"] == outcome


async def test_a_server_that_is_torn_down_settles_its_dispatches(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        async with running() as probe:
            client = await probe.client()
            nursery.start_soon(_call, client)
            await wait_all_tasks_blocked()
        assert [event["outcome"] for event in dispatched(probe, "dispatch.settled")] == ["cancelled"]
        nursery.cancel_scope.cancel()


async def _call(client: Any) -> None:
    async with client.post(client.request("tools/call", {"name": "silent_call", "arguments": {}})) as answer:
        await answer.body()


async def test_a_tool_of_a_host_is_recorded_as_sent_by_whoever_sends_it(autojump_clock: MockClock) -> None:
    async def run(context: ToolContext) -> ToolResult:
        context.report_progress(1)
        return structured({})

    tool = Tool("demo__work", "Work", "Works elsewhere", run, host="demo")
    async with running(toolsets=[*TOOLSETS, Toolset("far", (tool,))]) as probe, linked(probe, "legacy HTTP") as make:
        await make(Call("demo__work", {}))
        assert [event["kind"] for event in dispatched(probe)] == ["dispatch.extended", "dispatch.settled"]

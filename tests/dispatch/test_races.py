"""A deadline and whoever wants the call stopped: exactly one of them wins, on every carrier."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, structured

from ..support.inside import engine_tasks
from ..support.legacy import Legacy
from ..support.probe import Probe, running
from .links import DEADLINE, LINKS, Call, Told, linked

SILENT = {"silentMs": 600_000, "idleMs": 30_000}
BUSY = {"intervalMs": 7000, "durationMs": 600_000, "idleMs": 30_000, "ceilingMs": 300_000}


def causes(probe: Probe) -> list[tuple[str, bool]]:
    """Who wanted the call stopped, and whether that was it."""
    return [(event["by"], event["effect"]) for event in probe.events("call.cancelled")]


def check_one(probe: Probe, told: Told, link: str, *, expired: bool) -> None:
    """One winner: an answer that names the deadline, or silence; and the log agrees."""
    by = "deadline" if expired else "disconnect" if link == "modern HTTP" else "notification"
    assert [cause for cause, effect in causes(probe) if effect] == [by]
    assert told.result is None or expired
    assert len(probe.events("dispatch.expired")) == expired
    (settled,), (over,) = probe.events("call.settled"), probe.events("dispatch.settled")
    assert (settled["cancelled_by"], settled["answered"]) == (by, expired)
    assert over["outcome"] == settled["outcome"] == probe.record()["outcome"]
    emitted = [event for event in probe.events("message.emitted") if event["id"] == "it"]
    assert len(emitted) == expired
    if told.result is not None:
        assert told.result["_meta"][DEADLINE]["deadline"] in ("idle", "ceiling")


@pytest.mark.parametrize("after", [-29.0, -0.001, 0.0, 0.001, 10.0])
@pytest.mark.parametrize("name", ["silent_call", "progress_beyond_ceiling"])
@pytest.mark.parametrize("link", LINKS)
async def test_a_deadline_and_a_cancellation(link: str, name: str, after: float, autojump_clock: MockClock) -> None:
    """In the very moment of the deadline the call is over already."""
    limit, arguments = (30.0, SILENT) if name == "silent_call" else (300.0, BUSY)
    async with running() as probe, linked(probe, link) as make:
        before = engine_tasks()
        told = await make(Call(name, arguments, "token", stop_after=limit + after))
        check_one(probe, told, link, expired=after >= 0)
        # Who hangs up in the very moment in which the answer is made may or may not get to read it.
        if after != 0 or link != "modern HTTP":
            assert (told.result is not None) == (after >= 0)
        assert engine_tasks() == before
        assert probe.record()["duration_ms"] == pytest.approx(1000 * (limit + min(after, 0)), abs=0.01)


@pytest.mark.parametrize("link", LINKS)
async def test_a_result_in_the_very_moment_of_the_deadline_comes_too_late(link: str, autojump_clock: MockClock) -> None:
    async with running() as probe, linked(probe, link) as make:
        told = await make(Call("silent_call", {"silentMs": 2000, "idleMs": 2000}))
        assert told.result["_meta"][DEADLINE]["elapsedMs"] == 2000
        assert causes(probe) == [("deadline", True)]
        told = await make(Call("silent_call", {"silentMs": 1999, "idleMs": 2000}))
        assert told.result["structuredContent"] == {"silentMs": 1999}


@pytest.mark.parametrize("link", LINKS)
async def test_a_report_in_the_very_moment_of_the_deadline_keeps_nothing_alive(
    link: str, autojump_clock: MockClock
) -> None:
    async with running() as probe, linked(probe, link) as make:
        told = await make(Call("progress_gap", {"reports": 1, "intervalMs": 2000, "gapMs": 0, "idleMs": 2000}, "t"))
        assert (told.steps, told.result["_meta"][DEADLINE]["progressCount"]) == ([], 0)
        told = await make(Call("progress_gap", {"reports": 1, "intervalMs": 1999, "gapMs": 0, "idleMs": 2000}, "t"))
        assert told.steps == [1, 2, 3]


async def test_a_report_behind_the_deadline_is_too_late_where_the_tool_has_let_nobody_run(
    autojump_clock: MockClock,
) -> None:
    """trio looks at deadlines when the tool waits; the deadline has passed before."""
    valid: list[bool] = []

    async def computes(context: ToolContext) -> ToolResult:
        valid.append(context.report_progress(1))
        autojump_clock.jump(31)
        valid.append(context.report_progress(2))
        await context.sleep(1)
        return structured({})

    tool = Tool(name="computes", title="Computes", description="Computes for long.", run=computes)
    async with running(toolsets=(Toolset("custom", (tool,)),)) as probe:
        client = Legacy(probe.app, "/mcp?tools=custom")
        await client.initialize()
        result = await client.tool("computes", {}, _meta={"progressToken": "t"})
        assert valid == [True, False]
        assert result["_meta"][DEADLINE]["deadline"] == "idle"
        assert causes(probe) == [("deadline", True)]
        ((settled,), (dropped,)) = probe.events("dispatch.settled"), probe.events("message.dropped")
        assert settled["reports"] == 1
        assert dropped["method"] == "notifications/progress"


@pytest.mark.parametrize("link", LINKS)
async def test_where_both_deadlines_are_one_it_is_the_ceiling(link: str, autojump_clock: MockClock) -> None:
    both = {"intervalMs": 60_000, "durationMs": 60_000, "idleMs": 2000, "ceilingMs": 2000}
    async with running() as probe, linked(probe, link) as make:
        told = await make(Call("progress_beyond_ceiling", both))
        assert told.result["_meta"][DEADLINE]["deadline"] == "ceiling"
        (expired,) = probe.events("dispatch.expired")
        assert (expired["deadline"], expired["elapsed_ms"]) == ("ceiling", 2000)


@pytest.mark.parametrize("link", LINKS)
async def test_a_ceiling_below_the_idle_deadline_is_what_ends_the_call(link: str, autojump_clock: MockClock) -> None:
    low = {"intervalMs": 60_000, "durationMs": 60_000, "idleMs": 30_000, "ceilingMs": 1500}
    async with running() as probe, linked(probe, link) as make:
        told = await make(Call("progress_beyond_ceiling", low))
        numbers = told.result["_meta"][DEADLINE]
        assert (numbers["deadline"], numbers["elapsedMs"], numbers["idleMs"]) == ("ceiling", 1500, 30_000)

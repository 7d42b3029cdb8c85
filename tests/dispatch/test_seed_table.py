"""The table of timeouts that this project was asked for, with the deadlines it has by default: 30 s and 300 s.

    a tool with no progress                          30 seconds
    progress every N seconds (N < 30)                up to 5 minutes
    progress, but a gap of more than 30 s            times out at the gap
    progress for over 5 minutes                      stopped at 5 minutes

Each row on each carrier, with a progress token and without, in virtual time.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, structured
from probe.settings import Settings
from probe.tools.catalogue import TOOLSETS

from ..support.probe import Probe, running
from .links import DEADLINE, LINKS, Call, Json, Told, linked

USUAL = {"idleMs": 30_000, "ceilingMs": 300_000}
INVALID: dict[str, Any] = {
    "the same again": 1,
    "less": 0.5,
    "no number": math.nan,
    "infinite": math.inf,
    "greater than any double": 10**400,
}


def _stuck(value: Any) -> Tool:
    async def run(context: ToolContext) -> ToolResult:
        await context.sleep(10)
        context.report_progress(1)
        for _ in range(100):
            await context.sleep(10)
            context.report_progress(value)
        return structured({"done": True})

    return Tool("stuck", "Stuck", "Reports once, and then nothing that is progress", run)


def ended(which: str, elapsed_ms: int, reports: int) -> Json:
    """The numbers of a call that a deadline has ended."""
    return {"deadline": which, "elapsedMs": elapsed_ms, "progressCount": reports, **USUAL}


# tool, arguments, seconds that the call takes, its reports, the numbers of its error; None where it completes
TABLE: dict[str, tuple[str, Json, float, int, Json | None]] = {
    "no progress": ("bulk_export", {"pages": 1, "pageMs": 31_000}, 30, 0, ended("idle", 30_000, 0)),
    "no progress, exactly 30 s": ("bulk_export", {"pages": 1, "pageMs": 30_000}, 30, 0, ended("idle", 30_000, 0)),
    "no progress, just in time": ("bulk_export", {"pages": 1, "pageMs": 29_999}, 29.999, 1, None),
    "a silent call": ("silent_call", {"silentMs": 600_000, "idleMs": 30_000}, 30, 0, ended("idle", 30_000, 0)),
    "progress every 20 s": ("bulk_export", {"pages": 100, "pageMs": 20_000}, 300, 14, ended("ceiling", 300_000, 14)),
    "progress every 29.999 s": (
        "bulk_export",
        {"pages": 100, "pageMs": 29_999},
        300,
        10,
        ended("ceiling", 300_000, 10),
    ),
    "progress every 29.9 s, just under 5 minutes": ("bulk_export", {"pages": 10, "pageMs": 29_900}, 299, 10, None),
    "progress for over 5 minutes": (
        "progress_beyond_ceiling",
        {"intervalMs": 7000, "durationMs": 600_000, **USUAL},
        300,
        42,
        ended("ceiling", 300_000, 42),
    ),
    "a gap over 30 s": (
        "progress_gap",
        {"intervalMs": 20_000, "gapMs": 31_000, "idleMs": 30_000},
        90,
        3,
        ended("idle", 90_000, 3),
    ),
    "a gap of just under 30 s": (
        "progress_gap",
        {"intervalMs": 20_000, "gapMs": 29_999, "idleMs": 30_000},
        149.999,
        7,
        None,
    ),
    "progress that comes early does not shorten": (
        "progress_gap",
        {"reports": 1, "intervalMs": 1000, "gapMs": 29_500, "idleMs": 30_000},
        31.5,
        3,
        None,
    ),
}


def check(probe: Probe, told: Told, seconds: float, error: Json | None) -> None:
    """The answer came in time and says the right thing, and so does the record."""
    assert told.took == pytest.approx(seconds, abs=0.001)
    result, record = told.result, probe.record()
    assert result is not None
    assert record["duration_ms"] == pytest.approx(seconds * 1000, abs=1)
    if error is None:
        assert "isError" not in result
        assert (record["outcome"], record["done"]) == ("completed", True)
        return
    assert (record["outcome"], record["done"], record["cancelled_by"]) == ("timed_out", False, "deadline")
    assert result.keys() == {"content", "isError", "_meta"}
    assert result["isError"] is True
    assert result["_meta"] == {DEADLINE: error}
    sentence, numbers = [block["text"] for block in result["content"]]
    assert json.loads(numbers) == error
    assert {"idle": "no progress for 30 s", "ceiling": "longer than 300 s (ceiling)"}[error["deadline"]] in sentence


def test_the_deadlines_are_those_of_the_table_unless_somebody_says_otherwise() -> None:
    server = Settings()
    assert (server.idle_deadline_s, server.ceiling_deadline_s) == (30, 300)


@pytest.mark.proves("2026-07-28/cancellation/7")
@pytest.mark.parametrize("token", ["token", None], ids=["with a token", "without a token"])
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("row", TABLE)
async def test_the_table(row: str, link: str, token: str | None, autojump_clock: MockClock) -> None:
    """Progress counts whether or not the client asked to hear of it."""
    name, arguments, seconds, reports, error = TABLE[row]
    async with running() as probe, linked(probe, link) as make:
        told = await make(Call(name, arguments, token))
        check(probe, told, seconds, error)
        assert len(told.steps) == (0 if token is None else reports)
        assert told.steps == sorted(set(told.steps))


@pytest.mark.parametrize("token", ["token", None], ids=["with a token", "without a token"])
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("kind", INVALID)
async def test_what_is_no_progress_moves_no_deadline(
    kind: str, link: str, token: str | None, autojump_clock: MockClock
) -> None:
    """30 s after the one report that was valid; the others reach nobody."""
    toolsets = [*TOOLSETS, Toolset("stuck", (_stuck(INVALID[kind]),))]
    async with running(toolsets=toolsets) as probe, linked(probe, link) as make:
        told = await make(Call("stuck", {}, token))
        check(probe, told, 40, ended("idle", 40_000, 1))
        assert told.steps == ([] if token is None else [1])
        (settled,) = probe.events("dispatch.settled")
        # Those at 20 and 30 s; at 40 s it is over.
        assert (settled["reports"], settled["invalid"]) == (1, 2)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    ("name", "seconds", "which", "reports"),
    [
        ("silent_call", 2, "idle", 0),
        ("progress_beyond_ceiling", 5, "ceiling", 9),
        ("progress_gap", 5, "idle", 3),
        ("bulk_export", 3, None, 10),
    ],
)
async def test_without_arguments_each_tool_shows_its_case_within_seconds(
    name: str, seconds: float, which: str | None, reports: int, link: str, autojump_clock: MockClock
) -> None:
    async with running() as probe, linked(probe, link) as make:
        told = await make(Call(name, {}, 0))
        assert told.took == pytest.approx(seconds, abs=0.001)
        assert len(told.steps) == reports
        assert told.result is not None
        numbers = told.result.get("_meta", {}).get(DEADLINE, {})
        assert numbers.get("deadline") == which


@pytest.mark.parametrize("link", LINKS)
async def test_a_tool_may_ask_for_less_and_for_more_than_the_server_gives(link: str, autojump_clock: MockClock) -> None:
    """As much as its parameters allow, also where the operator gives other calls less."""
    arguments = {"intervalMs": 3000, "durationMs": 600_000, "idleMs": 4000, "ceilingMs": 10_000}
    async with running(idle_deadline_s=2, ceiling_deadline_s=5) as probe, linked(probe, link) as make:
        more = await make(Call("progress_beyond_ceiling", arguments))
        assert more.result["_meta"][DEADLINE] == {
            "deadline": "ceiling",
            "elapsedMs": 10_000,
            "idleMs": 4000,
            "ceilingMs": 10_000,
            "progressCount": 3,
        }
        less = await make(Call("progress_beyond_ceiling", {**arguments, "intervalMs": 50, "ceilingMs": 100}))
        assert less.result["_meta"][DEADLINE]["elapsedMs"] == 100
        other = await make(Call("bulk_export", {"pageMs": 2100}))
        assert other.result["_meta"][DEADLINE]["idleMs"] == 2000


@pytest.mark.parametrize("link", LINKS)
async def test_the_largest_export_arrives_whole(link: str, autojump_clock: MockClock) -> None:
    async with running() as probe, linked(probe, link) as make:
        told = await make(Call("bulk_export", {"pages": 100, "perPage": 100, "pageMs": 0}, "token"))
        assert told.result is not None
        assert told.result["structuredContent"]["total"] == len(told.result["structuredContent"]["messages"]) == 10_000
        assert told.steps[-1] == 100, "coalesced, but the last one is never lost"

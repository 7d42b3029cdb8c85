"""A tool that reports whatever it likes, whenever it likes; a client that may stop it; and two deadlines.

Over the wire code, in virtual time: the call ends exactly once, at the right moment, for the right reason, and the
progress that its client hears strictly increases, whatever the tool says. Work and deadlines keep to eighths of a
second, which are exact, and meet; a client that stops it comes a sixteenth later, and so meets nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, structured

from ..dispatch.links import DEADLINE, LINKS, Call, Told, linked
from ..support.inside import engine_tasks
from ..support.probe import Probe, running
from . import at_most

IDLE_S, CEILING_S = 2.0, 10.0

waits = st.sampled_from([0, 1, 1, 2, 4, 8, 12, 15, 16, 17]).map(lambda count: count / 8)
values = st.one_of(
    st.integers(-3, 30), st.floats(-3, 30), st.sampled_from([math.nan, math.inf, -math.inf, 10**400, -0.0])
)


@dataclass(frozen=True)
class Story:
    """What the tool does: it waits and reports, again and again, waits once more and answers; when it is stopped."""

    reports: list[tuple[float, float]]
    last_wait: float
    stop_after: float | None


stories = st.builds(
    Story,
    reports=st.lists(st.tuples(waits, values), max_size=25),
    last_wait=waits,
    stop_after=st.none() | st.integers(0, 90).map(lambda count: count / 8 + 1 / 16),
)


@dataclass
class Ending:
    """What must come of a story: the cause, None for an answer of the tool; when; and the valid reports until then."""

    cause: str | None
    at: float
    valid: list[float]


def ending(story: Story, stopped_by: str) -> Ending:
    """Told from the story alone, moment by moment."""
    now, alive_at, valid = 0.0, 0.0, list[float]()
    for wait, value in [*story.reports, (story.last_wait, math.nan)]:
        now += wait
        over = min(alive_at + IDLE_S, CEILING_S)
        if story.stop_after is not None and story.stop_after < min(now, over):
            return Ending(stopped_by, story.stop_after, valid)
        if over <= now:
            return Ending("deadline", over, valid)
        if abs(value) < 1e300 and (not valid or value > valid[-1]):
            alive_at, valid = now, [*valid, value]
    return Ending(None, now, valid)


def _tool(story: Story) -> Tool:
    async def run(context: ToolContext) -> ToolResult:
        for wait, value in story.reports:
            await context.sleep(wait)
            context.report_progress(value)
        await context.sleep(story.last_wait)
        return structured({"done": True})

    return Tool("story", "Story", "Does what a story says", run)


@settings(at_most(200))
@given(story=stories, link=st.sampled_from(LINKS), token=st.sampled_from(["token", None]))
def test_a_dispatch_ends_once_in_time_and_for_the_right_reason(story: Story, link: str, token: str | None) -> None:
    trio.run(_tell, story, link, token, clock=MockClock(autojump_threshold=0))


async def _tell(story: Story, link: str, token: str | None) -> None:
    given = {"idle_deadline_s": IDLE_S, "ceiling_deadline_s": CEILING_S, "progress_burst": 100}
    async with (
        running(toolsets=[Toolset("story", (_tool(story),))], tools="story", **given) as probe,
        linked(probe, link) as make,
    ):
        before = engine_tasks()
        told = await make(Call("story", {}, token, stop_after=story.stop_after))
        model = ending(story, "disconnect" if link == "modern HTTP" else "notification")
        _check_end(probe, told, model)
        assert told.steps == ([] if token is None else model.valid)
        assert all(earlier < later for earlier, later in pairwise(told.steps))
        assert engine_tasks() == before


def _check_end(probe: Probe, told: Told, model: Ending) -> None:
    (settled,), (over,) = probe.events("call.settled"), probe.events("dispatch.settled")
    assert settled["cancelled_by"] == model.cause
    assert settled["duration_ms"] == model.at * 1000
    assert over["reports"] == len(model.valid)
    effects = [event["by"] for event in probe.events("call.cancelled") if event["effect"]]
    assert effects == ([] if model.cause is None else [model.cause])
    expired = [event["elapsed_ms"] for event in probe.events("dispatch.expired")]
    assert expired == ([round(model.at * 1000)] if model.cause == "deadline" else [])
    if model.cause in (None, "deadline"):
        assert told.result is not None
        assert told.took == model.at
        assert (DEADLINE in told.result.get("_meta", {})) == (model.cause == "deadline")
    else:
        assert told.result is None

"""Toolset `dispatch`: what each tool does and when, without the deadlines that end it (tests/dispatch has those)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.catalogue.tool import ArgumentsError, Seconds
from probe.tools import dispatch
from probe.wire.jsonrpc import encode

from .fakes import FakeContext, call, texts


def said(own: Seconds | None, arguments: dict[str, Any]) -> float:
    """A deadline that a tool takes from its arguments, in seconds."""
    assert callable(own)
    return own(arguments)


async def test_a_silent_call_says_nothing(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(dispatch.SILENT_CALL, {"silentMs": 31_000}, context)
    assert context.events == [("sleep", 31.0)]
    assert result["structuredContent"] == {"silentMs": 31_000}


async def test_a_silent_call_can_do_without_comments(autojump_clock: MockClock) -> None:
    context = FakeContext()
    await call(dispatch.SILENT_CALL, {"silentMs": 1000, "keepAlive": False, "mark": 5}, context)
    assert context.events == [("stop_comments",), ("sleep", 1.0)]


def test_the_deadlines_are_those_of_the_arguments() -> None:
    for tool in (dispatch.SILENT_CALL, dispatch.PROGRESS_GAP, dispatch.PROGRESS_BEYOND_CEILING):
        assert said(tool.idle_s, tool.read_arguments({"idleMs": 1234})) == 1.234
    beyond = dispatch.PROGRESS_BEYOND_CEILING
    assert said(beyond.ceiling_s, beyond.read_arguments({"ceilingMs": 43_210})) == 43.21
    ceiling = dispatch.SILENT_CALL.ceiling_s
    assert callable(ceiling)
    assert [ceiling({"idleMs": idle}) for idle in (60_000, 60_001)] == [None, 630]
    assert dispatch.PROGRESS_GAP.ceiling_s is None
    assert (dispatch.BULK_EXPORT.idle_s, dispatch.BULK_EXPORT.ceiling_s) == (None, None), "a call like any other"


async def test_progress_beyond_the_ceiling_counts_milliseconds(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(dispatch.PROGRESS_BEYOND_CEILING, {"intervalMs": 400, "durationMs": 1000}, context)
    assert context.events == [
        ("sleep", 0.4),
        ("progress", 400, 1000, "Worked 400 of 1000 ms"),
        ("sleep", 0.4),
        ("progress", 800, 1000, "Worked 800 of 1000 ms"),
        ("sleep", 0.2),
        ("progress", 1000, 1000, "Worked 1000 of 1000 ms"),
    ]
    assert result["structuredContent"] == {"workedMs": 1000}


async def test_progress_gap_pauses_once_and_goes_on(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(dispatch.PROGRESS_GAP, {"reports": 2, "intervalMs": 1000, "gapMs": 7000}, context)
    assert [seconds for (seconds,) in context.of("sleep")] == [1, 1, 7, 1, 1]
    assert [step for step, _, _ in context.of("progress")] == [1, 2, 3, 4, 5]
    assert {total for _, total, _ in context.of("progress")} == {5}
    assert [message for _, _, message in context.of("progress")][1:3] == ["Step 2 of 5", "Step 3 of 5, after the gap"]
    assert result["structuredContent"] == {"reports": 5}


async def test_bulk_export_reports_each_page_once_it_is_there(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(dispatch.BULK_EXPORT, {"pages": 2, "perPage": 3, "pageMs": 500}, context)
    assert context.events == [
        ("sleep", 0.5),
        ("progress", 1, 2, "Exported page 1 of 2"),
        ("sleep", 0.5),
        ("progress", 2, 2, "Exported page 2 of 2"),
    ]
    exported = result["structuredContent"]
    assert (exported["total"], exported["totalPages"], len(exported["messages"])) == (6, 2, 6)
    assert exported["messages"][5] == {"text": "Message 6", "author": "Grace", "timestamp": "2026-01-01T00:05:00Z"}
    assert json.loads(texts(result)[0]) == exported


async def test_bulk_export_is_the_same_every_time_and_has_a_time_for_each_message(autojump_clock: MockClock) -> None:
    most = {"pages": 100, "perPage": 100, "pageMs": 0}
    one, other = [await call(dispatch.BULK_EXPORT, most, FakeContext()) for _ in range(2)]
    assert hashlib.sha256(encode(one)).digest() == hashlib.sha256(encode(other)).digest()
    times = [message["timestamp"] for message in one["structuredContent"]["messages"]]
    assert len(set(times)) == 10_000
    assert times == sorted(times)
    assert times[-1] == "2026-01-07T22:39:00Z"


@pytest.mark.parametrize("page", [1, 5, 10])
async def test_bulk_export_says_how_far_it_got(page: int, autojump_clock: MockClock) -> None:
    context, began = FakeContext(), trio.current_time()
    result = await call(dispatch.BULK_EXPORT, {"failAtPage": page}, context)
    assert trio.current_time() - began == pytest.approx(0.3 * page)
    assert [done for done, _, _ in context.of("progress")] == list(range(1, page))
    sentence, facts = texts(result)
    assert sentence == f"Page {page} of 10 could not be read: simulated failure"
    assert json.loads(facts) == {
        "message": sentence,
        "code": "page_failed",
        "retryable": True,
        "progress": page - 1,
        "total": 10,
    }
    assert result.keys() == {"content", "isError", "_meta"}
    assert result["isError"] is True
    assert result["_meta"] == {"mcp-probe/error": json.loads(facts)}


def test_bulk_export_cannot_fail_on_a_page_that_there_is_not() -> None:
    assert dispatch.BULK_EXPORT.read_arguments({"pages": 4, "failAtPage": 4})["failAtPage"] == 4
    with pytest.raises(ArgumentsError, match="failAtPage must not be greater than pages, got failAtPage 5 and pages 4"):
        dispatch.BULK_EXPORT.read_arguments({"pages": 4, "failAtPage": 5})


@pytest.mark.parametrize(
    ("tool", "arguments", "steps"),
    [
        (dispatch.PROGRESS_BEYOND_CEILING, {"durationMs": 7000}, 7000),
        (dispatch.PROGRESS_GAP, {"reports": 4}, 9),
        (dispatch.BULK_EXPORT, {"pages": 7}, 7),
    ],
)
async def test_the_steps_are_those_that_are_reported(
    tool: Any, arguments: dict[str, int], steps: int, autojump_clock: MockClock
) -> None:
    context = FakeContext()
    await call(tool, arguments, context)
    assert tool.steps(tool.read_arguments(arguments)) == steps
    assert context.of("progress")[-1][:2] == (steps, steps)

"""The two deadlines of a modern call: the table is that of the other era, told on the call's own response."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..legacy.test_deadlines import CUSTOM, META, TABLE, check_expired, expired
from ..support.inside import SERVICES, engine_tasks
from ..support.modern import Modern
from ..support.probe import running
from .calls import check_disconnected, emitted_after, heard, steps, tool_call


async def timed(client: Modern, name: str, token: Any = "t", **arguments: Any) -> tuple[float, dict[str, Any]]:
    """Call; returns how long that took, in seconds, and the result."""
    began = trio.current_time()
    result = await client.tool(name, arguments, meta={} if token is None else {"progressToken": token})
    return trio.current_time() - began, result


def unshaped(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what this era adds to each."""
    meta = {key: value for key, value in result["_meta"].items() if key == META}
    return {**{key: value for key, value in result.items() if key != "resultType"}, "_meta": meta}


@pytest.mark.proves("2026-07-28/cancellation/7")
@pytest.mark.parametrize("token", ["t", None], ids=["with a token", "without a token"])
@pytest.mark.parametrize("case", TABLE)
async def test_the_deadlines_of_a_call(case: str, token: str | None, autojump_clock: MockClock) -> None:
    """ "implementations SHOULD always enforce a maximum timeout, regardless of progress notifications"."""
    name, arguments, seconds, error = TABLE[case]
    async with running(toolsets=[CUSTOM]) as probe:
        client = probe.modern()
        took, result = await timed(client, name, token, **arguments)
        assert took == pytest.approx(seconds, abs=0.01)
        if error is None:
            assert result["structuredContent"] == {"done": True}
        else:
            check_expired(probe, unshaped(result), error)
        assert engine_tasks() == SERVICES


async def test_the_error_ends_the_stream_and_nothing_follows(autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM], progress_burst=1, progress_per_second=1) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, "work", {"reports": 100, "everyS": 7}, progressToken="t")) as answer:
            messages = await heard(client, answer)
        assert steps(messages) == [*range(1, 43), None]
        assert messages[-1]["result"]["isError"] is True
        mark = probe.engine.log.last
        await trio.sleep(1000)
        assert emitted_after(probe, mark) == []


async def test_a_deadline_within_the_first_interval_is_told_by_one_object(autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM], idle_deadline_s=5) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, "work", {"silentS": 6})) as answer:
            assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
            (message,) = await heard(client, answer)
        check_expired(probe, unshaped(message["result"]), expired("idle", 5000, 0, idle_ms=5000))


@pytest.mark.parametrize(("at_s", "outcome"), [(29.9, "disconnected"), (30.1, "timed_out")])
async def test_of_a_deadline_and_a_disconnect_the_first_wins(
    at_s: float, outcome: str, autojump_clock: MockClock
) -> None:
    async with running(toolsets=[CUSTOM]) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, "work", {"silentS": 100})) as answer:
            # The head of the stream came after one keep-alive interval.
            await trio.sleep(at_s - 15)
            answer.hang_up()
        assert probe.record()["outcome"] == outcome
        if outcome == "disconnected":
            check_disconnected(probe, steps_done=None)
        else:
            assert [event["by"] for event in probe.events("call.cancelled")] == ["deadline"]

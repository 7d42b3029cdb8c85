"""What an event stream carries beside messages, whether these have event ids, and why a response ended."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import trio
from trio.testing import MockClock

from ..support.probe import Probe, running


def controls(probe: Probe) -> list[tuple[Any, ...]]:
    return [(event["what"], event["event_id"], event["retry_ms"]) for event in probe.events("stream.control")]


async def test_the_priming_event_and_the_retry_before_a_hang_up_are_told(autojump_clock: MockClock) -> None:
    async with running(sse_retry_ms=700) as probe:
        client = await probe.client()
        request = client.request("tools/call", {"name": "test_reconnection"})
        async with client.post(request) as answer:
            events = [event async for event in answer.events()]
        last = events[-1]
        assert controls(probe) == [("priming", "p1-0", 700), ("retry", last.id, last.retry)]
        asked, closed = probe.events("http.request")[-1], probe.events("http.closed")[-1]
        call = probe.events("call.started")[0]
        for event in probe.events("stream.control"):
            assert (event["cause"], event["exchange"]) == (asked["seq"], asked["exchange"])
            assert (event["stream"], event["call"], event["session"]) == ("p1", call["call"], "s1")
        assert (closed["by"], closed["exchange"]) == ("hang-up", asked["exchange"])


async def test_an_older_revision_is_sent_no_such_events(autojump_clock: MockClock) -> None:
    async with running() as probe:
        client = await probe.client("2025-06-18")
        await client.tool("progress", {"steps": 2, "step_ms": 1})
        assert controls(probe) == []


async def test_each_keep_alive_comment_is_told_when_it_was_sent(autojump_clock: MockClock) -> None:
    async with running(keep_alive_s=10) as probe:
        client = await probe.client("2025-06-18")
        async with client.get() as answer:
            await trio.sleep(35)
            assert answer.status == 200
        told = probe.events("stream.control")
        assert [event["what"] for event in told] == ["comment"] * 3
        times = [event["mono"] for event in told]
        assert [round(after - before) for before, after in pairwise(times)] == [10, 10]
        assert told[0]["stream"] == "g1"
        assert probe.events("http.closed")[-1]["by"] == "client"


async def test_only_streams_that_can_be_resumed_give_event_ids(autojump_clock: MockClock) -> None:
    async with running() as probe:
        await (await probe.client()).tool("progress", {"steps": 2, "step_ms": 1}, _meta={"progressToken": 1})
        assert probe.events("message.delivered")[-1]["event_ids"] is True
        assert probe.events("http.closed")[-1]["by"] == "end of stream"
        modern = probe.modern()
        await modern.tool("progress", {"steps": 2, "step_ms": 1}, meta={"progressToken": 1})
        assert probe.events("message.delivered")[-1]["event_ids"] is False
        await (await probe.client()).call("ping")
        assert probe.events("message.delivered")[-1]["event_ids"] is False

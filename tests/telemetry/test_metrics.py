"""`/metrics`: what it says is what happened, and no client can make it grow."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.log.context import Context
from probe.log.events import HostRegistered, LimitReached
from probe.telemetry.metrics import UNKNOWN, Names

from ..support.calls import slow
from ..support.hosts import SECRET, connected
from ..support.legacy import Legacy, RpcError
from ..support.probe import Probe
from .watched import page, samples, watched

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
# Longer than the telemetry's own intervals: what has happened is on the page.
SOON_S = 2.0


async def test_off_there_is_no_page(probe: Probe) -> None:
    status, headers, _ = await page(probe)
    assert (status, headers["content-type"]) == (404, "application/problem+json")


async def test_the_page(autojump_clock: MockClock) -> None:
    async with watched(metrics=True) as probe:
        status, headers, text = await page(probe)
        assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert headers["cache-control"] == "no-store"
        assert text.endswith("\n")
        assert (await page(probe, method="POST"))[0] == 405
        assert (await page(probe, host="evil.example"))[0] == 403


async def test_it_is_made_once_a_second_however_often_it_is_asked_for(autojump_clock: MockClock) -> None:
    async with watched(metrics=True) as probe:
        first = await page(probe)
        await probe.client()
        await trio.sleep(0.5)
        assert (await page(probe))[2] == first[2]
        await trio.sleep(0.6)
        assert "mcp_probe_sessions 1.0\n" in (await page(probe))[2]


async def test_requests_calls_and_their_durations(autojump_clock: MockClock) -> None:
    async with watched(metrics=True) as probe:
        client = await probe.client()
        await client.tool("simple_tool", {"delayMs": 250})
        await client.tool("simple_tool", {"delayMs": -1})
        await probe.modern().tool("simple_tool")
        with pytest.raises(RpcError):
            await client.tool("unheard of")
        await trio.sleep(SOON_S)
        get = await samples(probe)
    assert get("requests_total", era="legacy", method="tools/call", outcome="completed") == 1
    assert get("requests_total", era="legacy", method="tools/call", outcome="tool_error") == 1
    assert get("requests_total", era="legacy", method="tools/call", outcome="protocol_error") == 1
    assert get("requests_total", era="modern", method="tools/call", outcome="completed") == 1
    assert get("requests_total", era="legacy", method="initialize", outcome="completed") == 1
    assert get("calls_total", tool="simple_tool", outcome="completed") == 2
    assert get("calls_total", tool=UNKNOWN, outcome="protocol_error") == 1
    assert get("call_duration_seconds_count", tool="simple_tool") == 3
    assert get("call_duration_seconds_bucket", tool="simple_tool", le="0.2") == 2
    assert get("call_duration_seconds_bucket", tool="simple_tool", le="0.5") == 3
    assert get("call_duration_seconds_sum", tool="simple_tool") == pytest.approx(0.25, abs=0.01)
    assert get.types["mcp_probe_requests"] == "counter"
    assert get.types["mcp_probe_call_duration_seconds"] == "histogram"


async def test_what_is_so_at_this_moment(autojump_clock: MockClock) -> None:
    async with watched(metrics=True) as probe:
        client = await probe.client()
        await client.tool("cancellable_task", {"durationMs": 60_000}, task={})
        async with client.post(slow(client)) as answer, client.get():
            await answer.first(1)
            await trio.sleep(SOON_S)
            get = await samples(probe)
            assert (get("sessions"), get("in_flight", era="legacy"), get("in_flight", era="modern")) == (1, 1, 0)
            assert (get("tasks", status="working"), get("tasks", status="cancelled")) == (1, 0)
            assert (get("streams", purpose="response"), get("streams", purpose="standalone")) == (1, 1)
        await client.delete()
        await trio.sleep(SOON_S)
        get = await samples(probe)
    assert (get("sessions"), get("in_flight", era="legacy"), get("tasks", status="working")) == (0, 0, 0)
    assert (get("streams", purpose="response"), get("streams", purpose="standalone")) == (0, 0)
    assert (get("sessions_opened_total"), get("sessions_closed_total", why="deleted")) == (1, 1)
    assert get("task_changes_total", status="working") == 1
    assert get("requests_total", era="legacy", method="tools/call", outcome="cancelled") == 1


async def test_what_nothing_has_happened_to_is_0(autojump_clock: MockClock) -> None:
    async with watched(metrics=True) as probe:
        get = await samples(probe)
    purposes = ("response", "standalone", "subscription", "resumable")
    assert [get("streams", purpose=purpose) for purpose in purposes] == [0] * 4
    assert [get("connections", transport=transport) for transport in ("websocket", "stdio")] == [0] * 2


async def test_deadlines_limits_and_bytes(autojump_clock: MockClock) -> None:
    async with watched(metrics=True, idle_deadline_s=1.0, max_sessions=1) as probe:
        client = await probe.client()
        await client.tool("simple_tool", {"delayMs": 5000})
        one_more = Legacy(probe.app, "/mcp")
        async with one_more.post(one_more.request("initialize", INITIALIZE)) as answer:
            assert answer.status == 503
        await trio.sleep(SOON_S)
        get = await samples(probe)
        read = [entry.fact for entry in probe.engine.log.since(0, 1000).entries]
    assert get("dispatches_expired_total", deadline="idle") == 1
    assert get("limits_reached_total", limit="max_sessions") == 1
    for direction, kind in (("in", "message.received"), ("out", "message.emitted")):
        sizes = [len(event.message) for event in read if event.kind == kind]  # type: ignore[union-attr]
        assert get("messages_total", direction=direction) == len(sizes)
        assert get("message_size_bytes_total", direction=direction) == sum(sizes)


async def test_tool_hosts_and_their_tools(autojump_clock: MockClock) -> None:
    async with watched(metrics=True, toolhost_secret=SECRET) as probe, connected(probe.app) as host:
        await host.register()
        client = await probe.client()

        async def answer() -> None:
            dispatch, _ = await host.dispatched()
            await host.answer(dispatch, text="done")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            await client.tool("demo__plain")
        await trio.sleep(SOON_S)
        get = await samples(probe)
    assert get("tool_hosts") == 1
    assert get("calls_total", tool="demo__plain", outcome="completed") == 1


async def test_hosts_that_come_with_ever_new_tools_have_only_so_many_labels(autojump_clock: MockClock) -> None:
    async with watched(metrics=True) as probe:
        for number in range(50):
            tools = tuple(f"h{number}__t{tool}" for tool in range(20))
            fact = HostRegistered(f"h{number}", None, None, tools, None)
            probe.engine.log.append(fact, Context(connection=f"h{number}"))
        await trio.sleep(SOON_S)
        names = Names(["own"], room=200)
        names.admit([f"n{number}" for number in range(1000)])
    assert sum(names.label(f"n{number}") != UNKNOWN for number in range(1000)) == 200
    assert names.label("own") == "own"


async def test_no_client_can_add_a_label(autojump_clock: MockClock) -> None:
    async with watched(metrics=True) as probe:
        client, modern = await probe.client(), probe.modern()
        names: list[Any] = [f"name-{number}" for number in range(200)]
        names += ['quote"', "line\nbreak", "back\\slash", "\x1b[31m", "ünïcode \u202e", "x" * 5000]
        before = set(await samples(probe))
        for name in names:
            with pytest.raises(RpcError):
                await client.tool(name)
            if name.isascii() and name.isprintable():
                # The header that mirrors it can hold no other name as it is.
                with pytest.raises(RpcError):
                    await modern.tool(name)
            with pytest.raises(RpcError):
                await client.call(name)
        probe.engine.log.append(LimitReached("no such limit", 1))
        probe.engine.log.append(LimitReached("all_rooms:address_share:max_sessions", 1))
        await trio.sleep(SOON_S)
        _, _, text = await page(probe)
        get = await samples(probe)
    assert set(get) - before <= {f"mcp_probe_{name}" for name in EXPECTED}
    assert not [name for name in names if json.dumps(name)[1:-1] in text or name in text]
    assert get("requests_total", era="legacy", method=UNKNOWN, outcome="protocol_error") == len(names)
    assert set(get.labels("calls_total")) == {UNKNOWN, "protocol_error"}
    assert get("limits_reached_total", limit=UNKNOWN) == 1
    assert get("limits_reached_total", limit="all_rooms:address_share:max_sessions") == 1
    # 60 lines for a few hundred requests with a name of their own each.
    assert sum(1 for line in text.splitlines() if not line.startswith("#")) < 150


EXPECTED = {
    "requests_total",
    "calls_total",
    "call_duration_seconds_bucket",
    "call_duration_seconds_count",
    "call_duration_seconds_sum",
    "messages_total",
    "message_size_bytes_total",
    "http_responses_total",
    "limits_reached_total",
    "streams",
}


async def test_a_log_that_was_too_fast_is_told(autojump_clock: MockClock) -> None:
    async with watched(metrics=True, event_log_events=100) as probe:
        await trio.sleep(SOON_S)
        for _ in range(250):
            probe.engine.log.append(LimitReached("max_sessions", 1))
        await trio.sleep(SOON_S)
        get = await samples(probe)
        assert get("log_entries_missed_total") == 150
        assert get("limits_reached_total", limit="max_sessions") == 100
        assert get("log_entries") == 100
        await (await probe.client()).tool("simple_tool")
        await trio.sleep(SOON_S)
        assert (await samples(probe))("calls_total", tool="simple_tool", outcome="completed") == 1


async def test_how_late_the_event_loop_is() -> None:
    async with watched(metrics=True) as probe:
        await trio.sleep(0.3)  # real time: it measures the loop itself
        # What no task may do.
        time.sleep(0.6)  # noqa: ASYNC251 - real time: it measures the loop itself
        await trio.sleep(0.3)  # real time: it measures the loop itself
        get = await samples(probe)
    count, beyond = get("event_loop_lateness_seconds_count"), get("event_loop_lateness_seconds_bucket", le="0.2")
    assert count is not None
    assert beyond is not None
    assert count > beyond

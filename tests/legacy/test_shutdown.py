"""The shutdown of a server: `Engine.drain` (product contract, section 3, last row)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, structured

from ..support.http import exchange, messages
from ..support.inside import SERVICES, engine_tasks
from ..support.legacy import HEADERS, Legacy
from ..support.probe import Probe, draining, running
from ..support.shown import newest

GRACE_S = 10


def slow(client: Legacy, seconds: int) -> dict[str, Any]:
    """A request for one step per second."""
    arguments = {"steps": seconds, "step_ms": 1000}
    params = {"name": "progress", "arguments": arguments, "_meta": {"progressToken": "t"}}
    return client.request("tools/call", params, "it")


async def status_of(probe: Probe, path: str) -> int:
    async with exchange(probe.app, "GET", path, {"host": "127.0.0.1"}) as answer:
        return answer.status


async def test_readiness_is_withdrawn_and_liveness_is_not(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with client.post(slow(client, 5)) as answer:
        await answer.first(1)
        assert await status_of(probe, "/ready") == 200
        async with draining(probe) as over:
            assert (await status_of(probe, "/ready"), await status_of(probe, "/health")) == (503, 200)
            await over.wait()
            assert (await status_of(probe, "/ready"), await status_of(probe, "/health")) == (503, 200)


async def test_new_work_is_refused_with_503_and_retry_after(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = (await client.tool("pure_task", {"durationMs": 5000}, task={}))["task"]["taskId"]
    async with client.post(slow(client, 5)) as running_call:
        (begun,) = await running_call.first(1)
        async with draining(probe):
            for request in (
                client.request("tools/call", {"name": "simple_tool"}),
                client.request("tools/call", {"name": "pure_task", "task": {}}),
                client.request("tools/list"),
                client.request("tasks/get", {"taskId": task}),
                client.request("tasks/cancel", {"taskId": task}),
            ):
                async with client.post(request) as answer:
                    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
                    error = await answer.json()
                    client.check(error)
                    assert (error["id"], error["error"]["code"]) == (request["id"], -32000)
            for place in (None, begun.id):
                async with client.get(place) as answer:
                    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
            fresh = Legacy(probe.app, "/mcp")
            initialize = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "n", "version": "1"},
            }
            async with fresh.post(fresh.request("initialize", initialize), HEADERS) as answer:
                assert (answer.status, "mcp-session-id" in answer.headers) == (503, False)
            assert messages(await client.read(running_call))[-1]["result"]
    assert len(list(newest(probe.engine.records, 10))) == 2


async def test_nothing_to_do_is_over_at_once(probe: Probe, autojump_clock: MockClock) -> None:
    await probe.client()
    began = trio.current_time()
    await probe.engine.drain()
    await wait_all_tasks_blocked()
    assert trio.current_time() == began
    assert engine_tasks() == SERVICES
    states = [event["state"] for event in probe.events("server.state")]
    assert states == ["ready", "draining", "stopped"]


async def test_running_calls_may_finish_within_the_grace_period(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.client()
        async with client.post(slow(client, 5)) as answer:
            await answer.first(2)
            async with draining(probe) as over:
                began = trio.current_time()
                events = messages(await client.read(answer))
                await over.wait()
                assert trio.current_time() - began == pytest.approx(4)
        assert [event.get("params", {}).get("progress") for event in events] == [2, 3, 4, 5, None]
        assert "result" in events[-1]
        assert (probe.record()["outcome"], probe.record()["cancelled_by"]) == ("completed", None)


async def test_calls_that_take_longer_are_cancelled_and_told_why(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.client()
        async with client.post(slow(client, 60)) as answer:
            await answer.first(2)
            began = trio.current_time()
            async with draining(probe) as over:
                events = messages(await client.read(answer))
                await over.wait()
            assert trio.current_time() - began == pytest.approx(GRACE_S)
        assert (events[-1]["id"], events[-1]["error"]["code"]) == ("it", -32000)
        assert "shutting down" in events[-1]["error"]["message"]
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["done"]) == ("cancelled", "shutdown", False)
        assert (record["answered"], record["steps_done"]) == (True, events[-2]["params"]["progress"])
        assert [settled["sent_after_cancel"] for settled in probe.events("call.settled")] == [0]


async def test_running_tasks_may_finish_within_the_grace_period(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.client()
        handle = await client.tool("pure_task", {"durationMs": 5000}, task={})
        waiting = client.request("tasks/result", {"taskId": handle["task"]["taskId"]}, "waiting")
        async with client.post(waiting) as answer:
            await answer.first(1)
            async with draining(probe) as over:
                events = messages(await client.read(answer))
                await over.wait()
        assert client.result(events[-1])["structuredContent"] == {"message": "Completed after 5000ms"}
        assert probe.record()["outcome"] == "completed"


async def test_a_task_that_nobody_waits_for_holds_the_shutdown_up_as_well(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.client()
        await client.tool("pure_task", {"durationMs": 5000}, task={})
        began = trio.current_time()
        await probe.engine.drain()
        assert trio.current_time() - began == pytest.approx(5)
        assert probe.record()["outcome"] == "completed"


async def test_tasks_that_take_longer_end_cancelled_and_recorded_as_such(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.client()
        await client.tool("cancellable_task", task={})
        async with client.get() as standalone:
            await standalone.first(1)
            async with draining(probe) as over:
                told = messages(await client.read(standalone))
                await over.wait()
        assert told[-1]["params"]["status"] == "cancelled"
        assert "shutting down" in told[-1]["params"]["statusMessage"]
        await wait_all_tasks_blocked()
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["done"]) == ("cancelled", "shutdown", False)
        assert record["answered"] is True, "with the handle"
        assert engine_tasks() == SERVICES


async def test_whoever_waits_for_a_task_is_answered(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.client()
        handle = await client.tool("cancellable_task", task={})
        waiting = client.request("tasks/result", {"taskId": handle["task"]["taskId"]}, "waiting")
        async with client.post(waiting) as answer:
            await answer.first(1)
            async with draining(probe) as over:
                events = messages(await client.read(answer))
                await over.wait()
        assert (events[-1]["id"], events[-1]["error"]["code"]) == ("waiting", -32000)


async def test_every_open_stream_ends(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        one, other = await probe.client(), await probe.client()
        async with one.get() as first, other.get() as second, other.get() as third, draining(probe) as over:
            for client, answer in ((one, first), (other, second), (other, third)):
                assert messages(await client.read(answer)) == []
            await over.wait()
        assert {event["by"] for event in probe.events("http.closed")} == {"end of stream"}
        assert [event["why"] for event in probe.events("session.closed")] == ["shutdown", "shutdown"]


async def test_a_running_call_can_be_cancelled_meanwhile(autojump_clock: MockClock) -> None:
    """Notifications still reach the work that runs."""
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.client()
        async with client.post(slow(client, 60)) as answer:
            await answer.first(1)
            began = trio.current_time()
            async with draining(probe) as over:
                await trio.sleep(2.5)
                await client.cancel("it")
                assert [message for message in messages(await client.read(answer)) if "id" in message] == []
                await over.wait()
            assert trio.current_time() - began == pytest.approx(2.5)
        assert (probe.record()["outcome"], probe.record()["cancelled_by"]) == ("cancelled", "notification")


async def test_a_session_can_be_ended_meanwhile(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.client()
        async with client.post(slow(client, 60)) as answer:
            await answer.first(1)
            began = trio.current_time()
            async with draining(probe) as over:
                assert await client.delete() == 204
                await over.wait()
            assert trio.current_time() == began
        assert (probe.record()["outcome"], probe.record()["cancelled_by"]) == ("cancelled", "session_end")


async def test_a_question_can_be_answered_meanwhile(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.client()
        async with client.post(client.request("tools/call", {"name": "sampling_demo"}, "it")) as answer:
            (_, question) = await answer.first(2)
            async with draining(probe) as over:
                await trio.sleep(1)
                sampled = {"role": "assistant", "content": {"type": "text", "text": "leaves"}, "model": "m"}
                await client.answer(question.message["id"], sampled)
                events = messages(await client.read(answer))
                await over.wait()
        assert events[-1]["result"]["structuredContent"] == {"text": "leaves"}


async def test_a_disconnected_call_may_finish_though_nobody_can_resume_it(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.client()
        async with client.post(slow(client, 5)) as answer:
            await answer.first(1)
        await probe.engine.drain()
        assert probe.record()["outcome"] == "completed"


async def test_a_grace_period_of_zero_cancels_at_once(autojump_clock: MockClock) -> None:
    async with running(grace_s=0) as probe:
        client = await probe.client()
        async with client.post(slow(client, 60)) as answer:
            await answer.first(1)
            began = trio.current_time()
            async with draining(probe) as over:
                (response,) = messages(await client.read(answer))
                await over.wait()
            assert trio.current_time() == began
        assert response["error"]["code"] == -32000


async def test_after_the_shutdown_the_session_is_gone(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await probe.engine.drain()
    await wait_all_tasks_blocked()
    for request in (client.request("ping"), client.request("tools/call", {"name": "simple_tool"})):
        async with client.post(request) as answer:
            assert answer.status in (404, 503)


# The engine is torn down without a drain, as by a second signal.


async def _linger(context: ToolContext) -> ToolResult:
    try:
        await context.sleep(1000)
    finally:
        context.report_progress(1, 1, "cleaned up")
    return structured({})


async def test_a_teardown_records_what_it_interrupts(autojump_clock: MockClock) -> None:
    linger = Tool("linger", "Linger", "Cleans up", _linger, task_support="optional", ceiling_s=2000, idle_s=2000)
    quick = Tool("quick", "Quick", "Is done at once", _at_once, task_support="optional")
    async with running(toolsets=[Toolset("custom", (linger, quick))]) as probe:
        client = await probe.client()
        await client.tool("linger", task={})
        await client.tool("quick", task={})
        async with client.post(
            client.request("tools/call", {"name": "linger", "_meta": {"progressToken": 1}})
        ) as answer:
            await answer.first(1)
    call, done, task = newest(probe.engine.records, 3)
    assert (call.outcome, call.cancelled_by, call.cancel_reason, call.answered) == (
        "cancelled",
        "shutdown",
        "the server stopped",
        False,
    )
    assert (task.outcome, task.cancelled_by, task.answered) == ("cancelled", "shutdown", True)
    assert (done.outcome, done.answered) == ("completed", True)
    assert len(probe.events("call.settled")) == 3
    assert [event["why"] for event in probe.events("task.removed")] == ["stopped", "stopped"]
    changes = [(event["status"], event["message"]) for event in probe.events("task.changed")]
    assert changes[-1] == ("cancelled", "The server stopped.")
    assert probe.engine.tasks.everyone() == []


async def _at_once(context: ToolContext) -> ToolResult:
    return structured({})

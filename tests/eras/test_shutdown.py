"""The shutdown of a server: `Engine.drain` (product contract, section 3, last row)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, structured

from ..support.calls import ERAS, check_disconnected, heard, silent, slow
from ..support.http import Answer, exchange, messages
from ..support.inside import SERVICES, engine_tasks
from ..support.legacy import HEADERS, Legacy
from ..support.modern import SUBSCRIPTION_ID, VERSION, Modern
from ..support.probe import Probe, draining, running
from ..support.shown import newest

GRACE_S = 10
each_era = pytest.mark.parametrize("revision", ERAS)
CODES = {ERAS[0]: -32000, VERSION: 1002}
"""The code of the error by which a shutdown is told."""


async def status_of(probe: Probe, path: str) -> int:
    async with exchange(probe.app, "GET", path, {"host": "127.0.0.1"}) as answer:
        return answer.status


async def test_readiness_is_withdrawn_and_liveness_is_not(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with client.post(slow(client, steps=5)) as answer:
        await answer.first(1)
        assert await status_of(probe, "/ready") == 200
        async with draining(probe) as over:
            assert (await status_of(probe, "/ready"), await status_of(probe, "/health")) == (503, 200)
            await over.wait()
            assert (await status_of(probe, "/ready"), await status_of(probe, "/health")) == (503, 200)


# What is new is refused.


async def test_new_work_is_refused_with_503_and_retry_after(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = (await client.tool("pure_task", {"durationMs": 5000}, task={}))["task"]["taskId"]
    async with client.post(slow(client, steps=5)) as running_call:
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


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "a call": ("tools/call", {"name": "simple_tool", "arguments": {}}),
    "a call that never waits": ("tools/call", {"name": "chatty", "arguments": {}}),
    "a task": ("tools/call", {"name": "pure_task", "arguments": {}}),
    "a list": ("tools/list", {}),
    "discovery": ("server/discover", {}),
    "a subscription": ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_new_requests_are_refused_with_503_and_retry_after(
    case: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern()
    async with client.post(slow(client, steps=5)) as answer:
        await answer.first(1)
        async with draining(probe):
            refused = client.request(*REFUSED[case], id="new")
            async with client.post(refused) as refusal:
                assert (refusal.status, refusal.headers["retry-after"]) == (503, "5")
                error = await refusal.json()
            assert (error["id"], error["error"]["code"]) == ("new", 1002)
            assert "shutting down" in error["error"]["message"]
        assert len(newest(probe.engine.records, 10)) == 1


async def test_a_fault_is_still_told_first(probe: Probe, autojump_clock: MockClock) -> None:
    """The ladder is pure, so a client that errs need not come again to learn it."""
    client = probe.modern()
    async with client.post(slow(client, steps=5)) as answer:
        await answer.first(1)
        contradicts = client.request("tools/list")
        async with draining(probe), client.post(contradicts, {"mcp-method": "tools/call"}) as refusal:
            assert refusal.status == 400


# What runs may finish, for a while.


async def test_nothing_to_do_is_over_at_once(probe: Probe, autojump_clock: MockClock) -> None:
    await probe.client()
    began = trio.current_time()
    await probe.engine.drain()
    await wait_all_tasks_blocked()
    assert trio.current_time() == began
    assert engine_tasks() == SERVICES
    states = [event["state"] for event in probe.events("server.state")]
    assert states == ["ready", "draining", "stopped"]


@each_era
async def test_running_calls_may_finish_within_the_grace_period(revision: str, autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.of(revision)
        async with client.post(slow(client, steps=5)) as answer:
            await answer.first(2)
            began = trio.current_time()
            async with draining(probe) as over:
                *_, last = await heard(client, answer)
                assert (last["id"], "result" in last) == ("it", True)
                await over.wait()
            # The first event of a session's stream is no message.
            assert trio.current_time() - began == pytest.approx(3 if revision == VERSION else 4)
        assert client.noted("notifications/progress")[-1]["progress"] == 5
        assert (probe.record()["outcome"], probe.record()["cancelled_by"]) == ("completed", None)


@pytest.mark.parametrize(("revision", "kind"), [*((era, "stream") for era in ERAS), (VERSION, "one object")])
async def test_calls_that_take_longer_are_cancelled_and_told_why(
    revision: str, kind: str, autojump_clock: MockClock
) -> None:
    """Their clients did not ask for the end, so they are owed an answer."""
    grace_s = GRACE_S if kind == "stream" else 1
    async with running(grace_s=grace_s) as probe:
        client = await probe.of(revision)
        got: list[dict[str, Any]] = []

        async def run() -> None:
            async with client.post(slow(client, steps=60) if kind == "stream" else silent(client)) as answer:
                assert (answer.status, answer.headers.get("retry-after")) == (
                    (200, None) if kind == "stream" else (503, "5")
                )
                got.extend(await heard(client, answer))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.sleep(2.5)
            began = trio.current_time()
            async with draining(probe) as over:
                await over.wait()
            assert trio.current_time() - began == pytest.approx(grace_s)
        error = got[-1]["error"]
        assert (got[-1]["id"], error["code"]) == ("it", CODES[revision])
        assert "shutting down" in error["message"]
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["done"]) == ("cancelled", "shutdown", False)
        last = got[-2]["params"]["progress"] if kind == "stream" else None
        assert (record["answered"], record["steps_done"]) == (True, last)
        assert [settled["sent_after_cancel"] for settled in probe.events("call.settled")] == [0]
        assert engine_tasks() == SERVICES


@each_era
async def test_a_grace_period_of_zero_cancels_at_once(revision: str, autojump_clock: MockClock) -> None:
    async with running(grace_s=0) as probe:
        client = await probe.of(revision)
        async with client.post(slow(client, steps=60)) as answer:
            await answer.first(1)
            began = trio.current_time()
            async with draining(probe) as over:
                (response,) = await heard(client, answer)
                await over.wait()
            assert trio.current_time() == began
        assert response["error"]["code"] == CODES[revision]


@pytest.mark.parametrize(
    ("revision", "end", "by"),
    [
        (VERSION, "hang up", "disconnect"),
        (ERAS[0], "cancel", "notification"),
        (ERAS[0], "delete", "session_end"),
    ],
)
async def test_a_client_may_still_end_its_call_meanwhile(
    revision: str, end: str, by: str, autojump_clock: MockClock
) -> None:
    """What still reaches the work that runs lets the server go sooner."""
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.of(revision)
        async with client.post(slow(client, steps=60)) as answer:
            await answer.first(1)
            began = trio.current_time()
            async with draining(probe) as over:
                await trio.sleep(2.5)
                if isinstance(client, Modern):
                    answer.hang_up()
                elif end == "cancel":
                    await client.cancel("it")
                else:
                    assert await client.delete() == 204
                await over.wait()
            assert trio.current_time() - began == pytest.approx(2.5)
            if end == "cancel":
                assert [message for message in await heard(client, answer) if "id" in message] == []
        if end == "hang up":
            check_disconnected(probe, steps_done=3)
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"]) == ("disconnected" if end == "hang up" else "cancelled", by)


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
        async with client.post(slow(client, steps=5)) as answer:
            await answer.first(1)
        await probe.engine.drain()
        assert probe.record()["outcome"] == "completed"


async def test_after_the_shutdown_the_session_is_gone(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await probe.engine.drain()
    await wait_all_tasks_blocked()
    for request in (client.request("ping"), client.request("tools/call", {"name": "simple_tool"})):
        async with client.post(request) as answer:
            assert answer.status in (404, 503)


# Tasks.


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


@pytest.mark.parametrize(
    ("revision", "tool", "seconds", "outcome"),
    [
        (ERAS[0], "pure_task", 5, "completed"),
        (VERSION, "pure_task", 5, "completed"),
        (VERSION, "cancellable_task", GRACE_S, "cancelled"),
    ],
)
async def test_a_task_that_nobody_waits_for_holds_the_shutdown_up_as_well(
    revision: str, tool: str, seconds: float, outcome: str, autojump_clock: MockClock
) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = await probe.of(revision)
        arguments = {"durationMs": 5000 if tool == "pure_task" else 60_000}
        await client.tool(tool, arguments, **({} if revision == VERSION else {"task": {}}))
        began = trio.current_time()
        await probe.engine.drain()
        assert trio.current_time() - began == pytest.approx(seconds)
        await wait_all_tasks_blocked()
        cancelled_by = "shutdown" if outcome == "cancelled" else None
        assert (probe.record()["outcome"], probe.record()["cancelled_by"]) == (outcome, cancelled_by)


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


# Streams.


async def test_every_open_stream_ends(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        one, other = await probe.client(), await probe.client()
        async with one.get() as first, other.get() as second, other.get() as third, draining(probe) as over:
            for client, answer in ((one, first), (other, second), (other, third)):
                assert messages(await client.read(answer)) == []
            await over.wait()
        assert {event["by"] for event in probe.events("http.closed")} == {"end of stream"}
        assert [event["why"] for event in probe.events("session.closed")] == ["shutdown", "shutdown"]


# Subscriptions end last, with their final result.


async def heard_on(client: Modern, subscription: Answer, id: str) -> list[dict[str, Any]]:
    """What is left of a subscription, checked: each message names it."""
    messages = [event.message async for event in subscription.events()]
    for message in messages[:-1]:
        assert client.check(message)["params"]["_meta"][SUBSCRIPTION_ID] == id
    result = client.result(messages[-1], "subscriptions/listen", id)
    assert (result["resultType"], result["_meta"][SUBSCRIPTION_ID]) == ("complete", id)
    return messages


@pytest.mark.proves(
    "2026-07-28/subscriptions/4",
    "2026-07-28/subscriptions/5",
    "2026-07-28/subscriptions/7",
    "2026-07-28/cancellation/8",
)
async def test_open_subscriptions_get_their_final_result(autojump_clock: MockClock) -> None:
    """basic/patterns/subscriptions: the server "SHOULD respond to the original `subscriptions/listen` request with a
    completion result before closing the stream". Over HTTP no `notifications/cancelled` precedes it
    (docs/internals/architecture.md)."""
    async with running(grace_s=GRACE_S) as probe:
        client = probe.modern()
        asked = {"notifications": {"toolsListChanged": True}}
        listens = [client.request("subscriptions/listen", asked, id=id) for id in ("one", "other")]
        async with client.post(listens[0]) as one, client.post(listens[1]) as other:
            await one.first(1)
            await other.first(1)
            began = trio.current_time()
            async with draining(probe) as over:
                for id, answer in (("one", one), ("other", other)):
                    (result,) = await heard_on(client, answer, id)
                    assert "result" in result
                await over.wait()
            assert trio.current_time() == began, "a subscription holds no shutdown up"
        assert [event["outcome"] for event in probe.events("call.settled")] == ["completed"] * 2
        assert {event["by"] for event in probe.events("http.closed")} == {"end of stream"}
        assert (len(probe.engine.modern.listeners), engine_tasks()) == (0, SERVICES)


async def test_a_subscription_gets_the_end_of_its_tasks_before_its_own(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = probe.modern()
        task = await client.tool("cancellable_task")
        listen = client.request("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}}, id="L")
        async with client.post(listen) as answer:
            await answer.first(2)
            async with draining(probe) as over:
                *notes, _result = await heard_on(client, answer, "L")
                await over.wait()
        told = [note["params"] for note in notes if note["method"] == "notifications/tasks"]
        assert [params["status"] for params in told].count("cancelled") == 1
        assert (told[-1]["status"], "shutting down" in told[-1]["statusMessage"]) == ("cancelled", True)


async def test_a_call_hears_nothing_of_the_end_of_a_subscription(autojump_clock: MockClock) -> None:
    """2026-07-28 basic/patterns/cancellation: "Servers MUST NOT send `notifications/cancelled` for any other
    purpose." """
    async with running(grace_s=1) as probe:
        client = probe.modern()
        listen = client.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="L")
        async with client.post(slow(client)) as answer, client.post(listen) as subscription:
            await subscription.first(1)
            async with draining(probe) as over:
                messages = await heard(client, answer)
                await heard_on(client, subscription, "L")
                await over.wait()
        assert {message["method"] for message in messages[:-1]} == {"notifications/progress"}
        assert "error" in messages[-1]


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

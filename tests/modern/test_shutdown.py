"""The shutdown of a server while modern requests run (product contract, section 3, last row)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.http import Answer
from ..support.inside import SERVICES, engine_tasks
from ..support.modern import SUBSCRIPTION_ID, Modern
from ..support.probe import Probe, draining, running
from ..support.shown import newest
from .calls import RUDE, check_disconnected, heard, silent, slow, steps, tool_call

GRACE_S = 10


# What is new is refused.

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


async def test_running_calls_may_finish_within_the_grace_period(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = probe.modern()
        async with client.post(slow(client, steps=5)) as answer:
            await answer.first(2)
            began = trio.current_time()
            async with draining(probe) as over:
                assert steps(await heard(client, answer)) == [3, 4, 5, None]
                await over.wait()
            assert trio.current_time() - began == pytest.approx(3)
        assert (probe.record()["outcome"], probe.record()["cancelled_by"]) == ("completed", None)


@pytest.mark.parametrize("kind", ["stream", "one object"])
async def test_calls_that_take_longer_are_cancelled_and_told_why(kind: str, autojump_clock: MockClock) -> None:
    """Their clients did not ask for the end, so they are owed an answer."""
    grace_s = GRACE_S if kind == "stream" else 1
    async with running(grace_s=grace_s) as probe:
        client = probe.modern()
        messages: list[dict[str, Any]] = []

        async def run() -> None:
            async with client.post(slow(client, steps=60) if kind == "stream" else silent(client)) as answer:
                assert (answer.status, answer.headers.get("retry-after")) == (
                    (200, None) if kind == "stream" else (503, "5")
                )
                messages.extend(await heard(client, answer))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.sleep(2.5)
            began = trio.current_time()
            async with draining(probe) as over:
                await over.wait()
            assert trio.current_time() - began == pytest.approx(grace_s)
        error = messages[-1]["error"]
        assert (messages[-1]["id"], error["code"]) == ("it", 1002)
        assert "shutting down" in error["message"]
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["done"]) == ("cancelled", "shutdown", False)
        last = messages[-2]["params"]["progress"] if kind == "stream" else None
        assert (record["answered"], record["steps_done"]) == (True, last)
        assert [settled["sent_after_cancel"] for settled in probe.events("call.settled")] == [0]
        assert engine_tasks() == SERVICES


async def test_a_grace_period_of_zero_cancels_at_once(autojump_clock: MockClock) -> None:
    async with running(grace_s=0) as probe:
        client = probe.modern()
        async with client.post(slow(client)) as answer:
            await answer.first(1)
            began = trio.current_time()
            async with draining(probe) as over:
                (response,) = await heard(client, answer)
                await over.wait()
            assert trio.current_time() == began
        assert response["error"]["code"] == 1002


async def test_a_call_that_will_not_stop_does_not_hold_the_server(autojump_clock: MockClock) -> None:
    """The end of a server does not depend on a handler's good manners: cleanup has five seconds."""
    async with running(toolsets=[RUDE], grace_s=0) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, "insist", progressToken=1)) as answer:
            await answer.first(1)
            began = trio.current_time()
            async with draining(probe) as over:
                await over.wait()
                assert trio.current_time() - began == pytest.approx(5)
                assert [message["error"]["code"] for message in await heard(client, answer)] == [1002]


async def test_a_client_may_still_go_meanwhile(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = probe.modern()
        async with client.post(slow(client, steps=60)) as answer:
            await answer.first(1)
            began = trio.current_time()
            async with draining(probe) as over:
                await trio.sleep(2.5)
                answer.hang_up()
                await over.wait()
            assert trio.current_time() - began == pytest.approx(2.5)
        check_disconnected(probe, steps_done=3)


async def test_tasks_that_take_longer_end_cancelled(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = probe.modern()
        await client.tool("cancellable_task")
        began = trio.current_time()
        await probe.engine.drain()
        assert trio.current_time() - began == pytest.approx(GRACE_S)
        await wait_all_tasks_blocked()
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["done"]) == ("cancelled", "shutdown", False)


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


async def test_a_subscription_still_hears_what_becomes_of_the_tasks(autojump_clock: MockClock) -> None:
    async with running(grace_s=GRACE_S) as probe:
        client = probe.modern()
        task = await client.tool("cancellable_task")
        listen = client.request("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}}, id="L")
        async with client.post(listen) as answer:
            await answer.first(2)
            async with draining(probe) as over:
                messages = await heard_on(client, answer, "L")
                await over.wait()
        statuses = [
            message["params"]["status"] for message in messages if message.get("method") == "notifications/tasks"
        ]
        assert (statuses[-1], statuses.count("cancelled")) == ("cancelled", 1)
        told = [message["params"]["statusMessage"] for message in messages[:-1]]
        assert "shutting down" in told[-1]


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

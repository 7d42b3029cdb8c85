"""A session that ends, by DELETE or because it was idle for too long, takes its requests and tasks along."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.calls import LEGACY, outcome, slow
from ..support.http import messages
from ..support.inside import SERVICES, engine_tasks
from ..support.probe import Probe, running
from ..support.shown import newest


@pytest.mark.parametrize("revision", LEGACY)
async def test_delete_cancels_every_request_of_the_session(
    revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client, other = await probe.client(revision), await probe.client(revision)
    async with (
        client.post(slow(client)) as answer,
        client.get() as standalone,
        other.post(slow(other, "other")) as kept,
    ):
        await trio.sleep(2.5)
        assert await client.delete() == 204
        assert [message.get("id") for message in messages(await client.read(answer))] == [None, None]
        assert messages(await client.read(standalone)) == []
        assert len(messages(await other.read(kept))) == 11
    assert outcome(probe) == ("cancelled", "session_end", 2, False)
    assert outcome(probe, "other") == ("completed", None, 10, True)
    assert [event["why"] for event in probe.events("session.closed")] == ["deleted"]
    async with client.post(client.request("ping")) as answer:
        assert answer.status == 404


async def test_delete_cancels_every_task_of_the_session(probe: Probe, autojump_clock: MockClock) -> None:
    client, other = await probe.client(), await probe.client()
    mine = (await client.tool("cancellable_task", task={}))["task"]["taskId"]
    kept = (await other.tool("cancellable_task", task={}))["task"]["taskId"]
    async with client.get() as standalone:
        await trio.sleep(2.5)
        await client.delete()
        told = messages(await client.read(standalone))
    assert [message["params"]["status"] for message in told if "status" in message["params"]][-1] == "cancelled"
    assert [task.id for task in probe.engine.tasks.everyone()] == [kept]
    statuses = [(event["status"], event["message"]) for event in probe.events("task.changed") if event["task"] == mine]
    assert statuses[-1] == ("cancelled", "The task was cancelled: deleted")
    assert [(event["task"], event["why"]) for event in probe.events("task.removed")] == [(mine, "deleted")]
    (record,) = [record for record in newest(probe.engine.records, 5) if record.task == mine]
    assert (record.outcome, record.cancelled_by, record.steps_done) == ("cancelled", "session_end", 2)


async def test_delete_ends_the_waiting_for_a_task_without_an_answer(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    named = {"taskId": (await client.tool("cancellable_task", task={}))["task"]["taskId"]}
    async with client.post(client.request("tasks/result", named, "waiting")) as answer:
        await trio.sleep(0.5)
        await client.delete()
        events = messages(await client.read(answer))
    assert [event for event in events if "id" in event] == []


async def test_a_deleted_session_leaves_nothing_behind(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client(capabilities={"elicitation": {}, "sampling": {}})
    await client.tool("pausable_task", task={})
    await client.tool("pure_task", task={})
    await client.call("resources/subscribe", {"uri": "test://watched-resource"})
    async with client.post(slow(client)), client.get(), trio.open_nursery() as nursery:
        nursery.start_soon(client.call, "tools/call", {"name": "simple_tool"})
        await trio.sleep(2.5)
        await client.delete()
        await wait_all_tasks_blocked()
        assert engine_tasks() == SERVICES
    assert probe.engine.tasks.everyone() == []
    assert list(probe.engine.sessions) == []


async def test_an_idle_session_ends_and_its_tasks_with_it(autojump_clock: MockClock) -> None:
    async with running(session_idle_s=20.5) as probe:
        client = await probe.client()
        await client.tool("cancellable_task", task={})
        await trio.sleep(20.4)
        assert len(list(probe.engine.sessions)) == 1
        await trio.sleep(0.2)
        assert [event["why"] for event in probe.events("session.closed")] == ["idle"]
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["cancel_reason"]) == (
            "cancelled",
            "session_end",
            "The task was cancelled: idle",
        )
        assert record["steps_done"] == 20
        assert engine_tasks() == SERVICES
        async with client.post(client.request("ping")) as answer:
            assert answer.status == 404


async def test_a_request_in_flight_keeps_its_session_from_being_idle(autojump_clock: MockClock) -> None:
    async with running(session_idle_s=2) as probe:
        client = await probe.client()
        async with client.post(slow(client)):
            pass
        await trio.sleep(11.5)
        assert outcome(probe) == ("completed", None, 10, True)
        assert len(list(probe.engine.sessions)) == 1
        await trio.sleep(1)
        assert list(probe.engine.sessions) == []


async def test_an_open_get_stream_keeps_its_session_from_being_idle(autojump_clock: MockClock) -> None:
    async with running(session_idle_s=2) as probe:
        client = await probe.client()
        async with client.get():
            await trio.sleep(10)
            assert len(list(probe.engine.sessions)) == 1
        await trio.sleep(2.5)
        assert list(probe.engine.sessions) == []

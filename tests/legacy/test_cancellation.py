"""`notifications/cancelled` and disconnects, row by row of the product contract, section 3.

2025-11-25 basic/utilities/cancellation, unless another clause is named.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.catalogue.catalogue import Toolset

from ..support.calls import LEGACY, RUDE_LATENCY_S, misuses, outcome, slow
from ..support.calls import RUDE as BAD_MANNERS
from ..support.http import messages
from ..support.inside import engine_tasks, receive
from ..support.passes import within_passes
from ..support.probe import Probe, running


async def arrive(probe: Probe, *messages: dict[str, Any]) -> None:
    for message in messages:
        receive(probe.engine, message)


def cancelled(id: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, **more}}


# A request in flight.


@pytest.mark.proves("2025-11-25/cancellation/7")
@pytest.mark.parametrize("revision", LEGACY)
async def test_a_cancelled_request_gets_no_response_and_its_stream_ends(
    revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client(revision)
    began = trio.current_time()
    with trio.fail_after(100):
        async with client.post(slow(client)) as answer:
            await trio.sleep(3.5)
            await client.cancel("it", "not needed")
            events = await client.read(answer)
    assert [message["params"]["progress"] for message in messages(events)] == [1, 2, 3]
    assert trio.current_time() - began == pytest.approx(3.5)


@pytest.mark.proves("2025-11-25/cancellation/5", "2025-11-25/cancellation/6", "2025-11-25/cancellation/7")
@pytest.mark.proves("2025-11-25/cancellation/10", "2025-11-25/progress/6", "2025-11-25/progress/12")
async def test_after_a_cancellation_nothing_is_sent_and_everything_is_recorded(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    before = engine_tasks()
    async with client.post(slow(client)) as answer, client.get() as standalone:
        await trio.sleep(3.5)
        await client.cancel("it", "changed my mind")
        mark = probe.engine.log.last
        await trio.sleep(100)
        assert [event for event in probe.events("message.emitted") if event["seq"] > mark] == []
        assert [event.data for event in await standalone.first(1)] == [""]
        assert len(messages(await client.read(answer))) == 3
    assert engine_tasks() == before, "its resources are free"
    record = probe.record()
    assert {name: record[name] for name in ("outcome", "done", "answered", "steps_done", "steps_total")} == {
        "outcome": "cancelled",
        "done": False,
        "answered": False,
        "steps_done": 3,
        "steps_total": 10,
    }
    assert (record["cancelled_by"], record["cancel_reason"]) == ("notification", "changed my mind")
    assert (record["emitted"], record["delivered"]) == (3, 3)
    assert record["duration_ms"] == pytest.approx(3500, abs=1)
    assert record["cancel_latency_ms"] == pytest.approx(0, abs=1)
    (asked,) = probe.events("call.cancelled")
    assert (asked["request_id"], asked["by"], asked["reason"], asked["effect"]) == (
        "it",
        "notification",
        "changed my mind",
        True,
    )
    (settled,) = probe.events("call.settled")
    assert (settled["steps_done"], settled["sent_after_cancel"]) == (3, 0)
    assert settled["scope_exit_ms"] == pytest.approx(0, abs=1)


@pytest.mark.proves("2025-11-25/cancellation/10")
@pytest.mark.parametrize(
    ("reason", "kept"), [("", None), ("é", "é"), ("x" * 500, "x" * 500), ("x" * 501, "x" * 500 + "…")]
)
async def test_a_reason_is_kept_up_to_a_bound(
    reason: str, kept: str | None, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    async with client.post(slow(client)) as answer:
        await client.cancel("it", reason)
        await client.read(answer)
    assert probe.record()["cancel_reason"] == kept


@pytest.mark.proves("2025-11-25/cancellation/12")
async def test_the_same_id_of_another_session_is_not_cancelled(probe: Probe, autojump_clock: MockClock) -> None:
    """Cancellation notifications MUST only reference requests that "Were previously issued in the same direction"."""
    one, other = await probe.client(), await probe.client()
    async with one.post(slow(one)) as answer:
        await other.cancel("it")
        assert len(messages(await one.read(answer))) == 11
    assert misuses(probe) == ["cancellation without effect"]
    (settled,) = probe.events("call.settled")
    assert (settled["cancelled_by"], settled["sent_after_cancel"]) == (None, 0)


async def test_a_batch_ends_when_its_uncancelled_requests_are_answered(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client("2025-03-26")
    async with client.post([slow(client, "a", token=1), slow(client, "b", token=2, steps=2)]) as answer:
        await trio.sleep(1.5)
        await client.cancel("a")
        events = messages(await client.read(answer))
    assert [event.get("id", event.get("params", {}).get("progressToken")) for event in events] in (
        [1, 2, 2, "b"],
        [2, 1, 2, "b"],
    )


async def test_a_second_cancellation_changes_nothing(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with client.post(slow(client)) as answer:
        await trio.sleep(1.5)
        await arrive(probe, cancelled("it", reason="first"), cancelled("it", reason="second"))
        await client.read(answer)
    assert probe.record()["cancel_reason"] == "first"
    assert [(event["reason"], event["effect"]) for event in probe.events("call.cancelled")] == [
        ("first", True),
        ("second", False),
    ]
    (settled,) = probe.events("call.settled")
    assert settled["cause"] == probe.events("call.cancelled")[0]["seq"]


# Tools with bad manners: the work goes on for a while, and nobody hears of it.

RUDE = Toolset("rude", tuple(replace(tool, task_support="optional") for tool in BAD_MANNERS.tools))


@pytest.mark.proves("2025-11-25/cancellation/7", "2025-11-25/progress/12")
@pytest.mark.parametrize("tool", RUDE_LATENCY_S)
async def test_work_that_does_not_stop_at_once_is_not_heard_either(tool: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=[RUDE]) as probe:
        client = await probe.client()
        request = client.request("tools/call", {"name": tool, "_meta": {"progressToken": 1}}, "it")
        async with client.post(request) as answer:
            await trio.sleep(1)
            await client.cancel("it")
            (first,) = messages(await client.read(answer))
        assert first["params"]["progress"] == 1, "it was reported before the cancellation"
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["done"]) == ("cancelled", "notification", False)
        assert (record["answered"], record["emitted"]) == (False, 1)
        assert record["cancel_latency_ms"] == pytest.approx(RUDE_LATENCY_S[tool] * 1000, abs=1)
        (settled,) = probe.events("call.settled")
        assert (settled["sent_after_cancel"], settled["scope_exit_ms"]) == (0, record["cancel_latency_ms"])


@pytest.mark.proves("2025-11-25/tasks/12", "2025-11-25/tasks/38", "2025-11-25/progress/9")
@pytest.mark.parametrize("tool", RUDE_LATENCY_S)
async def test_a_cancelled_task_stays_so_even_if_execution_continues_to_completion_or_fails(
    tool: str, autojump_clock: MockClock
) -> None:
    async with running(toolsets=[RUDE]) as probe:
        client = await probe.client()
        async with trio.open_nursery() as nursery:
            await nursery.start(client.listen)
            handle = await client.tool(tool, task={}, _meta={"progressToken": 1})
            named = {"taskId": handle["task"]["taskId"]}
            await trio.sleep(1)
            answer = await client.call("tasks/cancel", named)
            await trio.sleep(100)
            assert await client.call("tasks/get", named) == answer
            told = [note["params"].get("status", note["params"].get("progress")) for note in client.notes]
            assert told == [1, "cancelled"]
            nursery.cancel_scope.cancel()
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["done"]) == ("cancelled", "tasks_cancel", False)
        assert record["cancel_latency_ms"] == pytest.approx(RUDE_LATENCY_S[tool] * 1000, abs=1)
        assert [settled["sent_after_cancel"] for settled in probe.events("call.settled")] == [0]


# The race of the result and the cancellation.


@pytest.mark.proves("2025-11-25/cancellation/9")
async def test_a_cancellation_that_comes_just_before_the_result_wins(probe: Probe, autojump_clock: MockClock) -> None:
    """Both parties MUST handle these race conditions gracefully."""
    client = await probe.client()
    async with client.post(slow(client, steps=1)) as answer, trio.open_nursery() as nursery:
        nursery.start_soon(at_the_same_moment, probe, 1.0, "before")
        events = messages(await client.read(answer))
    assert [event for event in events if "id" in event] == []
    assert outcome(probe) == ("cancelled", "notification", len(events), False)
    assert [settled["sent_after_cancel"] for settled in probe.events("call.settled")] == [0]


@pytest.mark.proves("2025-11-25/cancellation/9", "2025-11-25/cancellation/13")
async def test_a_cancellation_that_comes_just_after_the_result_is_a_no_op(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    async with client.post(slow(client, steps=1)) as answer, trio.open_nursery() as nursery:
        nursery.start_soon(at_the_same_moment, probe, 1.0, "after")
        events = messages(await client.read(answer))
    assert [event.get("id") for event in events] == [None, "it"]
    assert outcome(probe) == ("completed", None, 1, True)
    assert misuses(probe) == ["cancellation without effect"]


async def at_the_same_moment(probe: Probe, seconds: float, side: str) -> None:
    """Cancel at the very time at which the result is due, just before it is sent or just after it was."""
    due = trio.current_time() + seconds
    await trio.sleep_until(due)
    if side == "after":
        await within_passes(lambda: outcome(probe)[0])
    assert trio.current_time() == due
    await arrive(probe, cancelled("it"))


# What is no cancellation.

CLAUSE = "2025-11-25 basic/utilities/cancellation, Behavior Requirements"
IGNORED: dict[str, tuple[dict[str, Any] | None, str]] = {
    "no params": (None, "malformed cancellation"),
    "no requestId": ({"reason": "?"}, "malformed cancellation"),
    "requestId null": ({"requestId": None}, "malformed cancellation"),
    "requestId a boolean": ({"requestId": True}, "malformed cancellation"),
    "requestId a fraction": ({"requestId": 1.5}, "malformed cancellation"),
    "requestId 1.0": ({"requestId": 1.0}, "malformed cancellation"),
    "requestId a list": ({"requestId": ["it"]}, "malformed cancellation"),
    "requestId an object": ({"requestId": {}}, "malformed cancellation"),
    "reason no string": ({"requestId": "it", "reason": 7}, "malformed cancellation"),
    "reason null": ({"requestId": "it", "reason": None}, "malformed cancellation"),
    "unknown id": ({"requestId": "nobody"}, "cancellation without effect"),
    "unknown long id": ({"requestId": "x" * 5000}, "cancellation without effect"),
    "unknown huge id": ({"requestId": 10**4000}, "cancellation without effect"),
    "finished id": ({"requestId": "earlier"}, "cancellation without effect"),
    "finished id, answered at once": ({"requestId": "ping"}, "cancellation without effect"),
    "initialize": ({"requestId": 1}, "notifications/cancelled for initialize"),
    "a task's request": ({"requestId": "task"}, "notifications/cancelled for a task"),
}


@pytest.mark.proves(
    "2025-11-25/cancellation/3",
    "2025-11-25/cancellation/12",
    "2025-11-25/cancellation/13",
    "2025-11-25/cancellation/14",
)
@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("case", IGNORED)
async def test_an_invalid_cancellation_is_ignored_and_recorded(
    case: str, revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    params, what = IGNORED[case]
    if case == "a task's request" and revision != "2025-11-25":
        what = "cancellation without effect"
    client = await probe.client(revision)
    await client.call("tools/call", {"name": "progress", "arguments": {"steps": 1}}, id="earlier")
    await client.call("ping", id="ping")
    if revision == "2025-11-25":
        await client.call("tools/call", {"name": "cancellable_task", "task": {}}, id="task")
    async with client.post(slow(client)) as answer:
        await trio.sleep(1.5)
        await client.notify("notifications/cancelled", params)
        events = messages(await client.read(answer))
    assert "isError" not in events[-1]["result"]
    assert outcome(probe) == ("completed", None, 10, True)
    (misuse,) = probe.events("client.misuse")
    assert (misuse["what"], misuse["clause"], misuse["session"]) == (what, CLAUSE, "s1")
    assert len(misuse["detail"]) < 200
    assert probe.events("call.cancelled") == []


async def test_one_of_two_waiting_for_a_task_can_be_cancelled(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await client.tool("pure_task", {"durationMs": 5000}, task={})
    named = {"taskId": task["task"]["taskId"]}
    async with (
        client.post(client.request("tasks/result", named, "one")) as one,
        client.post(client.request("tasks/result", named, "other")) as other,
    ):
        await trio.sleep(1)
        await client.cancel("other")
        assert messages(await client.read(other)) == []
        assert [message.get("id") for message in messages(await client.read(one))] == [None, "one"]


# The client goes away.

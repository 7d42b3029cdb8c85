"""What a running task says, and on which stream: 2025-11-25 basic/utilities/tasks and basic/transports."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, structured

from ..support.http import messages
from ..support.probe import Probe, running
from ..support.tasks import RELATED, create, get, named


@pytest.mark.proves("2025-11-25/tasks/5", "2025-11-25/tasks/14", "2025-11-25/transports/23")
async def test_messages_of_a_task_go_on_its_tasks_result_stream_while_one_is_open(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        task = await create(client, "multi_stage_task")
        await trio.sleep(1.5)
        on_get = list(client.notes)
        async with client.post(client.request("tasks/result", named(task), "waiting")) as answer:
            events = messages(await client.read(answer))
        assert [note["params"]["statusMessage"] for note in on_get] == ["Stage 1: Initializing", "Stage 2: Processing"]
        assert [event.get("params", {}).get("statusMessage") for event in events] == [
            "Stage 3: Finalizing",
            "The task is completed.",
            None,
        ]
        assert events[-1]["id"] == "waiting"
        assert client.notes == on_get + events[:-1]
        emitted = [event["message"] for event in probe.events("message.emitted") if event["task"] is not None]
        # Its handle comes first, and its result last.
        assert emitted[1:-1] == on_get + events[:-1]
        nursery.cancel_scope.cancel()


async def test_without_any_stream_the_messages_of_a_task_are_dropped_and_recorded(
    probe: Probe, autojump_clock: MockClock
) -> None:
    """ "Requestors MUST NOT rely on receiving" status notifications; there is nowhere to put them."""
    client = await probe.client()
    await client.tool("task_with_progress", {"itemCount": 2}, task={}, _meta={"progressToken": "t"})
    await trio.sleep(10)
    dropped = probe.events("message.dropped")
    methods = ["notifications/tasks/status", "notifications/progress"] * 2 + ["notifications/tasks/status"]
    assert [event["message"]["method"] for event in dropped] == methods
    assert {event["why"] for event in dropped} == {"the client has no stream open, which the protocol allows"}
    assert (probe.record()["emitted"], probe.record()["delivered"], probe.record()["steps_done"]) == (0, 0, 2)


async def test_messages_of_a_task_reach_a_client_that_resumes_its_get_stream(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    async with client.get() as answer:
        (priming,) = await answer.first(1)
    await create(client, "multi_stage_task")
    await trio.sleep(10)
    async with client.get(priming.id) as answer:
        missed = await answer.first(5)
    assert [event.message["params"]["statusMessage"] for event in missed[1:]] == [
        "Stage 1: Initializing",
        "Stage 2: Processing",
        "Stage 3: Finalizing",
        "The task is completed.",
    ]


async def test_after_its_tasks_result_request_is_over_the_messages_of_a_task_go_elsewhere(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    async with client.get() as answer:
        (priming,) = await answer.first(1)
    task = await create(client, "multi_stage_task")
    async with client.post(client.request("tasks/result", named(task), "waiting")) as answer:
        await client.cancel("waiting")
        assert messages(await client.read(answer)) == []
    await trio.sleep(10)
    with trio.fail_after(10):
        async with client.get(priming.id) as answer:
            async for event in answer.events():
                if '"completed"' in event.data:
                    break
    assert probe.events("message.dropped") == []


@pytest.mark.proves("2025-11-25/progress/7", "2025-11-25/progress/8", "2025-11-25/progress/9")
@pytest.mark.parametrize("reader", ["GET", "tasks/result"])
async def test_progress_of_a_task_goes_on_after_the_handle_and_carries_its_id(
    reader: str, probe: Probe, autojump_clock: MockClock
) -> None:
    """basic/utilities/progress: the token "MUST continue to be used for progress notifications throughout the task's
    lifetime"; all messages of a task "MUST include the `io.modelcontextprotocol/related-task` key"."""
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        if reader == "GET":
            await nursery.start(client.listen)
        handle = await client.tool("cancellable_task", {"durationMs": 10_000}, task={}, _meta={"progressToken": 0})
        if reader == "tasks/result":
            await client.call("tasks/result", named(handle["task"]))
        await trio.sleep(20)
        nursery.cancel_scope.cancel()
    heard = client.noted("notifications/progress")
    assert [(note["progress"], note["total"]) for note in heard] == [(second, 10) for second in range(1, 11)]
    assert {note["progressToken"] for note in heard} == {0}
    assert all(note["_meta"] == {RELATED: named(handle["task"])} for note in heard)
    methods = [note["method"] for note in client.notes]
    assert methods.index("notifications/progress") < len(methods) - 1
    assert methods[-1] == "notifications/tasks/status", "progress stops before the terminal status"
    assert client.notes[-1]["params"]["status"] == "completed"


@pytest.mark.proves("2025-11-25/progress/9")
async def test_progress_stops_when_the_task_is_cancelled(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        handle = await client.tool("cancellable_task", task={}, _meta={"progressToken": "t"})
        await trio.sleep(3.5)
        await client.call("tasks/cancel", named(handle["task"]))
        await trio.sleep(100)
        nursery.cancel_scope.cancel()
    assert [note["progress"] for note in client.noted("notifications/progress")] == [1, 2, 3]
    assert client.notes[-1]["params"]["status"] == "cancelled"


@pytest.mark.proves("2025-11-25/progress/13")
async def test_a_task_without_a_token_reports_no_progress(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        await create(client, "task_with_progress", itemCount=3)
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert client.noted("notifications/progress") == []
    assert probe.record()["steps_done"] == 3


# What every message carries, and several tasks at once.


async def _talk(context: ToolContext) -> ToolResult:
    await context.sleep(1)
    context.report_progress(1)
    context.log("info", "hello")
    message = {"role": "user", "content": {"type": "text", "text": "hi"}}
    await context.sample({"messages": [message], "maxTokens": 10})
    await context.elicit("Who?", {"type": "object", "properties": {}})
    await context.list_roots()
    return structured({"talked": True})


TALKATIVE = Toolset("talkative", (Tool("talk", "Talk", "Says all it can", _talk, task_support="required"),))
ANSWERS: dict[str, dict[str, Any]] = {
    "sampling/createMessage": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}},
    "elicitation/create": {"action": "accept", "content": {}},
    "roots/list": {"roots": []},
}


@pytest.mark.proves("2025-11-25/tasks/16", "2025-11-25/tasks/26", "2025-11-25/tasks/31", "2025-11-25/tasks/39")
@pytest.mark.parametrize("reader", ["GET", "tasks/result"])
async def test_every_message_of_a_task_carries_its_id(reader: str, autojump_clock: MockClock) -> None:
    """ "All requests, notifications, and responses related to a task MUST include the related-task key", but status
    notifications, which name the task themselves, "SHOULD NOT"."""
    async with running(toolsets=[TALKATIVE]) as probe:
        client = await probe.client()
        async with trio.open_nursery() as nursery:
            if reader == "GET":
                await nursery.start(client.listen, lambda request: ANSWERS[request["method"]])
            handle = await client.tool("talk", task={}, _meta={"progressToken": "t"})
            async with client.post(client.request("tasks/result", named(handle["task"]))) as answer:
                events = await client.read(answer, lambda request: ANSWERS[request["method"]])
            nursery.cancel_scope.cancel()
        result = client.result(events[-1].message)
    assert result["structuredContent"] == {"talked": True}
    related = {note["method"]: note["params"].get("_meta") for note in client.notes}
    status = related.pop("notifications/tasks/status")
    assert related.keys() == {"notifications/progress", "notifications/message", *ANSWERS}
    expected = {RELATED: named(handle["task"])}
    assert list(related.values()) == [expected] * 5
    assert result["_meta"] == expected
    assert handle["_meta"][RELATED] == expected[RELATED]
    assert RELATED not in (status or {})


@pytest.mark.proves("2025-11-25/tasks/65", "2025-11-25/progress/8")
async def test_several_tasks_at_once_do_not_mix(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    tasks: dict[int, dict[str, Any]] = {}
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        for items in (2, 3, 5):
            arguments = {"itemCount": items, "delayPerItemMs": 100}
            handle = await client.tool("task_with_progress", arguments, task={}, _meta={"progressToken": items})
            tasks[items] = handle["task"]
        await client.call("tasks/cancel", named(tasks[3]))
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert [(await get(client, task))["status"] for task in tasks.values()] == ["completed", "cancelled", "completed"]
    for items in (2, 5):
        result = await client.call("tasks/result", named(tasks[items]))
        assert result["structuredContent"] == {"processedItems": items}
        heard = [note for note in client.noted("notifications/progress") if note["progressToken"] == items]
        assert [note["progress"] for note in heard] == list(range(1, items + 1))
        assert all(note["_meta"] == {RELATED: named(tasks[items])} for note in heard)

"""Tasks that need input: 2025-11-25 basic/utilities/tasks, Input Required Status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, structured

from ..support.http import messages
from ..support.inside import engine_tasks, receive
from ..support.legacy import Legacy, RpcError
from ..support.malformed import MALFORMED, malformed
from ..support.probe import Probe, running

RELATED = "io.modelcontextprotocol/related-task"
PAUSE_S = 0.2
"""How long `pausable_task` works before it asks, with the arguments used here."""
ACCEPT = {"action": "accept", "content": {"continue": True}}


async def create(client: Legacy, ttl: int = 60_000) -> dict[str, Any]:
    """A task of two items that pauses after the first."""
    arguments = {"itemCount": 2, "pauseAfterItem": 1}
    handle = await client.tool("pausable_task", arguments, task={"ttl": ttl}, _meta={"progressToken": "t"})
    return {"taskId": handle["task"]["taskId"]}


async def status(client: Legacy, task: dict[str, Any]) -> str:
    return str((await client.call("tasks/get", task))["status"])


def questions(probe: Probe) -> list[dict[str, Any]]:
    emitted = probe.events("message.emitted")
    return [event["message"] for event in emitted if event["message"].get("method") == "elicitation/create"]


def told(probe: Probe) -> list[str]:
    return [event["status"] for event in probe.events("task.changed") if event["status"] != "queued"]


async def paused(client: Legacy) -> dict[str, Any]:
    """A task that waits for its question to be heard."""
    task = await create(client)
    await trio.sleep(PAUSE_S + 0.1)
    assert await status(client, task) == "input_required"
    return task


# How the question reaches the client.


@pytest.mark.proves("2025-11-25/tasks/15")
async def test_the_task_needs_input_even_while_nobody_listens(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await paused(client)
    assert questions(probe) == []
    now = await client.call("tasks/get", task)
    assert "Processed 1 of 2 items. Continue?" in now["statusMessage"]


async def test_the_question_comes_on_the_tasks_result_stream(probe: Probe, autojump_clock: MockClock) -> None:
    """ "When the requestor encounters the `input_required` status, it SHOULD preemptively call `tasks/result`"."""
    client = await probe.client()
    task = await paused(client)
    with trio.fail_after(10):
        async with client.post(client.request("tasks/result", task, "waiting")) as answer:
            events = messages(await client.read(answer, lambda _: ACCEPT))
    assert [event.get("method", "response") for event in events] == [
        "elicitation/create",
        "notifications/tasks/status",
        "notifications/tasks/status",
        "notifications/progress",
        "notifications/tasks/status",
        "response",
    ]
    assert client.result(events[-1])["structuredContent"] == {"processedItems": 2, "pausedAt": 1}
    assert len(questions(probe)) == 1


async def test_the_question_comes_on_a_get_stream_that_is_opened_later(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await paused(client)
    await trio.sleep(30)
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen, lambda _: ACCEPT)
        await trio.sleep(5)
        assert await status(client, task) == "completed"
        nursery.cancel_scope.cancel()
    assert len(client.noted("elicitation/create")) == 1


@pytest.mark.proves("2025-11-25/tasks/14", "2025-11-25/transports/23")
async def test_the_question_is_asked_once_though_both_streams_are_open(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen, lambda _: ACCEPT)
        task = await create(client)
        async with client.post(client.request("tasks/result", task)) as answer:
            events = messages(await client.read(answer, lambda _: ACCEPT))
        assert len(questions(probe)) == 1
        assert questions(probe)[0] in events
        nursery.cancel_scope.cancel()
    assert [event["what"] for event in probe.events("client.misuse")] == []


async def test_a_stream_of_another_task_or_session_does_not_get_the_question(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client, other = await probe.client(), await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(other.listen)
        plain = (await client.tool("pure_task", {"durationMs": 60_000}, task={}))["task"]["taskId"]
        task = await paused(client)
        async with client.post(client.request("tasks/result", {"taskId": plain})):
            await trio.sleep(5)
            assert questions(probe) == []
            assert await status(client, task) == "input_required"
        nursery.cancel_scope.cancel()
    assert other.notes == []


async def test_a_question_that_was_missed_can_be_fetched_and_answered(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await create(client)
    async with client.post(client.request("tasks/result", task, "waiting")) as answer:
        (priming,) = await answer.first(1)
        await trio.sleep(PAUSE_S + 0.1)
    await trio.sleep(20)
    with trio.fail_after(10):
        async with client.get(priming.id) as answer:
            events = messages(await client.read(answer, lambda _: ACCEPT))
    assert events[-1]["result"]["structuredContent"] == {"processedItems": 2, "pausedAt": 1}
    assert len(questions(probe)) == 1


@pytest.mark.proves("2025-11-25/tasks/16", "2025-11-25/tasks/27")
async def test_the_question_is_a_form_and_belongs_to_the_task(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await paused(client)
    async with client.post(client.request("tasks/result", task)) as answer:
        await client.read(answer, lambda _: ACCEPT)
    (question,) = questions(probe)
    assert question["params"]["_meta"] == {RELATED: task}
    assert question["params"]["message"] == "Processed 1 of 2 items. Continue?"
    field = question["params"]["requestedSchema"]["properties"]["continue"]
    assert (field["type"], field["default"]) == ("boolean", True)


@pytest.mark.proves("2025-11-25/tasks/17")
async def test_the_task_works_again_after_the_answer(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await paused(client)
    async with client.post(client.request("tasks/result", task)) as answer:
        (_, question) = await answer.first(2)
        await client.answer(question.message["id"], ACCEPT)
        await wait_all_tasks_blocked()
        assert await status(client, task) == "working"
    # The time the person took is not taken from the work.
    await trio.sleep(PAUSE_S - 0.01)
    assert await status(client, task) == "working"
    await trio.sleep(0.02)
    assert await status(client, task) == "completed"


# What the answer does.

OUTCOMES: dict[str, tuple[dict[str, Any], str, str]] = {
    "accept, continue": (ACCEPT, "completed", "The task is completed."),
    "accept, the default": ({"action": "accept", "content": {}}, "completed", "The task is completed."),
    "accept, no content": ({"action": "accept"}, "completed", "The task is completed."),
    "accept, do not continue": ({"action": "accept", "content": {"continue": False}}, "cancelled", "not to continue"),
    "decline": ({"action": "decline"}, "cancelled", "declined"),
    "cancel": ({"action": "cancel"}, "cancelled", "dismissed"),
    "no action": ({}, "failed", "malformed"),
    "unknown action": ({"action": "maybe"}, "failed", "malformed"),
    "a string for the boolean": ({"action": "accept", "content": {"continue": "yes"}}, "failed", "malformed"),
}


@pytest.mark.parametrize("case", OUTCOMES)
async def test_the_answer_decides_how_the_task_ends(case: str, probe: Probe, autojump_clock: MockClock) -> None:
    answer, ending, words = OUTCOMES[case]
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen, lambda _: answer)
        task = await create(client)
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    now = await client.call("tasks/get", task)
    assert (now["status"], words in now["statusMessage"]) == (ending, True)
    record = probe.record()
    assert (record["outcome"], record["done"]) == (
        {"completed": "completed", "cancelled": "cancelled", "failed": "tool_error"}[ending],
        ending == "completed",
    )
    assert record["steps_done"] == (2 if ending == "completed" else 1)
    assert probe.events("call.settled")[-1]["sent_after_cancel"] == 0
    if ending == "cancelled":
        with pytest.raises(RpcError) as caught:
            await client.call("tasks/result", task)
        assert (caught.value.code, words in caught.value.message) == (1001, True)
    if ending == "failed":
        assert (await client.call("tasks/result", task))["isError"] is True


async def test_an_error_instead_of_an_answer_fails_the_task(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await paused(client)
    async with client.post(client.request("tasks/result", task)) as answer:
        (_, question) = await answer.first(2)
        error = {"jsonrpc": "2.0", "id": question.message["id"], "error": {"code": -32000, "message": "no screen"}}
        async with client.post(error) as accepted:
            assert accepted.status == 202
        events = messages(await client.read(answer))
    assert events[-1]["result"]["isError"] is True
    assert "no screen" in events[-1]["result"]["content"][0]["text"]
    assert await status(client, task) == "failed"


@pytest.mark.parametrize("kind", MALFORMED)
async def test_a_malformed_answer_fails_the_task_at_once(kind: str, probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await paused(client)
    began = trio.current_time()
    async with client.post(client.request("tasks/result", task)) as answer:
        (_, question) = await answer.first(2)
        async with client.post(malformed(kind, question.message["id"])) as refused:
            assert refused.status == 400
        events = messages(await client.read(answer))
    assert trio.current_time() == began
    assert events[-1]["result"]["isError"] is True
    assert "The client's answer to elicitation/create is malformed: " in events[-1]["result"]["content"][0]["text"]
    assert await status(client, task) == "failed"
    assert [event["what"] for event in probe.events("client.misuse")] == ["malformed answer"]


@pytest.mark.proves("2025-11-25/lifecycle/2")
async def test_a_question_that_nobody_answers_is_withdrawn_and_fails_the_task(autojump_clock: MockClock) -> None:
    async with running(client_request_s=20) as probe:
        client = await probe.client()
        task = await paused(client)
        began = trio.current_time()
        async with client.post(client.request("tasks/result", task)) as answer:
            events = messages(await client.read(answer))
        assert trio.current_time() - began == pytest.approx(20, abs=0.01)
        (question,) = questions(probe)
        (withdrawn,) = client.noted("notifications/cancelled")
        assert withdrawn["requestId"] == question["id"]
        assert withdrawn["_meta"] == {RELATED: task}
        assert "20 s" in events[-1]["result"]["content"][0]["text"]
        assert told(probe)[-1] == "failed"


async def test_an_answer_that_comes_twice_is_misuse_and_changes_nothing(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    task = await paused(client)
    async with client.post(client.request("tasks/result", task)) as answer:
        (_, question) = await answer.first(2)
        for result in (ACCEPT, {"action": "cancel"}):  # both arrive before the task can run
            response = {"jsonrpc": "2.0", "id": question.message["id"], "result": result}
            receive(probe.engine, response)
        await client.read(answer)
    assert await status(client, task) == "completed"
    assert [event["what"] for event in probe.events("client.misuse")] == ["answer without a question"]


async def test_the_answer_of_another_session_is_not_taken(probe: Probe, autojump_clock: MockClock) -> None:
    client, other = await probe.client(), await probe.client()
    task = await paused(client)
    async with client.post(client.request("tasks/result", task)) as answer:
        (_, question) = await answer.first(2)
        await other.answer(question.message["id"], ACCEPT)
        await trio.sleep(1)
        assert await status(client, task) == "input_required"


# A client that cannot be asked.


@pytest.mark.parametrize("declared", [{}, {"elicitation": {"url": {}}}, {"sampling": {}}])
async def test_a_client_that_cannot_be_asked_is_told_so_at_once(
    declared: dict[str, Any], probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client(capabilities=declared)
    with pytest.raises(RpcError) as caught:
        await create(client)
    assert caught.value.code == -32602
    assert "elicitation" in caught.value.message
    assert probe.engine.tasks.everyone() == []


# The end comes while the person thinks.


async def by_tasks_cancel(client: Legacy, task: dict[str, Any]) -> None:
    await trio.sleep(3)
    assert (await client.call("tasks/cancel", task))["status"] == "cancelled"


async def by_ttl(client: Legacy, task: dict[str, Any]) -> None:
    await trio.sleep(60)


ENDS: list[tuple[Callable[[Legacy, dict[str, Any]], Awaitable[None]], str]] = [
    (by_tasks_cancel, "tasks_cancel"),
    (by_ttl, "ttl"),
]


@pytest.mark.proves("2025-11-25/cancellation/1")
@pytest.mark.parametrize("reader", ["GET", "tasks/result"])
@pytest.mark.parametrize(("end", "cause"), ENDS)
async def test_the_question_is_withdrawn_when_the_task_ends(
    end: Callable[[Legacy, dict[str, Any]], Awaitable[None]],
    cause: str,
    reader: str,
    probe: Probe,
    autojump_clock: MockClock,
) -> None:
    """The person must not be left with a form that nobody reads."""
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        before = engine_tasks()
        if reader == "GET":
            await nursery.start(client.listen)
            task = await create(client)
        else:
            task = await create(client)
            nursery.start_soon(read_result, client, task)
        await end(client, task)
        await trio.sleep(1)
        (question,) = questions(probe)
        (withdrawn,) = client.noted("notifications/cancelled")
        assert withdrawn["requestId"] == question["id"]
        assert withdrawn["_meta"] == {RELATED: task}
        assert told(probe) == ["working", "working", "input_required", "cancelled"], "never working again"
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["steps_done"]) == ("cancelled", cause, 1)
        assert probe.events("call.settled")[0]["sent_after_cancel"] == 0
        await client.answer(question["id"], ACCEPT)
        await trio.sleep(100)
        assert told(probe)[-1] == "cancelled"
        assert engine_tasks() == before
        nursery.cancel_scope.cancel()


async def read_result(client: Legacy, task: dict[str, Any]) -> None:
    """Wait for a task and read everything, whatever the end is."""
    async with client.post(client.request("tasks/result", task)) as answer:
        await client.read(answer)


async def test_a_task_that_nobody_heard_asking_can_be_cancelled(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await paused(client)
    assert (await client.call("tasks/cancel", task))["status"] == "cancelled"
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    assert questions(probe) == []
    assert probe.record()["outcome"] == "cancelled"


# Several questions at once.


async def _ask_twice(context: ToolContext) -> ToolResult:
    answers: list[Any] = []

    async def one(number: int) -> None:
        answers.append((await context.elicit(f"Question {number}?", {"type": "object", "properties": {}}))["action"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, 1)
        nursery.start_soon(one, 2)
    await context.sleep(1)
    return structured({"answers": answers})


CURIOUS = Toolset("curious", (Tool("curious", "Curious", "Asks twice", _ask_twice, task_support="required"),))


@pytest.mark.proves("2025-11-25/tasks/17")
async def test_the_task_works_again_when_the_last_question_is_answered(autojump_clock: MockClock) -> None:
    async with running(toolsets=[CURIOUS]) as probe:
        client = await probe.client()
        task = {"taskId": (await client.tool("curious", task={}))["task"]["taskId"]}
        async with client.post(client.request("tasks/result", task)) as answer:
            asked = [event.message for event in await answer.first(3) if "elicitation/create" in event.data]
            assert len(asked) == 2
            assert await status(client, task) == "input_required"
            await client.answer(asked[0]["id"], {"action": "decline"})
            await wait_all_tasks_blocked()
            assert await status(client, task) == "input_required"
            await client.answer(asked[1]["id"], {"action": "cancel"})
            await wait_all_tasks_blocked()
            assert await status(client, task) == "working"
            events = messages(await client.read(answer))
        assert events[-1]["result"]["structuredContent"] == {"answers": ["decline", "cancel"]}

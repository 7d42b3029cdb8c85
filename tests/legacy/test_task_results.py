"""Results, lists, isolation and cancellation of tasks: 2025-11-25 basic/utilities/tasks."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.http import messages
from ..support.legacy import Legacy, RpcError
from ..support.probe import Probe, running
from ..support.tasks import ENDINGS, RELATED, create, error_of, get, named

# Result retrieval.


@pytest.mark.proves(
    "2025-11-25/tasks/23",
    "2025-11-25/tasks/25",
    "2025-11-25/tasks/41",
    "2025-11-25/tasks/47",
    "2025-11-25/tasks/48",
    "2025-11-25/tasks/49",
    "2025-11-25/tasks/45",
)
@pytest.mark.parametrize(
    ("tool", "status", "kind"),
    [
        ("succeeds", "completed", "completed"),
        ("says_nothing", "completed", "completed"),
        # "For tool calls specifically, this includes cases where the tool call result has `isError` set to true."
        ("returns_error", "failed", "tool_error"),
        ("raises_failure", "failed", "tool_error"),
        ("fails_without_words", "failed", "tool_error"),
        ("raises_error", "failed", "protocol_error"),
        ("crashes", "failed", "protocol_error"),
    ],
)
async def test_tasks_result_is_exactly_what_the_call_returns(
    tool: str, status: str, kind: str, autojump_clock: MockClock
) -> None:
    """Receivers "MUST return from `tasks/result` exactly what the underlying request would have returned, whether that
    is a successful result or a JSON-RPC error". The metadata is added: `tasks/result` "MUST include this metadata in
    its response, as the result structure itself does not contain the task ID"."""
    async with running(toolsets=[ENDINGS]) as probe:
        client = await probe.client()
        called = await ending_of(client, "tools/call", {"name": tool, "arguments": {}})
        task = await create(client, tool)
        for _ in range(2):  # it can be fetched again
            returned = await ending_of(client, "tasks/result", named(task))
            if "content" in returned:
                assert returned["_meta"].pop(RELATED) == named(task)
                assert {"_meta": {}, **called} == returned
            else:
                assert called == returned
        now = await get(client, task)
        assert now["status"] == status
        assert now["statusMessage"]
        record = probe.record()
        assert (record["outcome"], record["done"], record["cancelled_by"]) == (kind, kind == "completed", None)
        assert b"secret" not in b"".join(
            entry.fact.message
            for entry in probe.engine.log.since(0, 10_000).entries
            if entry.fact.kind == "message.emitted"
        )


async def ending_of(client: Legacy, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """A result, or an error as an object."""
    try:
        return await client.call(method, params)
    except RpcError as error:
        return {"code": error.code, "message": error.message, "data": error.data}


@pytest.mark.proves("2025-11-25/tasks/47", "2025-11-25/tasks/48")
@pytest.mark.parametrize(("kind", "code"), [("internal", -32603), ("validation", -32602), ("timeout", 1000)])
async def test_a_failing_task_fails_with_the_error_that_was_asked_for(
    kind: str, code: int, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    task = await create(client, "failing_task", failAfterMs=1000, errorCode=kind)
    error = await error_of(client, "tasks/result", named(task))
    assert (error.code, error.data) == (code, {"code": kind})
    assert not -32768 <= 1000 <= -32000, "not one of the codes that JSON-RPC reserves"
    now = await get(client, task)
    assert (now["status"], now["statusMessage"]) == ("failed", f"Simulated {kind} error")


@pytest.mark.proves("2025-11-25/tasks/23", "2025-11-25/tasks/41", "2025-11-25/tasks/49")
@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("pure_task", {"durationMs": 1000}, {"message": "Completed after 1000ms"}),
        ("task_with_progress", {"itemCount": 3}, {"processedItems": 3}),
        ("cancellable_task", {"durationMs": 10500}, {"message": "Completed after 10500ms"}),
        ("multi_stage_task", {"stageCount": 2}, {"stagesCompleted": ["Initializing", "Finalizing"]}),
    ],
)
async def test_a_completed_task_gives_the_result_of_the_call(
    tool: str, arguments: dict[str, Any], expected: dict[str, Any], probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    task = await create(client, tool, **arguments)
    result = await client.call("tasks/result", named(task))
    assert result["structuredContent"] == expected
    assert result["_meta"] == {RELATED: named(task)}
    assert (await get(client, task))["status"] == "completed"


@pytest.mark.proves("2025-11-25/tasks/24")
async def test_tasks_result_blocks_until_the_status_is_terminal(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await create(client, durationMs=5000)
    began = trio.current_time()
    await client.call("tasks/result", named(task))
    assert trio.current_time() - began == pytest.approx(5)
    again = trio.current_time()
    await client.call("tasks/result", named(task))
    assert trio.current_time() == again


async def test_several_may_wait_for_one_task(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await create(client, durationMs=5000)
    results: list[dict[str, Any]] = []

    async def one() -> None:
        results.append(await client.call("tasks/result", named(task)))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(one)
    assert len(results) == 3
    assert results[0] == results[1] == results[2]


async def test_waiting_for_a_cancelled_task_ends_at_once_with_one_error(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    task = await create(client)
    errors: list[RpcError] = []

    async def wait() -> None:
        errors.append(await error_of(client, "tasks/result", named(task)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(1)
        cancelled_at = trio.current_time()
        await client.call("tasks/cancel", named(task))
    assert trio.current_time() == cancelled_at
    errors.append(await error_of(client, "tasks/result", named(task)))
    assert [error.code for error in errors] == [1001, 1001]
    assert errors[0].data == {"_meta": {RELATED: named(task)}}
    assert "cancelled" in errors[0].message


@pytest.mark.proves("2025-11-25/tasks/5")
async def test_a_disconnect_from_tasks_result_loses_nothing(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await create(client, durationMs=5000)
    async with client.post(client.request("tasks/result", named(task), "waiting")) as answer:
        (priming,) = await answer.first(1)
    await trio.sleep(10)
    async with client.get(priming.id) as answer:
        missed = messages(await client.read(answer))
    assert missed[-1]["id"] == "waiting"
    assert client.result(missed[-1])["structuredContent"] == {"message": "Completed after 5000ms"}


# Listing.


@pytest.mark.proves("2025-11-25/tasks/34")
async def test_every_task_that_can_be_fetched_is_listed(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    tasks = [await create(client, durationMs=1000), await create(client, "failing_task"), await create(client)]
    await client.call("tasks/cancel", named(tasks[2]))
    await trio.sleep(3)
    listed = (await client.call("tasks/list"))["tasks"]
    assert listed == [await get(client, task) for task in tasks]
    assert [task["status"] for task in listed] == ["completed", "failed", "cancelled"]


@pytest.mark.proves("2025-11-25/tasks/32", "2025-11-25/tasks/33")
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6])
async def test_a_long_list_comes_in_pages(count: int) -> None:
    async with running(page_size=2) as probe:
        client, other = await probe.client(), await probe.client()
        created = []
        for _ in range(count):
            created.append((await create(client))["taskId"])
            await create(other)
        pages = [await client.call("tasks/list")]
        while "nextCursor" in pages[-1] and len(pages) < 10:
            pages.append(await client.call("tasks/list", {"cursor": pages[-1]["nextCursor"]}))
        assert [task["taskId"] for page in pages for task in page["tasks"]] == created
        assert len(pages) == max(1, (count + 1) // 2)


async def test_a_cursor_survives_the_expiry_of_what_it_points_at(autojump_clock: MockClock) -> None:
    async with running(page_size=2) as probe:
        client = await probe.client()
        for _ in range(2):
            await create(client, ttl=2000, durationMs=1000)
        kept = await create(client)
        page = await client.call("tasks/list")
        await trio.sleep(3)
        rest = await client.call("tasks/list", {"cursor": page["nextCursor"]})
        assert [task["taskId"] for task in rest["tasks"]] == [kept["taskId"]]


@pytest.mark.proves("2025-11-25/tasks/43", "2025-11-25/tasks/46")
@pytest.mark.parametrize(
    "cursor", ["", "x", "dGFza3M6MA", "dG9vbHM6MQ", "dGFza3M6MQ==", "dGFza3M6LTE", "é", "dGFza3M6MDE"]
)
async def test_a_cursor_that_was_never_given_is_an_error(cursor: str, probe: Probe) -> None:
    client = await probe.client()
    await create(client)
    error = await error_of(client, "tasks/list", {"cursor": cursor})
    assert (error.code, "cursor" in error.message) == (-32602, True)


# Isolation.


@pytest.mark.proves("2025-11-25/tasks/50", "2025-11-25/tasks/54", "2025-11-25/tasks/55")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
async def test_the_tasks_of_another_session_do_not_exist(method: str, probe: Probe, autojump_clock: MockClock) -> None:
    """ "receivers MUST reject `tasks/get`, `tasks/result`, and `tasks/cancel` requests for tasks that do not belong to
    the same authorization context"; the refusal tells nothing about the task."""
    client, other = await probe.client(), await probe.client()
    task = await create(client)
    stolen = await error_of(other, method, named(task))
    unknown = await error_of(other, method, {"taskId": "nothing"})
    assert (stolen.code, unknown.code) == (-32602, -32602)
    assert stolen.message.replace(task["taskId"], "nothing") == unknown.message
    assert (await other.call("tasks/list"))["tasks"] == []
    assert (await get(client, task))["status"] == "working"


@pytest.mark.proves("2025-11-25/tasks/50")
async def test_notifications_of_a_task_stay_in_its_session(probe: Probe, autojump_clock: MockClock) -> None:
    client, other = await probe.client(), await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        await nursery.start(other.listen)
        await client.tool("task_with_progress", {"itemCount": 3}, task={}, _meta={"progressToken": 1})
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert len(client.notes) == 7
    assert other.notes == []


# Cancellation.


@pytest.mark.proves("2025-11-25/tasks/12", "2025-11-25/tasks/37", "2025-11-25/tasks/38")
async def test_cancelling_answers_with_the_task_cancelled_for_good(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        task = await create(client, "cancellable_task", durationMs=10_000)
        await trio.sleep(3.5)
        answer = await client.call("tasks/cancel", named(task))
        assert (answer["status"], answer["statusMessage"]) == ("cancelled", "The task was cancelled by request.")
        assert answer["lastUpdatedAt"] > answer["createdAt"]
        heard = len(client.notes)
        await trio.sleep(200)
        assert await get(client, task) == answer
        assert client.noted("notifications/tasks/status")[-1] == answer
        assert len(client.notes) == heard
        nursery.cancel_scope.cancel()


@pytest.mark.proves("2025-11-25/tasks/35", "2025-11-25/tasks/44", "2025-11-25/tasks/46")
@pytest.mark.parametrize(
    ("tool", "arguments", "status"),
    [
        ("pure_task", {"durationMs": 1000}, "completed"),
        ("failing_task", {"failAfterMs": 1000}, "failed"),
        ("pure_task", {}, "cancelled"),
    ],
)
async def test_a_task_that_has_ended_cannot_be_cancelled(
    tool: str, arguments: dict[str, Any], status: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    task = await create(client, tool, **arguments)
    await trio.sleep(2)
    if status == "cancelled":
        await client.call("tasks/cancel", named(task))
    before = await get(client, task)
    error = await error_of(client, "tasks/cancel", named(task))
    assert error.code == -32602
    assert error.message == f"Cannot cancel task: already in terminal status '{status}'"
    assert await get(client, task) == before


@pytest.mark.proves("2025-11-25/tasks/42")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
@pytest.mark.parametrize("params", [{}, {"taskId": 7}, {"taskId": None}, {"taskId": ""}, {"taskId": "x" * 100_000}])
async def test_an_invalid_task_id_is_an_error(method: str, params: dict[str, Any], probe: Probe) -> None:
    client = await probe.client()
    error = await error_of(client, method, params)
    assert error.code == -32602
    assert len(error.message) < 300

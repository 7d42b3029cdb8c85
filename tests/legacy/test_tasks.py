"""Tasks of revision 2025-11-25: making them, their status, their time to live (basic/utilities/tasks)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.http import messages
from ..support.inside import engine_tasks
from ..support.legacy import Legacy
from ..support.probe import Probe, running
from ..support.tasks import ENDINGS, RELATED, create, error_of, get, named

IMMEDIATE = "io.modelcontextprotocol/model-immediate-response"
TASK_TOOLS = [
    "pure_task",
    "task_with_progress",
    "cancellable_task",
    "multi_stage_task",
    "failing_task",
    "pausable_task",
]


# Capabilities and tool-level negotiation.


@pytest.mark.proves("2025-11-25/tasks/1")
async def test_servers_that_support_tasks_declare_the_capability(probe: Probe) -> None:
    client = Legacy(probe.app, "/mcp")
    declared = (await client.initialize())["capabilities"]
    assert declared["tasks"] == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


@pytest.mark.proves("2025-11-25/tasks/6")
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
async def test_earlier_revisions_have_no_tasks(revision: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=[ENDINGS]) as probe:
        client = Legacy(probe.app, "/mcp?tools=all")
        assert "tasks" not in (await client.initialize(revision))["capabilities"]
        listed = (await client.call("tools/list"))["tools"]
        assert "always_a_task" not in [tool["name"] for tool in listed]
        assert all("execution" not in tool for tool in listed)
        for ignored in ({}, {"ttl": 1000}, {"ttl": "long"}, None, 7):
            request = client.request("tools/call", {"name": "succeeds", "task": ignored}, id="it")
            client.methods["it"] = ("tools/call", False)
            async with client.post(request) as answer:
                (response,) = messages(await client.read(answer))
            assert response["result"]["content"] == [{"type": "text", "text": '{"answer":42}'}]
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert (await error_of(client, method, {"taskId": "x"})).code == -32601
        assert (await error_of(client, "tasks/list", {})).code == -32601
        assert (await error_of(client, "tools/call", {"name": "always_a_task"})).code == -32601
        assert probe.engine.tasks.everyone() == []


@pytest.mark.proves("2025-11-25/tasks/6")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("ping", {}),
        ("tools/list", {}),
        ("resources/read", {"uri": "test://static-text"}),
        ("prompts/get", {"name": "test_simple_prompt"}),
    ],
)
async def test_the_wish_for_a_task_means_nothing_to_requests_other_than_calls(
    method: str, params: dict[str, Any], probe: Probe
) -> None:
    client = await probe.client()
    plain = await client.call(method, params)
    assert await client.call(method, {**params, "task": {"ttl": 1000}}) == plain
    assert probe.engine.tasks.everyone() == []


async def test_tools_declare_their_task_support(probe: Probe) -> None:
    client = await probe.client()
    support = {tool["name"]: tool.get("execution") for tool in (await client.call("tools/list"))["tools"]}
    assert {name for name, execution in support.items() if execution == {"taskSupport": "required"}} == set(TASK_TOOLS)
    assert {
        name for name, execution in support.items() if execution not in (None, {"taskSupport": "required"})
    } == set()


@pytest.mark.proves("2025-11-25/tasks/2", "2025-11-25/tasks/3")
@pytest.mark.parametrize(
    ("tool", "as_task", "code"),
    [
        ("never_a_task", True, -32601),  # "Servers SHOULD return a `-32601` (Method not found) error"
        ("never_a_task", False, None),
        ("succeeds", True, None),  # "optional": "clients MAY invoke the tool as a task or as a normal request"
        ("succeeds", False, None),
        ("always_a_task", True, None),
        ("always_a_task", False, -32601),  # "Servers MUST return a `-32601` (Method not found) error"
    ],
)
async def test_task_support_decides_how_a_tool_may_be_called(
    tool: str, as_task: bool, code: int | None, autojump_clock: MockClock
) -> None:
    async with running(toolsets=[ENDINGS]) as probe:
        client = await probe.client()
        params = {"name": tool, "arguments": {}, **({"task": {}} if as_task else {})}
        if code is None:
            result = await client.call("tools/call", params)
            assert ("task" in result) is as_task
        else:
            error = await error_of(client, "tools/call", params)
            assert error.code == code
            assert tool in error.message
            assert probe.engine.tasks.everyone() == []
            record = probe.record()
            assert (record["outcome"], record["answered"], record["task"]) == ("protocol_error", True, None)


# Creating tasks.


@pytest.mark.proves("2025-11-25/tasks/10", "2025-11-25/tasks/21", "2025-11-25/tasks/22")
@pytest.mark.parametrize("tool", TASK_TOOLS)
async def test_the_handle_comes_at_once_and_is_working(tool: str, probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    began = trio.current_time()
    async with client.post(client.request("tools/call", {"name": tool, "task": {}})) as answer:
        assert answer.headers["content-type"] == "application/json"
        handle = client.result(await answer.json())
    assert trio.current_time() == began
    task = handle["task"]
    assert (task["status"], task["ttl"], task["pollInterval"]) == ("working", 300_000, 500)
    assert task["statusMessage"]
    assert task["createdAt"] == task["lastUpdatedAt"]
    assert handle["_meta"][RELATED] == named(task)
    assert handle.keys() == {"task", "_meta"}


async def test_the_handle_says_what_to_tell_the_model_meanwhile(probe: Probe) -> None:
    """ "The value of this key should be a string intended to be passed as an immediate tool result to the model"."""
    client = await probe.client()
    handle = await client.tool("pure_task", task={})
    assert isinstance(handle["_meta"][IMMEDIATE], str)
    assert handle["task"]["taskId"] in handle["_meta"][IMMEDIATE]


@pytest.mark.parametrize("wrong", [None, 7, [], "now", {"ttl": "1000"}, {"ttl": True}, {"ttl": -1}, {"ttl": 1.5}])
async def test_a_malformed_task_member_is_an_error_and_no_task(wrong: Any, probe: Probe) -> None:
    client = await probe.client()
    error = await error_of(client, "tools/call", {"name": "pure_task", "task": wrong})
    assert error.code == -32602
    assert "task" in error.message
    assert probe.engine.tasks.everyone() == []


@pytest.mark.parametrize(
    ("tool", "arguments", "names"),
    [
        ("pure_task", {"durationMs": 999}, "durationMs"),
        ("pure_task", {"durationMs": 60_001}, "durationMs"),
        ("cancellable_task", {"durationMs": "60000"}, "durationMs"),
        ("failing_task", {"errorCode": "fatal"}, "errorCode"),
        ("multi_stage_task", {"stages": 3}, "stages"),
        ("pausable_task", {"itemCount": 5, "pauseAfterItem": 5}, "pauseAfterItem"),
        ("pausable_task", {"itemCount": 5, "pauseAfterItem": 6}, "pauseAfterItem"),
    ],
)
async def test_arguments_that_do_not_fit_are_an_error_and_no_task(
    tool: str, arguments: dict[str, Any], names: str, probe: Probe
) -> None:
    client = await probe.client()
    error = await error_of(client, "tools/call", {"name": tool, "arguments": arguments, "task": {}})
    assert error.code == -32602
    assert names in error.message
    assert probe.engine.tasks.everyone() == []
    assert probe.record()["outcome"] == "protocol_error"


async def test_an_unknown_tool_is_an_error_and_no_task(probe: Probe) -> None:
    client = await probe.client()
    assert (await error_of(client, "tools/call", {"name": "nothing", "task": {}})).code == -32602
    assert probe.engine.tasks.everyone() == []


@pytest.mark.proves("2025-11-25/tasks/7", "2025-11-25/tasks/8", "2025-11-25/tasks/9")
async def test_task_ids_are_unique_strings_made_by_the_server(probe: Probe) -> None:
    one, other = await probe.client(), await probe.client()
    ids = [(await create(client))["taskId"] for client in (one, other, one, other)]
    assert len(set(ids)) == 4
    assert all(isinstance(id, str) for id in ids)


# Status and timestamps.


@pytest.mark.proves("2025-11-25/tasks/11", "2025-11-25/tasks/31")
@pytest.mark.parametrize(
    ("tool", "arguments", "statuses"),
    [
        ("pure_task", {"durationMs": 1000}, ["completed"]),
        ("failing_task", {"failAfterMs": 1000}, ["failed"]),
        ("cancellable_task", {"durationMs": 10000}, ["working", "completed"]),
        ("multi_stage_task", {}, ["working", "working", "working", "completed"]),
        ("task_with_progress", {"itemCount": 2}, ["working", "working", "completed"]),
        (
            "pausable_task",
            {"itemCount": 2, "pauseAfterItem": 1},
            ["working", "input_required", "working", "working", "completed"],
        ),
    ],
)
async def test_every_change_of_status_is_told_once_and_in_order(
    tool: str, arguments: dict[str, Any], statuses: list[str], probe: Probe, autojump_clock: MockClock
) -> None:
    """Only the paths of "Task Status Lifecycle"; the notification "includes the full Task object"."""
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen, lambda request: {"action": "accept", "content": {}})
        task = await create(client, tool, **arguments)
        await trio.sleep(60)
        told = client.noted("notifications/tasks/status")
        assert [status["status"] for status in told] == statuses
        assert told[-1] == await get(client, task)
        assert all(RELATED not in status.get("_meta", {}) for status in told)
        changes = [event["status"] for event in probe.events("task.changed")]
        assert changes == ["queued", "working", *statuses]
        nursery.cancel_scope.cancel()


@pytest.mark.proves("2025-11-25/tasks/18", "2025-11-25/tasks/19")
async def test_timestamps_tell_creation_and_the_last_change(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await trio.sleep(5)
    handle = await create(client, durationMs=2000)
    await trio.sleep(1)
    working = await get(client, handle)
    await trio.sleep(9)
    done = await get(client, handle)
    created = datetime.fromisoformat(handle["createdAt"])
    assert created.utcoffset() is not None
    assert {handle["createdAt"], working["createdAt"], done["createdAt"]} == {handle["createdAt"]}
    assert working["lastUpdatedAt"] == handle["createdAt"]
    assert (datetime.fromisoformat(done["lastUpdatedAt"]) - created).total_seconds() == pytest.approx(2, abs=0.002)


@pytest.mark.proves("2025-11-25/tasks/4", "2025-11-25/tasks/13", "2025-11-25/tasks/30", "2025-11-25/tasks/40")
async def test_polling_is_answered_as_json_and_without_the_related_task(
    probe: Probe, autojump_clock: MockClock
) -> None:
    """ "servers SHOULD NOT upgrade to an SSE stream in response to a `tasks/get` request"; for `tasks/get`,
    `tasks/list` and `tasks/cancel` "receivers SHOULD NOT include" the metadata in the result."""
    client = await probe.client()
    task = await create(client)
    for method, params in (("tasks/get", named(task)), ("tasks/list", {}), ("tasks/cancel", named(task))):
        async with client.post(client.request(method, params)) as answer:
            assert answer.headers["content-type"] == "application/json"
            body = await answer.body()
        assert RELATED.encode() not in body


@pytest.mark.proves("2025-11-25/tasks/28", "2025-11-25/tasks/29")
async def test_the_id_in_the_params_counts_and_not_the_metadata(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    one, other = await create(client, durationMs=1000), await create(client, "failing_task", failAfterMs=1000)
    misleading = {**named(one), "_meta": {RELATED: named(other)}}
    assert (await client.call("tasks/get", misleading))["taskId"] == one["taskId"]
    assert (await client.call("tasks/result", misleading))["_meta"][RELATED] == named(one)
    third = await create(client)
    assert (await client.call("tasks/cancel", {**named(third), "_meta": {RELATED: named(one)}}))["taskId"] == third[
        "taskId"
    ]


# TTL and resource management.


@pytest.mark.proves("2025-11-25/tasks/20", "2025-11-25/tasks/58")
@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        (None, 300_000),
        (0, 1000),
        (999, 1000),
        (1000, 1000),
        (60_000, 60_000),
        (60_000.0, 60_000),
        (3_600_000, 3_600_000),
        (3_600_001, 3_600_000),
        (10**15, 3_600_000),
    ],
)
async def test_the_actual_ttl_is_told(asked: float | None, granted: int, probe: Probe) -> None:
    client = await probe.client()
    task = await create(client, ttl=asked)
    assert task["ttl"] == granted
    assert (await get(client, task))["ttl"] == granted


@pytest.mark.proves("2025-11-25/tasks/42", "2025-11-25/tasks/59")
async def test_a_finished_task_is_gone_when_its_ttl_has_passed(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    before = engine_tasks()
    task = await create(client, ttl=10_000, durationMs=1000)
    await trio.sleep(9.999)
    assert (await get(client, task))["status"] == "completed"
    await trio.sleep(0.002)
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        error = await error_of(client, method, named(task))
        assert (error.code, task["taskId"] in error.message) == (-32602, True)
    assert (await client.call("tasks/list"))["tasks"] == []
    assert probe.engine.tasks.everyone() == []
    assert engine_tasks() == before
    assert [event["why"] for event in probe.events("task.removed")] == ["expired"]


@pytest.mark.proves("2025-11-25/tasks/59")
async def test_a_task_is_stopped_when_its_ttl_passes_while_it_works(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    before = engine_tasks()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        listening = engine_tasks()
        task = await create(client, "cancellable_task", ttl=3500)
        await trio.sleep(3.6)
        assert engine_tasks() == listening == before
        told = client.noted("notifications/tasks/status")
        nursery.cancel_scope.cancel()
    assert [status["status"] for status in told] == ["working", "cancelled"]
    assert "ttl" in told[-1]["statusMessage"]
    assert (await error_of(client, "tasks/get", named(task))).code == -32602
    record = probe.record()
    assert (record["outcome"], record["cancelled_by"], record["steps_done"]) == ("cancelled", "ttl", 3)
    assert (record["done"], record["answered"]) == (False, True)
    assert probe.engine.tasks.everyone() == []


async def test_waiting_for_a_task_that_expires_ends_with_an_error(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    task = await create(client, "cancellable_task", ttl=3500)
    began = trio.current_time()
    assert (await error_of(client, "tasks/result", named(task))).code == -32602
    assert trio.current_time() - began == pytest.approx(3.5, abs=0.01)


@pytest.mark.proves("2025-11-25/tasks/57")
async def test_the_number_of_tasks_of_a_session_is_limited(autojump_clock: MockClock) -> None:
    async with running(max_tasks_per_session=2) as probe:
        client, other = await probe.client(), await probe.client()
        for _ in range(2):
            await create(client, ttl=2000, durationMs=1000)
        error = await error_of(client, "tools/call", {"name": "pure_task", "task": {}})
        assert error.code == -32000
        assert "max_tasks_per_session" in error.message
        assert [(event["limit"], event["session"]) for event in probe.events("limit.reached")] == [
            ("max_tasks_per_session", "s1")
        ]
        await create(other)
        await trio.sleep(2.1)
        await create(client)


async def test_the_number_of_all_tasks_is_limited(autojump_clock: MockClock) -> None:
    async with running(max_tasks=2) as probe:
        one, other = await probe.client(), await probe.client()
        await create(one)
        await create(other)
        error = await error_of(one, "tools/call", {"name": "pure_task", "task": {}})
        assert error.code == -32000
        assert "max_tasks " in error.message
        await other.delete()
        await wait_all_tasks_blocked()
        await create(one)


@pytest.mark.proves("2025-11-25/tasks/62")
async def test_the_log_tells_of_the_creation_the_end_and_each_retrieval_of_a_task(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    task = await create(client, durationMs=1000)
    await client.call("tasks/result", named(task))
    await get(client, task)
    changes = [event for event in probe.events("task.changed") if event["task"] == task["taskId"]]
    assert [event["status"] for event in changes] == ["queued", "working", "completed"]
    received = [event["message"] for event in probe.events("message.received")]
    asked = [message["method"] for message in received if message.get("params") == named(task)]
    assert asked == ["tasks/result", "tasks/get"]
    assert {event["session"] for event in changes} == {"s1"}

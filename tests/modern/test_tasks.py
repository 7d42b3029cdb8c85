"""The tasks extension: who gets a task, what `tasks/get` tells of it, how it ends and when it is gone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.settings import Settings

from ..support.inside import engine_tasks
from ..support.legacy import ALL_CAPABILITIES, RpcError
from ..support.listening import bare, listening, settle
from ..support.modern import TASKS, VERSION, WITH_TASKS, Modern
from ..support.probe import Probe, running
from ..support.schemas import schema
from ..support.tasks import ENDINGS

TASK = {"taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}
"""The members of every task of this server."""
MISSING: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
WITHOUT = dict(ALL_CAPABILITIES)
"""The capabilities of a client that declares everything but the extension."""
LEGACY_TASKS: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}}}
"""What 2025-11-25 calls the capability `tasks`."""


async def fault(client: Modern, method: str, params: Mapping[str, Any], **how: Any) -> tuple[int, dict[str, Any]]:
    """The HTTP status and the error of a request that must fail; `headers` replace the client's own."""
    headers = how.pop("headers", None)
    request = client.request(method, params, **how)
    async with client.post(request, headers) as answer:
        status, message = answer.status, await answer.json()
    with pytest.raises(RpcError) as caught:
        client.result(message, method, request["id"])
    assert caught.value.code == message["error"]["code"]
    return status, message["error"]


async def ended(client: Modern, name: str, **arguments: Any) -> dict[str, Any]:
    """The task of a call once its status is final."""
    handle = await client.tool(name, arguments)
    assert handle["resultType"] == "task"
    return await client.until(handle["taskId"], "completed", "failed", "cancelled", pause=partial(trio.sleep, 0.5))


def emitted(probe: Probe) -> list[dict[str, Any]]:
    return [event["message"] for event in probe.events("message.emitted")]


# Who gets a task.

TABLE = [
    ("never_a_task", True, "complete"),
    ("never_a_task", False, "complete"),
    ("succeeds", True, "task"),
    ("succeeds", False, "complete"),
    ("always_a_task", True, "task"),
]


@pytest.mark.proves("ext-tasks/tasks/1", "ext-tasks/tasks/4", "ext-tasks/tasks/5")
@pytest.mark.parametrize(("name", "declared", "kind"), TABLE)
async def test_the_tool_and_the_extension_decide(
    name: str, declared: bool, kind: str, autojump_clock: MockClock
) -> None:
    async with running(toolsets=(ENDINGS,), tools="endings") as probe:
        client = probe.modern(capabilities=WITH_TASKS if declared else WITHOUT)
        result = await client.tool(name)
        assert result["resultType"] == kind
        assert ("taskId" in result, "structuredContent" in result) == (kind == "task", kind == "complete")
        assert len(probe.engine.tasks.everyone()) == (kind == "task")


UNDECLARED: list[dict[str, Any]] = [
    WITHOUT,
    {**WITHOUT, "tasks": LEGACY_TASKS},
    {**WITHOUT, "extensions": {}},
    {**WITHOUT, "extensions": {"io.modelcontextprotocol/task": {}, "example.com/tasks": {}}},
    {**WITHOUT, "experimental": {TASKS: {}}},
    {**WITHOUT, TASKS: {}},
]


@pytest.mark.proves("ext-tasks/tasks/2", "ext-tasks/tasks/36")
@pytest.mark.parametrize("capabilities", UNDECLARED)
async def test_a_tool_that_only_runs_as_a_task_names_the_missing_extension(
    capabilities: dict[str, Any], probe: Probe
) -> None:
    """ "the server MUST return an error with the code `-32021`". The capability `tasks` of 2025-11-25 is none."""
    client = probe.modern(capabilities=capabilities)
    status, error = await fault(client, "tools/call", {"name": "pure_task"})
    assert (status, error["code"], error["data"]) == (400, -32021, MISSING)
    assert error["message"] == f"Missing required client capability: tool pure_task needs {TASKS}"
    assert probe.engine.tasks.everyone() == []


@pytest.mark.proves("ext-tasks/tasks/1")
async def test_what_an_earlier_request_declared_does_not_count(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    assert (await client.tool("slow_compute", {"seconds": 0}))["resultType"] == "task"
    client.capabilities = WITHOUT
    assert (await client.tool("slow_compute", {"seconds": 0}))["resultType"] == "complete"
    assert (await fault(client, "tools/call", {"name": "pure_task"}))[1]["code"] == -32021


@pytest.mark.parametrize("wish", [{}, {"ttl": 1234}, None, 7, "now", [1]])
async def test_the_task_wish_of_2025_11_25_is_no_parameter(wish: Any, probe: Probe, autojump_clock: MockClock) -> None:
    """It makes no task of what is none, and says nothing about one that is; no shape of it is an error."""
    client = probe.modern()
    plain = await client.tool("simple_tool", {}, task=wish)
    assert (plain["resultType"], plain["structuredContent"]) == ("complete", {"message": "Completed after 0ms"})
    handle = await client.tool("pure_task", {}, task=wish)
    assert (handle["resultType"], handle["ttlMs"]) == ("task", Settings().task_ttl_ms)
    client.capabilities = WITHOUT
    assert (await client.tool("slow_compute", {"seconds": 0}, task=wish))["resultType"] == "complete"


@pytest.mark.parametrize("declared", [True, False])
async def test_arguments_at_fault_make_no_task(declared: bool, probe: Probe) -> None:
    client = probe.modern(capabilities=WITH_TASKS if declared else WITHOUT)
    result = await client.tool("slow_compute", {"seconds": -1})
    assert (result["resultType"], result["isError"]) == ("complete", True)
    assert probe.engine.tasks.everyone() == []


@pytest.mark.proves("ext-tasks/tasks/9")
async def test_what_is_asked_before_is_asked_before_there_is_a_task(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    first = await client.tool("test_tool_with_task")
    assert first["resultType"] == "input_required"
    assert probe.engine.tasks.everyone() == []
    (key,) = first["inputRequests"]
    answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
    handle = await client.tool("test_tool_with_task", inputResponses=answers, requestState=first["requestState"])
    assert handle["resultType"] == "task"
    task = await client.until(handle["taskId"], "completed", pause=partial(trio.sleep, 0.5))
    assert task["result"]["content"] == [{"type": "text", "text": "Hello, Ada!"}]


# Tools of toolset `probe`, called with their defaults (product contract, section 5.1).

BECOMES: dict[str, Any] = {
    "pure_task": {"message": "Completed after 5000ms"},
    "task_with_progress": {"processedItems": 10},
    "cancellable_task": {"message": "Completed after 60000ms"},
    "pausable_task": {"processedItems": 10, "pausedAt": 5},
}


@pytest.mark.parametrize("name", BECOMES)
async def test_a_task_tool_completes_with_its_result(name: str, probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern(tools="probe")
    handle = await client.tool(name)
    assert (handle["resultType"], handle["status"]) == ("task", "working")
    pause = partial(trio.sleep, 0.25)
    task = await client.until(handle["taskId"], "input_required", "completed", pause=pause)
    if task["status"] == "input_required":
        (key,) = task["inputRequests"]
        yes = {key: {"action": "accept", "content": {"continue": True}}}
        await client.call("tasks/update", {"taskId": handle["taskId"], "inputResponses": yes})
        task = await client.until(handle["taskId"], "completed", pause=pause)
    result = task["result"]
    assert result["structuredContent"] == BECOMES[name]
    assert [json.loads(block["text"]) for block in result["content"]] == [BECOMES[name]]


@pytest.mark.proves("ext-tasks/tasks/15", "ext-tasks/tasks/37", "ext-tasks/tasks/38", "ext-tasks/tasks/41")
@pytest.mark.parametrize(("kind", "code"), [("internal", -32603), ("validation", -32602), ("timeout", 1000)])
async def test_failing_task_fails_with_its_error(kind: str, code: int, probe: Probe, autojump_clock: MockClock) -> None:
    task = await ended(probe.modern(tools="probe"), "failing_task", errorCode=kind)
    said = f"Simulated {kind} error"
    assert (task["status"], task["statusMessage"]) == ("failed", said)
    assert task["error"] == {"code": code, "message": said, "data": {"code": kind}}
    assert not -32099 <= code <= -32000, "the timeout's code is outside the reserved range"


async def test_the_pause_of_pausable_task_must_come_before_the_end(probe: Probe) -> None:
    result = await probe.modern().tool("pausable_task", {"itemCount": 5, "pauseAfterItem": 5})
    assert (result["resultType"], result["isError"]) == ("complete", True)
    assert probe.engine.tasks.everyone() == []


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "accept", "content": {"continue": False}},
    ],
)
async def test_who_does_not_want_to_go_on_cancels_pausable_task(
    answer: dict[str, Any], probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern()
    id = (await client.tool("pausable_task", {"itemCount": 2, "pauseAfterItem": 1}))["taskId"]
    asked = await client.until(id, "input_required", pause=partial(trio.sleep, 0.1))
    await client.call("tasks/update", {"taskId": id, "inputResponses": dict.fromkeys(asked["inputRequests"], answer)})
    task = await client.until(id, "cancelled", pause=partial(trio.sleep, 0.1))
    assert task["statusMessage"].startswith("Cancelled after item 1 of 2: ")
    assert task.keys() - {"_meta", "resultType"} == TASK


# Creation.


@pytest.mark.proves("ext-tasks/tasks/7", "ext-tasks/tasks/10", "ext-tasks/tasks/16")
async def test_the_handle_names_a_task_that_exists_already(probe: Probe) -> None:
    client = probe.modern()
    handle = await client.tool("pure_task")
    task = await client.get_task(handle["taskId"])
    assert (handle["resultType"], task["resultType"]) == ("task", "complete")
    assert bare(task) == bare(handle)
    assert bare(handle).keys() == TASK
    assert (handle["status"], handle["createdAt"]) == ("working", handle["lastUpdatedAt"])
    (made, *_) = probe.events("task.changed")
    (answered,) = [event for event in probe.events("message.emitted") if event["message"]["result"] == handle]
    assert made["task"] == handle["taskId"]
    assert made["seq"] < answered["seq"]


async def test_ttl_and_poll_interval_are_the_settings(autojump_clock: MockClock) -> None:
    async with running(task_ttl_ms=7_000, task_poll_ms=123) as probe:
        handle = await probe.modern().tool("pure_task")
        assert (handle["ttlMs"], handle["pollIntervalMs"]) == (7_000, 123)


@pytest.mark.proves("ext-tasks/tasks/43", "ext-tasks/tasks/51")
async def test_task_ids_come_whole_from_the_source_of_unguessable_ids(probe: Probe) -> None:
    given: list[str] = []

    def new_id() -> str:
        given.append(f"secret-{len(given)}")
        return given[-1]

    probe.engine.runs.new_task_id = new_id
    client = probe.modern()
    ids = [(await client.tool("pure_task"))["taskId"] for _ in range(3)]
    assert ids == given == ["secret-0", "secret-1", "secret-2"]


@pytest.mark.proves("ext-tasks/tasks/43", "2025-11-25/tasks/52", "2025-11-25/transports/27", "2025-11-25/transports/28")
def test_the_source_of_ids_has_256_bits() -> None:
    from probe.cli.parts import new_id

    ids = {new_id() for _ in range(200)}
    assert len(ids) == 200
    assert {len(id) for id in ids} == {43}
    # All of the alphabet in every place: 200 draws from 64 miss half of it with a probability that nobody will see.
    assert all(len({id[at] for id in ids}) > 32 for at in range(42))


@pytest.mark.proves("ext-tasks/tasks/51")
async def test_tasks_at_the_same_time_do_not_mix(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    handles = {ms: await client.tool("pure_task", {"durationMs": ms}) for ms in (1000, 2000, 3000)}
    await trio.sleep(2.5)
    tasks = {ms: await client.get_task(handle["taskId"]) for ms, handle in handles.items()}
    assert {ms: task["status"] for ms, task in tasks.items()} == {1000: "completed", 2000: "completed", 3000: "working"}
    for ms in (1000, 2000):
        assert tasks[ms]["result"]["structuredContent"] == {"message": f"Completed after {ms}ms"}


# The gates.


@pytest.mark.proves("ext-tasks/tasks/21", "ext-tasks/tasks/26", "ext-tasks/tasks/31", "ext-tasks/tasks/32")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_an_unknown_task_is_invalid_params(method: str, probe: Probe) -> None:
    more: dict[str, Any] = {"inputResponses": {"a": {}}} if method == "tasks/update" else {}
    status, error = await fault(probe.modern(), method, {"taskId": "no-such-task", **more})
    assert (status, error["code"]) == (200, -32602)
    assert error["message"] == "Task not found: no-such-task is unknown or has expired"


# Statuses and what they inline.


@pytest.mark.proves(
    "ext-tasks/tasks/10", "ext-tasks/tasks/11", "ext-tasks/tasks/13", "ext-tasks/tasks/14", "ext-tasks/tasks/15"
)
async def test_each_status_has_its_own_detail_and_no_other(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    ids = {
        "working": (await client.tool("cancellable_task"))["taskId"],
        "input_required": (await client.tool("multi_input"))["taskId"],
        "completed": (await client.tool("pure_task", {"durationMs": 1000}))["taskId"],
        "failed": (await client.tool("failing_task", {"failAfterMs": 1000}))["taskId"],
        "cancelled": (await client.tool("pure_task"))["taskId"],
    }
    await client.call("tasks/cancel", {"taskId": ids["cancelled"]})
    await trio.sleep(1.5)
    tasks = {status: bare(await client.get_task(id)) for status, id in ids.items()}
    details = {"input_required": {"inputRequests"}, "completed": {"result"}, "failed": {"error"}}
    assert {status: task["status"] for status, task in tasks.items()} == {status: status for status in ids}
    assert {status: task.keys() - TASK for status, task in tasks.items()} == {
        status: details.get(status, set()) for status in ids
    }


ENDS: list[tuple[str, str, str]] = [
    ("succeeds", "completed", "The task is completed."),
    ("returns_error", "completed", "the model should read this"),
    ("raises_failure", "completed", "no luck"),
    ("fails_without_words", "completed", "The tool reported an error."),
    ("says_nothing", "completed", "The task is completed."),
    ("raises_error", "failed", "very wrong"),
    ("crashes", "failed", "Internal error"),
]


@pytest.mark.proves("ext-tasks/tasks/6", "ext-tasks/tasks/37", "ext-tasks/tasks/39")
@pytest.mark.parametrize(("name", "status", "words"), ENDS)
async def test_only_a_json_rpc_error_is_a_failure(
    name: str, status: str, words: str, autojump_clock: MockClock
) -> None:
    async with running(toolsets=(ENDINGS,), tools="endings") as probe:
        task = await ended(probe.modern(), name)
        assert (task["status"], task["statusMessage"]) == (status, words)


@pytest.mark.proves("ext-tasks/tasks/13", "ext-tasks/tasks/40", "ext-tasks/tasks/42")
@pytest.mark.parametrize("name", [name for name, status, _ in ENDS if status == "completed"])
async def test_a_completed_task_has_the_result_the_call_would_have_had(name: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=(ENDINGS,), tools="endings") as probe:
        task = await ended(probe.modern(), name)
        direct = await probe.modern(capabilities=WITHOUT).tool(name)
        schema(VERSION).check(task["result"], "CallToolResult")
        # Who made the result stands once in the answer to tasks/get.
        own = {key: value for key, value in direct["_meta"].items() if not key.endswith("/serverInfo")}
        expected = {**direct, "_meta": own} if own else {k: v for k, v in direct.items() if k != "_meta"}
        assert task["result"] == expected
        assert bool(task["result"].get("isError")) == (name not in ("succeeds", "says_nothing"))


@pytest.mark.proves("ext-tasks/tasks/15", "ext-tasks/tasks/33", "ext-tasks/tasks/41")
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("raises_error", {"code": 4711, "message": "very wrong", "data": {"why": ["a", 1, None]}}),
        ("crashes", {"code": -32603, "message": "Internal error"}),
    ],
)
async def test_a_failed_task_has_the_error_the_call_would_have_had(
    name: str, error: dict[str, Any], autojump_clock: MockClock
) -> None:
    async with running(toolsets=(ENDINGS,), tools="endings") as probe:
        task = await ended(probe.modern(), name)
        assert task["error"] == error
        assert (await fault(probe.modern(capabilities=WITHOUT), "tools/call", {"name": name}))[1] == error


async def test_created_at_stays_and_last_updated_at_moves(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    handle = await client.tool("pure_task", {"durationMs": 2000})
    await trio.sleep(1)
    working = await client.get_task(handle["taskId"])
    task = await client.until(handle["taskId"], "completed", pause=partial(trio.sleep, 1))
    assert working["createdAt"] == task["createdAt"] == handle["createdAt"] == "2026-05-28T20:26:40.000Z"
    assert (working["lastUpdatedAt"], task["lastUpdatedAt"]) == (handle["createdAt"], "2026-05-28T20:26:42.000Z")


async def test_the_steps_are_in_the_status_message(probe: Probe, autojump_clock: MockClock) -> None:
    """Product contract, section 4: "no progress notifications (the extension forbids them); the step goes into
    `statusMessage`"."""
    client = probe.modern()
    id = (await client.tool("task_with_progress", {"itemCount": 3, "delayPerItemMs": 1000}))["taskId"]
    said = []
    for _ in range(4):
        await trio.sleep(0.5)
        task = await client.get_task(id)
        said.append((task["status"], task["statusMessage"]))
        await trio.sleep(0.5)
    assert said == [
        ("working", "Starting item 1 of 3"),
        ("working", "Starting item 2 of 3"),
        ("working", "Starting item 3 of 3"),
        ("completed", "The task is completed."),
    ]


async def test_a_step_is_in_the_status_message_even_if_the_tool_says_nothing_else(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern()
    id = (await client.tool("slow_compute", {"seconds": 3}))["taskId"]
    said = []
    for _ in range(2):
        await trio.sleep(1.1)
        said.append((await client.get_task(id))["statusMessage"])
    assert said == ["Computed for 1s of 3s", "Computed for 2s of 3s"]


@pytest.mark.proves("ext-tasks/tasks/29")
async def test_a_task_sends_no_progress_and_no_log_messages(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    level = "io.modelcontextprotocol/logLevel"
    handle = await client.tool("task_with_progress", {"itemCount": 3}, meta={"progressToken": "t", level: "debug"})
    async with listening(client, taskIds=[handle["taskId"]]) as ear:
        await ear.wait(lambda: ear.told[-1][1]["status"] == "completed")
        assert set(ear.methods) == {"notifications/tasks"}
    methods = {message.get("method", "response") for message in emitted(probe)}
    assert methods == {"response", "notifications/subscriptions/acknowledged", "notifications/tasks"}


async def test_nothing_of_the_tasks_of_2025_11_25_is_said(probe: Probe, autojump_clock: MockClock) -> None:
    """No related-task metadata, no `requestState` beside a task, no `task` wrapper around the handle."""
    client = probe.modern()
    handle = await client.tool("pausable_task", {"itemCount": 2, "pauseAfterItem": 1}, meta={"progressToken": 1})
    async with listening(client, taskIds=[handle["taskId"]]) as ear:
        asked = await client.until(handle["taskId"], "input_required", pause=partial(trio.sleep, 0.1))
        yes = {key: {"action": "accept", "content": {}} for key in asked["inputRequests"]}
        await client.call("tasks/update", {"taskId": handle["taskId"], "inputResponses": yes})
        await ear.wait(lambda: ear.told[-1][1]["status"] == "completed")
    everything = json.dumps(emitted(probe))
    for word in ("related-task", "requestState", '"task":', "tasks/status", 'pollInterval"', '"ttl"'):
        assert word not in everything


# The end of a task.


@pytest.mark.proves("ext-tasks/tasks/25", "ext-tasks/tasks/27", "ext-tasks/tasks/14")
async def test_a_cancelled_task_is_cancelled_at_once_and_for_good(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    id = (await client.tool("cancellable_task"))["taskId"]
    await trio.sleep(2.5)
    ack = await client.call("tasks/cancel", {"taskId": id})
    assert (ack["resultType"], bare(ack)) == ("complete", {})
    task = await client.get_task(id)
    assert (task["status"], task["statusMessage"]) == ("cancelled", "The task was cancelled by request.")
    record = probe.record()
    assert (record["outcome"], record["cancelled_by"], record["steps_done"]) == ("cancelled", "tasks_cancel", 2)
    assert (record["done"], record["cancel_latency_ms"]) == (False, 0)
    await trio.sleep(100)
    assert await client.get_task(id) == task


@pytest.mark.parametrize(
    ("name", "status"), [("pure_task", "completed"), ("failing_task", "failed"), ("cancellable_task", "cancelled")]
)
async def test_cancelling_what_has_ended_is_acknowledged_and_changes_nothing(
    name: str, status: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern()
    id = (await client.tool(name))["taskId"]
    if status == "cancelled":
        await client.call("tasks/cancel", {"taskId": id})
    before = await client.until(id, status, pause=partial(trio.sleep, 1))
    cancelled = probe.events("call.cancelled")
    for _ in range(2):
        await trio.sleep(1)
        assert bare(await client.call("tasks/cancel", {"taskId": id})) == {}
        assert await client.get_task(id) == before
    assert probe.events("call.cancelled") == cancelled


async def test_a_task_cancelled_as_soon_as_it_is_there_does_nothing(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    handle = await client.tool("cancellable_task")
    await client.call("tasks/cancel", {"taskId": handle["taskId"]})
    assert (await client.get_task(handle["taskId"]))["status"] == "cancelled"
    await trio.sleep(61)
    assert (await client.get_task(handle["taskId"]))["status"] == "cancelled"
    assert probe.record()["steps_done"] in (None, 0)


@pytest.mark.proves("ext-tasks/tasks/49")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_an_expired_task_is_gone(method: str, autojump_clock: MockClock) -> None:
    async with running(task_ttl_ms=10_000) as probe:
        client = probe.modern()
        id = (await client.tool("pure_task", {"durationMs": 1000}))["taskId"]
        before = engine_tasks()
        await trio.sleep(9.9)
        assert (await client.get_task(id))["status"] == "completed"
        await trio.sleep(0.2)
        more: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
        status, error = await fault(client, method, {"taskId": id, **more})
        assert (status, error["code"]) == (200, -32602)
        assert "expired" in error["message"]
        assert probe.engine.tasks.everyone() == []
        assert len(engine_tasks()) < len(before), "its trio task has ended with it"


async def test_the_ttl_stops_work_that_goes_on(autojump_clock: MockClock) -> None:
    """Contract, section 7: "Tasks are not dispatches: their bound is the `ttl`"."""
    async with running(task_ttl_ms=10_000) as probe:
        client = probe.modern()
        id = (await client.tool("cancellable_task"))["taskId"]
        async with listening(client, taskIds=[id]) as ear:
            await trio.sleep(11)
            assert ear.told[-1][1]["status"] == "cancelled", "who listens is told"
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["steps_done"]) == ("cancelled", "ttl", 9)
        assert probe.engine.tasks.everyone() == []


# Limits.


async def test_one_task_more_than_the_limit_is_refused(autojump_clock: MockClock) -> None:
    async with running(task_ttl_ms=10_000, max_tasks=2) as probe:
        client = probe.modern()
        for _ in range(2):
            await client.tool("pure_task", {"durationMs": 1000})
        status, error = await fault(client, "tools/call", {"name": "pure_task"})
        assert (status, error["code"]) == (503, 1002)
        assert "the limit max_tasks is 2" in error["message"]
        assert [event["limit"] for event in probe.events("limit.reached")] == ["max_tasks"]
        assert probe.record()["outcome"] == "protocol_error"
        await trio.sleep(10.1)
        await settle()
        assert (await client.tool("pure_task"))["resultType"] == "task", "expired tasks do not count"


async def test_the_limit_is_about_tasks_not_about_calls(autojump_clock: MockClock) -> None:
    async with running(max_tasks=1) as probe:
        client = probe.modern()
        await client.tool("slow_compute", {"seconds": 1})
        client.capabilities = WITHOUT
        assert (await client.tool("slow_compute", {"seconds": 1}))["resultType"] == "complete"

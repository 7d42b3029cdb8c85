"""One process, one endpoint, both eras: a legacy session and modern requests at the same time do not meet."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.legacy import Legacy, RpcError
from ..support.listening import listening, settle
from ..support.modern import VERSION, Modern
from ..support.probe import Probe, running
from ..support.shown import newest
from ..support.tasks import ENDINGS, RELATED, create, error_of

LEGACY = "2025-11-25"
YES = {"action": "accept", "content": {"continue": True}}


@pytest.fixture
async def both(probe: Probe) -> tuple[Legacy, Modern]:
    return await probe.client(LEGACY), probe.modern()


async def fault(client: Modern, method: str, params: dict[str, Any]) -> RpcError:
    """The error of a modern request that must fail."""
    with pytest.raises(RpcError) as caught:
        await client.call(method, params)
    return caught.value


# Which era a request belongs to.


async def test_one_endpoint_serves_each_request_in_its_own_era(
    both: tuple[Legacy, Modern], probe: Probe, autojump_clock: MockClock
) -> None:
    """Each answer is checked by the schema of its revision, in the clients."""
    legacy, modern = both
    for _ in range(2):
        assert "resultType" not in await legacy.tool("simple_tool")
        assert probe.record()["era"] == "legacy"
        assert (await modern.tool("simple_tool"))["resultType"] == "complete"
        record = probe.record()
        assert (record["era"], record["revision"], record["session"]) == ("modern", VERSION, "m1")


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen", "tasks/update"])
async def test_modern_methods_do_not_exist_in_a_session(method: str, both: tuple[Legacy, Modern]) -> None:
    legacy, _ = both
    assert (await error_of(legacy, method, {"taskId": "x", "notifications": {}})).code == -32601


# At the same time.


async def test_calls_with_the_same_id_and_token_do_not_meet(
    both: tuple[Legacy, Modern], probe: Probe, autojump_clock: MockClock
) -> None:
    legacy, modern = both
    arguments = {"steps": 3, "step_ms": 1000}
    results: dict[str, Any] = {}

    async def call_legacy() -> None:
        meta = {"progressToken": "same"}
        params = {"name": "progress", "arguments": arguments, "_meta": meta}
        results["legacy"] = await legacy.call("tools/call", params, "one")

    async def call_modern() -> None:
        params = {"name": "progress", "arguments": {**arguments, "steps": 5}}
        results["modern"] = await modern.call("tools/call", params, meta={"progressToken": "same"}, id="one")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call_legacy)
        nursery.start_soon(call_modern)
    assert results["legacy"]["structuredContent"]["steps"] == 3
    assert results["modern"]["structuredContent"]["steps"] == 5
    assert [note["progress"] for note in legacy.noted("notifications/progress")] == [1, 2, 3]
    assert [note["progress"] for note in modern.noted("notifications/progress")] == [1, 2, 3, 4, 5]


async def test_a_legacy_cancellation_does_not_reach_a_modern_call_with_the_same_id(
    both: tuple[Legacy, Modern], probe: Probe, autojump_clock: MockClock
) -> None:
    legacy, modern = both
    results: list[dict[str, Any]] = []

    async def call_modern() -> None:
        params = {"name": "simple_tool", "arguments": {"delayMs": 5000}}
        results.append(await modern.call("tools/call", params, id="one"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call_modern)
        await settle()
        await legacy.cancel("one")
    assert results[0]["structuredContent"] == {"message": "Completed after 5000ms"}
    assert [event for event in probe.events("call.cancelled") if event["effect"]] == []


async def test_a_modern_disconnect_does_not_end_a_legacy_call_with_the_same_id(
    both: tuple[Legacy, Modern], probe: Probe, autojump_clock: MockClock
) -> None:
    legacy, modern = both
    params = {"name": "simple_tool", "arguments": {"delayMs": 5000}}
    results: list[dict[str, Any]] = []

    async def call_legacy() -> None:
        results.append(await legacy.call("tools/call", params, "one"))

    steps = {"name": "progress", "arguments": {"steps": 5, "step_ms": 1000}}

    async def call_modern() -> None:
        request = modern.request("tools/call", steps, meta={"progressToken": "one"}, id="one")
        async with modern.post(request) as answer:
            modern.heard(await anext(answer.events()))
            answer.hang_up()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call_legacy)
        nursery.start_soon(call_modern)
    assert results[0]["structuredContent"] == {"message": "Completed after 5000ms"}
    outcomes = {record.era: record.outcome for record in newest(probe.engine.records, 5)}
    assert outcomes == {"legacy": "completed", "modern": "disconnected"}


async def test_the_end_of_a_session_ends_nothing_modern(
    both: tuple[Legacy, Modern], probe: Probe, autojump_clock: MockClock
) -> None:
    legacy, modern = both
    task = (await modern.tool("pure_task"))["taskId"]
    gone = await create(legacy)
    async with listening(modern, toolsListChanged=True) as ear:
        assert await legacy.delete() == 204
        await settle()
        assert [left.id for left in probe.engine.tasks.everyone()] == [task]
        await modern.tool("announce_list_change")
        await ear.wait_told(1)
    assert (await modern.until(task, "completed", pause=partial(trio.sleep, 1)))["taskId"] != gone["taskId"]


async def test_a_change_announced_in_a_session_is_told_in_that_session_alone(
    both: tuple[Legacy, Modern], probe: Probe
) -> None:
    """Product contract, section 5.3: list-changed is on demand, for the client that demanded it, or for those who
    listen to the same list."""
    legacy, modern = both
    async with listening(modern, toolsListChanged=True) as ear, trio.open_nursery() as nursery:
        await nursery.start(legacy.listen)
        await legacy.tool("announce_list_change")
        await settle()
        assert ([note["method"] for note in legacy.notes], ear.told) == (["notifications/tools/list_changed"], [])
        await modern.tool("announce_list_change")
        await settle()
        assert len(legacy.notes) == 1
        assert ear.methods == ["notifications/tools/list_changed"]
        nursery.cancel_scope.cancel()


async def test_a_subscription_of_one_era_is_none_of_the_other(
    both: tuple[Legacy, Modern], probe: Probe, autojump_clock: MockClock
) -> None:
    legacy, modern = both
    async with trio.open_nursery() as nursery:
        await nursery.start(legacy.listen)
        await legacy.call("resources/subscribe", {"uri": "probe://clock"})
        async with listening(modern, resourceSubscriptions=["test://watched-resource"]) as ear:
            await trio.sleep(6.1)
            assert {params["uri"] for _, params in ear.told} == {"test://watched-resource"}
            assert {params["uri"] for params in legacy.noted("notifications/resources/updated")} == {"probe://clock"}
        nursery.cancel_scope.cancel()


# Tasks.


async def test_legacy_tasks_do_not_exist_for_modern_clients(
    both: tuple[Legacy, Modern], probe: Probe, autojump_clock: MockClock
) -> None:
    legacy, modern = both
    id = (await create(legacy, "pausable_task", itemCount=2, pauseAfterItem=1))["taskId"]
    await trio.sleep(1)
    for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {"x": YES}})):
        error, unknown = [await fault(modern, method, {"taskId": name, **more}) for name in (id, "no-such-task")]
        assert (error.code, error.message) == (unknown.code, unknown.message.replace("no-such-task", id))
    async with listening(modern, taskIds=[id]) as ear:
        assert ear.honoured == {}
    assert (await legacy.call("tasks/get", {"taskId": id}))["status"] == "input_required"


async def test_modern_tasks_do_not_exist_in_a_session(
    both: tuple[Legacy, Modern], probe: Probe, autojump_clock: MockClock
) -> None:
    legacy, modern = both
    id = (await modern.tool("pausable_task", {"itemCount": 2, "pauseAfterItem": 1}))["taskId"]
    own = (await create(legacy))["taskId"]
    await trio.sleep(1)
    for method in ("tasks/get", "tasks/cancel", "tasks/result"):
        error, unknown = [await error_of(legacy, method, {"taskId": name}) for name in (id, "no-such-task")]
        assert (error.code, error.message) == (unknown.code, unknown.message.replace("no-such-task", id))
    assert [task["taskId"] for task in (await legacy.call("tasks/list"))["tasks"]] == [own]
    assert (await modern.get_task(id))["status"] == "input_required"


async def test_a_session_that_is_called_modern_owns_no_modern_task(probe: Probe, autojump_clock: MockClock) -> None:
    """The owner of modern tasks is a word that the server gives to no session."""
    modern = probe.modern()
    id = (await modern.tool("pure_task"))["taskId"]
    for _ in range(3):
        session = await probe.client(LEGACY)
        assert (await error_of(session, "tasks/get", {"taskId": id})).code == -32602
    labels = {event["session"] for event in probe.events("session.opened")}
    assert len(labels) == 3
    assert labels.isdisjoint({task.plan.owner for task in probe.engine.tasks.everyone()})


async def test_the_question_of_a_modern_task_is_put_to_no_session(
    both: tuple[Legacy, Modern], probe: Probe, autojump_clock: MockClock
) -> None:
    legacy, modern = both
    async with trio.open_nursery() as nursery:
        await nursery.start(legacy.listen, lambda request: YES)
        id = (await modern.tool("pausable_task", {"itemCount": 2, "pauseAfterItem": 1}))["taskId"]
        await trio.sleep(10)
        assert (await modern.get_task(id))["status"] == "input_required"
        assert legacy.notes == []
        nursery.cancel_scope.cancel()


async def test_the_notifications_of_a_task_go_to_its_own_era(
    both: tuple[Legacy, Modern], probe: Probe, autojump_clock: MockClock
) -> None:
    legacy, modern = both
    async with trio.open_nursery() as nursery:
        await nursery.start(legacy.listen)
        mine = (await modern.tool("pure_task", {"durationMs": 1000}))["taskId"]
        async with listening(modern, taskIds=[mine]) as ear:
            theirs = await create(legacy, durationMs=1000)
            await trio.sleep(2)
            assert {params["taskId"] for _, params in ear.told} == {mine}
            told = {params["taskId"] for params in legacy.noted("notifications/tasks/status")}
            assert told == {theirs["taskId"]}
        nursery.cancel_scope.cancel()


ENDS = [
    ("succeeds", "completed", "completed"),
    ("returns_error", "failed", "completed"),
    ("raises_failure", "failed", "completed"),
    ("raises_error", "failed", "failed"),
    ("crashes", "failed", "failed"),
]


@pytest.mark.parametrize(("name", "old", "new"), ENDS)
async def test_each_era_has_its_own_word_for_the_same_end(
    name: str, old: str, new: str, autojump_clock: MockClock
) -> None:
    """2025-11-25 basic/utilities/tasks: "when a tool result has `isError` set to true, the task should reach `failed`";
    the tasks extension: "even if `isError: true` …, the task uses `completed` status"."""
    async with running(toolsets=(ENDINGS,), tools="endings") as probe:
        legacy, modern = await probe.client(LEGACY), probe.modern()
        one, two = (await create(legacy, name))["taskId"], (await modern.tool(name))["taskId"]
        await trio.sleep(2)
        assert (await legacy.call("tasks/get", {"taskId": one}))["status"] == old
        assert (await modern.get_task(two))["status"] == new


async def test_a_cancelled_task_is_answered_in_the_words_of_each_era(
    both: tuple[Legacy, Modern], autojump_clock: MockClock
) -> None:
    legacy, modern = both
    one, two = (await create(legacy))["taskId"], (await modern.tool("pure_task"))["taskId"]
    assert (await legacy.call("tasks/cancel", {"taskId": one}))["status"] == "cancelled"
    assert (await modern.call("tasks/cancel", {"taskId": two})).keys() == {"resultType", "_meta"}
    assert (await error_of(legacy, "tasks/cancel", {"taskId": one})).code == -32602
    assert (await modern.call("tasks/cancel", {"taskId": two})).keys() == {"resultType", "_meta"}


# What is offered.


async def everything(client: Legacy | Modern, method: str, member: str) -> list[dict[str, Any]]:
    """All pages of a list."""
    found, page = [], await client.call(method, {})
    found += page[member]
    while "nextCursor" in page:
        page = await client.call(method, {"cursor": page["nextCursor"]})
        found += page[member]
    return found


async def test_tools_are_the_same_but_for_what_a_revision_has_not(both: tuple[Legacy, Modern], probe: Probe) -> None:
    legacy, modern = both
    old = {tool["name"]: tool for tool in await everything(legacy, "tools/list", "tools")}
    new = {tool["name"]: tool for tool in await everything(modern, "tools/list", "tools")}
    tools = probe.engine.offer("all", LEGACY).catalogue.tools
    assert set(old) == {name for name, tool in tools.items() if tool.since <= LEGACY}
    assert set(new) == {name for name, tool in tools.items() if tool.is_defined(VERSION)}
    assert "ping_client" in old.keys() - new.keys()
    assert "slow_compute" in new.keys() - old.keys()
    assert all("execution" not in tool for tool in new.values()), "the server decides who becomes a task"
    for name in old.keys() & new.keys():
        assert new[name] == {key: value for key, value in old[name].items() if key != "execution"}
    assert [name for name in old if name in new] == [name for name in new if name in old], "in the same order"


@pytest.mark.parametrize(
    ("method", "member", "key"),
    [
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ("prompts/list", "prompts", "name"),
    ],
)
async def test_lists_are_the_same_but_for_what_asks_first(
    method: str, member: str, key: str, both: tuple[Legacy, Modern], probe: Probe
) -> None:
    """A resource or a prompt that asks before it answers needs multi-round-trip requests."""
    legacy, modern = both
    old = {item[key]: item for item in await everything(legacy, method, member)}
    new = {item[key]: item for item in await everything(modern, method, member)}
    assert old.items() <= new.items()
    catalogue = probe.engine.offer("all", LEGACY).catalogue
    asking = {item.uri for item in catalogue.resources.values() if item.inputs} | {
        prompt.name for prompt in catalogue.prompts.values() if prompt.inputs
    }
    assert new.keys() - old.keys() == new.keys() & asking


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("simple_tool", {"delayMs": 20}),
    ("simple_tool", {"delayMs": -1}),
    ("sync_with_progress", {"itemCount": 3, "delayPerItemMs": 10}),
    ("progress", {"steps": 3, "step_ms": 0}),
    ("long_output", {"blocks": 2, "chars": 12}),
    ("chatty", {}),
    ("structured_output", {}),
    ("content_types", {}),
    ("fail", {}),
    ("announce_list_change", {"list": "prompts"}),
    ("test_simple_text", {}),
    ("test_error_handling", {}),
]


@pytest.mark.parametrize(("name", "arguments"), CALLS)
async def test_a_tool_gives_the_same_result_in_both_eras(
    name: str, arguments: dict[str, Any], both: tuple[Legacy, Modern], autojump_clock: MockClock
) -> None:
    """But for the type that the modern era gives to each result, and who gave it."""
    legacy, modern = both
    old, new = await legacy.tool(name, arguments), await modern.tool(name, arguments)
    assert {key: value for key, value in new.items() if key not in ("resultType", "_meta")} == {
        key: value for key, value in old.items() if key != "_meta"
    }
    assert old.get("_meta", {}).items() <= new["_meta"].items()


@pytest.mark.parametrize("name", ["pure_task", "task_with_progress", "multi_stage_task"])
async def test_a_task_gives_the_same_result_in_both_eras(
    name: str, both: tuple[Legacy, Modern], autojump_clock: MockClock
) -> None:
    legacy, modern = both
    one, two = await create(legacy, name), await modern.tool(name)
    old = await legacy.call("tasks/result", {"taskId": one["taskId"]})
    new = (await modern.until(two["taskId"], "completed", pause=partial(trio.sleep, 1)))["result"]
    assert RELATED in old["_meta"]
    assert {key: value for key, value in old.items() if key != "_meta"} == {
        key: value for key, value in new.items() if key != "resultType"
    }


@pytest.mark.parametrize("uri", ["probe://text", "probe://blob", "probe://squares/12", "test://static-text"])
async def test_a_resource_says_the_same_in_both_eras(uri: str, both: tuple[Legacy, Modern]) -> None:
    legacy, modern = both
    params = {"uri": uri}
    old, new = await legacy.call("resources/read", params), await modern.call("resources/read", params)
    assert old["contents"] == new["contents"]

"""Every result is what the schemas of 2026-07-28 and of the tasks extension define."""

from __future__ import annotations

from typing import Any

import pytest

from probe.wire.v2026.codec import TaskTimes, complete, create_task, describe_task, detailed_task, input_required
from probe.wire.v2026.meta import SERVER_INFO, SUBSCRIPTION_ID

from ...support.schemas import schema

CORE = schema("2026-07-28")
TASKS = schema("ext-tasks")
SERVER = {"name": "probe", "version": "1"}
TOOL = {
    "name": "t",
    "inputSchema": {"type": "object", "properties": {"execution": {"type": "string"}}},
    "execution": {"taskSupport": "required"},
}

# Handlers' results in the shape of 2025-11-25, by method, with the name of the modern result.
RESULTS: dict[str, tuple[dict[str, Any], str]] = {
    "server/discover": ({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}, "DiscoverResult"),
    "tools/list": ({"tools": [TOOL], "nextCursor": "c"}, "ListToolsResult"),
    "tools/call": ({"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}}, "CallToolResult"),
    "resources/list": ({"resources": [{"uri": "a:b", "name": "r"}]}, "ListResourcesResult"),
    "resources/templates/list": ({"resourceTemplates": []}, "ListResourceTemplatesResult"),
    "resources/read": ({"contents": [{"uri": "a:b", "text": "x"}]}, "ReadResourceResult"),
    "prompts/list": ({"prompts": [{"name": "p"}]}, "ListPromptsResult"),
    "prompts/get": ({"messages": []}, "GetPromptResult"),
    "completion/complete": ({"completion": {"values": []}}, "CompleteResult"),
    "subscriptions/listen": ({"_meta": {SUBSCRIPTION_ID: 1}}, "SubscriptionsListenResult"),
    "tasks/update": ({}, "Result"),
    "tasks/cancel": ({}, "Result"),
}
CACHEABLE = {
    "server/discover": "public",
    "tools/list": "public",
    "prompts/list": "public",
    "resources/list": "public",
    "resources/templates/list": "public",
    "resources/read": "private",
}


@pytest.mark.parametrize("method", RESULTS)
def test_a_final_result_fits_its_definition(method: str) -> None:
    handled, definition = RESULTS[method]
    result = complete(method, handled, server_info=SERVER)
    CORE.check(result, definition)
    assert result["resultType"] == "complete"
    assert result["_meta"] == {**handled.get("_meta", {}), SERVER_INFO: SERVER}


@pytest.mark.parametrize("method", RESULTS)
def test_caching_hints_stand_where_the_specification_wants_them_and_nowhere_else(method: str) -> None:
    result = complete(method, RESULTS[method][0], server_info=SERVER)
    assert result.get("cacheScope") == CACHEABLE.get(method)
    assert ("ttlMs" in result) == (method in CACHEABLE)
    assert result.get("ttlMs", 0) >= 0


def test_what_changes_at_any_moment_is_not_cached() -> None:
    assert complete("resources/read", {"contents": []}, server_info=SERVER)["ttlMs"] == 0


def test_members_of_the_legacy_tasks_are_taken_out_and_the_handlers_value_stays() -> None:
    handled = {"tools": [{**TOOL}]}
    tool = complete("tools/list", handled, server_info=SERVER)["tools"][0]
    assert tool == {key: TOOL[key] for key in ("name", "inputSchema")}
    assert handled == {"tools": [TOOL]}
    capabilities = {"tools": {}, "tasks": {"list": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    found = complete("server/discover", {"supportedVersions": [], "capabilities": capabilities}, server_info=SERVER)
    assert found["capabilities"] == {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}


ASK = {
    "name": {
        "method": "elicitation/create",
        "params": {
            "message": "?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
    },
    "roots": {"method": "roots/list", "params": {}},
}


@pytest.mark.parametrize(("requests", "state"), [(ASK, None), (ASK, "s"), ({}, "s"), (ASK, ""), ({}, "")])
def test_input_required_has_requests_or_state_or_both(requests: dict[str, Any], state: str | None) -> None:
    result = input_required(requests, state, server_info=SERVER)
    CORE.check(result, "InputRequiredResult")
    assert result["resultType"] == "input_required"
    assert result.get("inputRequests") == (requests or None)
    assert result.get("requestState") == state
    assert result["_meta"] == {SERVER_INFO: SERVER}
    assert "ttlMs" not in result


def test_input_required_without_either_is_a_defect() -> None:
    with pytest.raises(ValueError, match="neither"):
        input_required({}, None, server_info=SERVER)


def task(status: str, message: str | None = None, ttl_ms: int | None = 300_000) -> dict[str, Any]:
    times = TaskTimes("2026-07-28T10:00:00.000Z", "2026-07-28T10:00:01.000Z", ttl_ms, poll_ms=500)
    return describe_task("786512e2", status, message, times)


def test_a_task_is_flat_and_has_the_new_names() -> None:
    assert task("working", "Step 1") == {
        "taskId": "786512e2",
        "status": "working",
        "statusMessage": "Step 1",
        "createdAt": "2026-07-28T10:00:00.000Z",
        "lastUpdatedAt": "2026-07-28T10:00:01.000Z",
        "ttlMs": 300_000,
        "pollIntervalMs": 500,
    }
    assert task("working", ttl_ms=None)["ttlMs"] is None
    assert "statusMessage" not in task("working")
    TASKS.check(task("working", ttl_ms=None), "Task")


def test_a_call_that_became_a_task() -> None:
    result = create_task(task("working"), server_info=SERVER)
    TASKS.check(result, "CreateTaskResult")
    assert result == {**task("working"), "resultType": "task", "_meta": {SERVER_INFO: SERVER}}


DETAILS: dict[str, tuple[str | None, Any]] = {
    "working": (None, None),
    "cancelled": (None, None),
    "input_required": ("inputRequests", ASK),
    "completed": ("result", {"content": [{"type": "text", "text": "x"}], "isError": True}),
    "failed": ("error", {"code": -32603, "message": "no"}),
}


@pytest.mark.parametrize("status", DETAILS)
def test_a_task_in_detail_for_tasks_get_and_for_its_notification(status: str) -> None:
    member, detail = DETAILS[status]
    told = detailed_task(task(status), detail)
    TASKS.check(told, "DetailedTask")
    TASKS.check({"jsonrpc": "2.0", "method": "notifications/tasks", "params": told}, "TaskStatusNotification")
    assert told.keys() - task(status).keys() == ({member} if member else set())
    got = complete("tasks/get", told, server_info=SERVER)
    TASKS.check(got, "GetTaskResult")
    assert got == {**told, "resultType": "complete", "_meta": {SERVER_INFO: SERVER}}


def test_the_inlined_result_is_a_whole_result() -> None:
    told = detailed_task(task("completed"), {"content": []})
    CORE.check(told["result"], "CallToolResult")
    assert told["result"] == {"content": [], "resultType": "complete"}


@pytest.mark.parametrize(
    ("status", "detail"), [("working", {}), ("cancelled", {"code": 1}), ("completed", None), ("failed", None)]
)
def test_a_detail_that_does_not_belong_to_the_status_is_a_defect(status: str, detail: Any) -> None:
    with pytest.raises(ValueError, match=status):
        detailed_task(task(status), detail)

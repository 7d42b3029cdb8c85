"""Each session speaks one revision: it is negotiated once, and nothing is said that this revision does not define."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.tools.catalogue import TOOLSETS

from ..support.legacy import Legacy, RpcError
from ..support.probe import Probe
from ..support.schemas import RevisionSchema, schema

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
OLDER = REVISIONS[:2]
DONE = {
    "sampling/createMessage": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}},
    "elicitation/create": {"action": "accept", "content": {}},
    "roots/list": {"roots": []},
    "ping": {},
}
OFFERED = [tool for group in TOOLSETS for tool in group.tools if tool.since <= "2025-11-25"]
PLAIN_TOOLS = [tool.name for tool in OFFERED if tool.task_support != "required"]
TASK_TOOLS = [tool.name for tool in OFFERED if tool.task_support == "required"]


# Negotiation.


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_revision_that_is_served_is_answered_by_itself(revision: str, probe: Probe) -> None:
    """2025-11-25 basic/lifecycle: "it MUST respond with the same version"."""
    result = await Legacy(probe.app, "/mcp").initialize(revision)
    assert result["protocolVersion"] == revision


@pytest.mark.parametrize("asked", ["2024-11-05", "2024-10-07", "2099-01-01", "2026-07-28", "1.0.0", "latest", ""])
async def test_any_other_is_answered_by_the_latest_revision(asked: str, probe: Probe) -> None:
    """ "Otherwise, the server MUST respond with another protocol version it supports. This SHOULD be the latest"."""
    client = Legacy(probe.app, "/mcp")
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    async with client.post(client.request("initialize", params)) as answer:
        assert client.result(await answer.json())["protocolVersion"] == "2025-11-25"


async def test_the_server_says_who_it_is(probe: Probe) -> None:
    result = await Legacy(probe.app, "/mcp").initialize()
    assert result["serverInfo"]["name"] == "mcp-probe"
    assert {"title", "version", "description"} <= result["serverInfo"].keys()
    assert result["instructions"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_request_without_version_header_is_judged_by_its_session(revision: str, probe: Probe) -> None:
    """ "and has no other way to identify the version": this server has, it remembers what was negotiated."""
    client = await probe.client(revision)
    del client.headers["mcp-protocol-version"]
    tools = (await client.call("tools/list"))["tools"]
    assert any("outputSchema" in tool for tool in tools) is (revision > "2025-03-26")
    assert probe.events("client.misuse") == []


async def test_another_version_header_than_negotiated_is_noted_and_the_session_keeps_its_revision(probe: Probe) -> None:
    """ "The protocol version sent by the client SHOULD be the one negotiated during initialization"."""
    client = await probe.client("2025-06-18")
    client.headers["mcp-protocol-version"] = "2025-11-25"
    assert not any("execution" in tool for tool in (await client.call("tools/list"))["tools"])
    (misuse,) = probe.events("client.misuse")
    assert (misuse["what"], misuse["detail"]) == ("another protocol version", "2025-11-25 instead of 2025-06-18")


# Methods.


@pytest.mark.parametrize("revision", OLDER)
@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"])
async def test_a_method_of_a_later_revision_does_not_exist(method: str, revision: str, probe: Probe) -> None:
    client = await probe.client(revision)
    with pytest.raises(RpcError, match=f"revision {revision} has no {method}") as caught:
        await client.call(method, {"taskId": "x"})
    assert caught.value.code == -32601


@pytest.mark.parametrize("revision", OLDER)
async def test_a_tool_that_only_runs_as_a_task_is_not_there_before_tasks(revision: str, probe: Probe) -> None:
    client = await probe.client(revision)
    listed = [tool["name"] for tool in (await client.call("tools/list"))["tools"]]
    plain = [tool for tool in OFFERED if tool.task_support != "required"]
    assert listed == [tool.name for tool in plain if tool.since <= revision]
    with pytest.raises(RpcError, match="only runs as a task") as caught:
        await client.tool("pure_task")
    assert caught.value.code == -32601


# Members.


OPEN = {"inputSchema", "outputSchema"}
"""Any JSON Schema, though the protocol's names a few of its members."""


def unknown_members(value: Any, definition: Any, of: RevisionSchema, path: str = "") -> Iterator[str]:
    """Members that a schema does not name, where it names any and does not say that there may be more."""
    definition = resolved(definition, of)
    branches = definition.get("anyOf", [])
    if branches:
        yield from min(
            (list(unknown_members(value, branch, of, path)) for branch in fitting(value, branches, of)), key=len
        )
    elif isinstance(value, list):
        for item in value:
            yield from unknown_members(item, definition.get("items", {}), of, f"{path}[]")
    elif isinstance(value, dict) and "properties" in definition and "additionalProperties" not in definition:
        named = definition["properties"]
        yield from (f"{path}.{name}" for name in value if name not in named)
        for name in value.keys() & named.keys() - OPEN:
            yield from unknown_members(value[name], named[name], of, f"{path}.{name}")


def resolved(definition: Any, of: RevisionSchema) -> Any:
    while "$ref" in definition:
        definition = of.definitions[definition["$ref"].rpartition("/")[2]]
    return definition


def fitting(value: Any, branches: list[Any], of: RevisionSchema) -> list[Any]:
    """The branches whose constants the value has."""
    kind = value.get("type") if isinstance(value, dict) else None
    constants = [resolved(branch, of).get("properties", {}).get("type", {}).get("const") for branch in branches]
    return [branch for branch, const in zip(branches, constants, strict=True) if const in (None, kind)]


def test_the_judge_of_members_sees_what_is_unknown() -> None:
    older = schema("2025-03-26")
    tools = {"tools": [{"name": "a", "title": "A", "inputSchema": {"type": "object"}, "annotations": {"x": 1}}]}
    found = unknown_members(tools, {"$ref": "ListToolsResult"}, older)
    assert sorted(found) == [".tools[].annotations.x", ".tools[].title"]
    content = {"content": [{"type": "text", "text": "", "_meta": {}}], "structuredContent": {}}
    found = unknown_members(content, {"$ref": "CallToolResult"}, older)
    assert sorted(found) == [".content[]._meta", ".structuredContent"]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("method", "params", "definition"),
    [
        ("ping", None, "Result"),
        ("tools/list", None, "ListToolsResult"),
        ("resources/list", None, "ListResourcesResult"),
        ("resources/templates/list", None, "ListResourceTemplatesResult"),
        ("resources/read", {"uri": "test://static-text"}, "ReadResourceResult"),
        ("resources/read", {"uri": "test://static-binary"}, "ReadResourceResult"),
        ("resources/read", {"uri": "test://template/5/data"}, "ReadResourceResult"),
        ("prompts/list", None, "ListPromptsResult"),
        ("prompts/get", {"name": "test_simple_prompt"}, "GetPromptResult"),
        ("prompts/get", {"name": "test_prompt_with_image"}, "GetPromptResult"),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
                "argument": {"name": "arg1", "value": ""},
            },
            "CompleteResult",
        ),
    ],
)
async def test_no_result_has_a_member_that_its_revision_does_not_name(
    method: str, params: dict[str, Any] | None, definition: str, revision: str, probe: Probe
) -> None:
    client = await probe.client(revision)
    result = await client.call(method, params)
    assert list(unknown_members(result, {"$ref": definition}, schema(revision))) == []


@pytest.mark.parametrize("revision", REVISIONS)
async def test_initialize_has_no_member_that_its_revision_does_not_name(revision: str, probe: Probe) -> None:
    result = await Legacy(probe.app, "/mcp?tools=all").initialize(revision)
    assert list(unknown_members(result, {"$ref": "InitializeResult"}, schema(revision))) == []
    assert ("tasks" in result["capabilities"]) is (revision == "2025-11-25")


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("tool", PLAIN_TOOLS)
async def test_no_call_says_anything_that_its_revision_does_not_define(
    tool: str, revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    """Every message of the call is checked against the schema by the client, which answers every question."""
    client = await probe.client(revision)
    arguments = {"test_sampling": {"prompt": "hi"}, "test_elicitation": {"message": "hi"}}.get(tool, {})
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
    with trio.fail_after(100):
        result = await finish(client, client.request("tools/call", params))
    if isinstance(result, RpcError):
        assert result.code == -32602, "a tool whose question the revision does not know refuses the call"
        return
    assert list(unknown_members(result, {"$ref": "CallToolResult"}, schema(revision))) == []
    for note in client.notes:
        # 2025-03-26 writes `jsonrpc` and `id` in another definition
        said = {name: value for name, value in note.items() if name not in ("jsonrpc", "id")}
        definition = schema(revision)._by_method[note["method"]]
        assert list(unknown_members(said, {"$ref": definition}, schema(revision))) == []


@pytest.mark.parametrize("revision", OLDER)
async def test_a_tool_that_asks_in_a_later_form_is_refused_before(revision: str, probe: Probe) -> None:
    client = await probe.client(revision)
    with pytest.raises(RpcError, match=f"needs revision 2025-11-25; this request speaks {revision}") as caught:
        await client.tool("test_elicitation_sep1330_enums")
    assert caught.value.code == -32602


async def finish(client: Legacy, request: dict[str, Any]) -> dict[str, Any] | RpcError:
    """The result of a call that may ask questions and close its connection before the end."""
    async with client.post(request) as answer:
        if answer.headers["content-type"] == "application/json":
            messages, last = [await answer.json()], None
        else:
            messages, last = await heard(client, answer)
    while "method" in (messages or [{"method": ""}])[-1]:
        async with client.get(last_event_id=last) as answer:
            messages, last = await heard(client, answer)
    try:
        return client.result(messages[-1])
    except RpcError as error:
        return error


async def heard(client: Legacy, answer: Any) -> tuple[list[Any], str | None]:
    """The messages of one connection and the id of its last event."""
    messages, last = [], None
    async for event in answer.events():
        last = event.id
        if event.data:
            messages.append(event.message)
            await client.hear(event, done)
    return messages, last


def done(request: dict[str, Any]) -> dict[str, Any]:
    """The client's answer to any question; nobody is there to confirm a page."""
    return {"action": "decline"} if request["params"].get("mode") == "url" else DONE[request["method"]]


@pytest.mark.parametrize("tool", TASK_TOOLS)
async def test_no_task_says_anything_that_its_revision_does_not_define(
    tool: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client("2025-11-25")
    arguments = {"cancellable_task": {"durationMs": 10000}}.get(tool, {})
    with trio.fail_after(200):
        handle = await client.tool(tool, arguments, task={}, _meta={"progressToken": "t"})
        assert list(unknown_members(handle, {"$ref": "CreateTaskResult"}, schema("2025-11-25"))) == []
        id = handle["task"]["taskId"]
        await finish(client, client.request("tasks/result", {"taskId": id}))
        for method, params, definition in [
            ("tasks/get", {"taskId": id}, "GetTaskResult"),
            ("tasks/list", {}, "ListTasksResult"),
        ]:
            result = await client.call(method, params)
            allowed = set(schema("2025-11-25").definitions["Task"]["properties"])
            listed = result["tasks"] if method == "tasks/list" else [result]
            assert all(item.keys() <= allowed for item in listed), definition

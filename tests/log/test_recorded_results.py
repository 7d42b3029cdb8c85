"""What a record keeps of the result, for each way in which a call can end."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolFailureError, ToolResult, structured
from probe.log.redaction import REDACTED
from probe.wire.errors import Code, McpError

from ..support.calls import tool_call
from ..support.legacy import RpcError
from ..support.probe import Probe, running


async def good(context: ToolContext) -> ToolResult:
    await context.sleep(1)
    return structured({"done": True})


async def large(context: ToolContext) -> ToolResult:
    return structured({"text": "é" * 1000})


async def bad(context: ToolContext) -> ToolResult:
    raise ToolFailureError("no luck")


async def wrong(context: ToolContext) -> ToolResult:
    raise McpError(Code.INVALID_PARAMS, "not so", {"password": "hunter2", "field": "x"})


async def secretive(context: ToolContext) -> ToolResult:
    return structured({"accessToken": "hunter2", "deep": [{"password": "hunter2", "tokens": "shown"}]})


async def forever(context: ToolContext) -> ToolResult:
    await context.sleep(10_000)
    return structured({})


TOOLS = Toolset(
    "tools",
    (
        *(Tool(run.__name__, "T", "D", run) for run in (bad, wrong, large, secretive, forever)),
        Tool("good", "T", "D", good, task_support="optional"),
    ),
)


async def call(probe: Probe, era: str, name: str) -> dict[str, Any]:
    """Call a tool to its end; the record."""
    try:
        if era == "legacy":
            await (await probe.client()).tool(name)
        else:
            await probe.modern(capabilities={}).call("tools/call", {"name": name, "arguments": {}})
    except RpcError:
        pass
    return probe.record()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_of_what_was_answered(era: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=[TOOLS], idle_deadline_s=5) as probe:
        record = await call(probe, era, "good")
        assert (record["outcome"], record["result"]["structuredContent"]) == ("completed", {"done": True})
        record = await call(probe, era, "bad")
        assert (record["outcome"], record["result"]["isError"]) == ("tool_error", True)
        assert "no luck" in record["result"]["content"][0]["text"]
        record = await call(probe, era, "wrong")
        error = {"code": -32602, "message": "not so", "data": {"password": REDACTED, "field": "x"}}
        assert (record["outcome"], record["result"]) == ("protocol_error", {"error": error})
        record = await call(probe, era, "forever")
        assert (record["outcome"], record["result"]["isError"]) == ("timed_out", True)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_secrets_are_hidden(era: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=[TOOLS]) as probe:
        record = await call(probe, era, "secretive")
        assert record["result"]["structuredContent"] == {
            "accessToken": REDACTED, "deep": [{"password": REDACTED, "tokens": "shown"}]
        }  # fmt: skip


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_of_a_large_result_the_beginning_is_kept(era: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=[TOOLS], record_result_bytes=256) as probe:
        result = (await call(probe, era, "large"))["result"]
        assert result.keys() == {"cut", "bytes"}
        assert 252 < len(result["cut"].encode()) <= 256
        assert result["bytes"] > 2000
        result = (await call(probe, era, "wrong"))["result"]
        assert result["error"]["message"] == "not so", "what fits is whole"


async def test_a_call_that_was_cancelled_has_none(autojump_clock: MockClock) -> None:
    async with running(toolsets=[TOOLS]) as probe:
        client = await probe.client()
        async with client.post(client.request("tools/call", {"name": "good"}, "it")) as answer:
            assert probe.record()["result"] is None, "nor one that runs"
            await client.cancel("it")
            await client.read(answer)
        assert (probe.record()["outcome"], probe.record()["result"]) == ("cancelled", None)
        modern = probe.modern(capabilities={})
        gone = trio.Event()
        gone.set()
        async with modern.post(tool_call(modern, "good"), gone=gone):
            pass
        assert (probe.record()["outcome"], probe.record()["result"]) == ("disconnected", None)


async def test_a_call_that_asks_for_input_shows_what_it_asked(probe: Probe) -> None:
    result = await probe.modern().call("tools/call", {"name": "elicit_simple_form", "arguments": {}})
    record = probe.record()
    assert record["outcome"] == "input_required"
    assert record["result"]["inputRequests"] == result["inputRequests"]


async def test_a_task_has_the_result_of_its_work(autojump_clock: MockClock) -> None:
    async with running(toolsets=[TOOLS]) as probe:
        client = await probe.client()
        handle = await client.tool("good", task={})
        assert (probe.record()["result"], probe.record()["answered"]) == (None, False)
        given = await client.call("tasks/result", {"taskId": handle["task"]["taskId"]})
        record = probe.record()
        assert (record["outcome"], record["task"]) == ("completed", handle["task"]["taskId"])
        assert record["result"]["structuredContent"] == given["structuredContent"] == {"done": True}
        handle = await client.tool("good", task={})
        await client.call("tasks/cancel", {"taskId": handle["task"]["taskId"]})
        await trio.sleep(2)
        assert (probe.record()["outcome"], probe.record()["result"]) == ("cancelled", None)

"""Tasks in tests: making them, asking for them, and tools that end in every way a call can end."""

from __future__ import annotations

from typing import Any

import pytest

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Integer, Tool, ToolFailureError, ToolResult, content, structured, text
from probe.wire.errors import McpError

from .legacy import Legacy, RpcError

RELATED = "io.modelcontextprotocol/related-task"


async def create(client: Legacy, name: str = "pure_task", ttl: float | None = None, **arguments: Any) -> dict[str, Any]:
    """Call a tool as a task; returns the `task` of the handle."""
    task = {} if ttl is None else {"ttl": ttl}
    return dict((await client.tool(name, arguments, task=task))["task"])


def named(task: dict[str, Any]) -> dict[str, Any]:
    """The params that name a task."""
    return {"taskId": task["taskId"]}


async def get(client: Legacy, task: dict[str, Any]) -> dict[str, Any]:
    """The task as `tasks/get` tells it."""
    return await client.call("tasks/get", named(task))


async def error_of(client: Legacy, method: str, params: dict[str, Any]) -> RpcError:
    """The error of a request that must fail."""
    with pytest.raises(RpcError) as caught:
        await client.call(method, params)
    return caught.value


async def _succeed(context: ToolContext) -> ToolResult:
    await context.sleep(context.arguments["waitMs"] / 1000)
    return {**structured({"answer": 42}), "_meta": {"vendor/trace": "abc"}}


async def _return_error(context: ToolContext) -> ToolResult:
    await context.sleep(context.arguments["waitMs"] / 1000)
    return {"content": [text("the model should read this")], "isError": True}


async def _raise_failure(context: ToolContext) -> ToolResult:
    await context.sleep(context.arguments["waitMs"] / 1000)
    raise ToolFailureError("no luck")


async def _raise_error(context: ToolContext) -> ToolResult:
    await context.sleep(context.arguments["waitMs"] / 1000)
    raise McpError(4711, "very wrong", {"why": ["a", 1, None]})


async def _crash(context: ToolContext) -> ToolResult:
    await context.sleep(context.arguments["waitMs"] / 1000)
    raise ZeroDivisionError("a secret of the server")


async def _say_nothing(context: ToolContext) -> ToolResult:
    await context.sleep(context.arguments["waitMs"] / 1000)
    return content([])


async def _fail_without_words(context: ToolContext) -> ToolResult:
    await context.sleep(context.arguments["waitMs"] / 1000)
    return {"content": [{"type": "image", "data": "", "mimeType": "image/png"}], "isError": True}


def _tool(name: str, run: Any, support: Any = "optional") -> Tool:
    wait = Integer("waitMs", 0, 600_000, 1000, "how long")
    return Tool(name=name, title=name, description=name, run=run, params=(wait,), task_support=support)


ENDINGS = Toolset(
    "endings",
    (
        _tool("succeeds", _succeed),
        _tool("returns_error", _return_error),
        _tool("raises_failure", _raise_failure),
        _tool("raises_error", _raise_error),
        _tool("crashes", _crash),
        _tool("says_nothing", _say_nothing),
        _tool("fails_without_words", _fail_without_words),
        _tool("never_a_task", _succeed, "forbidden"),
        _tool("always_a_task", _succeed, "required"),
    ),
)

"""A person with the official Python SDK 1, who tries what a server offers: `python_sdk_1.py URL`.

Nothing is asserted here, as `mcp-probe judge` looks at the client. It runs with 1.8 and later, on what each has.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import anyio
from mcp import ClientSession, McpError, types

try:
    from mcp.client.streamable_http import streamable_http_client
except ImportError:
    from mcp.client.streamable_http import streamablehttp_client as streamable_http_client

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("simple_tool", {}),
    ("log_levels", {}),
    ("content_types", {"kind": "text"}),
    ("structured_output", {}),
    ("fail", {"how": "tool_error"}),
    ("fail", {"how": "protocol_error"}),
    ("elicit_form", {"fields": "basic"}),
    ("elicit_simple_form", {}),
    ("elicit_url", {}),
    ("list_roots", {}),
    ("list_roots", {}),
    ("ask_several", {}),
    ("ping_client", {}),
    ("ping_client", {}),
    ("sampling_demo", {}),
    ("announce_list_change", {"list": "tools"}),
    ("long_output", {"blocks": 20, "chars": 65536}),
    ("no_such_tool", {}),
    ("test_reconnection", {}),
)


async def elicit(_: Any, params: Any) -> Any:
    if getattr(params, "mode", "form") == "url":
        return types.ElicitResult(action="decline")
    fields = params.requestedSchema["properties"]
    filled = {"name": "Ada", "age": 36}
    content = {name: field.get("default", filled.get(name)) for name, field in fields.items()}
    content = {name: value for name, value in content.items() if value is not None}
    whole = set(params.requestedSchema.get("required", ())) <= content.keys()
    return types.ElicitResult(action="accept", content=content) if whole else types.ElicitResult(action="cancel")


async def sample(_: Any, __: Any) -> types.CreateMessageResult:
    content = types.TextContent(type="text", text="old pond")
    return types.CreateMessageResult(role="assistant", content=content, model="test", stopReason="endTurn")


async def roots(_: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///tree", name="tree")])


async def attempt(what: Callable[[], Awaitable[Any]]) -> Any:
    """What comes of it; a refusal of the server, or what this SDK has not got, is told as a person would see it."""
    try:
        with anyio.fail_after(15):
            return await what()
    except (McpError, RuntimeError, TypeError, AttributeError, TimeoutError, ValueError) as error:
        print(f"{type(error).__name__}: {str(error)[:200]}", file=sys.stderr)


async def pages(ask: Callable[..., Awaitable[Any]]) -> None:
    page = await ask()
    while page.nextCursor is not None:
        page = await ask(page.nextCursor)


async def report(*_: Any) -> None: ...


async def use(session: ClientSession) -> None:
    for ask in (session.list_tools, session.list_resources, session.list_resource_templates, session.list_prompts):
        await attempt(lambda ask=ask: pages(ask))
    for name, arguments in CALLS:
        await attempt(lambda name=name, arguments=arguments: session.call_tool(name, arguments))
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(attempt, lambda: session.call_tool("progress", {}, progress_callback=report))
    slow = {"silentMs": 3000, "idleMs": 5000}
    short = timedelta(seconds=0.5)
    await attempt(lambda: session.call_tool("silent_call", slow, read_timeout_seconds=short))
    await attempt(lambda: session.read_resource("probe://text"))
    await attempt(lambda: session.read_resource("probe://nothing"))
    await attempt(lambda: session.get_prompt("headlines", {"year": "1999"}))
    await attempt(session.send_ping)
    await attempt(lambda: session.set_logging_level("warning"))
    await attempt(lambda: session.call_tool("log_levels", {}))
    await attempt(session.send_roots_list_changed)
    await attempt(session.list_tools)
    await attempt(lambda: tasks(session))


async def tasks(session: ClientSession) -> None:
    """What 1.30 has of tasks: one followed to its end, one that asks, one that is cancelled."""
    own = session.experimental
    for name, arguments in (
        ("pure_task", {"durationMs": 1500}),
        ("pausable_task", {"itemCount": 2, "pauseAfterItem": 1}),
    ):
        created = await own.call_tool_as_task(name, arguments)
        async for status in own.poll_task(created.task.taskId):
            if status.status == "input_required":
                break
        await own.get_task_result(created.task.taskId, types.CallToolResult)
    created = await own.call_tool_as_task("cancellable_task", {})
    await own.cancel_task(created.task.taskId)


async def main(url: str) -> None:
    callbacks = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}
    async with streamable_http_client(url) as (read, write, _):
        try:
            session = ClientSession(read, write, **callbacks)
        except TypeError:
            del callbacks["elicitation_callback"]
            session = ClientSession(read, write, **callbacks)
        async with session:
            await session.initialize()
            await use(session)


anyio.run(main, sys.argv[-1])

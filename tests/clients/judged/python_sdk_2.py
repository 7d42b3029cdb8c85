"""A person with the official Python SDK 2, who tries what a server offers: `python_sdk_2.py MODE URL`.

MODE is the SDK's: `auto`, `legacy` or a revision. What the server refuses is part of it; nothing is asserted here, as
`mcp-probe judge` looks at the client.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import trio
from mcp import Client
from mcp.shared.exceptions import MCPError

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("simple_tool", {}),
    ("log_levels", {}),
    ("content_types", {}),
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
    ("routed_tool", {"region": "us-east", "priority": 3, "dry_run": True}),
    ("no_such_tool", {}),
)


async def elicit(_: Any, params: Any) -> types.ElicitResult:
    if params.mode == "url":
        return types.ElicitResult(action="decline")
    fields = params.requested_schema["properties"]
    filled = {"name": "Ada", "age": 36}
    content = {name: field.get("default", filled.get(name)) for name, field in fields.items()}
    content = {name: value for name, value in content.items() if value is not None}
    whole = set(params.requested_schema.get("required", ())) <= content.keys()
    return types.ElicitResult(action="accept", content=content) if whole else types.ElicitResult(action="cancel")


async def sample(_: Any, __: Any) -> types.CreateMessageResult:
    content = types.TextContent(type="text", text="old pond")
    return types.CreateMessageResult(role="assistant", content=content, model="test", stop_reason="endTurn")


async def roots(_: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///tree", name="tree")])


async def attempt(what: Callable[[], Awaitable[Any]]) -> Any:
    """What comes of it; a refusal of the server or a time that is over is told, as a person would see it."""
    try:
        return await what()
    except (MCPError, RuntimeError, NotImplementedError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


async def pages(ask: Callable[..., Awaitable[Any]]) -> None:
    page = await ask()
    while page.next_cursor is not None:
        page = await ask(cursor=page.next_cursor)


async def use(client: Client) -> None:
    for ask in (client.list_tools, client.list_resources, client.list_resource_templates, client.list_prompts):
        await attempt(lambda ask=ask: pages(ask))
    for name, arguments in CALLS:
        await attempt(lambda name=name, arguments=arguments: client.call_tool(name, arguments))

    async def report(*_: Any) -> None: ...

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(lambda: attempt(lambda: client.call_tool("progress", {}, progress_callback=report)))
    await attempt(lambda: client.call_tool("silent_call", {"silentMs": 3000, "idleMs": 5000}, read_timeout_seconds=0.5))
    with trio.move_on_after(0.5):
        await client.call_tool("silent_call", {"silentMs": 3000, "idleMs": 5000})
    await attempt(lambda: client.read_resource("probe://text"))
    await attempt(lambda: client.read_resource("probe://nothing"))
    await attempt(lambda: client.read_resource("probe://greeting"))
    await attempt(lambda: client.get_prompt("headlines", {"year": "1999"}))
    await attempt(lambda: client.get_prompt("recipe"))
    reference = types.PromptReference(type="ref/prompt", name="headlines")
    for value in ("1", "19", "199"):
        await attempt(lambda value=value: client.complete(reference, {"name": "year", "value": value}))
    if client.protocol_version != "2026-07-28":
        await attempt(client.send_ping)
        await attempt(lambda: client.set_logging_level("warning"))
        await attempt(lambda: client.call_tool("log_levels", {}))
        await attempt(lambda: client.subscribe_resource("probe://clock"))
        await trio.sleep(2.5)  # real time: the resource is updated every second or two
        await attempt(lambda: client.unsubscribe_resource("probe://clock"))
        await attempt(client.send_roots_list_changed)
        await attempt(client.list_tools)
        return
    async with client.listen(tools_list_changed=True, resource_subscriptions=["probe://clock"]) as heard:
        await client.call_tool("announce_list_change", {"list": "tools"})
        await anext(heard)
        await client.list_tools()


async def main(mode: str, url: str) -> None:
    async with Client(
        url,
        mode=mode,
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=roots,
        client_info=types.Implementation(name="python-sdk", version="2"),
    ) as client:
        await use(client)


trio.run(main, sys.argv[1], sys.argv[2])

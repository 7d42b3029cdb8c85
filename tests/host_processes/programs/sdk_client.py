"""`python sdk_client.py MODE URL`: the official client in a process of its own, which does what standard input says.

One JSON value a line: `["call", KEY, TOOL, ARGUMENTS]` starts a call, `["cancel", KEY]` gives it up. What comes of
it is said in lines too. When standard input ends this process does too.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import trio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def say(what: str, key: str, value: Any = None) -> None:
    print(json.dumps({"what": what, "key": key, "value": value}), flush=True)


class Calls:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.scopes: dict[str, trio.CancelScope] = {}

    async def call(self, key: str, tool: str, arguments: dict[str, Any]) -> None:
        async def hear(progress: float, total: float | None, message: str | None) -> None:
            say("progress", key, progress)

        with trio.CancelScope() as self.scopes[key]:
            result = await self.client.call_tool(tool, arguments, progress_callback=hear)
            say("result", key, result.structured_content)
        if self.scopes[key].cancelled_caught:
            say("given up", key)


async def main(mode: str, url: str) -> None:
    async with Client(streamable_http_client(url), mode=mode) as client, trio.open_nursery() as nursery:
        calls = Calls(client)
        names = [tool.name for tool in (await client.list_tools()).tools]
        say("ready", "", names)
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            what, key, *more = json.loads(line)
            if what == "call":
                nursery.start_soon(calls.call, key, *more)
            else:
                calls.scopes[key].cancel()
        os._exit(3)


trio.run(main, *sys.argv[1:])

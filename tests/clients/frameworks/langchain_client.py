"""A program with the MCP adapters of LangChain: `langchain_client.py URL`. Each call has a session of its own."""

from __future__ import annotations

import asyncio
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient

# Two good results and two errors, by turns: the adapters ask for the list of tools after a good one, to check it.
CALLS = (
    ("simple_tool", {}),
    ("structured_output", {}),
    ("fail", {"how": "tool_error"}),
    ("content_types", {}),
    ("fail", {"how": "tool_error"}),
)


async def main(url: str) -> None:
    client = MultiServerMCPClient({"probe": {"url": url, "transport": "streamable_http"}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    for name, arguments in CALLS:
        try:
            await tools[name].ainvoke(arguments)
        except Exception as error:  # noqa: BLE001 - what a framework raises for an error of a tool is its own
            print(error, file=sys.stderr)


asyncio.run(main(sys.argv[-1]))

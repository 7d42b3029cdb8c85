"""A program with mcp-use: `mcp_use_client.py URL`."""

from __future__ import annotations

import asyncio
import sys

from mcp_use import MCPClient


async def main(url: str) -> None:
    client = MCPClient({"mcpServers": {"probe": {"url": url}}})
    session = await client.create_session("probe")
    await session.list_tools()
    await session.list_resources()
    await session.list_resources()
    await session.call_tool("simple_tool", {})
    await client.close_all_sessions()


asyncio.run(main(sys.argv[-1]))

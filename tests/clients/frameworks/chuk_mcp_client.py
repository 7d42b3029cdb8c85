"""A program with chuk-mcp, which has a protocol stack of its own: `chuk_mcp_client.py URL`."""

from __future__ import annotations

import asyncio
import sys

from chuk_mcp.protocol.messages import send_initialize, send_ping, send_tools_call, send_tools_list
from chuk_mcp.transports.http import http_client
from chuk_mcp.transports.http.parameters import StreamableHTTPParameters


async def main(url: str) -> None:
    async with http_client(StreamableHTTPParameters(url=url, timeout=20)) as (read, write):
        await send_initialize(read, write)
        await send_tools_list(read, write)
        for name in ("content_types", "structured_output"):
            await send_tools_call(read, write, name, {})
        await send_ping(read, write)


asyncio.run(main(sys.argv[-1]))

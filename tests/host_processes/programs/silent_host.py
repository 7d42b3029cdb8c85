"""`python silent_host.py PORT`: a host that connects and then says nothing, until standard input ends."""

from __future__ import annotations

import os
import sys

import trio
from trio_websocket import open_websocket


async def main(port: int) -> None:
    authorization = (b"Authorization", f"Bearer {os.environ['MCP_PROBE_TOOLHOST_SECRET']}".encode())
    async with open_websocket(
        "127.0.0.1",
        port,
        "/toolhost",
        use_ssl=False,
        subprotocols=["mcp-probe.toolhost.v1"],
        extra_headers=[authorization],
    ):
        print("connected", flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)


trio.run(main, int(sys.argv[1]))

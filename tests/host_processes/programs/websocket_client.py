"""`python websocket_client.py PORT`: lines of standard input go to `/ws` as messages, and messages come as lines."""

from __future__ import annotations

import os
import sys

import trio
from trio_websocket import WebSocketConnection, open_websocket


async def obey(socket: WebSocketConnection) -> None:
    while line := await trio.to_thread.run_sync(sys.stdin.readline):
        await socket.send_message(line.strip())
    os._exit(3)


async def main(port: int) -> None:
    async with (
        open_websocket("127.0.0.1", port, "/ws?tools=all", use_ssl=False, subprotocols=["mcp"]) as socket,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(obey, socket)
        while True:
            print(await socket.get_message(), flush=True)


trio.run(main, int(sys.argv[1]))

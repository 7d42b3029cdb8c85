"""The official Python SDK on uvicorn, in both eras, by its low-level server, which is the faster of its two."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

_TEXT = "x" * 1024
_TOOLS = ("echo", "progress", "wait", "ended")
_SCHEMA: dict[str, Any] = {"type": "object"}
_CLOCK_URI, _TICK_S = "probe://clock", 2.0

Context = ServerRequestContext[Any, Any]


class Tools:
    """The tools. `wait` notes when its scope was gone, by the wall clock, which the benchmark shares."""

    def __init__(self) -> None:
        self._ended: dict[str, float] = {}

    async def list(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """`tools/list`."""
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=_SCHEMA) for name in _TOOLS])

    async def call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """`tools/call`."""
        text = _TEXT
        if params.name == "progress":
            await self._progress(context, params.arguments or {})
        elif params.name == "wait":
            await self._wait(context)
        elif params.name == "ended":
            text = json.dumps(self._ended)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    async def _progress(self, context: Context, arguments: Mapping[str, Any]) -> None:
        steps, step_s = arguments["steps"], arguments["step_ms"] / 1000
        start = anyio.current_time()
        for step in range(1, steps + 1):
            # Until a moment, not for a while: what one step was late must not delay those after it.
            await anyio.sleep_until(start + step * step_s)
            await context.session.report_progress(step, steps, f"step {step}/{steps}")

    async def _wait(self, context: Context) -> None:
        await context.session.report_progress(0)
        try:
            await anyio.sleep(60)
        finally:
            self._ended[str(context.request_id)] = time.time()


class Ticks:
    """Tells all subscriptions at each multiple of the period, by the wall clock."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()

    @asynccontextmanager
    async def lifespan(self, server: Server[None]) -> AsyncIterator[None]:
        """Tick while the server runs."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run)
            yield
            tasks.cancel_scope.cancel()

    async def _run(self) -> None:
        while True:
            await anyio.sleep(_TICK_S - time.time() % _TICK_S)
            await self.bus.publish(ResourceUpdated(_CLOCK_URI))


class _Announced(uvicorn.Server):
    """Prints its URL once it listens. It opens the socket itself: on one given to it, TCP_NODELAY stays off."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, then the announcement."""
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(f"http://127.0.0.1:{port}/mcp\n")
        sys.stdout.flush()


def main() -> None:
    """Serve until killed. `--json` answers calls with JSON instead of a stream."""
    tools, ticks = Tools(), Ticks()
    server: Server[None] = Server(
        "reference",
        lifespan=ticks.lifespan,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
        on_subscriptions_listen=ListenHandler(ticks.bus),
    )
    app = server.streamable_http_app(json_response="--json" in sys.argv)
    # On a busy machine the first of 256 clients waits longer than the default until the last one is there.
    config = uvicorn.Config(app, port=0, log_level="warning", access_log=False, timeout_keep_alive=60)
    _Announced(config).run()


main()

"""What a tool host costs: the same load on a tool of the server and on one of a host, by turns on one server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import trio

from . import tools
from .client import Tool, WrongAnswerError
from .servers import HOST_SECRET, ROOT, Cores, Running

_READY_S = 30.0
_PAGE = {"pages": 1, "pageMs": 0}
# Both make up a page of messages, and both wait for it, so that they are answered in the same way.
LOCAL = Tool("bulk_export", {**_PAGE, "perPage": 20})
HOSTED = Tool("demo__export_messages", {"channel": "general", "pages": 1, "page_ms": 0})


@dataclass(frozen=True, slots=True)
class Hosting:
    """How many clients call at once, by turns, and for how long."""

    clients: tuple[int, ...] = (1, 32)
    turns: int = 3
    warm_up_s: float = 1.0
    window_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Hosted:
    """One entry a turn, by the number of clients."""

    local: dict[int, list[tools.Calls]] = field(default_factory=dict)
    hosted: dict[int, list[tools.Calls]] = field(default_factory=dict)


async def hosted(running: Running, shape: Hosting, cores: Cores) -> Hosted:
    """Measure by turns. Raises `WrongAnswerError` when the host does not come."""
    found = Hosted()
    async with _demo_host(running, cores):
        for _ in range(shape.turns):
            for clients in shape.clients:
                for tool, results in ((LOCAL, found.local), (HOSTED, found.hosted)):
                    calling = replace(running, server=replace(running.server, echo=tool))
                    calls = await tools.calls(calling, clients, warm_up_s=shape.warm_up_s, window_s=shape.window_s)
                    results.setdefault(clients, []).append(calls)
    return found


@asynccontextmanager
async def _demo_host(running: Running, cores: Cores) -> AsyncIterator[None]:
    """The demo host, on the server's core: on one of its own it would be measured beside the load."""
    url = f"ws://127.0.0.1:{running.port}/toolhost"
    command = [sys.executable, "-m", "probe", "toolhost-demo", "--url", url]
    environment = {**os.environ, **running.server.environment, "MCP_PROBE_TOOLHOST_SECRET": HOST_SECRET}
    with cores.server_started_here():
        process = await trio.lowlevel.open_process(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        said = b""
        with trio.fail_after(_READY_S):
            while b"demo__" not in said:
                part = await process.stderr.receive_some()
                if not part:
                    raise WrongAnswerError(f"the tool host did not register: {said!r}")
                said += part
        yield
    finally:
        process.kill()
        with trio.CancelScope(shield=True), trio.move_on_after(5):
            await process.wait()

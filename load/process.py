"""The processes of a run: the server under load, and the client beside it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio
from bench.servers import Cores

ROOT = Path(__file__).parent.parent

_START_S = 30.0


def resident(pid: int) -> int:
    """The resident bytes of a process; 0 where the system has no /proc."""
    path = Path(f"/proc/{pid}/status")
    found = re.search(r"VmRSS:\s+(\d+) kB", path.read_text()) if path.exists() else None
    return int(found[1]) * 1024 if found else 0


@dataclass(frozen=True, slots=True)
class Target:
    """The server: its port, its process, and the pipe by which it tells how it stands."""

    port: int
    process: trio.Process
    answers: AsyncIterator[str]

    def memory(self) -> int:
        """Resident bytes at this moment."""
        return resident(self.process.pid)

    async def figures(self) -> tuple[int, Counter[str]]:
        """Resident bytes and the names of all tasks, after a collection of garbage."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(b"?\n")
        told = json.loads(await anext(self.answers))
        return told["rss"], Counter(told["tasks"])


@asynccontextmanager
async def target(settings: dict[str, Any], cores: Cores) -> AsyncIterator[Target]:
    """A server with these settings; it is killed at the end."""
    with cores.server_started_here():
        process = await _python("load.served", json.dumps(settings), stdin=subprocess.PIPE)
    try:
        assert process.stdout is not None
        lines = _lines(process.stdout)
        with trio.fail_after(_START_S):
            url = await anext(lines)
        yield Target(int(url.rpartition(":")[2]), process, lines)
    finally:
        process.kill()
        with trio.CancelScope(shield=True), trio.move_on_after(5):
            await process.wait()


async def visit(port: int, seconds: float, per_second: float, rooms: Sequence[str]) -> dict[str, Any]:
    """What the client beside a flood found; see `load.visitor`."""
    visitor = await _python("load.visitor", str(port), str(seconds), str(per_second), *rooms)
    assert visitor.stdout is not None
    try:
        async with visitor.stdout:
            said = b"".join([piece async for piece in visitor.stdout])
        await visitor.wait()
    finally:
        visitor.kill()
    found: dict[str, Any] = json.loads(said)
    return found


async def _python(module: str, *arguments: str, **streams: Any) -> trio.Process:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [sys.executable, "-m", module, *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    return await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, env=environment, **streams)


async def _lines(stream: trio.abc.ReceiveStream) -> AsyncIterator[str]:
    rest = b""
    async for piece in stream:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode()

"""What dashboards cost those who call: the same load without any and with many, by turns on one server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from . import tools
from .client import WrongAnswerError
from .servers import ROOT, Running

_READY_S = 30.0


@dataclass(frozen=True, slots=True)
class Dashboards:
    """Readers of the live feed, of which `stuck` never read, and the load beside them."""

    readers: int = 20
    stuck: int = 5
    clients: int = 32
    turns: int = 5
    warm_up_s: float = 1.5
    window_s: float = 3.0


@dataclass(frozen=True, slots=True)
class Feed:
    """One entry a turn."""

    shape: Dashboards
    without: list[tools.Calls] = field(default_factory=list)
    beside: list[tools.Calls] = field(default_factory=list)


async def feed(running: Running, shape: Dashboards) -> Feed:
    """Measure by turns. Raises `WrongAnswerError` when a reader is not served."""
    found = Feed(shape)
    for _ in range(shape.turns):
        found.without.append(await _calls(running, shape))
        async with readers(running, shape.readers - shape.stuck, shape.stuck):
            found.beside.append(await _calls(running, shape))
    return found


async def _calls(running: Running, shape: Dashboards) -> tools.Calls:
    return await tools.calls(running, shape.clients, warm_up_s=shape.warm_up_s, window_s=shape.window_s)


@asynccontextmanager
async def readers(running: Running, reading: int, stuck: int) -> AsyncIterator[None]:
    """So many dashboards are open while the block runs; the stuck ones never read."""
    counts = (str(running.port), str(reading), str(stuck))
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "bench.readers", *counts], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with trio.fail_after(_READY_S):
            if not await process.stdout.receive_some():
                raise WrongAnswerError("a reader of the feed was not served")
        yield
        if process.poll() is not None:
            raise WrongAnswerError("the feed of a reader ended")
    finally:
        await process.stdin.aclose()
        with trio.CancelScope(shield=True), trio.move_on_after(5):
            await process.wait()
        process.kill()

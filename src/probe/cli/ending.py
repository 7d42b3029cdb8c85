"""How a server ends: by which signals, in which steps, and within what time, whatever its work and its peers do.

1. The first signal drains: new work is refused, and running work may finish within `grace_s`.
2. After a second signal the drain does not wait for work.
3. Then each response has its last bytes, and peers have `FLUSH_S` seconds to read them.
4. Everything is cancelled. Work shielded from cancellation delays the end by `JOIN_S` seconds at most.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import trio

from ..engine.engine import Engine
from ..settings import Settings

# Seconds for slow peers to read the last bytes of their responses after the drain.
FLUSH_S = 2.0
# Seconds for slow peers after a second signal.
_HURRIED_FLUSH_S = 1.0
# Seconds after all is cancelled. Connections end within one second, the audit's last rows within three.
JOIN_S = 5.0
# Seconds for writing the last lines.
LINES_S = 0.5


class Drained(Protocol):
    """An engine, or a server with its rooms, as a signal ends it."""

    @property
    def settings(self) -> Settings:
        """`grace_s` is the time in seconds for running work to finish."""

    @property
    def drained(self) -> trio.Event:
        """Set at the end of `drain`."""

    async def drain(self) -> None:
        """Refuse new work, let running work finish within the grace period, cancel the rest, and end every stream."""

    def hurry(self) -> None:
        """Make `drain` end without waiting for work."""


def ending_signals() -> Sequence[signal.Signals]:
    """The signals that end this server.

    SIGHUP, the end of the terminal or the SSH connection, is ignored under `nohup`.
    """
    always = (signal.SIGINT, signal.SIGTERM)
    return always if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (*always, signal.SIGHUP)


async def stopped(
    signals: AsyncIterator[int],
    server: Drained,
    wait_flushed: Callable[[], Awaitable[object]],
    announce: Callable[[str], None],
    received: Callable[[int], None] = lambda number: None,
    looked: Callable[[], Awaitable[object]] = trio.lowlevel.checkpoint,
) -> None:
    """Returns when the server may end: after the drain of the first signal, or soon after a second.

    `received` is called for each of the two. The drain begins when `looked` returns; it must return soon.
    """
    number = await anext(signals)
    received(number)
    await looked()
    again = "press Ctrl-C again" if number == signal.SIGINT else "signal again"
    announce(f"stopping: running work may finish within {server.settings.grace_s:g} s; {again} to stop at once")
    async with trio.open_nursery() as stopping:
        stopping.start_soon(_hurried, signals, server, stopping.cancel_scope, received)
        await server.drain()
        with trio.move_on_after(FLUSH_S):
            await wait_flushed()
        stopping.cancel_scope.cancel()


async def _hurried(
    signals: AsyncIterator[int], server: Drained, stopping: trio.CancelScope, received: Callable[[int], None]
) -> None:
    received(await anext(signals))
    server.hurry()
    await server.drained.wait()
    await trio.sleep(_HURRIED_FLUSH_S)
    stopping.cancel()


@asynccontextmanager
async def last_resort(
    engine: Engine, announce: Callable[[str], None], flush: Callable[[float], object]
) -> AsyncIterator[trio.Event]:
    """After the event is set, the block has `JOIN_S` seconds to end. Then this ends the process.

    A tool may shield itself from cancellation for ever. `flush` writes the last lines within the given seconds.
    """
    leaving, watching = trio.Event(), trio.CancelScope(shield=True)
    async with trio.open_nursery() as around:
        around.start_soon(_leave_late, engine, announce, flush, leaving, watching)
        try:
            yield leaving
        finally:
            watching.cancel()


async def _leave_late(
    engine: Engine,
    announce: Callable[[str], None],
    flush: Callable[[float], object],
    leaving: trio.Event,
    watching: trio.CancelScope,
) -> None:
    with watching:
        await leaving.wait()
        await trio.sleep(JOIN_S)
        announce("stopping: work that was cancelled goes on and is left behind")
        await engine.finish_audit()
        flush(LINES_S)
        # Not `sys.exit`: it raises an exception and waits for the same work.
        os._exit(0)

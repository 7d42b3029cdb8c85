"""How a server ends: by which signals, in which steps, and within what time, whatever its work and its peers do.

1. The first signal drains: new work is refused, and running work may finish within `grace_s`.
2. A second signal has the drain wait for no work.
3. Each response has its last bytes then; peers have `FLUSH_S` to read them.
4. Everything is cancelled. Work that does not let itself be cancelled keeps the process for `JOIN_S`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import trio

from ..settings import Settings

# After the drain every response has its last bytes; this is how long slow peers may take to read them.
FLUSH_S = 2.0
# The same after a second signal.
_HURRIED_FLUSH_S = 1.0
# Once all is cancelled, nothing that this server does takes longer: connections end within one second, the audit's last
# rows within three.
JOIN_S = 5.0
# The last lines have so long to be written.
SAID_S = 0.5


class Drainable(Protocol):
    """An engine, as far as the end of a server needs it."""

    @property
    def settings(self) -> Settings:
        """`grace_s` is the time in seconds that running work has to finish."""

    @property
    def drained(self) -> trio.Event:
        """It is set when `drain` has done its part."""

    async def drain(self) -> None:
        """Refuse new work, let running work finish within the grace period, cancel the rest, and end every stream."""

    def hurry(self) -> None:
        """Have `drain` wait for no work."""

    async def finish_audit(self) -> None:
        """Write what the audit still has to write."""


def ending_signals() -> Sequence[signal.Signals]:
    """The signals that end this server.

    SIGHUP comes when the terminal or the SSH connection goes. A program that was started
    with `nohup` ignores it, and stays.
    """
    always = (signal.SIGINT, signal.SIGTERM)
    return always if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (*always, signal.SIGHUP)


async def stopped(
    signals: AsyncIterator[int],
    engine: Drainable,
    wait_flushed: Callable[[], Awaitable[object]],
    announce: Callable[[str], None],
    heard: Callable[[int], None] = lambda number: None,
    looked: Callable[[], Awaitable[object]] = trio.lowlevel.checkpoint,
) -> None:
    """Returns when the server may end: it has drained after the first signal, or hardly waited after a second.

    `heard` is told of each of the two. The drain begins when `looked` returns, which is soon.
    """
    number = await anext(signals)
    heard(number)
    await looked()
    again = "press Ctrl-C again" if number == signal.SIGINT else "signal again"
    announce(f"stopping: running work may finish within {engine.settings.grace_s:g} s; {again} to stop at once")
    async with trio.open_nursery() as stopping:
        stopping.start_soon(_hurried, signals, engine, stopping.cancel_scope, heard)
        await engine.drain()
        with trio.move_on_after(FLUSH_S):
            await wait_flushed()
        stopping.cancel_scope.cancel()


async def _hurried(
    signals: AsyncIterator[int], engine: Drainable, stopping: trio.CancelScope, heard: Callable[[int], None]
) -> None:
    heard(await anext(signals))
    engine.hurry()
    await engine.drained.wait()
    await trio.sleep(_HURRIED_FLUSH_S)
    stopping.cancel()


@asynccontextmanager
async def last_resort(
    engine: Drainable, announce: Callable[[str], None], flush: Callable[[float], object]
) -> AsyncIterator[trio.Event]:
    """Once the event is set, the block has `JOIN_S` seconds to end: then the process ends without it.

    trio joins every task, and a tool may shield itself from its cancellation for as long as it likes.
    `flush` writes the last lines, within the seconds that it is given.
    """
    leaving, watching = trio.Event(), trio.CancelScope(shield=True)
    async with trio.open_nursery() as around:
        around.start_soon(_leave_late, engine, announce, flush, leaving, watching)
        try:
            yield leaving
        finally:
            watching.cancel()


async def _leave_late(
    engine: Drainable,
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
        flush(SAID_S)
        # Not `sys.exit`, which is an exception, and so waits for the same work.
        os._exit(0)

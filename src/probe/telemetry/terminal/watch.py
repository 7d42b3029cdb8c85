"""`mcp-probe serve --watch`: the lines of a server on its own standard output."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import trio

from ...engine.engine import Engine
from ...log.event_log import Entry
from ...log.follower import LogFollower
from .exchanges import Exchanges, Line

if TYPE_CHECKING:
    from .screen import Screen

# The longest wait for the last lines at the server's end, in seconds.
_FINAL_S: Final = 1.0


@asynccontextmanager
async def watching(engine: Engine, screen: Screen) -> AsyncIterator[None]:
    """Show a line for each exchange during the block, and the rest within a second afterwards."""
    shown = _ScreenLines(engine, screen)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(shown.follower.serve)
            try:
                yield
            finally:
                nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _FINAL_S):
            await shown.follower.reach(engine.log.last)


class _ScreenLines:
    """Lines written by a thread. While the reader of standard output is slow, the entries wait in the log."""

    def __init__(self, engine: Engine, screen: Screen) -> None:
        self._screen = screen
        self._exchanges = Exchanges(lambda: engine.observer.views)
        self._wall = engine.clock.wall
        self._waiting: list[Line] = []
        self.follower = LogFollower(engine.log, self._take, self._missed, pause=self._write)

    def _take(self, entry: Entry) -> None:
        self._waiting.extend(self._exchanges.take(entry))

    def _missed(self, first: int, last: int) -> None:
        self._waiting.append(missing(self._wall(), first, last))

    async def _write(self) -> None:
        if not self._waiting:
            await trio.lowlevel.checkpoint()
            return
        lines, self._waiting = self._waiting, []
        # "can't start new thread": an exhausted system loses lines, not its server.
        with suppress(RuntimeError):
            # A reader that has stopped would block the thread for ever, so it is not joined.
            await trio.to_thread.run_sync(self._show, lines, abandon_on_cancel=True)

    def _show(self, lines: list[Line]) -> None:
        # The reader may have closed, such as `head`, and the file may be closed.
        with suppress(OSError, ValueError):
            for line in lines:
                self._screen.show(line)


def missing(at: float, first: int | None, last: int | None) -> Line:
    """The line about entries without lines."""
    which = "an earlier run" if first is None else f"{first} to {last}"
    return Line(at, "", "missing", f"entries of {which}" if first is None else f"entries {which}", "warn", finding=True)

"""Lines on a terminal, in colours and cut to its width; whole and without colours in a file or a pipe."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, TextIO

import trio
from rich.console import Console, OverflowMethod
from rich.text import Text

from ...core.escaping import encodable
from ...engine.engine import Engine
from ...log.event_log import Entry
from ...log.follower import LogFollower
from .exchanges import Exchanges, Line, Tone

_STYLES: Final[dict[Tone, str]] = {"fine": "green", "quiet": "dim", "warn": "yellow", "bad": "bold red"}
# Columns, wide enough to align usual names and requests.
_WHO, _WHAT = 20, 30
# For a time without a date, such as NaN.
_NO_TIME: Final = "--:--:--.---"

# The longest wait for the last lines at the server's end, in seconds.
_FINAL_S: Final = 1.0


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Called in rich's handler of `BrokenPipeError`. rich would end the process, perhaps a server."""
        raise  # noqa: PLE0704 - as this stands


class Screen:
    r"""Writes to `file`. Characters outside its encoding are escaped, such as `\u65e5`.

    Obeys `NO_COLOR` (https://no-color.org) and `FORCE_COLOR`.
    """

    def __init__(self, file: TextIO) -> None:
        self._encoding = file.encoding
        # A line that is cut ends with "…", where that can be written.
        self._cut: OverflowMethod = "ellipsis" if encodable("…", file.encoding) == "…" else "crop"
        self._console = _Console(file=file, highlight=False, markup=False, emoji=False)

    def show(self, line: Line) -> None:
        """Write one line, also with line breaks in its values. Raises `OSError` if the reader has closed."""
        who, what, how = (encodable(part, self._encoding) for part in (line.who, line.what, line.how))
        text = Text.assemble(
            (_time(line.at), "dim"),
            "  ",
            (who.ljust(_WHO), "cyan"),
            " ",
            what.ljust(_WHAT),
            " ",
            (how, _STYLES[line.tone]),
        )
        text.rstrip()
        # A finding is not cut: its end names the clause.
        cropped = self._console.is_terminal and not line.finding
        self._console.print(text, no_wrap=cropped, overflow=self._cut if cropped else "ignore", soft_wrap=not cropped)


def _time(at: float) -> str:
    try:
        return f"{time.strftime('%H:%M:%S', time.localtime(at))}.{int(at % 1 * 1000):03d}"
    except (ValueError, OverflowError, OSError):
        return _NO_TIME


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
    """Lines written by a thread. While the reader is slow, the entries wait in the log."""

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

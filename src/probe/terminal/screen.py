"""Lines on a terminal, in colours and cut to its width; whole and without colours where there is none."""

from __future__ import annotations

import time
from typing import IO, Final

from rich.console import Console
from rich.text import Text

from .exchanges import Line, Tone

_STYLES: Final[dict[Tone, str]] = {"fine": "green", "quiet": "dim", "warn": "yellow", "bad": "bold red"}
# so wide that usual names and requests stand below each other
_WHO, _WHAT = 20, 30


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Called where `BrokenPipeError` is handled. rich would end the process, which may be a server."""
        raise  # noqa: PLE0704 - as this stands


class Screen:
    """Writes to `file`. `NO_COLOR` and `FORCE_COLOR` are followed, as https://no-color.org has it."""

    def __init__(self, file: IO[str]) -> None:
        self._console = _Console(file=file, highlight=False, markup=False, emoji=False)

    def show(self, line: Line) -> None:
        """Write one line, which is one line whatever is in it. Raises `OSError` when nobody reads any more."""
        milliseconds = int(line.at % 1 * 1000)
        at = f"{time.strftime('%H:%M:%S', time.localtime(line.at))}.{milliseconds:03d}"
        text = Text.assemble(
            (at, "dim"),
            "  ",
            (line.who.ljust(_WHO), "cyan"),
            " ",
            line.what.ljust(_WHAT),
            " ",
            (line.how, _STYLES[line.tone]),
        )
        text.rstrip()
        # A finding is read to its end, which names the clause.
        cropped = self._console.is_terminal and not line.finding
        self._console.print(text, no_wrap=cropped, overflow="ellipsis" if cropped else "ignore", soft_wrap=not cropped)

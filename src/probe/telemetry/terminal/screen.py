"""Lines on a terminal, in colours and cut to its width; whole and without colours where there is none."""

from __future__ import annotations

import time
from typing import Final, TextIO

from rich.console import Console, OverflowMethod
from rich.text import Text

from ...core.escaping import encodable
from .exchanges import Line, Tone

_STYLES: Final[dict[Tone, str]] = {"fine": "green", "quiet": "dim", "warn": "yellow", "bad": "bold red"}
# so wide that usual names and requests stand below each other
_WHO, _WHAT = 20, 30
# What stands in place of a time that has no date, such as NaN.
_NO_TIME: Final = "--:--:--.---"


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Called where `BrokenPipeError` is handled. rich would end the process, which may be a server."""
        raise  # noqa: PLE0704 - as this stands


class Screen:
    r"""Writes to `file`; what its encoding does not have is escaped, such as `\u65e5`.

    `NO_COLOR` and `FORCE_COLOR` are followed, as https://no-color.org has it.
    """

    def __init__(self, file: TextIO) -> None:
        self._encoding = file.encoding
        # A line that is cut ends with "…", where that can be written.
        self._cut: OverflowMethod = "ellipsis" if encodable("…", file.encoding) == "…" else "crop"
        self._console = _Console(file=file, highlight=False, markup=False, emoji=False)

    def show(self, line: Line) -> None:
        """Write one line, which is one line whatever is in it. Raises `OSError` when nobody reads any more."""
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
        # A finding is read to its end, which names the clause.
        cropped = self._console.is_terminal and not line.finding
        self._console.print(text, no_wrap=cropped, overflow=self._cut if cropped else "ignore", soft_wrap=not cropped)


def _time(at: float) -> str:
    try:
        return f"{time.strftime('%H:%M:%S', time.localtime(at))}.{int(at % 1 * 1000):03d}"
    except (ValueError, OverflowError, OSError):
        return _NO_TIME

"""Lines on a terminal, in colours and cut to its width; whole and without colours in a file or a pipe."""

from __future__ import annotations

import time
from typing import Final, TextIO

from rich.console import Console, OverflowMethod
from rich.text import Text

from ...core.escaping import encodable
from .exchanges import Line, Tone

_STYLES: Final[dict[Tone, str]] = {"fine": "green", "quiet": "dim", "warn": "yellow", "bad": "bold red"}
# Columns, wide enough to align usual names and requests.
_WHO, _WHAT = 20, 30
# For a time without a date, such as NaN.
_NO_TIME: Final = "--:--:--.---"


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

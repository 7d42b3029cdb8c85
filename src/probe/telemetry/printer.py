"""Standard error: lines for people, or JSON for a collector of logs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from ..core.escaping import cut, json_line, shown, value
from ..engine.clock import iso
from .lines import LogLine

_STANDARD: Final[Mapping[str, int]] = {
    "off": logging.CRITICAL + 1,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}


_SAID_S: Final = 0.1
"""The longest wait for a line of `say`, in seconds. A server has a handful of such lines."""


class Printer:
    """Turns lines into bytes for `write`. It gets whole lines and must neither raise nor wait.

    `write_all` is for a thread and waits until there is room. `flush` waits until all is written, at most the given
    seconds. `lines` returns the number of lines written. `format` and `level` are those of the settings.
    """

    def __init__(
        self,
        format: str,
        level: str,
        write: Callable[[bytes], object],
        write_all: Callable[[bytes], object] | None = None,
        flush: Callable[[float], object] = bool,
        lines: Callable[[], int] = int,
    ) -> None:
        self.level = level
        self.write = write
        self.write_all = write_all or write
        self.flush = flush
        self.lines = lines
        self._json = format == "json"

    def say(self, text: str) -> None:
        """Write a line about the start or the end of the server, at any level."""
        line = LogLine(time.time(), "info", "server", text, {})
        self.write(self.line(line) if self._json else _whole(shown(text)))
        # It stands before any later output of tools.
        self.flush(_SAID_S)

    def line(self, line: LogLine) -> bytes:
        """The text of a line, with its traceback."""
        at, trace = iso(line.at), line.trace.splitlines()
        if not self._json:
            said = [at, line.level.upper(), shown(line.text)]
            first = " ".join([*said, *(f"{name}={value(item)}" for name, item in line.fields.items())])
            # Indented, so that no line of a traceback looks like a line of the log.
            return _whole("\n".join([first, *(f"    {shown(part)}" for part in trace)]))
        head = {"time": at, "level": line.level, "event": line.kind, "message": line.text}
        fields = {name: cut(item) if isinstance(item, str) else item for name, item in line.fields.items()}
        return _whole(json_line({**head, **fields, **({"traceback": trace} if trace else {})}))


def _whole(text: str) -> bytes:
    return f"{text}\n".encode(errors="backslashreplace")


class Records(logging.Handler):
    """Passes records of `logging` to a printer."""

    def __init__(self, printer: Printer) -> None:
        super().__init__()
        self._printer = printer
        self._traces = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; called by `logging`."""
        try:
            trace = self._traces.formatException(record.exc_info) if record.exc_info else ""
            # The message is not cut: it helps to find a defect.
            line = LogLine(record.created, record.levelname.lower(), record.name, record.getMessage(), {}, trace)
            self._printer.write(self._printer.line(line))
        except (TypeError, ValueError, LookupError):
            # The arguments of the logging call do not fit its format. The caller must not end by it.
            self.handleError(record)


def adopt_logging(printer: Printer) -> None:
    """Send this process's records of `logging` to the printer.

    Only the owner of the process may call it. The level of the printer holds for this program; for libraries it is at
    least WARNING.
    """
    own = _STANDARD[printer.level]
    logging.basicConfig(handlers=[Records(printer)], level=max(own, logging.WARNING), force=True)
    logging.getLogger(__package__.partition(".")[0]).setLevel(own)

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
"""There are a handful of such lines in a server's life, so each may wait a moment until it is written."""


class Printer:
    """Turns what is to be told into bytes for `write`, which gets whole lines and must neither raise nor wait.

    `write_all` is for a thread, which can wait until there is room; `flush` waits for what was written, but not longer
    than the seconds it is given, and `lines` gives the number of lines that were written.
    `format` and `level` are those of the settings.
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
        """Write a line for the person who starts or stops the server, at any level."""
        line = LogLine(time.time(), "info", "server", text, {})
        self.write(self.line(line) if self._json else _whole(shown(text)))
        # The output of a tool comes after it.
        self.flush(_SAID_S)

    def line(self, line: LogLine) -> bytes:
        """A line as it is to be written, with its traceback."""
        at, trace = iso(line.at), line.trace.splitlines()
        if not self._json:
            said = [at, line.level.upper(), shown(line.text)]
            first = " ".join([*said, *(f"{name}={value(item)}" for name, item in line.fields.items())])
            # No line of a traceback can be taken for one of the log's own.
            return _whole("\n".join([first, *(f"    {shown(part)}" for part in trace)]))
        head = {"time": at, "level": line.level, "event": line.kind, "message": line.text}
        fields = {name: cut(item) if isinstance(item, str) else item for name, item in line.fields.items()}
        return _whole(json_line({**head, **fields, **({"traceback": trace} if trace else {})}))


def _whole(text: str) -> bytes:
    return f"{text}\n".encode(errors="backslashreplace")


class Records(logging.Handler):
    """Brings what is logged by way of `logging` to a printer."""

    def __init__(self, printer: Printer) -> None:
        super().__init__()
        self._printer = printer
        self._traces = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; called by `logging`."""
        try:
            trace = self._traces.formatException(record.exc_info) if record.exc_info else ""
            # The message is not cut: a defect is found by it.
            line = LogLine(record.created, record.levelname.lower(), record.name, record.getMessage(), {}, trace)
            self._printer.write(self._printer.line(line))
        except (TypeError, ValueError, LookupError):
            # The arguments of the logging call do not fit; that must not end the caller.
            self.handleError(record)


def adopt_logging(printer: Printer) -> None:
    """Send the records that this process makes by way of `logging` to the printer.

    Only the owner of the process may call it. Of libraries come warnings and worse, of this program what the printer's
    level lets through.
    """
    own = _STANDARD[printer.level]
    logging.basicConfig(handlers=[Records(printer)], level=max(own, logging.WARNING), force=True)
    logging.getLogger(__package__.partition(".")[0]).setLevel(own)

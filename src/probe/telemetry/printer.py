"""Standard error: lines for people, or JSON for a collector of logs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..engine.clock import iso
from .escaping import cut, json_line, shown, value
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

    `write_all` is for whoever can wait until there is room; `flush` waits for what was written, but not longer than
    the seconds it is given, and `lines` gives how many lines were written.
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
        members = {"level": "info", "event": "server", "message": text}
        self.write(self._whole(json_line({"time": iso(time.time()), **members}) if self._json else shown(text)))
        # The output of a tool comes after it.
        self.flush(_SAID_S)

    def line(self, line: LogLine) -> bytes:
        """A line of the event log, to be written when somebody can wait for that."""
        head = {"time": iso(line.at), "level": line.level, "event": line.kind, "message": line.text}
        if not self._json:
            return self._whole(_for_people(head, line.fields))
        fields = {name: cut(item) if isinstance(item, str) else item for name, item in line.fields.items()}
        return self._whole(json_line(head | fields))

    def record(self, record: logging.LogRecord, trace: str) -> bytes:
        """The line for a record of `logging`, with its traceback."""
        # Not `cut`: this is what a defect is found by.
        head = {"time": iso(record.created), "level": record.levelname.lower(), "event": record.name}
        if self._json:
            traced = {"traceback": trace.splitlines()} if trace else {}
            return self._whole(json_line({**head, "message": record.getMessage(), **traced}))
        said = _for_people({**head, "message": record.getMessage()}, {})
        # No line of a traceback can be taken for one of the log's own.
        return self._whole("\n".join([said, *(f"    {shown(part)}" for part in trace.splitlines())]))

    def _whole(self, text: str) -> bytes:
        return f"{text}\n".encode(errors="backslashreplace")


def _for_people(head: Mapping[str, str], fields: Mapping[str, Any]) -> str:
    said = [head["time"], head["level"].upper(), shown(head["message"])]
    return " ".join([*said, *(f"{name}={value(item)}" for name, item in fields.items())])


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
            self._printer.write(self._printer.record(record, trace))
        except (TypeError, ValueError, LookupError):
            # The arguments of the logging call do not fit; that must not end the caller.
            self.handleError(record)


def adopt_logging(printer: Printer) -> None:
    """From now on, what this process logs by way of `logging` goes to the printer.

    Only for whoever owns the process. Libraries are heard from warnings on, this program from the printer's level on.
    """
    own = _STANDARD[printer.level]
    logging.basicConfig(handlers=[Records(printer)], level=max(own, logging.WARNING), force=True)
    logging.getLogger(__package__.partition(".")[0]).setLevel(own)

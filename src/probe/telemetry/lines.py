"""Facts of the event log become lines for the operator, each at its level (docs/telemetry.md has the table).

`StandardError` writes them in a thread: a reader that has stopped does not block this process.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import structs

from ..core.escaping import cut, json_line, shown, value
from ..engine.clock import iso
from ..log import events
from ..log.bounded import Newest
from ..log.event_log import Entry
from ..settings import LOG_LEVELS
from .requests import MOST_OPEN

# Seconds between lines about one limit. Each line has the number of times in between.
_QUIET_S: Final = 10.0

_CLIENT: Final = "client=client_name version=client_version"
_STANDARD: Final[Mapping[str, int]] = {
    "off": logging.CRITICAL + 1,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
_SAID_S: Final = 0.1
"""The longest wait for a line of `say`, in seconds. A server has a handful of such lines."""

_MOST_BYTES: Final = 1024 * 1024
"""The bytes queued at most, thousands of lines. Beyond it `write` drops lines and `write_all` waits."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. `fields` have unchanged values of peers; `at` is in seconds since the epoch.

    `trace` is the traceback of a defect.
    """

    at: float
    level: str
    kind: str
    text: str
    fields: Mapping[str, Any]
    trace: str = ""


@dataclass(frozen=True, slots=True)
class _Form:
    level: str
    text: str
    fields: Mapping[str, str]


def _form(level: str, text: str, fields: str = "") -> _Form:
    """`fields` are words: `name`, or `name=own` if the fact's own name is another."""
    return _Form(level, text, _names(fields))


def _names(fields: str) -> dict[str, str]:
    return {name: own or name for name, _, own in (word.partition("=") for word in fields.split())}


class OperatorLines:
    """Makes lines of the entries of one engine, of a `server` or a `room`, from `level` on.

    `kinds` are the classes of facts it needs.
    """

    def __init__(self, level: str, of: str = "server") -> None:
        self._of = of
        self._calls: Newest[str, events.CallStarted] = Newest(MOST_OPEN)
        self._least = LOG_LEVELS.index(level)
        self._limits: dict[str, tuple[float, int]] = {}
        kinds = {kind for kind, form in _FORMS.items() if self._tells(form.level)}
        self.kinds: frozenset[type] = frozenset({*kinds, events.CallStarted} if events.CallSettled in kinds else kinds)

    def of(self, entry: Entry) -> LogLine | None:
        call, fact = entry.context.call or "", entry.fact
        if isinstance(fact, events.CallStarted):
            self._calls.store(call, fact)
        form = self._form(fact)
        if form is None or not self._tells(form.level):
            return None
        said = _ids(entry)
        if isinstance(fact, events.CallSettled):
            said |= _fields(_BEGAN, self._calls.pop(call, None))
        line = LogLine(entry.at, form.level, fact.kind, form.text, {**said, **_fields(form.fields, fact)})
        return self._paced(line, fact, entry.mono) if isinstance(fact, events.LimitReached) else line

    def _form(self, fact: events.AnyEvent) -> _Form | None:
        if isinstance(fact, events.AuditState) and fact.state == "ok":
            return _AUDIT_OK
        if isinstance(fact, events.HttpResponse) and fact.problem is None:
            return None
        form = _FORMS.get(type(fact))
        if form is not None and isinstance(fact, events.ServerState):
            return replace(form, text=f"the {self._of} is {fact.state}")
        return form

    def _tells(self, level: str) -> bool:
        return LOG_LEVELS.index(level) <= self._least

    def missed(self, at: float, entries: int) -> LogLine | None:
        text = "lines are missing: the event log went on faster than they could be written"
        return LogLine(at, "warning", "log.missed", text, {"entries": entries}) if self._tells("warning") else None

    def _paced(self, line: LogLine, event: events.LimitReached, now: float) -> LogLine | None:
        last, more = self._limits.get(event.limit, (-math.inf, 0))
        if now - last < _QUIET_S:
            self._limits[event.limit] = last, more + 1
            return None
        self._limits[event.limit] = now, 0
        return replace(line, fields={**line.fields, "more": more}) if more else line


def _ids(entry: Entry) -> dict[str, Any]:
    ids = {"request": getattr(entry.fact, "request_id", None), **structs.asdict(entry.context)}
    return {name: id for name, id in ids.items() if id is not None}


def _fields(names: Mapping[str, str], fact: object) -> dict[str, Any]:
    """The values of a fact, without empty ones; a tuple becomes its length, and a float has three decimal places."""
    values = {name: getattr(fact, own, None) for name, own in names.items()}
    told = {name: value for name, value in values.items() if value not in (None, "")}
    return {name: _brief(value) for name, value in told.items()}


def _brief(value: Any) -> Any:
    if isinstance(value, tuple):
        return len(value)
    return round(value, 3) if isinstance(value, float) else value


_AUDIT_OK: Final = _form("warning", "the audit file can be written again", "lost")
_BEGAN: Final = _names("tool client=client_name transport era")

_FORMS: Final[Mapping[type, _Form]] = {
    events.LimitReached: _form("warning", "limit reached", "limit most=value"),
    events.AuditState: _form("error", "the audit file cannot be written", "why lost"),
    # `OperatorLines` makes the text, with the state.
    events.ServerState: _form("info", ""),
    events.SessionOpened: _form("info", "session opened", f"{_CLIENT} revision transport"),
    events.SessionClosed: _form("info", "session closed", "why"),
    events.CallSettled: _form("info", "call", "outcome ms=duration_ms cancelled_by"),
    events.DispatchExpired: _form("info", "deadline passed", "deadline after_ms=elapsed_ms reports"),
    events.StreamLost: _form("info", "stream lost", "why unsent=messages"),
    events.HostRegistered: _form("info", "tool host registered", "host version tools"),
    events.HostClosed: _form("info", "tool host gone", "host code by failed"),
    events.HostMisuse: _form("debug", "tool host misuse", "what detail"),
    events.ClientMisuse: _form("debug", "client misuse", "what clause detail"),
    events.ClientSeen: _form("debug", "client seen", f"{_CLIENT} address=client revision transport"),
    events.ConnectionOpened: _form("debug", "connection opened", "transport address=client peer"),
    events.ConnectionClosed: _form("debug", "connection closed", "by code"),
    events.CallCancelled: _form("debug", "cancellation", "by reason effect"),
    events.TaskChanged: _form("debug", "task", "tool status said=message"),
    events.HttpResponse: _form("debug", "request refused", "status problem"),
}
"""The events with lines. The line of a call has values of two events; `_BEGAN` has those of the first."""


class Printer:
    """Turns lines into bytes for `write`. It gets whole lines and must neither raise nor wait.

    `write_all` is for a thread and waits until there is room. `flush` waits until all is written, at most the given
    seconds. `lines` returns the number of lines written.
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


class LogHandler(logging.Handler):
    """Passes records of `logging` to a printer."""

    def __init__(self, printer: Printer) -> None:
        super().__init__()
        self._printer = printer
        self._traces = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            trace = self._traces.formatException(record.exc_info) if record.exc_info else ""
            # The message is not cut: it helps to find a defect.
            line = LogLine(record.created, record.levelname.lower(), record.name, record.getMessage(), {}, trace)
            self._printer.write(self._printer.line(line))
        except (TypeError, ValueError, LookupError):
            # The arguments of the logging call do not fit its format. The caller must not end by it.
            self.handleError(record)


def adopt_logging(printer: Printer) -> None:
    """Send this process's records of `logging` to the printer; only the owner of the process may call it.

    The level of the printer holds for this program; for libraries it is at least WARNING.
    """
    own = _STANDARD[printer.level]
    logging.basicConfig(handlers=[LogHandler(printer)], level=max(own, logging.WARNING), force=True)
    logging.getLogger(__package__.partition(".")[0]).setLevel(own)


class StandardError:
    """The descriptor of standard error, or another one, which the caller keeps open.

    The thread starts with the first write and ends with the process, since a write may block for ever. Errors of the
    descriptor are ignored.
    """

    def __init__(self, descriptor: int = 2) -> None:
        self.lines = 0
        """The number of lines queued so far, without dropped ones."""
        self._descriptor = descriptor
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._lost = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, data: bytes) -> None:
        """Queue whole lines. Never waits. Without room they are dropped, and a later line has their number."""
        with self._changed:
            if self._bytes + len(data) > _MOST_BYTES:
                self._lost += data.count(b"\n")
            else:
                self._put(data)

    def write_all(self, data: bytes) -> None:
        """For threads only: wait for room, and queue whole lines."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self._bytes + len(data) <= _MOST_BYTES)
            self._put(data)

    def flush(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._bytes, seconds)

    def _put(self, data: bytes) -> None:
        if self._lost:
            data = b"%d lines were lost here: nobody read them\n" % self._lost + data
            self._lost = 0
        self.lines += data.count(b"\n")
        self._waiting.append(data)
        self._bytes += len(data)
        self._changed.notify_all()
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="standard error", daemon=True)
            # "can't start new thread": a later write may succeed.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                data = self._waiting.popleft()
            left = data
            with suppress(OSError):
                while left:
                    left = left[os.write(self._descriptor, left) :]
            with self._changed:
                self._bytes -= len(data)
                self._changed.notify_all()

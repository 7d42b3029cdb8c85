"""Counts of what is open at this moment, read from the engine itself, so that a gap in the log cannot falsify them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .. import __version__
from ..core.task import Status
from ..engine.engine import Engine
from .tally import Family


def read(engine: Engine) -> Iterator[Family]:
    """All of them. To be called where the engine runs."""
    log, hosts = engine.log, engine.observer.tables.hosts_connected
    yield _gauge("sessions", "Sessions of the legacy era.", sum(1 for _ in engine.sessions))
    yield _calls(engine)
    yield _tasks(engine)
    yield _gauge("tool_hosts", "Tool hosts that are connected.", hosts)
    yield _gauge("log_entries", "Entries in the event log.", len(log))
    yield _gauge("log_size", "Size of the event log.", log.bytes, "bytes")
    yield _gauge("log_entries_unread", "Entries that were lost to the tables and the audit.", engine.observer.missed)
    audit = engine.audit.status
    yield _gauge("audit_failing", "Whether the audit file cannot be written.", int(audit.state == "failing"))
    yield _gauge("audit_rows_lost", "Rows that will never be in the audit file.", audit.lost)
    yield _gauge("draining", "Whether the server refuses new work.", int(engine.draining))
    yield _gauge("start_time", "When the server started, since 1970.", engine.started_at, "seconds")
    yield Family("gauge", "info", "", "This server.", ("version", "run"), [((__version__, engine.run), 1)])


def _gauge(name: str, help: str, value: float, unit: str = "") -> Family:
    return Family("gauge", name, unit, help, (), [((), value)])


def _calls(engine: Engine) -> Family:
    held = sum(len(session.calls) for session in engine.sessions) + len(engine.streams.running)
    modern = len(engine.modern.running) + len(engine.modern.listeners)
    help = "Requests that wait or work, subscriptions among them; tasks are counted apart."
    return Family("gauge", "in_flight", "", help, ("era",), [(("legacy",), held), (("modern",), modern)])


def _tasks(engine: Engine) -> Family:
    by_status = Counter(task.machine.status for task in engine.tasks.everyone())
    samples = [((str(status.value),), by_status[status]) for status in Status]
    return Family("gauge", "tasks", "", "Tasks that are kept, by status.", ("status",), samples)

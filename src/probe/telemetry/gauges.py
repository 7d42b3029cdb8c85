"""Counts of what is open at this moment, read from the engine itself, so that a gap in the log cannot falsify them."""

from __future__ import annotations

from collections.abc import Iterator

from .. import __version__
from ..core.task import Status
from ..engine.protocols import Usage, WatchedEngine
from .tally import Family


def read(engine: WatchedEngine) -> Iterator[Family]:
    """All of them. To be called where the engine runs."""
    log, hosts, usage = engine.log, engine.observer.tables.hosts_connected, engine.usage()
    yield _gauge("sessions", "Sessions of the legacy era.", usage.sessions)
    yield _calls(usage)
    yield _tasks(usage)
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


def _calls(usage: Usage) -> Family:
    modern = usage.modern_calls + usage.subscriptions
    help = "Requests that wait or work, subscriptions among them; tasks are counted apart."
    return Family("gauge", "in_flight", "", help, ("era",), [(("legacy",), usage.legacy_calls), (("modern",), modern)])


def _tasks(usage: Usage) -> Family:
    samples = [((str(status.value),), usage.tasks.get(status, 0)) for status in Status]
    return Family("gauge", "tasks", "", "Tasks that are kept, by status.", ("status",), samples)

"""Gauges read from the engine itself, such as open sessions. A gap in the log does not falsify them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from .. import __version__
from ..core.task import Status
from ..engine.engine import Engine
from .families import Values, gauge


def read(engine: Engine) -> Iterator[Metric]:
    """Read all of them. Call it in the engine's thread."""
    log, usage, audit = engine.log, engine.usage(), engine.audit.status
    yield gauge("sessions", "Sessions of the legacy era.", usage.sessions)
    calls: Values = {("legacy",): usage.legacy_calls, ("modern",): usage.modern_calls + usage.subscriptions}
    help = "Requests that wait or work, subscriptions among them; tasks are counted apart."
    yield gauge("in_flight", help, calls, ("era",))
    tasks: Values = {(str(status.value),): usage.tasks.get(status, 0) for status in Status}
    yield gauge("tasks", "Tasks that are kept, by status.", tasks, ("status",))
    yield gauge("tool_hosts", "Tool hosts that are connected.", engine.observer.tables.hosts_connected)
    yield gauge("log_entries", "Entries in the event log.", len(log))
    yield gauge("log_size", "Size of the event log.", log.bytes, unit="bytes")
    yield gauge("log_entries_unread", "Entries that were lost to the tables and the audit.", engine.observer.missed)
    yield gauge("audit_failing", "Whether the audit file cannot be written.", int(audit.state == "failing"))
    yield gauge("audit_rows_lost", "Rows that will never be in the audit file.", audit.lost)
    yield gauge("draining", "Whether the server refuses new work.", int(engine.draining))
    yield gauge("start_time", "When the server started, since 1970.", engine.started_at, unit="seconds")
    yield gauge("info", "This server.", {(__version__, engine.run): 1}, ("version", "run"))

"""Facts of the event log as the engine would record them, for tests of what follows the log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from probe.log.context import Context
from probe.log.event_log import Entry, EventLog
from probe.log.events import (
    CallCancelled,
    CallSettled,
    CallStarted,
    Event,
    HttpRequest,
    MessageEmitted,
    MessageReceived,
    essentials,
    subject,
)
from probe.views.records import CallRecord


@dataclass(frozen=True, slots=True)
class Placed:
    """A fact with its context and its cause, to be recorded."""

    fact: Event
    context: Context
    cause: int | None = None


def at(fact: Event, cause: int | None = None, **context: Any) -> Placed:
    """A fact with a context."""
    return Placed(fact, Context(**context), cause)


def record_all(log: EventLog, *facts: Event | Placed) -> list[Entry]:
    """Append facts to a log; returns their entries."""
    entries = []
    for item in facts:
        it = item if isinstance(item, Placed) else Placed(item, Context())
        entry = log.entry(log.append(it.fact, it.context, it.cause))
        assert entry is not None
        entries.append(entry)
    return entries


class Told:
    """A log that is told facts, each with its context and its cause."""

    def __init__(self) -> None:
        self.log = EventLog(lambda: (0.0, 0.0), max_events=10_000, max_bytes=10**8)

    def entry(self, fact: Event, cause: int | None = None, **context: Any) -> Entry:
        """Record a fact."""
        return record_all(self.log, at(fact, cause, **context))[0]


def received(message: Any, batch: int | None = None) -> MessageReceived:
    """A client's message was read."""
    return MessageReceived(batch, *essentials(message), json.dumps(message).encode(), subject(message))


def emitted(message: Any, position: int | None = None) -> MessageEmitted:
    """The server made a message."""
    return MessageEmitted(position, *essentials(message), json.dumps(message).encode())


def sized(size: int, batch: int | None = None) -> MessageReceived:
    """A message of so many bytes."""
    return MessageReceived(batch, "invalid", None, None, b"x" * size)


def requested(method: str = "POST") -> HttpRequest:
    """The head of an HTTP request."""
    return HttpRequest(method, "/mcp", "", "1.1", "::1:1", ())


def started(id: Any = 1, tool: str | None = "tool", method: str = "tools/call", **fields: Any) -> CallStarted:
    """A call began."""
    known: dict[str, Any] = {
        "request_id": id,
        "method": method,
        "tool": tool,
        "progress_token": None,
        "toolset": "probe",
        "era": "legacy",
        "revision": "2025-11-25",
        "transport": "http",
        "client_name": "n",
        "client_version": "v",
        "steps_total": None,
        "arguments": b"{}",
    }
    return CallStarted(**{**known, **fields})


def cancelled(id: Any = 1, by: str = "notification", *, effect: bool = True) -> CallCancelled:
    """A call was asked to stop."""
    return CallCancelled(id, by, None, effect)


def settled(id: Any = 1, outcome: str = "completed", **fields: Any) -> CallSettled:
    """The scope of a call has exited."""
    known: dict[str, Any] = {
        "request_id": id,
        "outcome": outcome,
        "answered": True,
        "duration_ms": 1.0,
        "cancelled_by": None,
        "cancel_reason": None,
        "scope_exit_ms": None,
        "steps_done": None,
        "steps_total": None,
        "sent_after_cancel": 0,
        "coalesced": 0,
        "result": b"null",
    }
    return CallSettled(**{**known, **fields})


def record(call: str, **fields: Any) -> CallRecord:
    """The record of a call that has just started."""
    known: dict[str, Any] = {
        "run": "run",
        "call": call,
        "exchange": 1,
        "tool": "simple_tool",
        "toolset": "probe",
        "arguments": b'{"delayMs":5}',
        "era": "legacy",
        "revision": "2025-11-25",
        "transport": "http",
        "session": "s1",
        "client_name": "n",
        "client_version": "v",
        "label": None,
        "request_id": "5",
        "progress_token": None,
        "task": None,
        "started_at": 1000.0,
    }
    return CallRecord(**{**known, **fields})

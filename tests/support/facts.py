"""Facts of the event log as the engine would record them, for tests of what follows the log."""

from __future__ import annotations

import json
from typing import Any

from probe.observe.events import CallSettled, CallStarted, MessageEmitted, MessageReceived, essentials, subject
from probe.observe.records import CallRecord


def received(
    message: Any,
    exchange: int = 1,
    session: str | None = None,
    batch: int | None = None,
    connection: str | None = None,
) -> MessageReceived:
    """A client's message was read."""
    body = json.dumps(message).encode()
    return MessageReceived(exchange, session, batch, *essentials(message), body, subject(message), connection)


def emitted(
    message: Any,
    exchange: int | None = 1,
    session: str | None = None,
    *,
    stream: str | None = None,
    position: int | None = None,
    call: str | None = None,
    task: str | None = None,
) -> MessageEmitted:
    """The server made a message."""
    body = json.dumps(message).encode()
    return MessageEmitted(exchange, session, stream, position, call, task, *essentials(message), body)


def sized(size: int, number: int = 1) -> MessageReceived:
    """A message of so many bytes."""
    return MessageReceived(number, None, None, "invalid", None, None, b"x" * size)


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


def call_started(tool: str | None = "simple_tool", **fields: Any) -> CallStarted:
    """A call began to run: of a tool, or of another request, which has none."""
    known: dict[str, Any] = {
        "request_id": 5,
        "method": "tools/call",
        "tool": tool,
        "progress_token": None,
        "toolset": "probe",
        "era": "legacy",
        "revision": "2025-11-25",
        "transport": "http",
        "client_name": "n",
        "client_version": "v",
        "steps_total": None,
        "arguments": b'{"delayMs":5}',
    }
    return CallStarted(**{**known, **fields})


def call_settled(outcome: str = "completed", **fields: Any) -> CallSettled:
    """The work of a call has ended, answered and not cancelled."""
    known: dict[str, Any] = {
        "request_id": 5,
        "outcome": outcome,
        "answered": True,
        "duration_ms": 5.0,
        "cancelled_by": None,
        "cancel_reason": None,
        "scope_exit_ms": None,
        "steps_done": None,
        "steps_total": None,
        "sent_after_cancel": 0,
        "coalesced": 0,
        "result": b"{}",
    }
    return CallSettled(**{**known, **fields})

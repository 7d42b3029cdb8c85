"""Facts of the event log as the engine would record them, for tests of what follows the log."""

from __future__ import annotations

import json
from typing import Any

from probe.observe.events import MessageEmitted, MessageReceived, essentials, subject
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
        "request_id": "5",
        "progress_token": None,
        "task": None,
        "started_at": 1000.0,
        "max_result_bytes": 1000,
    }
    return CallRecord(**{**known, **fields})

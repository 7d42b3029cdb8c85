"""What must be so whatever was sent."""

from __future__ import annotations

import gc
import json
import logging
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from ..support.inside import engine_tasks
from ..support.legacy import Legacy
from ..support.modern import VERSION, Modern
from ..support.probe import Probe
from ..support.schemas import RevisionSchema, SchemaViolationError, schema

NOT_IMPLEMENTED = (501, 505)
"""RFC 9110: for a method, and for a version of HTTP, that a server does not know."""
SERVED_S = 5.0
_LONG_S = 9_000.0
"""Longer than anything that a client may have begun: tasks, sessions, streams that may be resumed."""


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.exc_info:
            self.said.append(logging.Formatter().format(record))


@contextmanager
def quiet() -> Iterator[None]:
    """No error and no traceback is logged meanwhile."""
    collector = _Collector()
    logging.getLogger().addHandler(collector)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(collector)
    assert collector.said == [], "\n".join(collector.said)


def check_status(status: int, headers: Mapping[str, str]) -> None:
    """No mistake of a peer is an error of the server; a full server says when to come again."""
    assert status < 500 or status in NOT_IMPLEMENTED or (status == 503 and "retry-after" in headers), (status, headers)


def check_message(message: Any, sent: bytes, revision: str) -> None:
    """A message of the server fits its revision; an answer fits what was asked, where that can still be read."""
    _check_kind(message)
    asked = _asked(sent)
    if revision == VERSION:
        _check_modern(message, asked)
        return
    method, task = _of(message, asked)
    schema(revision).check_message(message, method=method, task=task)


def _check_kind(message: Any) -> None:
    """The schemas allow other members, so a message could be of two kinds at once."""
    assert sum(member in message for member in ("method", "result", "error")) == 1, message


def _check_modern(message: Any, asked: Any) -> None:
    if message.get("method") == "notifications/tasks":
        schema("ext-tasks").check(message, "TaskStatusNotification")
        return
    schema(VERSION).check_message(message)
    kind = message.get("result", {}).get("resultType")
    method, _ = _of(message, asked)
    if kind == "input_required":
        schema(VERSION).check(message["result"], "InputRequiredResult")
    elif kind == "task":
        schema("ext-tasks").check(message["result"], "CreateTaskResult")
    elif kind == "complete" and method is not None and not method.startswith(("tasks/", "server/")):
        schema(VERSION).check_message(message, method=method)


def _asked(sent: bytes) -> Any:
    try:
        return json.loads(sent)
    except (ValueError, RecursionError):
        return None


def _of(message: Any, asked: Any) -> tuple[str | None, bool]:
    """The method that a response answers, and whether it asked for a task; None where that cannot be told."""
    if "result" not in message or "method" in message:
        return None, False
    candidates = [item for item in (asked if isinstance(asked, list) else [asked]) if isinstance(item, dict)]
    mine = [item for item in candidates if item.get("id") == message["id"] and isinstance(item.get("method"), str)]
    if len(mine) != 1 or type(mine[0]["id"]) is not type(message["id"]):
        return None, False
    params = mine[0].get("params")
    return mine[0]["method"], isinstance(params, dict) and "task" in params and mine[0]["method"] == "tools/call"


def check_any_era(message: Any, revision: str) -> None:
    """A message of a connection that both eras share."""
    _check_kind(message)
    try:
        _check_modern(message, None)
    except SchemaViolationError:
        checker: RevisionSchema = schema(revision)
        checker.check_message(message)


async def check_served(witness: Legacy, modern: Modern) -> None:
    """Clients that do everything right have their answers."""
    with trio.fail_after(SERVED_S):
        assert (await witness.tool("simple_tool", {"delayMs": 1}))["content"]
        assert (await modern.tool("simple_tool", {"delayMs": 1}))["content"]


async def check_nothing_left(probe: Probe, services: list[str]) -> None:
    """Long after the last client has gone only the `services` of the beginning run; the time is virtual."""
    await trio.sleep(_LONG_S)
    await wait_all_tasks_blocked()
    engine = probe.engine
    assert engine_tasks() == services
    assert list(engine.sessions) == []
    assert list(engine.streams) == []
    assert list(engine.tasks.everyone()) == []
    assert len(engine.modern.listeners) == 0
    assert all(record.outcome is not None for record in engine.records.newest_first())
    limits = engine.settings.limits
    assert engine.log.bytes <= limits.event_log_bytes
    assert len(engine.records) <= limits.call_records


def memory() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]

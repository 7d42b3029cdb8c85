"""Judges what a server said, from its event log: for tests whose client hides the messages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.request import urlopen

from .schemas import schema


def events_of(url: str) -> list[dict[str, Any]]:
    """Every event of the server that serves this `/mcp` URL."""
    found: list[dict[str, Any]] = []
    since = 0
    while True:
        with urlopen(url.replace("/mcp", f"/api/events?since={since}"), timeout=10) as answer:
            page = json.load(answer)
        assert page["gap"] is None, "the log has pushed out what is to be judged"
        if not page["events"]:
            return found
        found += page["events"]
        since = page["next"]


def check_emitted(events: Iterable[dict[str, Any]]) -> int:
    """Check every message that was sent in a session against the schema of its revision; returns how many.

    Raises `SchemaViolationError`.
    """
    revisions: dict[str, str] = {}
    asked: dict[tuple[str | None, Any], tuple[str, bool]] = {}
    checked = 0
    for event in events:
        session = event.get("session")
        if event["kind"] == "session.opened":
            revisions[session] = event["revision"]
        elif event["kind"] == "message.received":
            asked.update({(session, id): what for id, what in _requests(event["message"])})
        elif event["kind"] == "message.emitted" and session in revisions:
            message = event["message"]
            # `initialize` was received before there was a session
            method, task = asked.get((session, message.get("id")), ("initialize", False))
            given = {} if "method" in message else {"method": method, "task": task}
            schema(revisions[session]).check_message(message, **given)
            checked += 1
    return checked


def _requests(received: Any) -> list[tuple[Any, tuple[str, bool]]]:
    messages = received if isinstance(received, list) else [received]
    requests = [item for item in messages if isinstance(item, dict) and {"id", "method"} <= item.keys()]
    # the TypeScript SDK puts `task` into its tasks/get requests as well, where it means nothing
    return [(item["id"], (item["method"], _makes_task(item))) for item in requests]


def _makes_task(request: dict[str, Any]) -> bool:
    return request["method"] == "tools/call" and "task" in request.get("params", {})


def misuses(events: Iterable[dict[str, Any]]) -> list[str]:
    """What the clients did wrong, in the server's opinion."""
    return [f"{event['what']}: {event['detail']}" for event in events if event["kind"] == "client.misuse"]


def call_records(url: str) -> list[dict[str, Any]]:
    """The newest call records of the server, newest first."""
    with urlopen(url.replace("/mcp", "/api/calls?limit=500"), timeout=10) as answer:
        return list(json.load(answer)["calls"])

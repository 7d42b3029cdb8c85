"""Judges what a server said, from its event log: for tests whose client hides the messages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.request import urlopen

from .modern import PREFIX, SUBSCRIPTION_ID, TASKS, VERSION
from .schemas import schema

_INPUT_REQUIRED = ("tools/call", "prompts/get", "resources/read")
_OF_EXTENSION = {
    "tasks/get": "GetTaskResult",
    "tasks/update": "UpdateTaskResult",
    "tasks/cancel": "CancelTaskResult",
}


def last_event(url: str) -> int:
    """The number of the newest event of the server that serves this `/mcp` URL."""
    with urlopen(url.replace("/mcp", "/api/events?limit=1"), timeout=30) as answer:
        return int(json.load(answer)["last"])


def events_of(url: str, since: int = 0) -> list[dict[str, Any]]:
    """Every event after `since` of the server that serves this `/mcp` URL."""
    found: list[dict[str, Any]] = []
    while True:
        with urlopen(url.replace("/mcp", f"/api/events?since={since}"), timeout=30) as answer:
            page = json.load(answer)
        assert page["gap"] is None, "the log has pushed out what is to be judged"
        if not page["events"]:
            return found
        found += page["events"]
        since = page["next"]


def check_emitted(events: Iterable[dict[str, Any]]) -> int:
    """Check every message that was sent against the schema of its revision; returns how many.

    Legacy messages belong to a session, modern ones to the request that they answer. Raises `SchemaViolationError`.
    """
    judge = _Judge()
    for event in events:
        judge.take(event)
    return judge.checked


class _Judge:
    """Follows the log. `checked` counts the messages that were judged."""

    def __init__(self) -> None:
        self.checked = 0
        self._revisions: dict[str, str] = {}
        self._asked: dict[tuple[str | None, Any], tuple[str, bool]] = {}
        self._modern: dict[int, dict[str, Any]] = {}

    def take(self, event: dict[str, Any]) -> None:
        """Learn from one event, or judge it."""
        session: Any = event.get("session")
        match event["kind"]:
            case "session.opened":
                self._revisions[session] = event["revision"]
            case "message.received":
                message = event["message"]
                if _is_modern_request(message):
                    self._modern[event["exchange"]] = message
                self._asked.update({(session, id): what for id, what in _requests(message)})
            case "message.emitted" if (event["rpc"], event["id"]) == ("error", None):
                # the body of an HTTP error; before 2025-11-25 the schemas know no error without an id
                pass
            case "message.emitted" if session in self._revisions:
                self._legacy(session, event["message"])
            case "message.emitted" if event["exchange"] in self._modern:
                check_modern(event["message"], self._modern[event["exchange"]])
                self.checked += 1

    def _legacy(self, session: Any, message: dict[str, Any]) -> None:
        # `initialize` was received before there was a session
        method, task = self._asked.get((session, message.get("id")), ("initialize", False))
        official = schema(self._revisions[session])
        if "method" in message:
            official.check_message(message)
        else:
            official.check_message(message, method=method, task=task)
        self.checked += 1


def check_modern(message: dict[str, Any], request: dict[str, Any]) -> None:
    """Check one message on the response to a modern request: its schema, and that it belongs to this request."""
    if message.get("method") == "notifications/tasks":
        schema("ext-tasks").check(message, "TaskStatusNotification")
    else:
        schema(VERSION).check_message(message)
    if "method" in message:
        _check_note(message, request)
    else:
        assert _same(message["id"], request["id"]), "a response has the id of its request, type and value"
        if "result" in message:
            _check_result(message["result"], request)


def _check_note(message: dict[str, Any], request: dict[str, Any]) -> None:
    assert "id" not in message, "this server sends no requests in the modern era"
    params, said = message["params"], request["params"]["_meta"]
    if request["method"] == "subscriptions/listen":
        assert _same(params["_meta"][SUBSCRIPTION_ID], request["id"])
    elif message["method"] == "notifications/progress":
        assert _same(params["progressToken"], said["progressToken"])
    else:
        assert message["method"] == "notifications/message", f"{message['method']} on the stream of a response"
        assert PREFIX + "logLevel" in said, "a log message that nobody asked for"


def _check_result(result: dict[str, Any], request: dict[str, Any]) -> None:
    method, revision, extension = request["method"], schema(VERSION), schema("ext-tasks")
    match result["resultType"]:
        case "input_required":
            assert method in _INPUT_REQUIRED
            revision.check(result, "InputRequiredResult")
        case "task":
            declared = request["params"]["_meta"][PREFIX + "clientCapabilities"].get("extensions", {})
            assert (method, TASKS in declared) == ("tools/call", True)
            extension.check(result, "CreateTaskResult")
        case other:
            assert other == "complete"
            if method in _OF_EXTENSION:
                extension.check(result, _OF_EXTENSION[method])
            else:
                defining = revision.defining(method)
                defining.check(result, defining.result_of(method))


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _is_modern_request(received: Any) -> bool:
    if not isinstance(received, dict) or not {"id", "method"} <= received.keys():
        return False
    params = received.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and meta.get(PREFIX + "protocolVersion") == VERSION


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
    with urlopen(url.replace("/mcp", "/api/calls?limit=500"), timeout=30) as answer:
        return list(json.load(answer)["calls"])

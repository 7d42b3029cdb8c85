"""Valid messages of both eras, to begin with: each method, each way to call a tool, answers and batches."""

from __future__ import annotations

from typing import Any

from ..support.legacy import ALL_CAPABILITIES
from ..support.modern import PREFIX, TASKS, VERSION, WITH_TASKS

# Ids of an engine under test count, so these are likely to be those of tasks, and of the questions of tools.
LIKELY_IDS = [f"id-{number:04}-0123456789abcdef" for number in range(2, 8)]
ABOUT = {"name": "fuzz", "version": "1", "title": "Fuzz"}


def request(method: str, params: Any = None, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}


def note(method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def initialize(revision: str = "2025-11-25", **more: Any) -> dict[str, Any]:
    """The handshake."""
    return request(
        "initialize", {"protocolVersion": revision, "capabilities": {**ALL_CAPABILITIES, **more}, "clientInfo": ABOUT}
    )


CALLS: list[dict[str, Any]] = [
    {"name": "simple_tool", "arguments": {"delayMs": 5}},
    {"name": "progress", "arguments": {"steps": 3, "step_ms": 5}, "_meta": {"progressToken": "t"}},
    {"name": "sync_with_progress", "arguments": {"itemCount": 2, "delayPerItemMs": 10, "mode": "determinate"}},
    {"name": "long_output", "arguments": {"blocks": 2, "chars": 40}},
    {"name": "chatty"},
    {"name": "elicit_form", "arguments": {}},
    {"name": "elicit_url", "arguments": {}},
    {"name": "sampling_demo", "arguments": {"theme": "nature", "style": "haiku", "maxTokens": 16}},
    {"name": "log_levels", "arguments": {}},
    {"name": "silent_call", "arguments": {}},
]
TASK_CALLS: list[dict[str, Any]] = [
    {"name": "pure_task", "arguments": {"durationMs": 1000}, "task": {"ttl": 5000}},
    {"name": "task_with_progress", "arguments": {"itemCount": 2, "delayPerItemMs": 10}, "task": {}},
    {"name": "pausable_task", "arguments": {"itemCount": 2, "pauseAfterItem": 1}, "task": {"ttl": 60_000}},
    {"name": "failing_task", "arguments": {"failAfterMs": 1000, "errorCode": "timeout"}, "task": {}},
]
COMPLETION = {"ref": {"type": "ref/prompt", "name": "recipe"}, "argument": {"name": "dish", "value": "s"}}
COMMON: list[dict[str, Any]] = [
    *(request("tools/call", params) for params in CALLS),
    request("tools/list", {"cursor": "x"}),
    request("tools/list"),
    request("resources/list"),
    request("resources/templates/list"),
    request("resources/read", {"uri": "probe://text"}),
    request("prompts/list"),
    request("prompts/get", {"name": "recipe", "arguments": {"dish": "soup"}}),
    request("completion/complete", COMPLETION),
    *(request("tasks/get", {"taskId": id}) for id in LIKELY_IDS[:3]),
    request("tasks/cancel", {"taskId": LIKELY_IDS[0]}),
    note("notifications/cancelled", {"requestId": 1, "reason": "enough"}),
]
LEGACY: list[Any] = [
    *COMMON,
    initialize(),
    request("ping"),
    request("logging/setLevel", {"level": "debug"}),
    request("resources/subscribe", {"uri": "probe://clock"}),
    request("resources/unsubscribe", {"uri": "probe://clock"}),
    *(request("tools/call", params) for params in TASK_CALLS),
    *(request("tasks/result", {"taskId": id}) for id in LIKELY_IDS[:3]),
    request("tasks/list"),
    request("stream/resume", {"streamId": LIKELY_IDS[0]}),
    request("stream/poll", {"streamId": LIKELY_IDS[0], "secret": LIKELY_IDS[1]}),
    request("stream/poll/all"),
    note("notifications/initialized"),
    note("notifications/progress", {"progressToken": "t", "progress": 1}),
    note("notifications/roots/list_changed"),
    {"jsonrpc": "2.0", "id": 0, "result": {"action": "accept", "content": {"continue": True}}},
    {"jsonrpc": "2.0", "id": LIKELY_IDS[0], "error": {"code": -1, "message": "no"}},
]
BATCHES: list[Any] = [
    [request("ping", id=1), request("tools/list", id=2)],
    [request("tools/call", CALLS[1], id=3), note("notifications/cancelled", {"requestId": 3}), request("ping", id="x")],
    [request("tools/call", CALLS[0], id=n) for n in range(5)],
    [note("notifications/initialized")],
    [request("ping"), request("ping")],
    [],
]


def said(message: dict[str, Any]) -> dict[str, Any]:
    """A message of the modern era, which says everything about itself."""
    meta = {
        PREFIX + "protocolVersion": VERSION,
        PREFIX + "clientInfo": ABOUT,
        PREFIX + "clientCapabilities": WITH_TASKS,
        "progressToken": "t",
    }
    params = message.get("params") or {}
    return {**message, "params": {**params, "_meta": {**params.get("_meta", {}), **meta}}}


MODERN: list[Any] = [
    *(said(message) for message in COMMON),
    said(request("server/discover")),
    *(said(request("tools/call", {key: params[key] for key in ("name", "arguments")})) for params in TASK_CALLS),
    said(request("tools/call", {"name": "routed_tool", "arguments": {"region": "eu", "priority": 7}})),
    said(request("tasks/update", {"taskId": LIKELY_IDS[0], "inputResponses": {"continue": {"action": "accept"}}})),
    said(request("tools/call", {**CALLS[5], "inputResponses": {"form": {"action": "accept"}}, "requestState": "AAAA"})),
    said(request("subscriptions/listen", {"notifications": {"toolsListChanged": True, "taskIds": LIKELY_IDS[:2]}})),
    said(request("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["probe://clock"]}})),
]
assert TASKS.startswith(PREFIX)

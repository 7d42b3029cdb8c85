"""Results as 2026-07-28 and the tasks extension spell them, made from the 2025-11-25 shape that handlers speak."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..errors import Code
from ..jsonrpc import Json
from .meta import SERVER_INFO

LIST_TTL_MS: Final = 60_000
"""Lists and discovery stay the same until a restart; an old one is used for a minute at most."""

CHANGING_TTL_MS: Final = 0
"""Some resources change at any moment, and so do the tools of tool hosts: none may be taken from a cache."""

# Lists are the same for every client of one URL. A resource is stale at once, so sharing it would gain nothing.
_LISTED: Json = {"ttlMs": LIST_TTL_MS, "cacheScope": "public"}
_CACHE: Mapping[str, Json] = {
    "server/discover": _LISTED,
    "tools/list": _LISTED,
    "resources/list": _LISTED,
    "resources/templates/list": _LISTED,
    "prompts/list": _LISTED,
    "resources/read": {"ttlMs": CHANGING_TTL_MS, "cacheScope": "private"},
    "skills/list": _LISTED,
    "skills/get": _LISTED,
    # The text has these hints for the other two methods alone; the TypeScript SDK 2.4.0 refuses a result without them.
    "resources/directory/read": _LISTED,
}


_CODES: Mapping[int, Code] = {Code.BUSY: Code.OVERLOADED, Code.RESOURCE_NOT_FOUND: Code.INVALID_PARAMS}
"""Codes of earlier revisions that 2026-07-28 basic/index does not want to see again."""


def modern_error(error: Json) -> Json:
    """A JSON-RPC error with the codes of this era."""
    return {**error, "code": int(_CODES.get(error["code"], error["code"]))}


def _tools(result: Mapping[str, Any]) -> Json:
    tools = [{key: value for key, value in tool.items() if key != "execution"} for tool in result["tools"]]
    return {**result, "tools": tools}


def _discover(result: Mapping[str, Any]) -> Json:
    declared = {key: value for key, value in result["capabilities"].items() if key != "tasks"}
    return {**result, "capabilities": declared}


_SHAPES: Mapping[str, Callable[[Mapping[str, Any]], Json]] = {"tools/list": _tools, "server/discover": _discover}
"""Members that 2026-07-28 has no longer: tasks have left the core, and the server decides about them."""


def _signed(result: Mapping[str, Any], kind: str, server_info: Json) -> Json:
    """2026-07-28 basic/index: servers "SHOULD include" serverInfo "in every result's `_meta`"."""
    meta = {**result.get("_meta", {}), SERVER_INFO: server_info}
    return {**result, "resultType": kind, "_meta": meta}


def complete(method: str, result: Mapping[str, Any], *, server_info: Json, lasting: bool = True) -> Json:
    """The final result of `method`; `result` has the shape of 2025-11-25, or of `detailed_task`, and is not changed.

    A list that is not `lasting` may change at any moment. A hint in `result` stays.
    """
    shaped = _SHAPES[method](result) if method in _SHAPES else result
    cached = _CACHE.get(method, {})
    hints = cached if lasting else {**cached, "ttlMs": CHANGING_TTL_MS}
    return _signed({**hints, **shaped}, "complete", server_info)


def input_required(requests: Mapping[str, Json], state: str | None, *, server_info: Json) -> Json:
    """An `InputRequiredResult`: the requests by key, each a `method` and its `params`, and the sealed state if any.

    Raises `ValueError` without either: "Servers MUST include at least one of `inputRequests` or `requestState`".
    """
    if not requests and state is None:
        raise ValueError("input is required, but neither a request nor a state is given")
    members: Json = {"inputRequests": dict(requests)} if requests else {}
    return _signed(members if state is None else {**members, "requestState": state}, "input_required", server_info)


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """The times of a task as they are sent: ISO 8601 and milliseconds; `ttl_ms` None is without limit."""

    created_at: str
    updated_at: str
    ttl_ms: int | None
    poll_ms: int


def describe_task(id: str, status: str, message: str | None, times: TaskTimes) -> Json:
    """The flat `Task` of the extension."""
    shown = {} if message is None else {"statusMessage": message}
    return {
        "taskId": id,
        "status": status,
        **shown,
        "createdAt": times.created_at,
        "lastUpdatedAt": times.updated_at,
        "ttlMs": times.ttl_ms,
        "pollIntervalMs": times.poll_ms,
    }


def create_task(task: Json, *, server_info: Json) -> Json:
    """A `CreateTaskResult`, from `describe_task`: the result of a call with a task."""
    return _signed(task, "task", server_info)


# The further member of a task by its status; working and cancelled tasks have none.
_DETAIL: Mapping[str, str] = {"input_required": "inputRequests", "completed": "result", "failed": "error"}


def detailed_task(task: Json, detail: Json | None) -> Json:
    """A `DetailedTask`: the params of `notifications/tasks`, and for `tasks/get` what `complete` is given.

    `detail` belongs to the status of the task: all outstanding requests by key, the result of the call in its
    2025-11-25 shape, or the JSON-RPC error. Raises `ValueError` where a status lacks its detail or has none.
    """
    member = _DETAIL.get(task["status"])
    if member is None and detail is None:
        return task
    if member is None or detail is None:
        raise ValueError(f"a task that is {task['status']} has {'no' if member is None else 'a'} detail")
    # "the `result` field MUST contain that result", and no result of this revision is without its type.
    return {**task, member: {**detail, "resultType": "complete"} if member == "result" else detail}

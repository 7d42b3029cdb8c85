"""Which methods a legacy revision has, and what their parameters look like.

A method that is absent here, or newer than the session's revision, does not exist there: -32601 is the whole story.
The parameter models are the official ones of `mcp-types`; they are read strictly, so "5" is not an integer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from pydantic import BaseModel, ValidationError

from ..errors import Code, McpError
from ..jsonrpc import clip
from ..revisions import V2025_03_26, V2025_06_18, V2025_11_25


@dataclass(frozen=True, slots=True)
class Row:
    """One method: the first revision that has it and the model of its parameters."""

    since: str
    params: type[BaseModel]


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One method of the client: the first revision that has it, the capability it needs, and its result."""

    since: str
    capability: str | None
    result: type[BaseModel]


REQUESTS: Mapping[str, Row] = {
    "initialize": Row(V2025_03_26, types.InitializeRequestParams),
    "ping": Row(V2025_03_26, types.RequestParams),
    "tools/list": Row(V2025_03_26, types.PaginatedRequestParams),
    "tools/call": Row(V2025_03_26, types.CallToolRequestParams),
    "resources/list": Row(V2025_03_26, types.PaginatedRequestParams),
    "resources/templates/list": Row(V2025_03_26, types.PaginatedRequestParams),
    "resources/read": Row(V2025_03_26, types.ReadResourceRequestParams),
    "resources/subscribe": Row(V2025_03_26, types.SubscribeRequestParams),
    "resources/unsubscribe": Row(V2025_03_26, types.UnsubscribeRequestParams),
    "prompts/list": Row(V2025_03_26, types.PaginatedRequestParams),
    "prompts/get": Row(V2025_03_26, types.GetPromptRequestParams),
    "completion/complete": Row(V2025_03_26, types.CompleteRequestParams),
    "logging/setLevel": Row(V2025_03_26, types.SetLevelRequestParams),
    "tasks/get": Row(V2025_11_25, types.GetTaskRequestParams),
    "tasks/result": Row(V2025_11_25, types.GetTaskPayloadRequestParams),
    "tasks/list": Row(V2025_11_25, types.PaginatedRequestParams),
    "tasks/cancel": Row(V2025_11_25, types.CancelTaskRequestParams),
}
"""Client to server."""

SERVER_REQUESTS: Mapping[str, ServerRow] = {
    "ping": ServerRow(V2025_03_26, None, types.EmptyResult),
    "roots/list": ServerRow(V2025_03_26, "roots", types.ListRootsResult),
    "sampling/createMessage": ServerRow(V2025_03_26, "sampling", types.CreateMessageResultWithTools),
    "elicitation/create": ServerRow(V2025_06_18, "elicitation", types.ElicitResult),
}
"""Server to client."""


def request_params(method: str, revision: str, params: Mapping[str, Any] | None) -> BaseModel:
    """The parameters of a client's request.

    Raises `McpError`: -32601 where the revision has no such method, -32602 where the parameters do not fit, naming the
    first member at fault.
    """
    row = REQUESTS.get(method)
    if row is None or row.since > revision:
        raise McpError(Code.METHOD_NOT_FOUND, f"Method not found: revision {revision} has no {clip(method)}")
    given = dict(params or {})
    if revision < V2025_11_25:
        # 2025-11-25 basic/utilities/tasks: without the capability, "ignoring any task-augmentation metadata".
        given.pop("task", None)
    try:
        return row.params.model_validate(given, strict=True)
    except ValidationError as error:
        raise McpError(Code.INVALID_PARAMS, f"Invalid params: {first_fault(error)}") from None


def task_wish(params: types.CallToolRequestParams, revision: str) -> types.TaskMetadata | None:
    """The `task` member that asks for a task; None without it, or in a revision that has no tasks and ignores it.

    Raises `McpError` -32602 for a member of the wrong shape.
    """
    if revision < V2025_11_25 or "task" not in params.model_fields_set:
        return None
    if params.task is None:
        raise McpError(Code.INVALID_PARAMS, "Invalid params: params.task must be an object, got null")
    if params.task.ttl is not None and params.task.ttl < 0:
        raise McpError(Code.INVALID_PARAMS, "Invalid params: params.task.ttl must be at least 0")
    return params.task


def offers(capabilities: Mapping[str, Any], revision: str, capability: str) -> bool:
    """Whether a client can be asked for what a capability stands for.

    2025-11-25 client/elicitation: an empty object means form mode; a client may offer URL mode alone.
    """
    declared = capabilities.get(capability)
    known = any(row.capability == capability and row.since <= revision for row in SERVER_REQUESTS.values())
    if not known or not isinstance(declared, Mapping):
        return False
    return capability != "elicitation" or "form" in declared or "url" not in declared


def client_result(method: str, result: Mapping[str, Any]) -> str | None:
    """What is wrong with the client's result of a server's request; None when nothing is."""
    try:
        SERVER_REQUESTS[method].result.model_validate(result, strict=True)
    except ValidationError as error:
        return first_fault(error).replace("params", "result", 1)
    return None


def first_fault(error: ValidationError) -> str:
    """One readable sentence about the first member at fault."""
    fault = error.errors(include_url=False, include_context=False)[0]
    # Union branches and model names stand between the members; only lower-case names and indexes are wire spelling.
    path = ".".join(
        str(part) for part in fault["loc"] if isinstance(part, int) or part[:1].islower() or part[:1] == "_"
    )
    where = f"params.{path}" if path else "params"
    return f"{where}: {fault['msg']}" if fault["type"] != "missing" else f"{where} is required"

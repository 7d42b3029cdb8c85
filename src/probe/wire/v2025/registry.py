"""The methods of each legacy revision, the models of their parameters, and the members of results by revision.

A method that is absent here, or newer than the session's revision, does not exist there: -32601. Parameters are read
strictly, so "5" is not an integer. Handlers use the newest legacy shape, 2025-11-25; `shape_result` takes out members
that the session's revision does not define.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .. import client_messages as messages
from ..errors import Code, McpError
from ..jsonrpc import clip
from ..revisions import V2025_03_26, V2025_06_18, V2025_11_25


@dataclass(frozen=True, slots=True)
class LegacyMethod:
    """One method: the first revision that has it and the model of its parameters."""

    since: str
    params: type[BaseModel]


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One method of the client: the first revision that has it, the capability it needs, and its result."""

    since: str
    capability: str | None
    result: type[BaseModel]


REQUESTS: Mapping[str, LegacyMethod] = {
    "initialize": LegacyMethod(V2025_03_26, messages.InitializeRequestParams),
    "ping": LegacyMethod(V2025_03_26, messages.RequestParams),
    "tools/list": LegacyMethod(V2025_03_26, messages.PaginatedRequestParams),
    "tools/call": LegacyMethod(V2025_03_26, messages.CallToolRequestParams),
    "resources/list": LegacyMethod(V2025_03_26, messages.PaginatedRequestParams),
    "resources/templates/list": LegacyMethod(V2025_03_26, messages.PaginatedRequestParams),
    "resources/read": LegacyMethod(V2025_03_26, messages.ReadResourceRequestParams),
    "resources/subscribe": LegacyMethod(V2025_03_26, messages.SubscribeRequestParams),
    "resources/unsubscribe": LegacyMethod(V2025_03_26, messages.UnsubscribeRequestParams),
    "prompts/list": LegacyMethod(V2025_03_26, messages.PaginatedRequestParams),
    "prompts/get": LegacyMethod(V2025_03_26, messages.GetPromptRequestParams),
    "completion/complete": LegacyMethod(V2025_03_26, messages.CompleteRequestParams),
    "logging/setLevel": LegacyMethod(V2025_03_26, messages.SetLevelRequestParams),
    "tasks/get": LegacyMethod(V2025_11_25, messages.GetTaskRequestParams),
    "tasks/result": LegacyMethod(V2025_11_25, messages.GetTaskPayloadRequestParams),
    "tasks/list": LegacyMethod(V2025_11_25, messages.PaginatedRequestParams),
    "tasks/cancel": LegacyMethod(V2025_11_25, messages.CancelTaskRequestParams),
}
"""Client to server."""

SERVER_REQUESTS: Mapping[str, ServerRow] = {
    "ping": ServerRow(V2025_03_26, None, messages.EmptyResult),
    "roots/list": ServerRow(V2025_03_26, "roots", messages.ListRootsResult),
    "sampling/createMessage": ServerRow(V2025_03_26, "sampling", messages.CreateMessageResult),
    "elicitation/create": ServerRow(V2025_06_18, "elicitation", messages.ElicitResult),
}
"""Server to client."""


# A member that a revision does not define is ignored there. 2025-11-25 basic/utilities/tasks: so is `task`.
_MEMBERS_SINCE: Mapping[str, str] = {
    "task": V2025_11_25,
    "context": V2025_06_18,
}


def request_params(method: str, revision: str, params: Mapping[str, Any] | None) -> BaseModel:
    """The parameters of a client's request.

    Raises `McpError`: -32601 where the revision has no such method, -32602 where the parameters do not fit, naming the
    first member at fault.
    """
    row = REQUESTS.get(method)
    if row is None or row.since > revision:
        raise McpError(Code.METHOD_NOT_FOUND, f"Method not found: revision {revision} has no {clip(method)}")
    given = {name: value for name, value in (params or {}).items() if _MEMBERS_SINCE.get(name, "") <= revision}
    try:
        # `model_validate` calls this, after work on its arguments for each message.
        read: BaseModel = row.params.__pydantic_validator__.validate_python(
            given, strict=True, by_alias=True, by_name=False
        )
    except ValidationError as error:
        raise McpError(Code.INVALID_PARAMS, f"Invalid params: {first_fault(error)}") from None
    return read


def task_request(params: messages.CallToolRequestParams, revision: str) -> messages.TaskMetadata | None:
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
    """True if a client can be asked for what a capability stands for; `elicitation.url` is a mode.

    2025-11-25 client/elicitation: an empty object means form mode; a client may offer URL mode alone.
    """
    name, _, mode = capability.partition(".")
    declared = capabilities.get(name)
    known = any(row.capability == name and row.since <= revision for row in SERVER_REQUESTS.values())
    if not known or not isinstance(declared, Mapping):
        return False
    if mode:
        return mode in declared and revision >= V2025_11_25
    return name != "elicitation" or "form" in declared or "url" not in declared


def asked_capabilities(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a client's capabilities that `offers` reads: `offers` gives the same answer for it."""
    asked = {row.capability: capabilities.get(row.capability) for row in SERVER_REQUESTS.values() if row.capability}
    return {
        name: {mode: {} for mode in ("form", "url") if mode in declared}
        for name, declared in asked.items()
        if isinstance(declared, Mapping)
    }


def client_result(method: str, result: Mapping[str, Any]) -> str | None:
    """The fault of the client's result of a server's request; None when it has none."""
    try:
        SERVER_REQUESTS[method].result.model_validate(result, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        return first_fault(error).replace("params", "result", 1)
    return None


# The validator's words for a type, in those of JSON.
_KINDS: Mapping[str, str] = {
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "an array",
    "string_type": "a string",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "a boolean",
}

# A client can send a million faults at once, which take seconds to list. One mistake makes at most a dozen, one for
# each branch of a union.
_MOST_FAULTS = 50


def first_fault(error: ValidationError) -> str:
    """One readable sentence about one member at fault; of a union, what any of its branches takes."""
    if error.error_count() > _MOST_FAULTS:
        return f"params: {error.error_count()} members have the wrong type"
    faults = _deepest(error.errors(include_url=False))
    where = _path(faults[0])
    first, *others = (fault for fault in faults if _path(fault) == where)
    if first["type"] == "missing":
        return f"{where} is required"
    wanted = dict.fromkeys(_wanted(fault) for fault in (first, *others))
    known = [kind for kind in wanted if kind is not None]
    return f"{where} must be {' or '.join(known)}" if known else f"{where}: {first['msg']}"


def _deepest(faults: list[ErrorDetails]) -> list[ErrorDetails]:
    """The deepest faults come from the branch of a union that was meant; not those of another `type`."""
    deepest = max(_path(fault).count(".") for fault in faults)
    deep = [fault for fault in faults if _path(fault).count(".") == deepest]
    other = [fault["loc"][:-1] for fault in deep if fault["type"] == "literal_error"]
    return [fault for fault in deep if all(fault["loc"][: len(at)] != at for at in other)] or deep


def _path(fault: ErrorDetails) -> str:
    return ".".join(["params", *(clip(str(part)) for part in fault["loc"] if not _is_branch(part))])


def _is_branch(part: int | str) -> bool:
    """True if a part of a path is no member, but the validator's name for a branch of a union."""
    if isinstance(part, int):
        return False
    return "[" in part or part in ("str", "int", "float", "bool") or part in messages.BRANCHES


def _wanted(fault: ErrorDetails) -> str | None:
    if fault["type"] == "literal_error":
        return str(fault["ctx"]["expected"])
    return _KINDS.get(fault["type"])


_NAMED = {"title": V2025_06_18, "_meta": V2025_06_18, "icons": V2025_11_25}
_TOOL = {**_NAMED, "outputSchema": V2025_06_18, "execution": V2025_11_25}
_IMPLEMENTATION = {
    "title": V2025_06_18,
    "icons": V2025_11_25,
    "description": V2025_11_25,
    "websiteUrl": V2025_11_25,
}


def _without(item: Mapping[str, Any], since: Mapping[str, str], revision: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if since.get(key, "") <= revision}


def _each(member: str, since: Mapping[str, str]) -> Callable[[Mapping[str, Any], str], dict[str, Any]]:
    def shape(result: Mapping[str, Any], revision: str) -> dict[str, Any]:
        return {**result, member: [_without(item, since, revision) for item in result[member]]}

    return shape


def _prompts(result: Mapping[str, Any], revision: str) -> dict[str, Any]:
    shaped = _each("prompts", _NAMED)(result, revision)
    for prompt in shaped["prompts"]:
        if "arguments" in prompt:
            prompt["arguments"] = [_without(argument, _NAMED, revision) for argument in prompt["arguments"]]
    return shaped


def _initialize(result: Mapping[str, Any], revision: str) -> dict[str, Any]:
    return {
        **result,
        "serverInfo": _without(result["serverInfo"], _IMPLEMENTATION, revision),
    }


def _call(result: Mapping[str, Any], revision: str) -> dict[str, Any]:
    return _without(result, {"structuredContent": V2025_06_18}, revision)


_SHAPES: Mapping[str, Callable[[Mapping[str, Any], str], dict[str, Any]]] = {
    "initialize": _initialize,
    "tools/list": _each("tools", _TOOL),
    "tools/call": _call,
    "resources/list": _each("resources", _NAMED),
    "resources/templates/list": _each("resourceTemplates", _NAMED),
    "prompts/list": _prompts,
}


def shape_result(method: str, revision: str, result: dict[str, Any]) -> dict[str, Any]:
    """The result of `method` as `revision` defines it; `result` has the shape of 2025-11-25 and is not changed."""
    if revision == V2025_11_25 or method not in _SHAPES:
        return result
    return _SHAPES[method](result, revision)

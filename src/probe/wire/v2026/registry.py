"""The methods of 2026-07-28, with the extensions for tasks and skills, and the models of their parameters.

A method that is absent here does not exist (-32601), such as initialize, ping and tasks/result. Parameters are read
strictly, but for the answers of a retry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from .. import client_messages as messages
from ..errors import Code, McpError
from ..jsonrpc import clip
from ..revisions import V2026_07_28
from ..v2025.registry import first_fault

# 2026-07-28 basic/patterns/mrtr: "the server SHOULD ignore any information it does not recognize or need".
# `client_answer` checks each answer once its question is known.
_Answers: TypeAlias = dict[str, Any]


class OfRound(messages.Shape):
    """The members of a request in a further round."""

    input_responses: _Answers | None = None
    request_state: str | None = None


class CallToolParams(messages.CallToolRequestParams, OfRound):
    """`tools/call`."""


class GetPromptParams(messages.GetPromptRequestParams, OfRound):
    """`prompts/get`."""


class ReadResourceParams(messages.ReadResourceRequestParams, OfRound):
    """`resources/read`."""


class ListenFilter(messages.Shape):
    """The filter of `subscriptions/listen`; the tasks extension adds `taskIds`, and others may add more."""

    model_config = ConfigDict(extra="allow")

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None
    task_ids: list[str] | None = None


class ListenParams(messages.RequestParams):
    """`subscriptions/listen`."""

    notifications: ListenFilter


class TaskParams(messages.RequestParams):
    """`tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """`tasks/update`. `client_answer` checks the answers."""

    input_responses: _Answers


class GetSkillParams(messages.RequestParams):
    """`skills/get`; `uri` names the skill's `SKILL.md`."""

    uri: str


class ReadDirectoryParams(messages.PaginatedRequestParams):
    """`resources/directory/read`."""

    uri: str


@dataclass(frozen=True, slots=True)
class ModernMethod:
    """One method.

    `name_member` is the member of params that Mcp-Name repeats. `extension`: only for clients with the tasks extension.
    `input_responses`: a retry may carry answers, and the result may ask for input ("Servers MUST NOT send
    InputRequiredResult responses on any other").
    """

    params: type[BaseModel]
    name_member: Literal["name", "uri", "taskId"] | None = None
    extension: bool = False
    input_responses: bool = False


REQUESTS: Mapping[str, ModernMethod] = {
    "server/discover": ModernMethod(messages.RequestParams),
    "subscriptions/listen": ModernMethod(ListenParams),
    "tools/list": ModernMethod(messages.PaginatedRequestParams),
    "tools/call": ModernMethod(CallToolParams, "name", input_responses=True),
    "resources/list": ModernMethod(messages.PaginatedRequestParams),
    "resources/templates/list": ModernMethod(messages.PaginatedRequestParams),
    "resources/read": ModernMethod(ReadResourceParams, "uri", input_responses=True),
    "prompts/list": ModernMethod(messages.PaginatedRequestParams),
    "prompts/get": ModernMethod(GetPromptParams, "name", input_responses=True),
    "completion/complete": ModernMethod(messages.CompleteRequestParams),
    "tasks/get": ModernMethod(TaskParams, "taskId", extension=True),
    "tasks/update": ModernMethod(UpdateTaskParams, "taskId", extension=True),
    "tasks/cancel": ModernMethod(TaskParams, "taskId", extension=True),
    "skills/list": ModernMethod(messages.PaginatedRequestParams),
    "skills/get": ModernMethod(GetSkillParams),
    "resources/directory/read": ModernMethod(ReadDirectoryParams),
}
"""Client to server."""

_ANSWERS: Mapping[str, type[BaseModel]] = {
    "elicitation/create": messages.ElicitResult,
    "sampling/createMessage": messages.CreateMessageResult,
    "roots/list": messages.ListRootsResult,
}


def find_row(method: str) -> ModernMethod:
    """The row of a method. Raises `McpError` -32601."""
    row = REQUESTS.get(method)
    if row is None:
        raise McpError(Code.METHOD_NOT_FOUND, f"Method not found: revision {V2026_07_28} has no {clip(method)}")
    return row


def request_params(method: str, params: Mapping[str, Any] | None) -> BaseModel:
    """The parameters of a client's request, without `_meta`, which `read_meta` reads.

    Raises `McpError`: -32601 where there is no such method, -32602 where the parameters do not fit, in one sentence.
    """
    model = find_row(method).params
    # The `task` of 2025-11-25 is no parameter any more: ignored like any unknown member, whatever its shape.
    given = {key: value for key, value in (params or {}).items() if key not in ("_meta", "task")}
    nulls = sorted(_nulls(given, model))
    if nulls:
        raise McpError(Code.INVALID_PARAMS, f"Invalid params: {nulls[0]} must not be null; leave it out")
    try:
        return model.model_validate(given, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        raise McpError(Code.INVALID_PARAMS, f"Invalid params: {first_fault(error)}") from None


def _nulls(params: Mapping[str, Any], model: type[BaseModel], where: str = "params") -> Iterator[str]:
    """Members of the model that are null: not allowed in this revision, but the models take them for absence."""
    members = _members(model)
    for member, value in params.items():
        if value is None and member in members:
            yield f"{where}.{member}"
        elif isinstance(value, dict) and (inner := members.get(member)) is not None:
            yield from _nulls(value, inner, f"{where}.{member}")


@cache
def _members(model: type[BaseModel]) -> Mapping[str, type[BaseModel] | None]:
    return {spec.alias or name: _model(spec.annotation) for name, spec in model.model_fields.items()}


def _model(annotation: Any) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def client_answer(method: str, result: Any) -> str | None:
    """The fault of an input response, given the method of the request it answers; None when it has none."""
    try:
        _ANSWERS[method].model_validate(result, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        return first_fault(error).replace("params", "result", 1)
    return None


def offers(capabilities: Mapping[str, Any], method: str, mode: str = "form") -> bool:
    """True if the client may be sent an input request of this method; only elicitation has modes.

    2026-07-28 client/elicitation: "an empty capabilities object is equivalent to declaring support for form mode only".
    """
    declared = capabilities.get(method.partition("/")[0])
    if method not in _ANSWERS or not isinstance(declared, Mapping):
        return False
    return method != "elicitation/create" or mode in declared or (mode == "form" and "url" not in declared)

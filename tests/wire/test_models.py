"""The models of parameters and of clients' results are those of the official package, member by member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
import pytest
from pydantic import BaseModel

from probe.wire import client_messages as messages
from probe.wire.v2025.registry import REQUESTS as LEGACY
from probe.wire.v2025.registry import SERVER_REQUESTS
from probe.wire.v2026 import registry
from probe.wire.v2026.registry import REQUESTS as MODERN

_NOT_IN_LEGACY = ("inputResponses", "requestState")

SAME: list[tuple[type[BaseModel], type[BaseModel], tuple[str, ...]]] = [
    (messages.InitializeRequestParams, types.InitializeRequestParams, ()),
    (messages.RequestParams, types.RequestParams, ()),
    (messages.PaginatedRequestParams, types.PaginatedRequestParams, ()),
    (messages.CallToolRequestParams, types.CallToolRequestParams, _NOT_IN_LEGACY),
    (messages.ReadResourceRequestParams, types.ReadResourceRequestParams, _NOT_IN_LEGACY),
    (messages.SubscribeRequestParams, types.SubscribeRequestParams, ()),
    (messages.UnsubscribeRequestParams, types.UnsubscribeRequestParams, ()),
    (messages.GetPromptRequestParams, types.GetPromptRequestParams, _NOT_IN_LEGACY),
    (messages.CompleteRequestParams, types.CompleteRequestParams, ()),
    (messages.SetLevelRequestParams, types.SetLevelRequestParams, ()),
    (messages.GetTaskRequestParams, types.GetTaskRequestParams, ()),
    (messages.GetTaskPayloadRequestParams, types.GetTaskPayloadRequestParams, ()),
    (messages.CancelTaskRequestParams, types.CancelTaskRequestParams, ()),
    # any answer will do here, and each is judged once it is known what it answers
    (registry.CallToolParams, types.CallToolRequestParams, ("inputResponses",)),
    (registry.ReadResourceParams, types.ReadResourceRequestParams, ("inputResponses",)),
    (registry.GetPromptParams, types.GetPromptRequestParams, ("inputResponses",)),
    (registry.ListenFilter, types.SubscriptionFilter, ("taskIds",)),
    # `resultType` is a member of 2026-07-28, which has no ping
    (messages.EmptyResult, types.EmptyResult, ("resultType",)),
    (messages.ListRootsResult, types.ListRootsResult, ()),
    (messages.CreateMessageResult, types.CreateMessageResultWithTools, ()),
    (messages.ElicitResult, types.ElicitResult, ()),
]
"""Ours, the official one, and the members that only one of them has, for the reason beside it."""

# The extensions are in no official model.
_EXTENSION = {
    registry.ListenParams,
    registry.TaskParams,
    registry.UpdateTaskParams,
    registry.GetSkillParams,
    registry.ReadDirectoryParams,
}


def shape(model: type[BaseModel]) -> Any:
    """The JSON schema of what a model takes, without names, and without what is there when nothing is given."""
    schema = model.model_json_schema(mode="validation")
    return _plain(schema, schema.get("$defs", {}))


def _plain(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_plain(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    members = {name: _plain(member, definitions) for name, member in schema.get("properties", {}).items()}
    named = ("$defs", "title", "description", "default", "properties")
    rest = {key: _plain(value, definitions) for key, value in schema.items() if key not in named}
    if rest.get("additionalProperties") is True:
        # a schema that says nothing allows them as well
        del rest["additionalProperties"]
    if {"type": "string"} in (either := rest.get("anyOf", [])):
        # some strings beside any string say nothing
        rest["anyOf"] = [part for part in either if "enum" not in part]
    return {**rest, "properties": members} if members else rest


@pytest.mark.parametrize(("ours", "official", "apart"), SAME, ids=lambda value: getattr(value, "__name__", ""))
def test_a_model_takes_what_the_official_one_takes(
    ours: type[BaseModel], official: type[BaseModel], apart: tuple[str, ...]
) -> None:
    shapes = [shape(ours), shape(official)]
    for each in shapes:
        for member in apart:
            each["properties"].pop(member, None)
    assert shapes[0] == shapes[1]


def test_no_official_model_has_validators_or_serializers_which_no_schema_would_show() -> None:
    own = [(official.__name__, official.__pydantic_decorators__) for _, official, _ in SAME]
    assert [(name, kind) for name, kinds in own for kind in kinds.__slots__ if getattr(kinds, kind)] == []


def test_every_model_that_is_read_is_compared() -> None:
    read = {row.params for row in LEGACY.values()} | {row.params for row in MODERN.values()}
    read |= {row.result for row in SERVER_REQUESTS.values()}
    assert read - _EXTENSION == {ours for ours, _, _ in SAME} - {registry.ListenFilter}

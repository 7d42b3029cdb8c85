"""What older revisions are not told: the codec's tables against the properties of the official schemas."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from probe.wire.revisions import LEGACY
from probe.wire.v2025.registry import shape_result

from ..support.schemas import schema

NEWEST = LEGACY[-1]
TEXT = {"type": "text", "text": "t"}
ICON = {"src": "https://example.com/i.png"}

# One result per method, with every member that the newest revision defines for the items in it.
FULL: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"logging": {}, "tools": {}},
        "serverInfo": {
            "name": "n",
            "title": "t",
            "version": "v",
            "description": "d",
            "websiteUrl": "https://example.com",
            "icons": [ICON],
        },
        "instructions": "i",
    },
    "tools/list": {
        "tools": [
            {
                "name": "n",
                "title": "t",
                "description": "d",
                "inputSchema": {"type": "object"},
                "outputSchema": {"type": "object"},
                "annotations": {"title": "t", "readOnlyHint": True},
                "execution": {"taskSupport": "optional"},
                "icons": [ICON],
                "_meta": {},
            }
        ],
        "nextCursor": "c",
    },
    "tools/call": {"content": [TEXT], "structuredContent": {"a": 1}, "isError": False, "_meta": {}},
    "resources/list": {
        "resources": [
            {
                "uri": "u:1",
                "name": "n",
                "title": "t",
                "description": "d",
                "mimeType": "m",
                "size": 1,
                "annotations": {},
                "icons": [ICON],
                "_meta": {},
            }
        ]
    },
    "resources/templates/list": {
        "resourceTemplates": [
            {
                "uriTemplate": "u:{x}",
                "name": "n",
                "title": "t",
                "description": "d",
                "mimeType": "m",
                "annotations": {},
                "icons": [ICON],
                "_meta": {},
            }
        ]
    },
    "prompts/list": {
        "prompts": [
            {
                "name": "n",
                "title": "t",
                "description": "d",
                "arguments": [{"name": "a", "title": "t", "description": "d", "required": True}],
                "icons": [ICON],
                "_meta": {},
            }
        ]
    },
}

# (method, where the item is, its definition). The capabilities are made for the revision where they are declared.
ITEMS = [
    ("initialize", ["serverInfo"], "Implementation"),
    ("tools/list", ["tools", 0], "Tool"),
    ("tools/call", [], "CallToolResult"),
    ("resources/list", ["resources", 0], "Resource"),
    ("resources/templates/list", ["resourceTemplates", 0], "ResourceTemplate"),
    ("prompts/list", ["prompts", 0], "Prompt"),
    ("prompts/list", ["prompts", 0, "arguments", 0], "PromptArgument"),
]


def at(value: Any, path: list[str | int]) -> Any:
    for part in path:
        value = value[part]
    return value


@pytest.mark.parametrize(("method", "path", "definition"), ITEMS)
def test_the_full_results_have_every_member_of_the_newest_schema(
    method: str, path: list[str | int], definition: str
) -> None:
    """Otherwise the next test would not see a member that the codec forgot."""
    known = set(schema(NEWEST).definitions[definition]["properties"])
    assert set(at(FULL[method], path)) == known


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(("method", "path", "definition"), ITEMS)
def test_a_revision_is_told_what_it_defines_and_nothing_else(
    method: str, path: list[str | int], definition: str, revision: str
) -> None:
    full = at(FULL[method], path)
    known = schema(revision).definitions[definition]["properties"]
    shaped = at(shape_result(method, revision, deepcopy(FULL[method])), path)
    assert set(shaped) == {name for name in full if name in known}
    assert all(shaped[name] == full[name] for name in shaped if name != "arguments")


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("method", FULL)
def test_what_is_shaped_fits_the_schema_and_the_original_is_not_changed(method: str, revision: str) -> None:
    original = deepcopy(FULL[method])
    result = shape_result(method, revision, original)
    assert original == FULL[method]
    response = {"jsonrpc": "2.0", "id": 1, "result": result}
    schema(revision).check_message(response, method=method)


@pytest.mark.parametrize("method", FULL)
def test_an_empty_result_is_shaped_as_well(method: str) -> None:
    empty = {name: [] for name, value in FULL[method].items() if isinstance(value, list)}
    if method != "initialize":
        assert shape_result(method, LEGACY[0], empty) == empty


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("method", ["ping", "resources/read", "prompts/get", "tasks/get", "completion/complete"])
def test_other_results_are_left_as_they_are(method: str, revision: str) -> None:
    assert shape_result(method, revision, {"title": "t", "_meta": {}}) == {"title": "t", "_meta": {}}


def test_a_prompt_without_arguments_gets_none() -> None:
    assert shape_result("prompts/list", LEGACY[0], {"prompts": [{"name": "n"}]}) == {"prompts": [{"name": "n"}]}

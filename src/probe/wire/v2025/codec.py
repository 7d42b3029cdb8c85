"""Members that older revisions must not see, each with the first revision that defines it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..revisions import V2025_06_18, V2025_11_25

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

"""The properties of an input schema that clients repeat in `Mcp-Param-*` headers: the `x-mcp-header` annotations.

2026-07-28 basic/transports/streamable-http, Custom Headers from Tool Parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class HeaderParam:
    """One annotated property of an input schema: its header, the chain of `properties` keys to it, and its type."""

    header: str
    path: tuple[str, ...]
    type: str


# RFC 9110, section 5.6.2.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def header_params(input_schema: Mapping[str, Any]) -> Mapping[str, HeaderParam]:
    """The `x-mcp-header` annotations of an input schema by their header name in lower case.

    Only chains of `properties` are followed. Where one annotation is no token, stands twice, or is on a property that
    is no string, integer or boolean, there are none: clients "MUST exclude the invalid tool", so nobody sends any.
    """
    found: dict[str, HeaderParam] = {}
    for path, schema in _properties(input_schema, ()):
        if "x-mcp-header" not in schema:
            continue
        param = _param(schema["x-mcp-header"], path, schema.get("type"))
        if param is None or param.header.lower() in found:
            return {}
        found[param.header.lower()] = param
    return found


def has_invalid_annotations(input_schema: Mapping[str, Any]) -> bool:
    """Whether clients "MUST exclude" a tool with this input schema for its annotations."""
    annotated = any("x-mcp-header" in schema for _, schema in _properties(input_schema, ()))
    return annotated and not header_params(input_schema)


def _param(name: Any, path: tuple[str, ...], type: Any) -> HeaderParam | None:
    legal = isinstance(name, str) and _TOKEN.fullmatch(name) and type in ("string", "integer", "boolean")
    return HeaderParam(f"Mcp-Param-{name}", path, type) if legal else None


def _properties(
    schema: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    members = schema.get("properties")
    for key, member in members.items() if isinstance(members, Mapping) else ():
        if isinstance(member, Mapping):
            yield (*path, key), member
            yield from _properties(member, (*path, key))

"""Fixtures with input schemas: rare keywords of JSON Schema 2020-12, and a parameter that headers repeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...engine.catalogue.tool import ArgumentsError, ToolResult, content, shown, text
from ...wire.jsonrpc import Json, encode
from ...wire.revisions import V2026_07_28
from ..shared import probe_tool

_SCHEMA: Final[Json] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def run(arguments: Mapping[str, Any]) -> ToolResult:
    """Return the arguments as they came."""
    return content([text(f"Accepted: {encode(dict(arguments)).decode()}")])


def _check(arguments: Mapping[str, Any]) -> None:
    """Raise `ArgumentsError` about the first argument at fault."""
    fault = _fault(arguments)
    if fault is not None:
        raise ArgumentsError(fault)


def _fault(arguments: Mapping[str, Any]) -> str | None:
    # A validator would be a dependency for one fixture, with messages that are not made for people.
    known = _SCHEMA["properties"]
    for name, value in arguments.items():
        if name not in known:
            return f"unknown parameter {shown(name)}: it takes {', '.join(known)}"
        wrong = _address_fault(value) if name == "address" else _string_fault(name, value)
        if wrong is not None:
            return wrong
    by_phone = arguments.get("contactMethod") == "phone"
    if by_phone and "phone" not in arguments:
        return "phone is required when contactMethod is phone"
    if not by_phone and "email" not in arguments:
        return "email is required unless contactMethod is phone"
    return None


def _string_fault(name: str, value: Any) -> str | None:
    if not isinstance(value, str):
        return f"{name} must be a string, got {shown(value)}"
    if name == "contactMethod" and value not in ("phone", "email"):
        return f"contactMethod must be one of phone, email, got {shown(value)}"
    return None


def _address_fault(value: Any) -> str | None:
    if not isinstance(value, dict):
        return f"address must be an object, got {shown(value)}"
    wrong = [part for part in ("street", "city") if not isinstance(value.get(part, ""), str)]
    return f"address.{wrong[0]} must be a string, got {shown(value[wrong[0]])}" if wrong else None


TOOLS = (
    probe_tool(
        name="json_schema_2020_12_tool",
        title="JSON Schema 2020-12",
        exercises="`$defs`, `$ref`, `$anchor`, `allOf`, `if`/`then`/`else` in an input schema",
        shows="the schema, nothing stripped",
        description=(
            "Has an input schema with $defs, $ref, $anchor, allOf and if/then/else, and returns its arguments. Look "
            "for: the whole schema in your client, nothing stripped."
        ),
        run=run,
        input_schema=_SCHEMA,
        check=_check,
    ),
)

_MAX_LENGTH: Final = 100
"""Characters. Base64 in a header makes at most 547 bytes of them, which any gateway lets through."""

_REGION: Final[Json] = {
    "type": "object",
    "properties": {
        "region": {
            "type": "string",
            "maxLength": _MAX_LENGTH,
            "description": "Where to name_region; comes as Mcp-Param-Region, too",
            "x-mcp-header": "Region",
        }
    },
    "additionalProperties": False,
}


def _name_region(arguments: Mapping[str, Any]) -> ToolResult:
    """The engine has compared the region with its header."""
    region = arguments.get("region")
    return content([text("No region was given." if region is None else f"Region: {region}")])


def _check_region(arguments: Mapping[str, Any]) -> None:
    """Raise `ArgumentsError` about the first argument at fault."""
    for name, value in arguments.items():
        if name != "region":
            raise ArgumentsError(f"unknown parameter {shown(name)}: it takes region")
        if not isinstance(value, str) or len(value) > _MAX_LENGTH:
            raise ArgumentsError(f"region must be a string of at most {_MAX_LENGTH} characters, got {shown(value)}")


HEADER = (
    probe_tool(
        name="test_x_mcp_header",
        title="Parameter in a header",
        exercises="`x-mcp-header`: the argument comes in `Mcp-Param-Region` as well",
        shows="the value, also one with spaces at its ends or beyond ASCII",
        description=(
            "Has one parameter that belongs in the header Mcp-Param-Region as well, and returns it. Look for: the "
            "value, also one with spaces at its ends or beyond ASCII."
        ),
        run=_name_region,
        input_schema=_REGION,
        check=_check_region,
        since=V2026_07_28,
    ),
)

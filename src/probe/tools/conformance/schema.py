"""A fixture with an input schema that uses rare keywords of JSON Schema 2020-12."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...engine.catalogue.params import ArgumentsError, shown
from ...engine.catalogue.tool import Tool, ToolResult, content, text
from ...wire.jsonrpc import Json, encode
from ..shared import READ_ONLY

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


def check(arguments: Mapping[str, Any]) -> None:
    """Raise `ArgumentsError` about the first argument at fault."""
    fault = _fault(arguments)
    if fault is not None:
        raise ArgumentsError(fault)


def _fault(arguments: Mapping[str, Any]) -> str | None:
    # By hand: a validator is a dependency for one fixture, and its messages are not made for people.
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
    Tool(
        name="json_schema_2020_12_tool",
        title="JSON Schema 2020-12",
        exercises="`$defs`, `$ref`, `$anchor`, `allOf`, `if`/`then`/`else` in an input schema",
        shows="the schema, nothing stripped",
        description=(
            "Has an input schema with $defs, $ref, $anchor, allOf and if/then/else, and returns its arguments. Look "
            "for: the whole schema in your client, nothing stripped."
        ),
        run=run,
        annotations=READ_ONLY,
        input_schema=_SCHEMA,
        check=check,
    ),
)

"""The form that a schema asks for at a place, in words: "`/params/clientInfo` is an object, such as `{}`"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jsonschema_rs
from pydantic_core import to_json

# An example that is longer says less than the schema.
_LONGEST_EXAMPLE: Final = 200
# Objects within objects of an example; the schemas have some that contain themselves.
_DEEPEST: Final = 4
_MOST_ALTERNATIVES: Final = 4
_NAMES: Final[Mapping[str, str]] = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "null": "null",
}
_EXAMPLES: Final[Mapping[str, Any]] = {
    "array": [],
    "string": "text",
    "number": 1,
    "integer": 1,
    "boolean": True,
    "null": None,
}
# Other kinds, such as `minLength`, are about a value whose form is right.
_SAYING_FORM: Final = frozenset(
    {"type", "required", "additionalProperties", "const", "enum", "anyOf", "oneOfNotValid", "oneOfMultipleValid"}
)
# The sentence about a value of one of these has no need of an example.
_PLAIN: Final = frozenset({"boolean", "null"})


def right_form(document: Mapping[str, Any], error: jsonschema_rs.ValidationError, pointer: str) -> str:
    """What a value that does not fit should have been; empty where the schema does not say it in a few words.

    `document` has the definitions that the path of the error goes through, `pointer` is the place of the value.
    """
    schema: Any = document
    for part in error.schema_path[:-1]:
        schema = schema[part]
    kind: Any = error.kind
    if kind.name not in _SAYING_FORM:
        return ""
    if kind.name == "required":
        pointer, schema = f"{pointer}/{kind.property}", schema.get("properties", {}).get(kind.property, {})
    elif kind.name == "additionalProperties":
        return f"{_place(pointer)} has no member but {_listed(schema.get('properties', {}))}"
    form = _form(document, schema)
    return f"{_place(pointer)} is {form}" if form else ""


def _place(pointer: str) -> str:
    return f"`{pointer}`" if pointer else "it"


def _form(document: Mapping[str, Any], schema: Any, *, alone: bool = True) -> str:
    """`alone` has an example, which would be read as one of all alternatives otherwise."""
    schema = _resolved(document, schema)
    if options := [schema["const"]] if "const" in schema else schema.get("enum"):
        return f"{'one of ' * (len(options) > 1)}{_listed(map(_json, options))}"
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        forms = dict.fromkeys(_form(document, each, alone=False) for each in alternatives)
        return " or ".join(forms) if all(forms) and len(forms) <= _MOST_ALTERNATIVES else ""
    kinds = schema.get("type", [])
    if isinstance(kinds, list):
        return " or ".join(_NAMES[kind] for kind in kinds)
    if not alone or kinds in _PLAIN:
        return _NAMES[kinds]
    example = _json(_example(document, schema, _DEEPEST))
    return f"{_NAMES[kinds]}, such as `{example}`" if len(example) <= _LONGEST_EXAMPLE else _NAMES[kinds]


def _example(document: Mapping[str, Any], schema: Any, depth: int) -> Any:
    """A small value that fits; where it is not the smallest of all, it is a likely one."""
    schema = _resolved(document, schema)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return _example(document, alternatives[0], depth)
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind != "object":
        return _EXAMPLES[kind]
    members = schema.get("properties", {}) if depth else {}
    return {name: _example(document, members.get(name, {}), depth - 1) for name in schema.get("required", ()) if depth}


def _resolved(document: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
    while "$ref" in schema:
        _, key, name = schema["$ref"].split("/")
        schema = document[key][name]
    parts = [_resolved(document, part) for part in schema.get("allOf", ())]
    if not parts:
        return dict(schema)
    return {
        "type": "object",
        "properties": {name: member for part in parts for name, member in part.get("properties", {}).items()},
        "required": [name for part in parts for name in part.get("required", ())],
    }


def _listed(names: Any) -> str:
    shown: Sequence[str] = [f"`{name}`" for name in names]
    return ", ".join(shown) or "none"


def _json(value: Any) -> str:
    return to_json(value).decode()

"""JSON Schemas made from the types of entries and answers, with their docstrings.

No library makes them, so that the published schemas change only with these types.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ...wire.jsonrpc import Json

_PLAIN: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


class Schemas:
    """Collects the schemas of named types. `names` gives types another name than their own."""

    def __init__(self, names: Mapping[Any, str]) -> None:
        self._names = names
        self._made: dict[str, Json] = {}

    def collected(self) -> Json:
        """Every added or referenced schema, by name."""
        return dict(sorted(self._made.items()))

    def add(self, name: str, schema: Json) -> Json:
        """Add a schema under a name; returns the reference to it."""
        self._made[name] = schema
        return reference(name)

    def may_have(self, name: str, member: str, schema: Json) -> None:
        """Add an optional member to a named schema, such as `view`."""
        self._made[name]["properties"][member] = schema

    def of(self, hint: Any) -> Json:
        """The schema of a type; a reference for a named type. Raises `TypeError` for a type without JSON."""
        if _names(hint) is not None:
            return self._named(hint)
        if hint in _PLAIN:
            return {"type": _PLAIN[hint]}
        if hint is bytes or hint is Any:
            return {"description": "Any JSON value."}
        return self._generic(get_origin(hint), get_args(hint), hint)

    def object_of(self, owner: Any, extra: Mapping[str, Json] = {}) -> Json:
        """The schema of an object with the fields of a type, all of them required, and `extra` ones.

        The type is a dataclass, a named tuple, or a struct, as the facts of the log are.
        """
        hints = get_type_hints(owner)
        properties = {**extra, **{name: self.of(hints[name]) for name in _names(owner) or ()}}
        return closed(properties, inspect.cleandoc(owner.__doc__ or ""))

    def _named(self, owner: Any) -> Json:
        name = self._names.get(owner, owner.__name__)
        if name not in self._made:
            # The place is taken first: types may refer to each other.
            self._made[name] = {}
            self._made[name] = self.object_of(owner)
        return reference(name)

    def _generic(self, origin: Any, arguments: tuple[Any, ...], hint: Any) -> Json:
        if origin in (Union, types.UnionType):
            return _either([self.of(item) for item in arguments])
        if origin is Literal:
            return {"enum": list(arguments), "type": "string"}
        if origin is list or (origin is tuple and arguments[1:] == (...,)):
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is tuple:
            items = [self.of(item) for item in arguments]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if origin is not None and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        raise TypeError(f"{hint!r} has no JSON Schema here")


def _names(owner: Any) -> Iterable[str] | None:
    """The names of a type's fields; None for a type without fields."""
    if is_dataclass(owner):
        return [spec.name for spec in fields(owner)]
    names: Iterable[str] | None = getattr(owner, "_fields", None) or getattr(owner, "__struct_fields__", None)
    return names


def closed(properties: Mapping[str, Json], description: str) -> Json:
    """An object with these members, all of them required."""
    return {
        "type": "object",
        "description": description,
        "properties": dict(properties),
        "required": sorted(properties),
    }


def reference(name: str) -> Json:
    """The place of a named schema in the description."""
    return {"$ref": f"#/components/schemas/{name}"}


def discriminated(by: str, members: Mapping[str, Json], description: str) -> Json:
    """One of several objects, chosen by the value of the member `by`. `members` are references by that value."""
    mapping = {value: member["$ref"] for value, member in members.items()}
    return {
        "description": description,
        "oneOf": list(members.values()),
        "discriminator": {"propertyName": by, "mapping": mapping},
    }


def _either(options: Iterable[Json]) -> Json:
    options = list(options)
    if all(option.keys() == {"type"} for option in options):
        return {"type": [option["type"] for option in options]}
    null = {"type": "null"}
    rest = [option for option in options if option != null]
    if len(rest) == 1 and "enum" in rest[0]:
        return {"enum": [*rest[0]["enum"], None], "type": [rest[0]["type"], "null"]}
    if any(option.keys() == {"description"} for option in rest):
        # Any value includes null.
        return {"description": "Any JSON value, or null."}
    return {"oneOf": options}

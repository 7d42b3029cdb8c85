"""Messages and parts of them against the official schema of their revision, and the right form in words.

    misfit("2025-11-25", "ElicitResult", message.result, message.hidden, at="/result")

`definition` is a name in the schema, such as that of `request_of`. Known errors of the schemas are mended before they
are used, never in their files:

They are made from TypeScript, which has one type for numbers. Where no annotation says more, the schema has `integer`,
and the page of the revision `number`: a `ttl` of 1.5 and a number in the content of `ElicitResult` are right. Only ids,
progress tokens and codes are integers by the text as well. `JSONValue` of 2026-07-28 is any JSON by its page, and its
schema leaves out `null`.

`format` is not asserted: no revision obliges a client to more than the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeAlias

import jsonschema_rs
from pydantic_core import from_json, to_json

from .... import wire
from ....log.redaction import LONGEST_PATH, MOST_PATHS, REDACTED
from ....wire.jsonrpc import clip
from ....wire.revisions import LEGACY, MODERN

# A longer example shows less than the schema.
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
# Other kinds, such as `minLength`, are about a value of the right form.
_SAYING_FORM: Final = frozenset(
    {"type", "required", "additionalProperties", "const", "enum", "anyOf", "oneOfNotValid", "oneOfMultipleValid"}
)
# The sentence about a value of one of these has no need of an example.
_PLAIN: Final = frozenset({"boolean", "null"})


def right_form(document: Mapping[str, Any], error: jsonschema_rs.ValidationError, pointer: str) -> str:
    """The right form for a value that does not fit; empty where that takes more than a few words.

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


_Validator: TypeAlias = jsonschema_rs.Draft7Validator | jsonschema_rs.Draft202012Validator

_LONGEST_WHY: Final = 200
# Stands for a value in the sentences of the library, which quote it whole, however long it is.
_VALUE: Final = "the value"
_INTEGERS: Final = frozenset({"RequestId", "ProgressToken", "code"})
# A value that does not fit one of these at its own place may do so because of a member that was hidden.
_ALTERNATIVES: Final = frozenset({"anyOf", "oneOf", "oneOfMultipleValid", "oneOfNotValid", "not", "allOf"})
_RESULTS: Final[Mapping[str, str]] = {
    "elicitation/create": "ElicitResult",
    "ping": "Result",
    "roots/list": "ListRootsResult",
    "sampling/createMessage": "CreateMessageResult",
    "tasks/cancel": "CancelTaskResult",
    "tasks/get": "GetTaskResult",
    "tasks/list": "ListTasksResult",
}


class Misfit(NamedTuple):
    """The JSON pointer to a value that does not fit, from the root of the message, and why it does not.

    `right` is what should be there, such as "`/params/cursor` is a string"; it is empty where that takes more words.
    """

    pointer: str
    why: str
    right: str = ""

    def __str__(self) -> str:
        text = f"{clip(self.pointer, LONGEST_PATH)}: {self.why}" if self.pointer else self.why
        return f"{text}; right: {self.right}" if self.right else text


def misfit(
    revision: str, definition: str, value: Any, hidden: Iterable[tuple[str, str]] = (), *, at: str = ""
) -> Misfit | None:
    """The first place where a value does not fit a definition of a revision; None where it fits.

    `hidden` is that of the message, `at` the JSON pointer of the value in it. A hidden value fits everything. Raises
    `KeyError` where the revision has no such definition.
    """
    return next(iter(misfits(revision, definition, value, hidden, at=at)), None)


def misfits(
    revision: str, definition: str, value: Any, hidden: Iterable[tuple[str, str]] = (), *, at: str = ""
) -> list[Misfit]:
    validator = _validator(revision, definition)
    if validator.is_valid(value):
        return []
    pointers = [pointer for pointer, _ in hidden]
    if len(pointers) >= MOST_PATHS:
        # There may be more of them, at unknown places.
        return []
    key, definitions = _definitions(revision)
    document = {key: definitions}
    errors = validator.iter_errors(value)
    return [found for error in errors if (found := _found(document, error, at, pointers)) is not None]


@lru_cache(maxsize=len(LEGACY) + len(MODERN))
def client_methods(revision: str) -> Mapping[str, str]:
    """The requests and notifications of a client, and their definitions."""
    definitions = _definitions(revision)[1]
    names: list[str] = []
    for union in ("ClientRequest", "ClientNotification"):
        one_of = definitions.get(union, {})
        # a union of one is written as that one
        names += [part["$ref"].rpartition("/")[2] for part in one_of.get("anyOf", ())] or [union][: len(one_of)]
    return {definitions[name]["properties"]["method"]["const"]: name for name in names}


def request_of(revision: str, method: str) -> str | None:
    """The definition of a request or notification; None where the revision has no such method."""
    return client_methods(revision).get(method)


def result_of(revision: str, method: str) -> str | None:
    """The definition of a client's result; None where the revision has none."""
    name = _RESULTS.get(method)
    return name if name in _definitions(revision)[1] else None


def _found(
    document: Mapping[str, Any], error: jsonschema_rs.ValidationError, at: str, hidden: Iterable[str]
) -> Misfit | None:
    pointer = at + "".join(f"/{_escaped(part)}" for part in error.instance_path)
    if error.instance == REDACTED or any(_is_hidden(pointer, path, error.kind.name) for path in hidden):
        return None
    kind = error.kind.name
    why = "the value is nothing that the schema allows here" if kind in _ALTERNATIVES else error.message
    if not isinstance(error.instance, (dict, list)):
        why = f"{clip(why, _LONGEST_WHY)}, got {clip(to_json(error.instance).decode())}"
    return Misfit(pointer, why, right_form(document, error, clip(pointer, LONGEST_PATH)))


def _is_hidden(pointer: str, path: str, kind: str) -> bool:
    """True if a fault at a pointer may come of a hidden member at `path`, which is cut where it is long."""
    if pointer == path or pointer.startswith(f"{path}/"):
        return True
    if len(path) >= LONGEST_PATH and pointer.startswith(path):
        return True
    return kind in _ALTERNATIVES and path.startswith(f"{pointer}/")


def _escaped(part: str | int) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


# More definitions than clients send messages of.
@lru_cache(maxsize=128)
def _validator(revision: str, definition: str) -> _Validator:
    key, definitions = _definitions(revision)
    if definition not in definitions:
        raise KeyError(definition)
    schema = {key: definitions, "$ref": f"#/{key}/{definition}"}
    if key == "$defs":
        return jsonschema_rs.Draft202012Validator(schema, mask=_VALUE)
    return jsonschema_rs.Draft7Validator(schema, mask=_VALUE, validate_formats=False)


@lru_cache(maxsize=len(LEGACY) + len(MODERN))
def _definitions(revision: str) -> tuple[str, dict[str, Any]]:
    document = from_json((files(wire) / "schemas" / f"{revision}.json").read_bytes())
    key = "$defs" if "$defs" in document else "definitions"
    definitions = {name: _mended(part, name) for name, part in document[key].items()}
    if "JSONValue" in definitions:
        definitions["JSONValue"] = {}
    return key, definitions


def _mended(part: Any, name: str) -> Any:
    """A part of a schema in which `integer` is `number` wherever the text has no integer."""
    if isinstance(part, list):
        return [_mended(each, name) for each in part]
    if not isinstance(part, dict):
        return part
    mended = {member: _mended(value, member) for member, value in part.items()}
    kinds = part.get("type")
    if name in _INTEGERS:
        return mended
    if kinds == "integer":
        mended["type"] = "number"
    elif isinstance(kinds, list) and "integer" in kinds:
        mended["type"] = ["number" if kind == "integer" else kind for kind in kinds]
    return mended

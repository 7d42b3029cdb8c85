"""Parameters of requests: mostly what the official schema asks for, here and there something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from ..support.schemas import RevisionSchema

JUNK = [None, True, 0, -1, 1.0, 1.5, "", "x", [], [1], {}, {"x": 1}, {"x": "y"}]
# Members that some revision or some capability defines, in places where they are not defined.
STRAY = ["x", "task", "context", "cursor", "inputResponses", "requestState", "extensions", "title", "icons", "_meta"]


def params_schema(official: RevisionSchema, method: str) -> Mapping[str, Any]:
    """The schema of one method's `params`."""
    name = official.request_of(method)
    found: Mapping[str, Any] = official.definitions[name]["properties"]["params"]
    return found


def resolve(official: RevisionSchema, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema behind a reference."""
    while "$ref" in schema:
        schema = official.definitions[schema["$ref"].rpartition("/")[2]]
    return schema


@st.composite
def near(draw: st.DrawFn, official: RevisionSchema, schema: Mapping[str, Any]) -> Any:
    """A value that fits a schema, unless something in it was replaced, left out or added."""
    if draw(st.integers(0, 11)) == 11:
        return draw(st.sampled_from(JUNK))
    schema = resolve(official, schema)
    if "anyOf" in schema:
        return draw(near(official, draw(st.sampled_from(schema["anyOf"]))))
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    return draw(_of_type(official, schema))


def _of_type(official: RevisionSchema, schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    kinds = schema.get("type", "object")
    simple = {
        "string": st.sampled_from(["", "a", "é"]),
        "integer": st.sampled_from([0, 5, -1, 2**70]),
        "boolean": st.booleans(),
        "array": st.lists(near(official, schema.get("items", {})), max_size=2),
        "object": _object(official, schema),
    }
    return st.one_of([simple[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)])


@st.composite
def _object(draw: st.DrawFn, official: RevisionSchema, schema: Mapping[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    required = schema.get("required", [])
    for name, member in schema.get("properties", {}).items():
        if draw(st.integers(0, 14)) < (14 if name in required else 5):
            value[name] = draw(near(official, member))
    more = schema.get("additionalProperties")
    if isinstance(more, dict) and draw(st.booleans()):
        value["x"] = draw(near(official, more) if more else st.sampled_from(JUNK))
    if draw(st.integers(0, 5)) == 5:
        value.setdefault(draw(st.sampled_from(STRAY)), draw(st.sampled_from(JUNK)))
    return value

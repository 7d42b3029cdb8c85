"""Tool parameters: what a schema promises is what the judge accepts, and a refusal is one readable sentence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from probe.engine.catalogue.tool import ArgumentsError, Boolean, Choice, Integer, Text, input_schema, read_arguments
from probe.tools.catalogue import TOOLSETS

from ..support.rows import each

COUNT = Integer("count", 1, 100, 10, "How many")
MODE = Choice("mode", ("fast", "slow"), "fast", "Which way")
LOUD = Boolean("loud", False, "Whether to shout")
NAME = Text("name", "Who", max_length=5)
PARAMS = (COUNT, MODE, LOUD, NAME)

json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-200, 200), st.floats(-200, 200), st.sampled_from(["", "fast", "toolong"])
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)


def refusal(arguments: dict[str, Any]) -> str | None:
    try:
        read_arguments(PARAMS, arguments)
    except ArgumentsError as error:
        return str(error)
    return None


def test_defaults_are_filled_in() -> None:
    assert read_arguments(PARAMS, {"name": "x"}) == {"count": 10, "mode": "fast", "loud": False, "name": "x"}


@pytest.mark.parametrize("value", [1, 100, 5.0])
def test_bounds_are_inclusive_and_a_whole_float_is_an_integer(value: float) -> None:
    """JSON Schema 2020-12, 4.2.3: a number with a zero fraction is an integer."""
    read = read_arguments(PARAMS, {"name": "x", "count": value})["count"]
    assert (read, type(read)) == (int(value), int)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "x", "count": 0}, "count must be an integer from 1 to 100, got 0"),
        ({"name": "x", "count": 101}, "count must be an integer from 1 to 100, got 101"),
        ({"name": "x", "count": 10**30}, f"count must be an integer from 1 to 100, got {10**30}"),
        ({"name": "x", "count": 1.5}, "count must be an integer from 1 to 100, got 1.5"),
        ({"name": "x", "count": True}, "count must be an integer from 1 to 100, got true"),
        ({"name": "x", "count": "5"}, 'count must be an integer from 1 to 100, got "5"'),
        ({"name": "x", "count": None}, "count must be an integer from 1 to 100, got null"),
        ({"name": "x", "count": {}}, "count must be an integer from 1 to 100, got {}"),
        ({"name": "x", "mode": "Fast"}, 'mode must be one of fast, slow, got "Fast"'),
        ({"name": "x", "mode": 5}, "mode must be one of fast, slow, got 5"),
        ({"name": "x", "mode": ["fast"]}, 'mode must be one of fast, slow, got ["fast"]'),
        ({"name": "x", "loud": 1}, "loud must be true or false, got 1"),
        ({"name": "x", "loud": "true"}, 'loud must be true or false, got "true"'),
        ({"name": "123456"}, 'name must be a string of at most 5 characters, got "123456"'),
        ({"name": 5}, "name must be a string of at most 5 characters, got 5"),
        ({}, "name is required"),
        ({"name": "x", "size": 1}, 'unknown parameter "size": it takes count, mode, loud, name'),
    ],
)
def test_a_refusal_names_the_parameter_its_bounds_and_what_was_sent(arguments: Any, sentence: str) -> None:
    assert refusal(arguments) == sentence


def test_what_was_sent_is_cut_where_it_is_long() -> None:
    said = refusal({"name": "x" * 10_000})
    assert said is not None
    assert len(said) < 200


def test_a_tool_without_parameters_says_so() -> None:
    with pytest.raises(ArgumentsError, match='unknown parameter "a": it takes none'):
        read_arguments((), {"a": 1})


def test_the_schema_of_a_tool() -> None:
    assert input_schema(PARAMS) == {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10, "description": "How many"},
            "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast", "description": "Which way"},
            "loud": {"type": "boolean", "default": False, "description": "Whether to shout"},
            "name": {"type": "string", "maxLength": 5, "description": "Who"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    assert input_schema(()) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_every_kind_of_parameter_can_have_a_header() -> None:
    """2026-07-28 basic/transports/streamable-http, Schema Extension."""
    kinds = [
        Integer("a", 1, 2, 1, "", header="A"),
        Choice("b", ("x",), "x", "", header="B"),
        Boolean("c", False, "", header="C-1"),
        Text("d", "", header="~d!"),
        Text("e", ""),
    ]
    properties = input_schema(kinds)["properties"]
    assert {name: schema.get("x-mcp-header") for name, schema in properties.items()} == {
        "a": "A",
        "b": "B",
        "c": "C-1",
        "d": "~d!",
        "e": None,
    }


@pytest.mark.parametrize(
    "headers", [[""], ["a b"], ["a:b"], ["caf\u00e9"], ["a\n"], ["A", "A"], ["A", "a"], ["A", "B", "b"]]
)
def test_a_header_that_would_make_clients_reject_the_tool_is_refused(headers: list[str]) -> None:
    """ "MUST match HTTP field-name token syntax", "MUST be case-insensitively unique"."""
    with pytest.raises(ValueError, match="token"):
        input_schema([Text(f"p{number}", "", header=header) for number, header in enumerate(headers)])


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("count", "mode", "loud", "name", "other"), json_values)))
def test_the_judge_accepts_exactly_what_the_schema_allows(arguments: dict[str, Any]) -> None:
    assert (refusal(arguments) is None) == Draft202012Validator(input_schema(PARAMS)).is_valid(arguments)


TOOLS = [tool for group in TOOLSETS for tool in group.tools]


@each("tool", TOOLS)
def test_every_schema_of_the_catalogue_is_one(tool: Any) -> None:
    Draft202012Validator.check_schema(tool.describe()["inputSchema"])


@each("tool", [tool for tool in TOOLS if tool.input_schema is None])
def test_the_defaults_of_the_catalogue_fit_their_schema(tool: Any) -> None:
    schema = tool.describe()["inputSchema"]
    defaults = {name: part["default"] for name, part in schema["properties"].items() if "default" in part}
    given = {**defaults, **dict.fromkeys(schema.get("required", ()), "x")}
    assert Draft202012Validator(schema).is_valid(given)
    assert tool.read_arguments(given) == given

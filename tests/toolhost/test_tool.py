"""`@tool`: what a signature says, and that the function stays a function."""

from __future__ import annotations

import dataclasses
import enum
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field, RootModel
from typing_extensions import TypedDict

from probe.toolhost import Tool, ToolContext, tool
from probe.toolhost.tool import MismatchError


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    name: str
    size: Annotated[int, Field(ge=0)] = 1


class Tree(BaseModel):
    children: list[Tree]


class Aliased(BaseModel):
    total_pages: int = Field(serialization_alias="totalPages")


@dataclasses.dataclass
class Point:
    x: int
    y: Annotated[int, Field(description="up")] = 0


class Row(TypedDict):
    name: str
    at: datetime


class Words(RootModel[list[str]]):
    pass


@tool(
    name="paint-it",
    title="Paint",
    annotations={"readOnlyHint": False},
    icons=({"src": "https://example.org/brush.png", "sizes": ["48x48"], "theme": "light"},),
    idle_s=0.1,
    ceiling_s=3600,
)
async def paint(
    colour: Annotated[Colour, Field(description="Which one")],
    layers: Annotated[int, Field(ge=1, le=9)] = 2,
    what: Literal["wall", "door"] | None = None,
    *,
    schema: dict[str, int] = {},  # noqa: B006  # a default that pydantic must not share
    _x: list[Item] | None = None,
    context: ToolContext | None = None,
) -> dict[str, Any]:
    """Paint something.

    Twice.
    """
    return {"colour": colour, "layers": layers, "what": what, "schema": schema, "x": _x, "context": context}


async def test_a_tool_is_called_as_the_function_that_it_is() -> None:
    assert (await paint(Colour.RED, 3))["layers"] == 3
    assert (await paint(Colour.BLUE))["context"] is None
    # without a server nothing is checked, as in any call
    assert (await paint(Colour.RED, 99))["layers"] == 99
    with pytest.raises(TypeError, match="colour"):
        await paint()  # type: ignore[call-arg]


def test_a_plain_function_too() -> None:
    @tool
    def double(number: int) -> str:
        """Double."""
        return str(2 * number)

    assert double(21) == "42"
    assert (double.name, double.waits, paint.waits) == ("double", False, True)
    assert double.__doc__ == "Double."


def test_the_options_and_the_docstring_make_the_definition() -> None:
    dumped = paint.definition.dump()
    assert {key: value for key, value in dumped.items() if key != "inputSchema"} == {
        "name": "paint-it",
        "title": "Paint",
        "description": "Paint something.\n\nTwice.",
        "annotations": {"readOnlyHint": False},
        "icons": [{"src": "https://example.org/brush.png", "sizes": ["48x48"], "theme": "light"}],
        "idleMs": 100,
        "ceilingMs": 3_600_000,
    }


def test_the_parameters_make_the_input_schema() -> None:
    schema = paint.definition.input_schema
    assert schema["type"] == "object"
    assert schema["required"] == ["colour"]
    assert schema["additionalProperties"] is False
    assert "title" not in schema
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["colour", "layers", "what", "schema", "_x"]
    assert properties["layers"] == {"type": "integer", "minimum": 1, "maximum": 9, "default": 2}
    assert properties["colour"] == {"$ref": "#/$defs/Colour", "description": "Which one"}


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    @tool
    def nothing() -> str:
        return ""

    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    assert nothing.definition.input_schema == schema
    assert nothing.definition.description == ""


async def test_arguments_become_what_the_annotations_say() -> None:
    context = ToolContext()
    sent = {"colour": "blue", "schema": {"a": 1}, "_x": [{"name": "nail"}]}
    assert await paint.bind(sent, context)() == {
        "colour": Colour.BLUE,
        "layers": 2,
        "what": None,
        "schema": {"a": 1},
        "x": [Item(name="nail", size=1)],
        "context": context,
    }


async def test_a_mutable_default_is_new_for_each_call() -> None:
    first = await paint.bind({"colour": "red"}, ToolContext())()
    first["schema"]["a"] = 1
    assert (await paint.bind({"colour": "red"}, ToolContext())())["schema"] == {}


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({}, "colour: Field required"),
        ({"colour": "green"}, "colour: Input should be 'red' or 'blue'"),
        ({"colour": "red", "layers": 10}, "layers: Input should be less than or equal to 9"),
        ({"colour": "red", "_x": [{"name": "nail", "size": -1}]}, "_x.0.size: Input should be greater"),
        ({"colour": "red", "other": 1}, "other: Extra inputs are not permitted"),
        ({"colour": "red", "p0": 1}, "p0: Extra inputs are not permitted"),
        ({"colour": "red", "context": None}, "context: Extra inputs are not permitted"),
    ],
)
def test_arguments_that_do_not_fit(sent: dict[str, Any], says: str) -> None:
    with pytest.raises(MismatchError, match="^" + says.replace("(", r"\(")):
        paint.bind(sent, ToolContext())


def returns(annotation: Any) -> Tool[[], Any]:
    def handler() -> Any:
        raise AssertionError("never called")

    handler.__annotations__ = {"return": annotation}
    return tool(handler)


@pytest.mark.parametrize(
    ("annotation", "value", "dumped"),
    [
        (str, "text", {"text": "text"}),
        (dict, {"a": [1, None]}, {"output": {"a": [1, None]}}),
        (dict[str, Any], {"at": datetime(2026, 1, 1, tzinfo=UTC)}, {"output": {"at": "2026-01-01T00:00:00Z"}}),
        (Mapping[str, int], {"a": 1}, {"output": {"a": 1}}),
        (Item, Item(name="nail"), {"output": {"name": "nail", "size": 1}}),
        (Item, {"name": "nail"}, {"output": {"name": "nail", "size": 1}}),
        (Annotated[Item, "x"], Item(name="nail"), {"output": {"name": "nail", "size": 1}}),
        (Aliased, Aliased(total_pages=3), {"output": {"totalPages": 3}}),
        (Point, Point(1), {"output": {"x": 1, "y": 0}}),
        (
            Row,
            {"name": "a", "at": datetime(2026, 1, 1, tzinfo=UTC)},
            {"output": {"name": "a", "at": "2026-01-01T00:00:00Z"}},
        ),
        (Tree, Tree(children=[Tree(children=[])]), {"output": {"children": [{"children": []}]}}),
    ],
)
def test_what_a_handler_returns(annotation: Any, value: Any, dumped: Any) -> None:
    assert returns(annotation).dump(value) == dumped


@pytest.mark.parametrize(
    ("annotation", "value", "says"),
    [
        (str, 7, "Input should be a valid string"),
        (str, None, "Input should be a valid string"),
        (dict, [], "Input should be a valid dictionary"),
        (dict[str, Any], {"a": object()}, "Unable to serialize"),
        (dict[str, int], {"a": "x"}, "a: Input should be a valid integer"),
        (Item, {"size": 1}, "name: Field required"),
        (Item, None, "Input should be a valid dictionary"),
        (Item, Item.model_construct(name=[]), "Expected `str`"),
        (Point, Point("far"), "Expected `int`"),  # type: ignore[arg-type]
        (Row, {"name": "a"}, "at: Field required"),
    ],
)
def test_what_a_handler_may_not_return(annotation: Any, value: Any, says: str) -> None:
    with pytest.raises(MismatchError, match=says):
        returns(annotation).dump(value)


@pytest.mark.parametrize("annotation", [str, dict, dict[str, Any], Mapping[str, int]])
def test_text_and_dicts_have_no_output_schema(annotation: Any) -> None:
    assert returns(annotation).definition.output_schema is None


def test_the_return_annotation_makes_the_output_schema() -> None:
    assert returns(Point).definition.output_schema == {
        "type": "object",
        "title": "Point",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "description": "up", "default": 0}},
        "required": ["x"],
    }
    aliased = returns(Aliased).definition.output_schema
    assert aliased is not None
    assert aliased["required"] == ["totalPages"]
    tree = returns(Tree).definition.output_schema
    assert tree is not None
    assert (tree["type"], tree["$ref"]) == ("object", "#/$defs/Tree")


@pytest.mark.parametrize(
    "annotation",
    [None, int, bytes, list[str], tuple[str, int], Item | None, Item | str, dict[int, str], Words, object, Any],
)
def test_a_return_type_that_is_neither_text_nor_an_object(annotation: Any) -> None:
    with pytest.raises(TypeError, match=r"handler cannot be a tool: .*JSON object"):
        returns(annotation)


def without_annotation(value) -> str:  # type: ignore[no-untyped-def]
    return ""


def without_return(value: int):  # type: ignore[no-untyped-def]
    return ""


def with_args(*values: int) -> str:
    return ""


def with_kwargs(**values: int) -> str:
    return ""


def positional_only(value: int, /) -> str:
    return ""


def with_a_socket(value: socket.socket) -> str:
    return ""


def with_a_callable(value: Callable[[], None]) -> str:
    return ""


def with_field_as_default(value: int = Field(3, ge=1)) -> str:
    return ""


def with_a_default_out_of_bounds(value: Annotated[int, Field(ge=1)] = 0) -> str:
    return ""


def with_a_default_of_another_type(value: int = None) -> str:  # type: ignore[assignment]  # noqa: RUF013
    return ""


def with_two_contexts(a: ToolContext, b: ToolContext | None = None) -> str:
    return ""


def with_an_unknown_name(value: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
    return ""


def generator(value: int) -> Iterator[str]:
    yield ""


async def async_generator(value: int) -> AsyncIterator[str]:
    yield ""


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (without_annotation, "the parameter value has no annotation"),
        (without_return, "the return type has no annotation"),
        (with_args, r"\*values.* cannot be an argument"),
        (with_kwargs, r"\*\*values.* cannot be an argument"),
        (positional_only, "value.* cannot be an argument"),
        (with_a_socket, "an annotation has no JSON schema: .*socket"),
        (with_a_callable, "an annotation has no JSON schema"),
        (with_field_as_default, r"the default of value is a Field\(\)"),
        (with_a_default_out_of_bounds, "the default of value does not fit its annotation: .*greater"),
        (with_a_default_of_another_type, "the default of value does not fit its annotation"),
        (with_two_contexts, "a and b are both a ToolContext"),
        (with_an_unknown_name, "an annotation cannot be read: .*Nowhere"),
        (generator, "a tool is made of a function"),
        (async_generator, "a tool is made of a function"),
        (Item, "a tool is made of a function"),
    ],
)
def test_a_signature_that_cannot_be_a_tool(handler: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        tool(handler)


@pytest.mark.parametrize("annotation", [ToolContext, ToolContext | None, Optional[ToolContext]])  # noqa: UP045
def test_the_context_is_found_by_its_annotation(annotation: Any) -> None:
    def handler(number: int, anything: Any) -> str:
        return f"{number} {type(anything).__name__}"

    handler.__annotations__["anything"] = annotation
    made = tool(handler)
    assert list(made.definition.input_schema["properties"]) == ["number"]  # type: ignore[arg-type]
    assert made.bind({"number": 1}, ToolContext())() == "1 ToolContext"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "no spaces"}, "name"),
        ({"name": "x" * 91}, "name"),
        ({"title": "x" * 201}, "title"),
        ({"idle_s": 0.05}, "idle_ms"),
        ({"ceiling_s": 3601}, "ceiling_ms"),
        ({"annotations": {"readOnlyHint": object()}}, "annotations"),
        ({"icons": [{"src": "http://a"}]}, r"the tool 'without_parameters' .* icons\.0\.src: Should be an https"),
        ({"icons": [{"src": "https://a"}] * 9}, "icons: List should have at most 8 items"),
    ],
)
def test_an_option_out_of_its_bounds(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tool(**options)(without_parameters)


def without_parameters() -> str:
    return ""

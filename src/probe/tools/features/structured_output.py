"""A result of every JSON type, nested, under a strict schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...engine.catalogue.tool import Tool, ToolResult, structured
from ...wire.jsonrpc import Json
from ..shared import READ_ONLY, output

_VALUE: Final[Json] = {
    "station": {
        "name": "Žižkov Ελλάδα 東京 \U0001f989",
        "position": {"latitude": 50.081, "longitude": 14.451},
        "closed": None,
    },
    "readings": [
        {"hour": 0, "celsius": -3.5, "valid": True},
        {"hour": 12, "celsius": 4.25, "valid": True},
        {"hour": 23, "celsius": None, "valid": False},
    ],
    # The largest integer that JavaScript keeps exact, and a number so small that it is written with an exponent.
    "limits": {"largest": 2**53 - 1, "smallest": 1e-9},
    "grid": [[1, 2, 3], [], [4]],
    "notes": [],
}

_NUMBER: Final[Json] = {"type": "number"}
_READING: Final = output(
    hour={"type": "integer", "minimum": 0, "maximum": 23},
    celsius={"type": ["number", "null"]},
    valid={"type": "boolean"},
)


def run(_: Mapping[str, Any]) -> ToolResult:
    """Return the same value every time."""
    return structured(_VALUE)


TOOL = Tool(
    name="structured_output",
    title="Structured output",
    exercises="`structuredContent` of every JSON type, checked by its output schema",
    shows="the structure; null, empty arrays, 9007199254740991 and all four scripts unharmed",
    description=(
        "Returns nested objects, arrays, numbers, null and text in four scripts, described by an output schema. Look "
        "for: the structure, not only its JSON as text; celsius null in the last reading; largest 9007199254740991 to "
        "the last digit; empty arrays still there; the owl."
    ),
    run=run,
    output_schema=output(
        station=output(
            name={"type": "string"},
            position=output(latitude=_NUMBER, longitude=_NUMBER),
            closed={"type": ["string", "null"]},
        ),
        readings={"type": "array", "items": _READING},
        limits=output(largest={"type": "integer"}, smallest=_NUMBER),
        grid={"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        notes={"type": "array", "items": {"type": "string"}},
    ),
    annotations=READ_ONLY,
)

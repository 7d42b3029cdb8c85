"""A fixture with a parameter that clients repeat in an HTTP header (2026-07-28, `x-mcp-header`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...engine.catalogue.params import ArgumentsError, shown
from ...engine.catalogue.tool import Tool, ToolResult, content, text
from ...wire.jsonrpc import Json
from ...wire.revisions import V2026_07_28
from ..shared import READ_ONLY

_MAX_LENGTH: Final = 100
"""Characters. Base64 in a header makes of them at most 547 bytes, which any gateway lets through."""

_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "region": {
            "type": "string",
            "maxLength": _MAX_LENGTH,
            "description": "Where to run; comes as Mcp-Param-Region, too",
            "x-mcp-header": "Region",
        }
    },
    "additionalProperties": False,
}


def run(arguments: Mapping[str, Any]) -> ToolResult:
    """Name the region. The engine has compared the header with it before."""
    region = arguments.get("region")
    return content([text("No region was given." if region is None else f"Region: {region}")])


def check(arguments: Mapping[str, Any]) -> None:
    """Raise `ArgumentsError` about the first argument at fault."""
    for name, value in arguments.items():
        if name != "region":
            raise ArgumentsError(f"unknown parameter {shown(name)}: it takes region")
        if not isinstance(value, str) or len(value) > _MAX_LENGTH:
            raise ArgumentsError(f"region must be a string of at most {_MAX_LENGTH} characters, got {shown(value)}")


TOOLS = (
    Tool(
        name="test_x_mcp_header",
        title="Parameter in a header",
        exercises="`x-mcp-header`: the argument comes in `Mcp-Param-Region` as well",
        shows="the value, also one with spaces at its ends or beyond ASCII",
        description=(
            "Has one parameter that belongs in the header Mcp-Param-Region as well, and returns it. Look for: the "
            "value, also one with spaces at its ends or beyond ASCII."
        ),
        run=run,
        annotations=READ_ONLY,
        input_schema=_SCHEMA,
        check=check,
        since=V2026_07_28,
    ),
)

"""Arguments that clients repeat in HTTP headers, such as a region, for gateways that route by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.catalogue.params import Boolean, Choice, Integer
from ...engine.catalogue.tool import Tool, ToolResult, structured
from ...wire.revisions import V2026_07_28
from ..shared import READ_ONLY, output

_REGIONS = ("eu-north", "us-east", "ap-south")


def run(arguments: Mapping[str, Any]) -> ToolResult:
    """The arguments: the headers have been compared with them before."""
    return structured(dict(arguments))


TOOL = Tool(
    name="routed_tool",
    title="Routed tool",
    exercises="`x-mcp-header` (2026-07-28): arguments mirrored in `Mcp-Param-*`",
    shows="the result; without the headers its call is refused with 400 and -32020",
    description=(
        "Has three parameters with x-mcp-header. Look for: Mcp-Param-Region, Mcp-Param-Priority and Mcp-Param-Dry-Run "
        "in your client's request, each only when it sends the argument and with the same value; otherwise the "
        "answer is 400 with -32020."
    ),
    run=run,
    params=(
        Choice("region", _REGIONS, "eu-north", "Where to run", header="Region"),
        Integer("priority", 1, 9, 5, "How urgent it is", header="Priority"),
        Boolean("dry_run", False, "Whether only to pretend", header="Dry-Run"),
    ),
    output_schema=output(
        region={"type": "string", "enum": list(_REGIONS)},
        priority={"type": "integer"},
        dry_run={"type": "boolean"},
    ),
    annotations=READ_ONLY,
    # 2026-07-28 basic/transports/streamable-http, Custom Headers.
    since=V2026_07_28,
)

"""Tools that show a member of their definition: annotations, and a parameter repeated in a header."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...engine.catalogue.tool import Boolean, Choice, Integer, Tool, ToolResult, structured
from ...wire.jsonrpc import Json
from ...wire.revisions import V2026_07_28
from ..shared import output, probe_tool

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def _only(hint: str) -> Json:
    return {name: name == hint for name in _HINTS}


def _says(hint: str) -> Callable[[Mapping[str, Any]], ToolResult]:
    return lambda _: structured({"hint": hint, "changed": False})


def _tool(name: str, hint: str, title: str, look_for: str, shows: str, but: str = "") -> Tool:
    return Tool(
        name=name,
        title=title,
        exercises=f"`{hint}` alone{but}",
        shows=shows,
        description=f"Does nothing, and of the four hints says only {hint}. Look for: {look_for}",
        run=_says(hint),
        output_schema=output(hint={"type": "string", "enum": list(_HINTS)}, changed={"type": "boolean"}),
        annotations=_only(hint),
    )


HINTS = (
    _tool(
        "read_only_hint",
        "readOnlyHint",
        "Read only",
        "no question, or one that is answered for all calls at once.",
        "no question, or one for all calls",
    ),
    _tool(
        "destructive_hint",
        "destructiveHint",
        "Destructive (destroys nothing)",
        "a question before every call that warns of what may be lost. Nothing is: the hint is all there is.",
        "a question before every call, with a warning",
        "; nothing is destroyed",
    ),
    _tool(
        "idempotent_hint",
        "idempotentHint",
        "Idempotent",
        "a question, as it is not read-only; after a lost connection your client may call again by itself.",
        "a question; it may call again by itself after a lost connection",
    ),
    _tool(
        "open_world_hint",
        "openWorldHint",
        "Open world",
        "a sign that this would reach beyond the server, so that its result may come from a stranger.",
        "that this would reach beyond the server",
    ),
)

_REGIONS = ("eu-north", "us-east", "ap-south")


def _routed_tool(arguments: Mapping[str, Any]) -> ToolResult:
    """The engine has compared the arguments with the headers."""
    return structured(dict(arguments))


ROUTED_TOOL = probe_tool(
    name="routed_tool",
    title="Routed tool",
    exercises="`x-mcp-header` (2026-07-28): arguments mirrored in `Mcp-Param-*`",
    shows="the result; without the headers its call is refused with 400 and -32020",
    description=(
        "Has three parameters with x-mcp-header. Look for: Mcp-Param-Region, Mcp-Param-Priority and Mcp-Param-Dry-Run "
        "in your client's request, each only when it sends the argument and with the same value; otherwise the "
        "answer is 400 with -32020."
    ),
    run=_routed_tool,
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
    # 2026-07-28 basic/transports/streamable-http, Custom Headers.
    since=V2026_07_28,
)

"""A log message of each level."""

from __future__ import annotations

from typing import get_args

from ...engine.catalogue.tool import LogLevel, Tool, ToolContext, ToolResult, structured
from ..shared import READ_ONLY, output

_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)


async def run(context: ToolContext) -> ToolResult:
    """Log at every level, mildest first. Which of them are sent is decided by the level that the client asked for."""
    for number, level in enumerate(_LEVELS, 1):
        context.log(level, f"Message {number} of {len(_LEVELS)} has the level {level}", "log_levels")
    return structured({"logged": list(_LEVELS)})


TOOL = Tool(
    name="log_levels",
    title="Log levels",
    exercises="`notifications/message` at each of the eight levels",
    shows="all eight in order, each with its level; after setting a level only that one and graver ones",
    description=(
        "Logs one message at each of the eight levels, debug to emergency. Look for: all of them in order, each marked "
        "with its level; after you set a level (2026-07-28: in the request) only that one and graver ones. The result "
        "lists what was logged, not what your level let through."
    ),
    run=run,
    output_schema=output(logged={"type": "array", "items": {"type": "string", "enum": list(_LEVELS)}}),
    annotations=READ_ONLY,
)

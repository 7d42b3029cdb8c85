"""Tools whose calls send notifications: log messages of each level, and changed lists."""

from __future__ import annotations

from typing import cast, get_args

from ...engine.calls.context import ToolContext
from ...engine.catalogue.tool import Choice, ListKind, LogLevel, ToolResult, structured
from ..shared import output, probe_tool

_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)


async def _log_levels(context: ToolContext) -> ToolResult:
    """Log at every level, mildest first. The client's level decides which are sent."""
    for number, level in enumerate(_LEVELS, 1):
        context.log(level, f"Message {number} of {len(_LEVELS)} has the level {level}", "log_levels")
    return structured({"logged": list(_LEVELS)})


LOG_LEVELS = probe_tool(
    name="log_levels",
    title="Log levels",
    exercises="`notifications/message` at each of the eight levels",
    shows="all eight in order, each with its level; after setting a level only that one and graver ones",
    description=(
        "Logs one message at each of the eight levels, debug to emergency. Look for: all of them in order, each marked "
        "with its level; after you set a level (2026-07-28: in the request) only that one and graver ones. The result "
        "lists what was logged, not what your level let through."
    ),
    run=_log_levels,
    output_schema=output(logged={"type": "array", "items": {"type": "string", "enum": list(_LEVELS)}}),
)

_LISTS: tuple[ListKind, ...] = get_args(ListKind)


async def _announce_list_change(context: ToolContext) -> ToolResult:
    """The list stays as it is, since many clients use the server at once."""
    changed = cast("ListKind", context.arguments["list"])
    context.announce(changed)
    return structured({"announced": changed})


ANNOUNCE_LIST_CHANGE = probe_tool(
    name="announce_list_change",
    title="Announce a changed list",
    exercises="list-changed notifications",
    shows="the same list as before, after listing once more",
    description=(
        "Tells that a list has changed, though it has not. Look for: your client lists again, shows the same as "
        "before, and does not do so twice. It must listen: with a GET stream, in 2026-07-28 with a subscription."
    ),
    run=_announce_list_change,
    params=(Choice("list", _LISTS, "tools", "Which list to announce"),),
    output_schema=output(announced={"type": "string", "enum": list(_LISTS)}),
    announces=_LISTS,
)

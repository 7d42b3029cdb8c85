"""List-changed notifications on demand."""

from __future__ import annotations

from typing import cast, get_args

from ...engine.catalogue.params import Choice
from ...engine.catalogue.tool import ListKind, Tool, ToolContext, ToolResult, structured
from ..shared import READ_ONLY, output

_LISTS: tuple[ListKind, ...] = get_args(ListKind)


async def run(context: ToolContext) -> ToolResult:
    """Announce; the list stays what it was, since many clients use the server at once."""
    changed = cast("ListKind", context.arguments["list"])
    context.announce(changed)
    return structured({"announced": changed})


TOOL = Tool(
    name="announce_list_change",
    title="Announce a changed list",
    exercises="list-changed notifications",
    shows="the same list as before, after listing once more",
    description=(
        "Tells that a list has changed, though it has not. Look for: your client lists again, shows the same as "
        "before, and does not do so twice. It must listen: with a GET stream, in 2026-07-28 with a subscription."
    ),
    run=run,
    params=(Choice("list", _LISTS, "tools", "Which list to announce"),),
    output_schema=output(announced={"type": "string", "enum": list(_LISTS)}),
    annotations=READ_ONLY,
    announces=_LISTS,
)

"""A call without progress, under an idle deadline of its own."""

from __future__ import annotations

from ...engine.catalogue.params import Boolean, Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, structured
from ..shared import MARK, READ_ONLY, output


async def run(context: ToolContext) -> ToolResult:
    """Be silent for `silentMs`."""
    if not context.arguments["keepAlive"]:
        context.stop_comments()
    silent_ms = context.arguments["silentMs"]
    await context.sleep(silent_ms / 1000)
    return structured({"silentMs": silent_ms})


TOOL = Tool(
    name="silent_call",
    title="Silent call",
    exercises="the idle deadline: a call without progress is stopped, and told so",
    shows="that the call runs; after 2 s the error, with the name of the deadline and its numbers",
    description=(
        "Says nothing for silentMs, and is stopped when that is idleMs or longer. Look for: a tool error that names "
        "the idle deadline, no sooner than idleMs; the result where silentMs is less."
    ),
    run=run,
    params=(
        Integer("silentMs", 0, 600_000, 5000, "How long the call says nothing, in milliseconds"),
        Integer("idleMs", 100, 600_000, 2000, "How long it may say nothing, in milliseconds"),
        Boolean("keepAlive", True, "Whether the stream of the response carries comments meanwhile"),
        MARK,
    ),
    output_schema=output(silentMs={"type": "integer"}),
    annotations=READ_ONLY,
    idle_s=lambda arguments: arguments["idleMs"] / 1000,
    # A caller that asks for a silence beyond the usual ceiling means it; the rest is slack for a busy machine.
    ceiling_s=lambda arguments: 630.0 if arguments["idleMs"] > 60_000 else None,
)

"""A task without progress: only its states."""

from __future__ import annotations

from ...engine.catalogue.params import Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, structured
from ..shared import READ_ONLY, output


async def run(context: ToolContext) -> ToolResult:
    """Wait `durationMs`. No progress and no status message: only the task's own transitions are on the wire."""
    duration_ms = context.arguments["durationMs"]
    await context.sleep(duration_ms / 1000)
    return structured({"message": f"Completed after {duration_ms}ms"})


TOOL = Tool(
    name="pure_task",
    title="Plain task",
    exercises="the states of a task and nothing else: no progress, no status message",
    shows="working, then completed, then the result",
    description=(
        "A task that works for a while and completes, without progress. Look for: the handle at once, the status "
        "working, then completed, and the result fetched afterwards."
    ),
    run=run,
    params=(Integer("durationMs", 1000, 60000, 5000, "How long the task works, in milliseconds"),),
    output_schema=output(message={"type": "string"}),
    annotations=READ_ONLY,
    task_support="required",
)

"""A task with status changes between its progress notifications."""

from __future__ import annotations

from ...engine.catalogue.params import Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, structured
from ..shared import READ_ONLY, item_message, output


async def run(context: ToolContext) -> ToolResult:
    """Process the items: the status names the item at work, progress follows once it is done."""
    count, delay_ms = context.arguments["itemCount"], context.arguments["delayPerItemMs"]
    for item in range(1, count + 1):
        context.set_status(f"Starting item {item} of {count}")
        await context.sleep(delay_ms / 1000)
        context.report_progress(item, count, item_message(item, count))
    return structured({"processedItems": count})


TOOL = Tool(
    name="task_with_progress",
    title="Task with progress",
    exercises="status messages and progress that alternate",
    shows="both, in order, also after the handle came back",
    description=(
        "A task that processes items; status messages and progress notifications alternate. Look for: both kept "
        "apart and in order, and progress still arriving after the handle came back."
    ),
    run=run,
    steps=lambda arguments: arguments["itemCount"],
    params=(
        Integer("itemCount", 1, 100, 10, "How many items to process"),
        Integer("delayPerItemMs", 10, 1000, 500, "How long each item takes, in milliseconds"),
    ),
    output_schema=output(processedItems={"type": "integer"}),
    annotations=READ_ONLY,
    task_support="required",
)

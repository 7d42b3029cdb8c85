"""Progress notifications without a task."""

from __future__ import annotations

from ...engine.catalogue.params import Choice, Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, structured
from ..shared import READ_ONLY, item_message, output


async def run(context: ToolContext) -> ToolResult:
    """Process the items one after the other, each reported once it is done."""
    count, delay_ms = context.arguments["itemCount"], context.arguments["delayPerItemMs"]
    determinate = context.arguments["mode"] == "determinate"
    for item in range(1, count + 1):
        await context.sleep(delay_ms / 1000)
        if determinate:
            context.report_progress(item, count, item_message(item, count))
        else:
            context.report_progress(item, None, f"Processing item {item}...")
    return structured({"processedItems": count})


TOOL = Tool(
    name="sync_with_progress",
    title="Call with progress",
    exercises="`notifications/progress` without a task",
    shows="a bar that moves with each item; without a total a counter or spinner, never a made-up percentage",
    description=(
        "Processes items and reports progress after each one. Look for: a bar that moves item by item while the call "
        "runs (determinate), or a counter or spinner without a percentage (indeterminate, no total is sent)."
    ),
    run=run,
    steps=lambda arguments: arguments["itemCount"] if arguments["mode"] == "determinate" else None,
    params=(
        Integer("itemCount", 1, 100, 10, "How many items to process"),
        Integer("delayPerItemMs", 10, 1000, 100, "How long each item takes, in milliseconds"),
        Choice("mode", ("determinate", "indeterminate"), "determinate", "Whether the total is told or left out"),
    ),
    output_schema=output(processedItems={"type": "integer"}),
    annotations=READ_ONLY,
)

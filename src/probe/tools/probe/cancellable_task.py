"""A task long enough to be cancelled by hand."""

from __future__ import annotations

from ...engine.catalogue.params import Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, structured
from ..shared import READ_ONLY, output


def _seconds(milliseconds: int) -> float:
    whole, rest = divmod(milliseconds, 1000)
    return milliseconds / 1000 if rest else whole


async def run(context: ToolContext) -> ToolResult:
    """Work for `durationMs`, reporting each second of work and the part of a second that may be left at the end."""
    duration_ms = context.arguments["durationMs"]
    total = _seconds(duration_ms)
    context.set_status(f"Running for {total:g}s unless cancelled")
    for before_ms in range(0, duration_ms, 1000):
        now_ms = min(before_ms + 1000, duration_ms)
        await context.sleep((now_ms - before_ms) / 1000)
        elapsed = _seconds(now_ms)
        context.report_progress(elapsed, total, f"Running... {elapsed:g}s / {total:g}s")
    return structured({"message": f"Completed after {duration_ms}ms"})


TOOL = Tool(
    name="cancellable_task",
    title="Cancellable task",
    exercises="`tasks/cancel`; progress every second",
    shows="a way to cancel, cancelled right after, no progress from then on",
    description=(
        "A long task that reports progress every second. Look for: a way to cancel it, the status cancelled right "
        "after, no further progress, and an error when a finished task is cancelled."
    ),
    run=run,
    steps=lambda arguments: _seconds(arguments["durationMs"]),
    params=(Integer("durationMs", 10000, 120000, 60000, "How long the task works, in milliseconds"),),
    output_schema=output(message={"type": "string"}),
    annotations=READ_ONLY,
    task_support="required",
)

"""A call that reports without rest, and for longer than any call may last."""

from __future__ import annotations

from ...engine.catalogue.params import Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, structured
from ..shared import READ_ONLY, output


async def run(context: ToolContext) -> ToolResult:
    """Work for `durationMs`, reporting every `intervalMs` and at the end."""
    interval_ms, duration_ms = context.arguments["intervalMs"], context.arguments["durationMs"]
    for before_ms in range(0, duration_ms, interval_ms):
        now_ms = min(before_ms + interval_ms, duration_ms)
        await context.sleep((now_ms - before_ms) / 1000)
        context.report_progress(now_ms, duration_ms, f"Worked {now_ms} of {duration_ms} ms")
    return structured({"workedMs": duration_ms})


TOOL = Tool(
    name="progress_beyond_ceiling",
    title="Progress beyond the ceiling",
    exercises="the ceiling: no progress keeps a call alive for ever",
    shows="a bar that moves almost to the half; after 5 s the error, which names the ceiling",
    description=(
        "Reports every intervalMs for durationMs, and is stopped at ceilingMs though it reports. Look for: progress "
        "up to the last moment, then a tool error that names the ceiling. With a ceilingMs beyond durationMs it ends."
    ),
    run=run,
    steps=lambda arguments: arguments["durationMs"],
    params=(
        Integer("intervalMs", 50, 60_000, 500, "How long from one report to the next, in milliseconds"),
        Integer("durationMs", 100, 600_000, 10_000, "How long the call works, in milliseconds"),
        Integer("idleMs", 100, 60_000, 2000, "How long it may say nothing, in milliseconds"),
        Integer("ceilingMs", 100, 300_000, 5000, "How long it may last in all, in milliseconds"),
    ),
    output_schema=output(workedMs={"type": "integer"}),
    annotations=READ_ONLY,
    idle_s=lambda arguments: arguments["idleMs"] / 1000,
    ceiling_s=lambda arguments: arguments["ceilingMs"] / 1000,
)

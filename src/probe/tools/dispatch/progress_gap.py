"""A call with progress at an even pace, but for one gap."""

from __future__ import annotations

from ...engine.catalogue.params import Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, structured
from ..shared import READ_ONLY, output


async def run(context: ToolContext) -> ToolResult:
    """Take `reports` steps, one that is as long as the gap, and then the same number again."""
    reports, interval_ms = context.arguments["reports"], context.arguments["intervalMs"]
    total = 2 * reports + 1
    for step in range(1, total + 1):
        after_gap = step == reports + 1
        await context.sleep((context.arguments["gapMs"] if after_gap else interval_ms) / 1000)
        context.report_progress(step, total, f"Step {step} of {total}{', after the gap' if after_gap else ''}")
    return structured({"reports": total})


TOOL = Tool(
    name="progress_gap",
    title="Progress with a gap",
    exercises="progress that moves the idle deadline, and a gap that is too long",
    shows="three steps of seven, then nothing; 2 s after the third the error, which counts three reports",
    description=(
        "Reports every intervalMs, pauses once for gapMs, and goes on as before. Look for: the call lives longer than "
        "idleMs while it reports, and is stopped idleMs after the last report before the gap, unless gapMs is less."
    ),
    run=run,
    steps=lambda arguments: 2 * arguments["reports"] + 1,
    params=(
        Integer("intervalMs", 50, 60_000, 1000, "How long from one report to the next, in milliseconds"),
        Integer("reports", 1, 100, 3, "How many reports before the gap, and how many after it"),
        Integer("gapMs", 0, 600_000, 5000, "How long the gap is, in milliseconds"),
        Integer("idleMs", 100, 60_000, 2000, "How long the call may say nothing, in milliseconds"),
    ),
    output_schema=output(reports={"type": "integer"}),
    annotations=READ_ONLY,
    idle_s=lambda arguments: arguments["idleMs"] / 1000,
)

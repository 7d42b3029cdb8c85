"""Progress notifications at an even pace."""

from __future__ import annotations

from ...engine.catalogue.params import Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, structured
from ..shared import MARK, READ_ONLY, output


async def run(context: ToolContext) -> ToolResult:
    """Take `steps` steps of `step_ms` each, reporting each one once it is done."""
    steps = context.arguments["steps"]
    for step in range(1, steps + 1):
        await context.sleep(context.arguments["step_ms"] / 1000)
        context.report_progress(step, steps, f"step {step}/{steps}")
    return structured({"steps": steps, "notified": context.notified, "done": True})


TOOL = Tool(
    name="progress",
    title="Progress",
    exercises="notifications at an even pace, the client's own token; cancellation in between",
    shows="each step in its time; all at once at the end means that something buffers the stream",
    description=(
        "Reports progress at an even pace. Look for: notifications that arrive one by one, step_ms apart, with your "
        "own token; if all come at the end, something between buffers the stream. notified is false without a token."
    ),
    run=run,
    steps=lambda arguments: arguments["steps"],
    params=(
        Integer("steps", 1, 100, 5, "How many steps, each with one notification"),
        Integer("step_ms", 0, 5000, 200, "How long each step takes, in milliseconds"),
        MARK,
    ),
    output_schema=output(steps={"type": "integer"}, notified={"type": "boolean"}, done={"type": "boolean"}),
    annotations=READ_ONLY,
    # 100 steps of 5 s are 500 s; the rest is slack for a busy machine.
    ceiling_s=530.0,
)

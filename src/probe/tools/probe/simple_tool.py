"""The baseline: a call and its result."""

from __future__ import annotations

from ...engine.catalogue.params import Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, structured
from ..shared import MARK, READ_ONLY, output


async def run(context: ToolContext) -> ToolResult:
    """Wait `delayMs`, then say so."""
    delay_ms = context.arguments["delayMs"]
    await context.sleep(delay_ms / 1000)
    return structured({"message": f"Completed after {delay_ms}ms"})


TOOL = Tool(
    name="simple_tool",
    title="Simple tool",
    exercises="a call and its result",
    shows="the message; that the call is running while it waits",
    description=(
        "Waits, then returns a message. Look for: the message in your client, and with a longer delay a sign that the "
        "call is still running."
    ),
    run=run,
    params=(Integer("delayMs", 0, 5000, 0, "How long to wait, in milliseconds"), MARK),
    output_schema=output(message={"type": "string"}),
    annotations=READ_ONLY,
)

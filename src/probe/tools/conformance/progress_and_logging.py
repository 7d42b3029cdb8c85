"""Fixtures with notifications during the call."""

from __future__ import annotations

from typing import Final

from ...engine.calls.context import ToolContext
from ...engine.catalogue.tool import Tool, ToolResult, content, text
from ..shared import READ_ONLY

_PAUSE_S: Final = 0.05


async def log(context: ToolContext) -> ToolResult:
    """Three messages at level info."""
    context.log("info", "Tool execution started")
    await context.sleep(_PAUSE_S)
    context.log("info", "Tool processing data")
    await context.sleep(_PAUSE_S)
    context.log("info", "Tool execution completed")
    return content([text("Three log messages were sent at level info.")])


async def progress(context: ToolContext) -> ToolResult:
    """Three reports, the first of them before any work: the suite wants 0, 50 and 100."""
    context.report_progress(0, 100, "Completed step 0 of 100")
    for done in (50, 100):
        await context.sleep(_PAUSE_S)
        context.report_progress(done, 100, f"Completed step {done} of 100")
    return content([text("Progress went from 0 to 100.")])


TOOLS = (
    Tool(
        name="test_tool_with_logging",
        title="Logging",
        exercises="three `notifications/message` of level info, 50 ms apart",
        shows="them in its log, during the call",
        description="Sends three log messages of level info. Look for: them in your client's log while the call runs.",
        run=log,
        annotations=READ_ONLY,
    ),
    Tool(
        name="test_tool_with_progress",
        title="Progress in halves",
        exercises="progress 0, 50 and 100 of 100, 50 ms apart",
        shows="three positions of the bar",
        description="Reports progress 0, 50 and 100 of 100. Look for: three positions of the bar before the result.",
        run=progress,
        annotations=READ_ONLY,
    ),
)

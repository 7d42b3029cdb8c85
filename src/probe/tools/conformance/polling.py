"""A fixture that makes the client come back for its result (2025-11-25, polling of event streams)."""

from __future__ import annotations

from typing import Final

from ...engine.calls.context import ToolContext
from ...engine.catalogue.tool import Tool, ToolResult, content, text
from ...wire.revisions import V2025_11_25
from ..shared import READ_ONLY

_AWAY_S: Final = 0.2
"""Seconds between the end of the connection and the result: long enough that it cannot slip into the first one."""


async def run(context: ToolContext) -> ToolResult:
    """End the connection, then finish."""
    context.hang_up()
    await context.sleep(_AWAY_S)
    return content([text("The result was fetched after the connection had ended.")])


TOOLS = (
    Tool(
        name="test_reconnection",
        title="Reconnection",
        exercises="an event stream that ends before the result (2025-11-25)",
        shows="the result, after coming back with `Last-Event-ID`",
        description=(
            "Ends the connection before the result is there. Look for: your client coming back with Last-Event-ID "
            "after the retry interval, and the result."
        ),
        run=run,
        annotations=READ_ONLY,
        # Earlier revisions have no priming event, so a client may have no id to come back with. 2026-07-28 has no event
        # ids at all: there the end of the connection is a cancellation.
        since=V2025_11_25,
        until=V2025_11_25,
    ),
)

"""The two ways for a call to fail, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.catalogue.params import Choice
from ...engine.catalogue.tool import Tool, ToolResult, failure
from ...wire.errors import Code, McpError
from ..shared import READ_ONLY


def run(arguments: Mapping[str, Any]) -> ToolResult:
    """A result that says it failed, or no result: raises `McpError` -32603."""
    if arguments["how"] == "protocol_error":
        raise McpError(Code.INTERNAL_ERROR, "Simulated protocol error: there is no result", {"simulated": True})
    return failure("Simulated tool error: the tool ran, failed, and says so in its result")


TOOL = Tool(
    name="fail",
    title="Fail",
    exercises="a result with `isError`, or a JSON-RPC error -32603",
    shows="the first handed to its model as the tool's answer, the second as a request that failed",
    description=(
        "Fails. Look for: tool_error is a result with isError, which a good client hands to its model, so that the "
        "model can try something else; protocol_error is a JSON-RPC error (-32603), which a good client shows as a "
        "failed request, with its message, and takes for no answer of the tool."
    ),
    run=run,
    params=(Choice("how", ("tool_error", "protocol_error"), "tool_error", "Which kind of error"),),
    annotations=READ_ONLY,
)

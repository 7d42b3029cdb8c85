"""A task with a certain failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from ...engine.catalogue.params import Choice, Integer
from ...engine.catalogue.tool import Tool, ToolContext
from ...wire.errors import Code, McpError
from ..shared import READ_ONLY

_CODES: Mapping[str, Code] = {
    "timeout": Code.SIMULATED_TIMEOUT,
    "internal": Code.INTERNAL_ERROR,
    "validation": Code.INVALID_PARAMS,
}


async def run(context: ToolContext) -> NoReturn:
    """Work for `failAfterMs`, then raise `McpError` with the chosen code and its name in `data`."""
    kind = context.arguments["errorCode"]
    await context.sleep(context.arguments["failAfterMs"] / 1000)
    raise McpError(_CODES[kind], f"Simulated {kind} error", {"code": kind})


TOOL = Tool(
    name="failing_task",
    title="Failing task",
    exercises="a task that ends failed with a JSON-RPC error",
    shows="failed, with the message, as an error and not as a result",
    description=(
        "A task that works for a while and then fails. Look for: the status failed with its message, and the error "
        "itself shown as an error, not as a result."
    ),
    run=run,
    params=(
        Integer("failAfterMs", 1000, 30000, 2000, "How long the task works before it fails, in milliseconds"),
        Choice("errorCode", tuple(_CODES), "internal", "Which error it ends with"),
    ),
    annotations=READ_ONLY,
    task_support="required",
)

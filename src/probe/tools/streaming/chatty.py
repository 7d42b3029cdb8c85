"""A few different text blocks, one of them not ASCII."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.catalogue.tool import Tool, ToolResult, content, text
from ..shared import READ_ONLY

_BLOCKS = (
    "first block: short",
    "second block: a slightly longer string with multiple words",
    "third block: numbers 1 2 3 4 5",
    "fourth block: unicode; café résumé naïve",
)


def run(_: Mapping[str, Any]) -> ToolResult:
    """The four blocks."""
    return content([text(block) for block in _BLOCKS])


TOOL = Tool(
    name="chatty",
    title="Chatty",
    exercises="order of blocks, text beyond ASCII",
    shows="four blocks, the fourth with café résumé naïve",
    description=(
        "Returns four text blocks. Look for: all four, in order, and the accents of the fourth unharmed "
        "(café résumé naïve)."
    ),
    run=run,
    annotations=READ_ONLY,
)

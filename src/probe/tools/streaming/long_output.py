"""Large results of many blocks, the same bytes every time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.catalogue.params import Integer
from ...engine.catalogue.tool import Tool, ToolResult, content, text
from ..shared import READ_ONLY

_MOST = 65536
# Every ten characters end with how many there are so far: the end of a truncated block tells where it was cut.
_RULER = "".join(f"{end:.>10}" for end in range(10, _MOST + 10, 10))


def block(number: int, ruler: str) -> str:
    """Block `number`, as long as the ruler it is written over."""
    label = f"[block {number}] "
    return (label + ruler[len(label) :])[: len(ruler)]


def run(arguments: Mapping[str, Any]) -> ToolResult:
    """The blocks. ASCII only, so that a limit in bytes and one in characters cut at the same place."""
    ruler = _RULER[: arguments["chars"]]
    return content([text(block(number, ruler)) for number in range(1, arguments["blocks"] + 1)])


TOOL = Tool(
    name="long_output",
    title="Long output",
    exercises="number, order and size of blocks, up to 16.8 MB",
    shows="every block, complete",
    description=(
        "Returns many text blocks of an exact length. Look for: every block there, in order, complete; the last number "
        "in a block says how many characters had come by then."
    ),
    run=run,
    params=(
        Integer("blocks", 1, 256, 3, "How many text blocks"),
        Integer("chars", 1, _MOST, 256, "How many characters each block has"),
    ),
    annotations=READ_ONLY,
)

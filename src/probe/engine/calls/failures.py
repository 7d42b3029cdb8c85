"""Tool errors that programs can read as well: a sentence, and the facts beside it.

The facts stand in a second text block, where models see them, and under `_meta`, where clients find them. They are no
`structuredContent`: some clients check that against the tool's outputSchema even when isError is set.
"""

from __future__ import annotations

from typing import Final

from ...wire.jsonrpc import Json, encode
from ..catalogue.tool import ToolResult, text

ERROR_META_KEY: Final = "mcp-probe/error"
"""The key in `_meta` for the facts of a structured failure."""

DEADLINE_META_KEY: Final = "mcp-probe/deadline"
"""The key in `_meta` for the numbers of an answer to an expired call."""


def structured_failure(message: str, data: Json) -> ToolResult:
    """A tool error with its message and `data` as facts: what failed, whether to try again, how far it got."""
    return _failure(message, ERROR_META_KEY, {"message": message, **data})


def deadline_failure(sentence: str, numbers: Json) -> ToolResult:
    """The tool error of a call whose deadline has passed."""
    return _failure(sentence, DEADLINE_META_KEY, numbers)


def _failure(sentence: str, key: str, facts: Json) -> ToolResult:
    blocks = [text(sentence), text(encode(facts).decode())]
    return {"content": blocks, "isError": True, "_meta": {key: facts}}

"""Tool errors for models and for programs: a sentence, and the facts as JSON.

The facts stand in a second text block, which models see, and under `_meta`, for clients. They are not in
`structuredContent`: some clients check that against the tool's outputSchema even where isError is set.
"""

from __future__ import annotations

from typing import Final

from ...wire.jsonrpc import Json, encode
from ..catalogue.tool import ToolResult, text

ERROR_META_KEY: Final = "mcp-probe/error"
"""The key in `_meta` of the facts of a structured failure."""

DEADLINE_META_KEY: Final = "mcp-probe/deadline"
"""The key in `_meta` of the numbers in the answer to an expired call."""


def structured_failure(message: str, data: Json) -> ToolResult:
    """A tool error with a message and its facts in `data`: what failed, whether to retry, how far it got."""
    return _failure(message, ERROR_META_KEY, {"message": message, **data})


def deadline_failure(sentence: str, numbers: Json) -> ToolResult:
    """The tool error of a call after its deadline."""
    return _failure(sentence, DEADLINE_META_KEY, numbers)


def _failure(sentence: str, key: str, facts: Json) -> ToolResult:
    blocks = [text(sentence), text(encode(facts).decode())]
    return {"content": blocks, "isError": True, "_meta": {key: facts}}

"""Common parts of the tools."""

from __future__ import annotations

from typing import Any, Final

from ..engine.catalogue.params import Integer
from ..engine.catalogue.tool import ToolFailureError
from ..wire.jsonrpc import Json

READ_ONLY: Final[Json] = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}
"""The annotations of the tools: none changes anything or reaches beyond this server and the client. `hints` differ."""


MARK: Final = Integer(
    "mark",
    0,
    999_999_999,
    0,
    "Any number; it changes nothing, and stands in the log, so that a caller finds its own call there again",
)
"""Arguments are all that every gateway passes on, so a comparison of its two sides needs a mark among them."""


def output(**properties: Json) -> Json:
    """The schema of an object with exactly these members, all of them required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def item_message(item: int, count: int) -> str:
    """The message of one step through a known number of items."""
    return f"Processing item {item} of {count}"


def sampling_request(prompt: str, max_tokens: int) -> Json:
    """The parameters of `sampling/createMessage` for one question."""
    return {"messages": [{"role": "user", "content": {"type": "text", "text": prompt}}], "maxTokens": max_tokens}


def sampled_text(answer: Json) -> str:
    """The text of a `CreateMessageResult`, several text blocks joined by newlines.

    Since 2025-11-25 `content` is one block or a list of them; blocks of other types are passed over. Raises
    `ToolFailureError` when there is no text, naming what came instead.
    """
    sent: Any = answer.get("content")
    blocks = [block for block in (sent if isinstance(sent, list) else [sent]) if isinstance(block, dict)]
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    strings = [value for value in texts if isinstance(value, str)]
    if len(strings) < len(texts):
        raise ToolFailureError("The client's answer is malformed: a text block without a string in `text`")
    if not strings:
        kinds = ", ".join(sorted({str(block.get("type")) for block in blocks})) or "nothing"
        raise ToolFailureError(f"The client's answer has no text block; it has: {kinds}")
    return "\n".join(strings)

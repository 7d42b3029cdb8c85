"""Common parts of the tools, and an image and a sound for people to recognise."""

from __future__ import annotations

import base64
import io
import wave
from typing import Any, Final

from ..engine.catalogue.params import Integer
from ..engine.catalogue.tool import ToolFailureError
from ..wire.jsonrpc import Json

IMAGE: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAgMAAADXB5lNAAAADFBMVEXWLy8unkQrbNbywC5+3d6NAAAA"
    "IElEQVR42mNggIJQKGAYFRgVQBJYBQX/oWBUYFQASQAABnD+ECYayaQAAAAASUVORK5CYII="
)
"""A PNG of 64 by 64 pixels, Base64: red, green above blue, yellow. A literal, since compressors differ."""
_RATE: Final = 8000
_PERIOD: Final = 18


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


def _tone() -> str:
    # Whole numbers only, so that the bytes are the same on every machine.
    period = bytes(128 + 12 * min(step, _PERIOD - step) - 54 for step in range(_PERIOD))
    written = io.BytesIO()
    with wave.open(written, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(_RATE)
        sound.writeframes(period * (_RATE // 2 // _PERIOD))
    return base64.b64encode(written.getvalue()).decode()


TONE: Final = _tone()
"""Half a second of a triangle wave of 444 Hz in a WAV, Base64: 8 bits, mono, 8000 samples per second."""

"""Fixtures with each type of content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...engine.catalogue.tool import Tool, ToolResult, content, failure, text
from ...wire.jsonrpc import Json
from ..shared import READ_ONLY

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAE0lEQVR42mOQizrx4cMHBiAGsgA3mgghyebLYgAAAABJRU5ErkJggg=="
"""A checkerboard of 2 by 2 pixels. A literal, since compressors differ and the bytes must not."""

_WAV: Final = "UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YRAAAACA2v/agCYBJoDa/9qAJgEm"
"""Two periods of a 1 kHz tone: 16 samples, 8 bits, mono, 8000 per second."""

_IMAGE: Final[Json] = {"type": "image", "data": PNG, "mimeType": "image/png"}


def _resource(uri: str, mime_type: str, body: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": body}}


def _always(result: ToolResult) -> Callable[[Mapping[str, Any]], ToolResult]:
    return lambda _: result


SIMPLE_TEXT = Tool(
    name="test_simple_text",
    title="Simple text",
    exercises="one text block",
    shows="the sentence",
    description="Returns one text block. Look for: the sentence.",
    run=_always(content([text("This is a simple text response for testing.")])),
    annotations=READ_ONLY,
)

IMAGE_CONTENT = Tool(
    name="test_image_content",
    title="Image content",
    exercises="an image block (PNG)",
    shows="a checkerboard of 2 by 2 pixels",
    description="Returns one PNG image. Look for: a checkerboard of 2 by 2 pixels.",
    run=_always(content([_IMAGE])),
    annotations=READ_ONLY,
)

AUDIO_CONTENT = Tool(
    name="test_audio_content",
    title="Audio content",
    exercises="an audio block (WAV)",
    shows="a player",
    description="Returns one WAV sound. Look for: a player, with a click of 2 ms.",
    run=_always(content([{"type": "audio", "data": _WAV, "mimeType": "audio/wav"}])),
    annotations=READ_ONLY,
)

EMBEDDED_RESOURCE = Tool(
    name="test_embedded_resource",
    title="Embedded resource",
    exercises="an embedded resource",
    shows="its text, uri and type",
    description="Returns one embedded text resource. Look for: its text, uri and type.",
    run=_always(
        content([_resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")])
    ),
    annotations=READ_ONLY,
)

MULTIPLE_CONTENT_TYPES = Tool(
    name="test_multiple_content_types",
    title="Mixed content",
    exercises="text, image and resource in one result",
    shows="all three, in order",
    description="Returns a text, an image and an embedded resource. Look for: all three, in this order.",
    run=_always(
        content(
            [
                text("Multiple content types test:"),
                _IMAGE,
                _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
            ]
        )
    ),
    annotations=READ_ONLY,
)

ERROR_HANDLING = Tool(
    name="test_error_handling",
    title="Tool error",
    exercises="a tool error (`isError`), not a protocol error",
    shows="the sentence, marked as an error",
    description="Returns a tool error (isError), not a protocol error. Look for: the sentence, marked as an error.",
    run=_always(failure("This tool intentionally returns an error for testing")),
    annotations=READ_ONLY,
)

TOOLS = (
    SIMPLE_TEXT,
    IMAGE_CONTENT,
    AUDIO_CONTENT,
    EMBEDDED_RESOURCE,
    MULTIPLE_CONTENT_TYPES,
    ERROR_HANDLING,
)

"""Fixtures with each type of content, with notifications during the call, and with a connection that ends early."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...engine.calls.context import ToolContext
from ...engine.catalogue.tool import ToolResult, content, failure, text
from ...wire.jsonrpc import Json
from ...wire.revisions import V2025_11_25
from ..shared import probe_tool

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAE0lEQVR42mOQizrx4cMHBiAGsgA3mgghyebLYgAAAABJRU5ErkJggg=="
"""2 by 2 pixels. A literal, since compressors differ and the bytes must not."""

_WAV: Final = "UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YRAAAACA2v/agCYBJoDa/9qAJgEm"
"""Two periods of a 1 kHz tone: 16 samples, 8 bits, mono, 8000 per second."""

_IMAGE: Final[Json] = {"type": "image", "data": PNG, "mimeType": "image/png"}


def _resource(uri: str, mime_type: str, body: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": body}}


def _always(result: ToolResult) -> Callable[[Mapping[str, Any]], ToolResult]:
    return lambda _: result


SIMPLE_TEXT = probe_tool(
    name="test_simple_text",
    title="Simple text",
    exercises="one text block",
    shows="the sentence",
    description="Returns one text block. Look for: the sentence.",
    run=_always(content([text("This is a simple text response for testing.")])),
)

IMAGE_CONTENT = probe_tool(
    name="test_image_content",
    title="Image content",
    exercises="an image block (PNG)",
    shows="a checkerboard of 2 by 2 pixels",
    description="Returns one PNG image. Look for: a checkerboard of 2 by 2 pixels.",
    run=_always(content([_IMAGE])),
)

AUDIO_CONTENT = probe_tool(
    name="test_audio_content",
    title="Audio content",
    exercises="an audio block (WAV)",
    shows="a player",
    description="Returns one WAV sound. Look for: a player, with a click of 2 ms.",
    run=_always(content([{"type": "audio", "data": _WAV, "mimeType": "audio/wav"}])),
)

EMBEDDED_RESOURCE = probe_tool(
    name="test_embedded_resource",
    title="Embedded resource",
    exercises="an embedded resource",
    shows="its text, uri and type",
    description="Returns one embedded text resource. Look for: its text, uri and type.",
    run=_always(
        content([_resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")])
    ),
)

MULTIPLE_CONTENT_TYPES = probe_tool(
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
)

ERROR_HANDLING = probe_tool(
    name="test_error_handling",
    title="Tool error",
    exercises="a tool error (`isError`), not a protocol error",
    shows="the sentence, marked as an error",
    description="Returns a tool error (isError), not a protocol error. Look for: the sentence, marked as an error.",
    run=_always(failure("This tool intentionally returns an error for testing")),
)

TOOLS = (
    SIMPLE_TEXT,
    IMAGE_CONTENT,
    AUDIO_CONTENT,
    EMBEDDED_RESOURCE,
    MULTIPLE_CONTENT_TYPES,
    ERROR_HANDLING,
)

_AWAY_S: Final = 0.2
"""Seconds between the end of the connection and the result, so that the result is not in the first one."""


async def _reconnect(context: ToolContext) -> ToolResult:
    context.hang_up()
    await context.sleep(_AWAY_S)
    return content([text("The result was fetched after the connection had ended.")])


POLLING = (
    probe_tool(
        name="test_reconnection",
        title="Reconnection",
        exercises="an event stream that ends before the result (2025-11-25)",
        shows="the result, after coming back with `Last-Event-ID`",
        description=(
            "Ends the connection before the result is there. Look for: your client coming back with Last-Event-ID "
            "after the retry interval, and the result."
        ),
        run=_reconnect,
        # Earlier revisions have no priming event, so a client may have no id to come back with; in 2026-07-28 the end
        # of the connection is a cancellation.
        since=V2025_11_25,
        until=V2025_11_25,
    ),
)

_PAUSE_S: Final = 0.05


async def _log(context: ToolContext) -> ToolResult:
    context.log("info", "Tool execution started")
    await context.sleep(_PAUSE_S)
    context.log("info", "Tool processing data")
    await context.sleep(_PAUSE_S)
    context.log("info", "Tool execution completed")
    return content([text("Three log messages were sent at level info.")])


async def _progress(context: ToolContext) -> ToolResult:
    """Three reports, the first of them before any work: the suite wants 0, 50 and 100."""
    context.report_progress(0, 100, "Completed step 0 of 100")
    for done in (50, 100):
        await context.sleep(_PAUSE_S)
        context.report_progress(done, 100, f"Completed step {done} of 100")
    return content([text("Progress went from 0 to 100.")])


NOTIFYING = (
    probe_tool(
        name="test_tool_with_logging",
        title="Logging",
        exercises="three `notifications/message` of level info, 50 ms apart",
        shows="them in its log, during the call",
        description="Sends three log messages of level info. Look for: them in your client's log while the call runs.",
        run=_log,
    ),
    probe_tool(
        name="test_tool_with_progress",
        title="Progress in halves",
        exercises="progress 0, 50 and 100 of 100, 50 ms apart",
        shows="three positions of the bar",
        description="Reports progress 0, 50 and 100 of 100. Look for: three positions of the bar before the result.",
        run=_progress,
    ),
)

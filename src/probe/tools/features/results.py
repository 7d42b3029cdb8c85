"""One tool for each form of a result: structured, with each type of content, and as an error."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from ...engine.catalogue.tool import Choice, ToolResult, content, failure, structured, text
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json
from ...wire.revisions import V2025_06_18
from ..shared import IMAGE, TONE, output, probe_tool
from .resources import TEXT, TEXT_URI

_VALUE: Final[Json] = {
    "station": {
        "name": "Žižkov Ελλάδα 東京 \U0001f989",
        "position": {"latitude": 50.081, "longitude": 14.451},
        "closed": None,
    },
    "readings": [
        {"hour": 0, "celsius": -3.5, "valid": True},
        {"hour": 12, "celsius": 4.25, "valid": True},
        {"hour": 23, "celsius": None, "valid": False},
    ],
    # The largest integer exact in JavaScript, and a number that is written with an exponent.
    "limits": {"largest": 2**53 - 1, "smallest": 1e-9},
    "grid": [[1, 2, 3], [], [4]],
    "notes": [],
}

_NUMBER: Final[Json] = {"type": "number"}
_READING: Final = output(
    hour={"type": "integer", "minimum": 0, "maximum": 23},
    celsius={"type": ["number", "null"]},
    valid={"type": "boolean"},
)


def _structured_output(_: Mapping[str, Any]) -> ToolResult:
    return structured(_VALUE)


STRUCTURED_OUTPUT = probe_tool(
    name="structured_output",
    title="Structured output",
    exercises="`structuredContent` of every JSON type, checked by its output schema",
    shows="the structure; null, empty arrays, 9007199254740991 and all four scripts unharmed",
    description=(
        "Returns nested objects, arrays, numbers, null and text in four scripts, described by an output schema. Look "
        "for: the structure, not only its JSON as text; celsius null in the last reading; largest 9007199254740991 to "
        "the last digit; empty arrays still there; the owl."
    ),
    run=_structured_output,
    output_schema=output(
        station=output(
            name={"type": "string"},
            position=output(latitude=_NUMBER, longitude=_NUMBER),
            closed={"type": ["string", "null"]},
        ),
        readings={"type": "array", "items": _READING},
        limits=output(largest={"type": "integer"}, smallest=_NUMBER),
        grid={"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        notes={"type": "array", "items": {"type": "string"}},
    ),
)


def _meant_for(*audience: str, priority: float) -> Json:
    return {"annotations": {"audience": list(audience), "priority": priority, "lastModified": "2026-07-28T12:00:00Z"}}


_BLOCKS: Final[Mapping[str, Json]] = {
    "text": {**text("Text for you and your model, most important"), **_meant_for("user", "assistant", priority=1)},
    "image": {"type": "image", "data": IMAGE, "mimeType": "image/png", **_meant_for("user", priority=0.8)},
    "audio": {"type": "audio", "data": TONE, "mimeType": "audio/wav", **_meant_for("user", priority=0.6)},
    "resource_link": {
        "type": "resource_link",
        "uri": TEXT_URI,
        "name": "text",
        "title": "Text",
        "description": "A link: its text comes by resources/read",
        "mimeType": "text/plain",
        "size": len(TEXT.encode()),
        **_meant_for("user", "assistant", priority=0.4),
    },
    "embedded_text": {
        "type": "resource",
        "resource": {"uri": TEXT_URI, "mimeType": "text/plain", "text": TEXT},
        **_meant_for("assistant", priority=0.2),
    },
    "embedded_blob": {
        "type": "resource",
        "resource": {
            "uri": "probe://bytes",
            "mimeType": "application/octet-stream",
            "blob": base64.b64encode(bytes(range(256))).decode(),
        },
        **_meant_for("user", priority=0),
    },
}


def _content_types(arguments: Mapping[str, Any]) -> ToolResult:
    kind = arguments["kind"]
    return content(list(_BLOCKS.values()) if kind == "all" else [_BLOCKS[kind]])


CONTENT_TYPES = probe_tool(
    name="content_types",
    title="Content types",
    exercises="each content block, with audience, priority and lastModified (2025-06-18 and later)",
    shows="four coloured squares, a player of half a second, a link that opens, a text, 256 bytes to save",
    description=(
        "Returns each type of content block, with audience, priority and lastModified. Look for: a picture of four "
        "coloured squares, a player that sounds for half a second, a link that can be opened, an embedded text and 256 "
        "bytes to save; what is for the assistant only is not in your way."
    ),
    run=_content_types,
    params=(Choice("kind", ("all", *_BLOCKS), "all", "Which block to return"),),
    # Links, and lastModified, are new in 2025-06-18.
    since=V2025_06_18,
)


def _fail(arguments: Mapping[str, Any]) -> ToolResult:
    if arguments["how"] == "protocol_error":
        raise McpError(Code.INTERNAL_ERROR, "Simulated protocol error: there is no result", {"simulated": True})
    return failure("Simulated tool error: the tool ran, failed, and says so in its result")


FAIL = probe_tool(
    name="fail",
    title="Fail",
    exercises="a result with `isError`, or a JSON-RPC error -32603",
    shows="the first handed to its model as the tool's answer, the second as a request that failed",
    description=(
        "Fails. Look for: tool_error is a result with isError, which a good client hands to its model, so that the "
        "model can try something else; protocol_error is a JSON-RPC error (-32603), which a good client shows as a "
        "failed request, with its message, and takes for no answer of the tool."
    ),
    run=_fail,
    params=(Choice("how", ("tool_error", "protocol_error"), "tool_error", "Which kind of error"),),
)

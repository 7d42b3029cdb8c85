"""Every type of content block, with annotations."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from ...engine.catalogue.params import Choice
from ...engine.catalogue.tool import Tool, ToolResult, content, text
from ...wire.jsonrpc import Json
from ...wire.revisions import V2025_06_18
from ..media import IMAGE, TONE
from ..shared import READ_ONLY
from .resources import TEXT, TEXT_URI


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


def run(arguments: Mapping[str, Any]) -> ToolResult:
    """One block, or all of them."""
    kind = arguments["kind"]
    return content(list(_BLOCKS.values()) if kind == "all" else [_BLOCKS[kind]])


TOOL = Tool(
    name="content_types",
    title="Content types",
    exercises="each content block, with audience, priority and lastModified (2025-06-18 and later)",
    shows="four coloured squares, a player of half a second, a link that opens, a text, 256 bytes to save",
    description=(
        "Returns each type of content block, with audience, priority and lastModified. Look for: a picture of four "
        "coloured squares, a player that sounds for half a second, a link that can be opened, an embedded text and 256 "
        "bytes to save; what is for the assistant only is not in your way."
    ),
    run=run,
    params=(Choice("kind", ("all", *_BLOCKS), "all", "Which block to return"),),
    annotations=READ_ONLY,
    # Links, and lastModified, are new in 2025-06-18.
    since=V2025_06_18,
)

"""Four tools without effect, each with one of the behaviour hints, so that a client's approval dialogue can be seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...engine.catalogue.tool import Tool, ToolResult, structured
from ...wire.jsonrpc import Json
from ..shared import output

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def _only(hint: str) -> Json:
    return {name: name == hint for name in _HINTS}


def _says(hint: str) -> Callable[[Mapping[str, Any]], ToolResult]:
    return lambda _: structured({"hint": hint, "changed": False})


def _tool(name: str, hint: str, title: str, look_for: str, shows: str, but: str = "") -> Tool:
    return Tool(
        name=name,
        title=title,
        exercises=f"`{hint}` alone{but}",
        shows=shows,
        description=f"Does nothing, and of the four hints says only {hint}. Look for: {look_for}",
        run=_says(hint),
        output_schema=output(hint={"type": "string", "enum": list(_HINTS)}, changed={"type": "boolean"}),
        annotations=_only(hint),
    )


TOOLS = (
    _tool(
        "read_only_hint",
        "readOnlyHint",
        "Read only",
        "no question, or one that is answered for all calls at once.",
        "no question, or one for all calls",
    ),
    _tool(
        "destructive_hint",
        "destructiveHint",
        "Destructive (destroys nothing)",
        "a question before every call that warns of what may be lost. Nothing is: the hint is all there is.",
        "a question before every call, with a warning",
        "; nothing is destroyed",
    ),
    _tool(
        "idempotent_hint",
        "idempotentHint",
        "Idempotent",
        "a question, as it is not read-only; after a lost connection your client may call again by itself.",
        "a question; it may call again by itself after a lost connection",
    ),
    _tool(
        "open_world_hint",
        "openWorldHint",
        "Open world",
        "a sign that this would reach beyond the server, so that its result may come from a stranger.",
        "that this would reach beyond the server",
    ),
)

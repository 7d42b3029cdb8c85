"""Other requests to the client: its roots, several things at once, and whether it is there."""

from __future__ import annotations

from typing import Final

from ...engine.calls.context import ToolContext
from ...engine.catalogue.tool import Ask, Tool, ToolFailureError, ToolResult, structured
from ...wire.revisions import V2025_11_25
from ..forms import form, form_ask
from ..shared import READ_ONLY, output, sampling_request

_ASKS: Final = {
    "form": form_ask(
        "This form comes together with other questions. Do you see it?",
        form({"seen": {"type": "boolean", "title": "I see it", "default": True}}),
    ),
    "completion": Ask("sampling/createMessage", sampling_request("Answer with the one word: here.", 16)),
    "roots": Ask("roots/list", {}),
}


async def list_roots(context: ToolContext) -> ToolResult:
    """The roots as they came."""
    return structured({"roots": (await context.list_roots("roots"))["roots"]})


async def ask_several(context: ToolContext) -> ToolResult:
    """Ask everything the client declares, at once. Raises `ToolFailureError` when that is nothing."""
    asks = {key: ask for key, ask in _ASKS.items() if context.declares(ask.method)}
    if not asks:
        raise ToolFailureError("Your client declares none of elicitation, sampling and roots, so it cannot be asked")
    answers = await context.ask(asks)
    return structured({"asked": list(asks), "answers": dict(answers)})


async def ping_client(context: ToolContext) -> ToolResult:
    """A ping; no answer is a tool error."""
    await context.ping()
    return structured({"answered": True})


TOOLS = (
    Tool(
        name="list_roots",
        title="Client roots",
        exercises="`roots/list` (deprecated in 2026-07-28)",
        shows="its open folders, each a `file://` URI",
        description=(
            "Asks your client for its roots. Look for: the folders that are open in it, each a file:// URI. Roots are "
            "deprecated in 2026-07-28, but work. Needs a client with roots."
        ),
        run=list_roots,
        output_schema=output(
            roots={"type": "array", "items": {"type": "object"}, "description": "The roots as they came"}
        ),
        annotations=READ_ONLY,
        requires=("roots",),
        asks_client=True,
    ),
    Tool(
        name="ask_several",
        title="Several questions at once",
        exercises="elicitation, sampling and roots in one round (2026-07-28) or one after the other",
        shows="every question that it declares an answer for; declining one keeps the others",
        description=(
            "Asks for a form, a completion and the roots, as far as your client declares them. Look for: all questions "
            "answered in one round in 2026-07-28, one after the other before; declining one does not lose the others."
        ),
        run=ask_several,
        output_schema=output(
            asked={"type": "array", "items": {"type": "string", "enum": list(_ASKS)}},
            answers={
                "type": "object",
                "description": "The client's results as they came, by question",
                "properties": {key: {"type": "object"} for key in _ASKS},
                "additionalProperties": False,
            },
        ),
        annotations=READ_ONLY,
        asks_client=True,
    ),
    Tool(
        name="ping_client",
        title="Ping your client",
        exercises="`ping` from the server during a call (until 2025-11-25)",
        shows="nothing but the result",
        description=(
            "Sends your client a ping during the call. Look for: an answer, also while your client waits for this "
            "result; without one the call ends in an error that says so."
        ),
        run=ping_client,
        output_schema=output(answered={"type": "boolean"}),
        annotations=READ_ONLY,
        asks_client=True,
        # 2026-07-28 has no ping.
        until=V2025_11_25,
    ),
)

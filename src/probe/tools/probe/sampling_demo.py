"""A request to the client's own model."""

from __future__ import annotations

from collections.abc import Mapping

from ...engine.catalogue.params import Boolean, Choice, Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, content, text
from ..shared import READ_ONLY, output, sampled_text, sampling_request

_FORMS: Mapping[str, str] = {
    "haiku": "a haiku",
    "limerick": "a limerick",
    "one_liner": "one witty sentence",
}


async def run(context: ToolContext) -> ToolResult:
    """Ask for a short text and return it as it came."""
    form, theme = _FORMS[context.arguments["style"]], context.arguments["theme"]
    prompt = f"Write {form} about {theme}. Answer with nothing else."
    request = sampling_request(prompt, context.arguments["maxTokens"])
    answer = sampled_text(await context.sample(request, progress=context.arguments["progress"]))
    # The text itself, not its JSON beside the structure: this is prose for a person to read.
    return {**content([text(answer)]), "structuredContent": {"text": answer}}


TOOL = Tool(
    name="sampling_demo",
    title="Sampling demo",
    exercises="`sampling/createMessage`",
    shows="the prompt for approval, then the text",
    description=(
        "Asks your client for a completion and returns its text. Look for: a request for your approval that shows the "
        "prompt, and the text that the model wrote. Needs a client with sampling."
    ),
    run=run,
    params=(
        Choice("theme", ("nature", "space", "ocean", "technology"), "nature", "What to write about"),
        Choice("style", tuple(_FORMS), "haiku", "What to write"),
        Integer("maxTokens", 16, 256, 64, "The longest answer to ask for, in tokens"),
        Boolean("progress", False, "Ask for progress notifications from your client, too (until 2025-11-25)"),
    ),
    output_schema=output(text={"type": "string"}),
    annotations=READ_ONLY,
    requires=("sampling",),
    asks_client=True,
)

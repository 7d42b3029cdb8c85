"""Fixtures with a request to the client before the result."""

from __future__ import annotations

from collections.abc import Sequence

from ...engine.calls.context import ToolContext
from ...engine.catalogue.params import Text
from ...engine.catalogue.tool import Tool, ToolResult, content, text
from ...wire.jsonrpc import Json, encode
from ...wire.revisions import V2025_11_25
from ..shared import READ_ONLY, sampled_text, sampling_request


async def sample(context: ToolContext) -> ToolResult:
    """Pass the prompt on to the client's model."""
    answer = await context.sample(sampling_request(context.arguments["prompt"], 100))
    return content([text(f"LLM response: {sampled_text(answer)}")])


async def elicit(context: ToolContext) -> ToolResult:
    """Ask for a user name and an address."""
    return _answered("User response", await context.elicit(context.arguments["message"], _CONTACT))


async def elicit_defaults(context: ToolContext) -> ToolResult:
    """Ask with a default in every field."""
    return _answered("Elicitation completed", await context.elicit("Please check the preset values", _DEFAULTS))


async def elicit_enums(context: ToolContext) -> ToolResult:
    """Ask with each kind of choice."""
    return _answered("Elicitation completed", await context.elicit("Please choose among the options", _ENUMS))


def _answered(what: str, answer: Json) -> ToolResult:
    sent = encode(answer.get("content") or {}).decode()
    return content([text(f"{what}: action={answer.get('action')}, content={sent}")])


def _titled(options: Sequence[str]) -> list[Json]:
    return [{"const": option, "title": f"Choice {number}"} for number, option in enumerate(options, 1)]


_CONTACT: Json = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "A user name"},
        "email": {"type": "string", "description": "An e-mail address"},
    },
    "required": ["username", "email"],
}

_DEFAULTS: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "A name", "default": "John Doe"},
        "age": {"type": "integer", "description": "An age", "default": 30},
        "score": {"type": "number", "description": "A score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "A status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "description": "Whether it is verified", "default": True},
    },
    "required": [],
}

_OPTIONS = ("option1", "option2", "option3")
_VALUES = ("value1", "value2", "value3")

_ENUMS: Json = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "description": "One of three", "enum": list(_OPTIONS)},
        "titledSingle": {"type": "string", "description": "One of three, with titles", "oneOf": _titled(_VALUES)},
        "legacyEnum": {
            "type": "string",
            "description": "One of three, with names in the older way",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Choice 1", "Choice 2", "Choice 3"],
        },
        "untitledMulti": {
            "type": "array",
            "description": "Any of three",
            "items": {"type": "string", "enum": list(_OPTIONS)},
        },
        "titledMulti": {
            "type": "array",
            "description": "Any of three, with titles",
            "items": {"anyOf": _titled(_VALUES)},
        },
    },
    "required": [],
}

TOOLS = (
    Tool(
        name="test_sampling",
        title="Sampling",
        exercises="`sampling/createMessage`",
        shows="the prompt for approval",
        description="Asks your client for a completion. Look for: a request for approval, and the answer.",
        run=sample,
        params=(Text("prompt", "What to ask the model"),),
        annotations=READ_ONLY,
        requires=("sampling",),
        asks_client=True,
    ),
    Tool(
        name="test_elicitation",
        title="Elicitation",
        exercises="`elicitation/create`",
        shows="a form with two required fields",
        description="Asks for a user name and an e-mail address. Look for: a form with two required fields.",
        run=elicit,
        params=(Text("message", "What to say above the form"),),
        annotations=READ_ONLY,
        requires=("elicitation",),
        asks_client=True,
    ),
    Tool(
        name="test_elicitation_sep1034_defaults",
        title="Elicitation with defaults",
        exercises="a default in a field of each type",
        shows="every field filled in at the start",
        description="Asks by a form of five fields with defaults. Look for: every field filled in when the form opens.",
        run=elicit_defaults,
        annotations=READ_ONLY,
        requires=("elicitation",),
        asks_client=True,
    ),
    Tool(
        name="test_elicitation_sep1330_enums",
        title="Elicitation with choices",
        exercises="five kinds of choice",
        shows="titles where there are some; two multiple choices (2025-11-25 only)",
        description="Asks by a form with five kinds of choice. Look for: titles, and two multiple choices.",
        run=elicit_enums,
        annotations=READ_ONLY,
        requires=("elicitation",),
        asks_client=True,
        # 2025-11-25 changelog: titled and multi-select enums are new there.
        since=V2025_11_25,
    ),
)

"""Requests to the client: forms with every kind of field, a page, its roots, several things at once, and a ping."""

from __future__ import annotations

from typing import Final

from ...engine.calls.context import ToolContext
from ...engine.catalogue.tool import Ask, Choice, ToolFailureError, ToolResult, structured
from ...wire.jsonrpc import Json
from ...wire.revisions import V2025_06_18, V2025_11_25
from ..shared import form, form_ask, output, probe_tool, problems, sampling_request

_ASKS: Final = {
    "form": form_ask(
        "This form comes together with other questions. Do you see it?",
        form({"seen": {"type": "boolean", "title": "I see it", "default": True}}),
    ),
    "completion": Ask("sampling/createMessage", sampling_request("Answer with the one word: here.", 16)),
    "roots": Ask("roots/list", {}),
}


async def _list_roots(context: ToolContext) -> ToolResult:
    return structured({"roots": (await context.list_roots("roots"))["roots"]})


async def _ask_several(context: ToolContext) -> ToolResult:
    """Ask everything that the client declares, at once. Raises `ToolFailureError` if it declares nothing."""
    asks = {key: ask for key, ask in _ASKS.items() if context.declares(ask.method)}
    if not asks:
        raise ToolFailureError("Your client declares none of elicitation, sampling and roots, so it cannot be asked")
    answers = await context.ask(asks)
    return structured({"asked": list(asks), "answers": dict(answers)})


async def _ping_client(context: ToolContext) -> ToolResult:
    await context.ping()
    return structured({"answered": True})


TOOLS = (
    probe_tool(
        name="list_roots",
        title="Client roots",
        exercises="`roots/list` (deprecated in 2026-07-28)",
        shows="its open folders, each a `file://` URI",
        description=(
            "Asks your client for its roots. Look for: the folders that are open in it, each a file:// URI. Roots are "
            "deprecated in 2026-07-28, but work. Needs a client with roots."
        ),
        run=_list_roots,
        output_schema=output(
            roots={"type": "array", "items": {"type": "object"}, "description": "The roots as they came"}
        ),
        requires=("roots",),
        asks_client=True,
    ),
    probe_tool(
        name="ask_several",
        title="Several questions at once",
        exercises="elicitation, sampling and roots in one round (2026-07-28) or one after the other",
        shows="every question that it declares an answer for; declining one keeps the others",
        description=(
            "Asks for a form, a completion and the roots, as far as your client declares them. Look for: all questions "
            "answered in one round in 2026-07-28, one after the other before; declining one does not lose the others."
        ),
        run=_ask_several,
        output_schema=output(
            asked={"type": "array", "items": {"type": "string", "enum": list(_ASKS)}},
            answers={
                "type": "object",
                "description": "The client's results as they came, by question",
                "properties": {key: {"type": "object"} for key in _ASKS},
                "additionalProperties": False,
            },
        ),
        asks_client=True,
    ),
    probe_tool(
        name="ping_client",
        title="Ping your client",
        exercises="`ping` from the server during a call (until 2025-11-25)",
        shows="nothing but the result",
        description=(
            "Sends your client a ping during the call. Look for: an answer, also while your client waits for this "
            "result; without one the call ends in an error that says so."
        ),
        run=_ping_client,
        output_schema=output(answered={"type": "boolean"}),
        asks_client=True,
        # 2026-07-28 has no ping.
        until=V2025_11_25,
    ),
)

_COLOURS = ("red", "green", "blue")
_SIZES: Final[list[Json]] = [
    {"const": "s", "title": "Small"},
    {"const": "m", "title": "Medium"},
    {"const": "l", "title": "Large"},
]
_DAYS: Final[list[Json]] = [
    {"const": "fri", "title": "Friday"},
    {"const": "sat", "title": "Saturday"},
    {"const": "sun", "title": "Sunday"},
]

_BASIC: Final[Json] = {
    "name": {
        "type": "string",
        "title": "Name",
        "description": "2 to 40 characters, required",
        "minLength": 2,
        "maxLength": 40,
        "default": "Ada Lovelace",
    },
    "count": {
        "type": "integer",
        "title": "Count",
        "description": "A whole number from 0 to 100",
        "minimum": 0,
        "maximum": 100,
        "default": 7,
    },
    "ratio": {
        "type": "number",
        "title": "Ratio",
        "description": "A number from 0 to 1",
        "minimum": 0,
        "maximum": 1,
        "default": 0.25,
    },
    "confirmed": {"type": "boolean", "title": "Confirmed", "description": "Ticked at first", "default": True},
}

_FORMATS: Final[Json] = {
    "email": {"type": "string", "title": "E-mail", "format": "email", "default": "ada@example.com"},
    "website": {"type": "string", "title": "Website", "format": "uri", "default": "https://example.com/ada"},
    "day": {"type": "string", "title": "Day", "format": "date", "default": "2026-07-28"},
    "moment": {"type": "string", "title": "Moment", "format": "date-time", "default": "2026-07-28T12:00:00Z"},
}

_CHOICES: Final[Json] = {
    "colour": {
        "type": "string",
        "title": "Colour",
        "description": "One of three",
        "enum": list(_COLOURS),
        "default": "green",
    },
    "size": {
        "type": "string",
        "title": "Size",
        "description": "One of three, shown by their titles",
        "oneOf": _SIZES,
        "default": "m",
    },
    "colours": {
        "type": "array",
        "title": "Colours",
        "description": "One or two of three",
        "minItems": 1,
        "maxItems": 2,
        "items": {"type": "string", "enum": list(_COLOURS)},
        "default": ["red", "blue"],
    },
    "days": {
        "type": "array",
        "title": "Days",
        "description": "Any of three, shown by their titles",
        "minItems": 0,
        "maxItems": 3,
        "items": {"anyOf": _DAYS},
        "default": ["sat", "sun"],
    },
}

_FORMS: Final = {
    "all": form({**_BASIC, **_FORMATS, **_CHOICES}, ("name", "email", "colour")),
    "basic": form(_BASIC, ("name",)),
    "formats": form(_FORMATS, ("email",)),
    "choices": form(_CHOICES, ("colour",)),
}

# 2025-06-18 has defaults of booleans only, and only single choices, with `enumNames`.
_SIMPLE: Final = form(
    {
        "name": {key: value for key, value in _BASIC["name"].items() if key != "default"},
        "email": {"type": "string", "title": "E-mail", "format": "email"},
        "count": {key: value for key, value in _BASIC["count"].items() if key != "default"},
        "confirmed": _BASIC["confirmed"],
        "size": {
            "type": "string",
            "title": "Size",
            "description": "One of three, shown by their names",
            "enum": [option["const"] for option in _SIZES],
            "enumNames": [option["title"] for option in _SIZES],
        },
    },
    ("name",),
)

_OUTPUT: Final = output(
    action={"type": "string", "enum": ["accept", "decline", "cancel"], "description": "What the person did"},
    content={"description": "The content as it came; null without one"},
    problems={
        "type": "array",
        "items": {"type": "string"},
        "description": "One sentence for each thing that does not fit the form; empty when all does",
    },
)


async def elicit_form(context: ToolContext) -> ToolResult:
    """Show the form of the arguments."""
    schema = _FORMS[context.arguments["fields"]]
    return _judged(schema, await context.elicit("Send this as it is, change it, or decline it.", schema, "form"))


async def elicit_simple_form(context: ToolContext) -> ToolResult:
    """Show the form of 2025-06-18."""
    return _judged(_SIMPLE, await context.elicit("Fill this in, or decline it.", _SIMPLE, "form"))


async def _elicit_url(context: ToolContext) -> ToolResult:
    answer = await context.elicit_url("Open this page and confirm it there.", "page")
    return structured({"action": answer["action"], "confirmed": answer["action"] == "accept"})


def _judged(schema: Json, answer: Json) -> ToolResult:
    # A misfit is a finding about the client: no failure of this tool.
    return structured(
        {
            "action": answer["action"],
            "content": answer.get("content"),
            "problems": problems(schema, answer),
        }
    )


FORMS = (
    probe_tool(
        name="elicit_form",
        title="Form with every field",
        exercises="`elicitation/create` with every kind of field and defaults (2025-11-25 and later)",
        shows=(
            "every field filled in, bounds and formats checked before sending, titles in place of values; `problems` "
            "is empty"
        ),
        description=(
            "Asks by a form and judges the answer. Look for: every field filled in when the form opens; bounds and "
            "formats checked before it can be sent; titles in place of values; two multiple choices; ways to send, "
            "decline and dismiss. problems names each value that does not fit. Needs a client with elicitation."
        ),
        run=elicit_form,
        params=(Choice("fields", tuple(_FORMS), "all", "Which kinds of field the form has"),),
        output_schema=_OUTPUT,
        requires=("elicitation",),
        asks_client=True,
        # 2025-11-25 changelog: defaults of all types (SEP-1034), titled and multiple choices (SEP-1330).
        since=V2025_11_25,
    ),
    probe_tool(
        name="elicit_simple_form",
        title="Form of 2025-06-18",
        exercises="a form that 2025-06-18 knows, too: no defaults but a ticked box, `enumNames`",
        shows="the form, with the names of the sizes",
        description=(
            "Asks by a form that has only what 2025-06-18 knew: no defaults but a ticked box, and names for the "
            "options in enumNames. Look for: a form also in an old client; in a new one the names, not the values. "
            "Needs a client with elicitation."
        ),
        run=elicit_simple_form,
        output_schema=_OUTPUT,
        requires=("elicitation",),
        asks_client=True,
        since=V2025_06_18,
    ),
    probe_tool(
        name="elicit_url",
        title="Page to confirm",
        exercises="URL mode elicitation: a page of this server with one button (2025-11-25 and later)",
        shows="the whole address before it is opened, consent, the page in a browser; the result after the button",
        description=(
            "Asks by a URL: a page of this server with one button. Look for: the whole address and its host before "
            "anything is opened; your consent asked for; the page in a browser, not in the client; ways to decline. "
            "The result comes when the page has been confirmed. Needs a client with elicitation in URL mode."
        ),
        run=_elicit_url,
        output_schema=output(action={"type": "string"}, confirmed={"type": "boolean"}),
        requires=("elicitation.url",),
        asks_client=True,
        # 2025-11-25 changelog: URL mode elicitation (SEP-1036).
        since=V2025_11_25,
    ),
)

"""Prompts: with arguments to complete, with a resource and an image in them, and one that asks first."""

from __future__ import annotations

from collections.abc import Mapping

from ...engine.catalogue.catalogue import Answers, Argument, Prompt
from ...engine.catalogue.tool import ArgumentsError, Choice, text
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json
from ..shared import IMAGE, filled_in, form, form_ask
from .resources import TEXT, TEXT_URI

# 150 years: more than the 100 values of one answer, and exactly 100 that begin with 19.
_YEARS = tuple(str(year) for year in range(1900, 2050))
_STYLES = ("broadsheet", "tabloid", "telegram")

_ORDER = form(
    {
        "dish": {"type": "string", "title": "Dish", "enum": ["soup", "salad", "cake"], "default": "soup"},
        "guests": {"type": "integer", "title": "Guests", "minimum": 1, "maximum": 12, "default": 4},
    },
    ("dish",),
)


def _headlines(arguments: Mapping[str, str], answers: Answers) -> list[Json]:
    """Raises `McpError` -32602 for a value that completion does not offer."""
    try:
        year = Choice("year", _YEARS, _YEARS[0], "").read(arguments["year"])
        style = Choice("style", _STYLES, _STYLES[0], "").read(arguments.get("style", _STYLES[0]))
    except ArgumentsError as error:
        raise McpError(Code.INVALID_PARAMS, str(error)) from None
    return [_message("user", text(f"Write three made-up headlines of the year {year}, as in a {style}."))]


def _attachments(arguments: Mapping[str, str], answers: Answers) -> list[Json]:
    return [
        _message("user", {"type": "resource", "resource": {"uri": TEXT_URI, "mimeType": "text/plain", "text": TEXT}}),
        _message("user", {"type": "image", "data": IMAGE, "mimeType": "image/png"}),
        _message("user", text("How many lines has the text, and which colours has the image?")),
        _message("assistant", text("The text has")),
    ]


def _recipe(arguments: Mapping[str, str], answers: Answers) -> list[Json]:
    order = filled_in(_ORDER, answers["order"])
    wish = "anything you like" if order is None else f"{order['dish']} for {order['guests']}"
    return [_message("user", text(f"Write a short recipe: {wish}."))]


def _message(role: str, block: Json) -> Json:
    return {"role": role, "content": block}


PROMPTS = (
    Prompt(
        name="headlines",
        title="Headlines of a year",
        description="Made-up headlines; both arguments can be completed, the year with more values than fit one answer",
        render=_headlines,
        arguments=(
            Argument("year", "A year from 1900 to 2049", completions=_YEARS),
            Argument("style", "broadsheet (if left out), tabloid or telegram", required=False, completions=_STYLES),
        ),
    ),
    Prompt(
        name="attachments",
        title="Text and image",
        description="A conversation with an embedded resource and an image, and the beginning of an answer",
        render=_attachments,
    ),
    Prompt(
        name="recipe",
        title="Recipe",
        description="Asks which dish for how many guests before it can be used",
        render=_recipe,
        inputs={"order": form_ask("What shall be cooked?", _ORDER)},
    ),
)

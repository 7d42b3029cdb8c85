"""Resources of every kind: text, bytes, one that changes, one that asks, a template, and enough for a second page.

Their scheme is `probe`, not registered and not `https`, as the contents come through MCP alone (2025-11-25
server/resources, Common URI Schemes). The rest is lower case: URL parsers of clients may change the case of a host.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from ...engine.catalogue.catalogue import Answers, Resource, Template
from ...wire.jsonrpc import Json, encode
from ..shared import IMAGE, filled_in, form, form_ask

TEXT_URI: Final = "probe://text"
"""The resource to which other features link."""

TEXT: Final = "Plain text of the resource probe://text.\nIts second line has accents: café résumé naïve.\n"
"""Its text."""

_TICK_S: Final = 2.0
_ITEMS: Final = 60
_SQUARE: Final = re.compile(r"probe://squares/(0|[1-9][0-9]{0,3})")
_NAME: Final = form(
    {"name": {"type": "string", "title": "Your name", "minLength": 1, "maxLength": 40, "default": "Ada"}}, ("name",)
)


def _text(now: float, answers: Answers) -> Json:
    return {"text": TEXT}


def _blob(now: float, answers: Answers) -> Json:
    return {"blob": IMAGE}


def _clock(now: float, answers: Answers) -> Json:
    # Two reads between two ticks agree, so each change has its notification.
    ticked = datetime.fromtimestamp(now // _TICK_S * _TICK_S, UTC)
    return {"text": ticked.strftime("%Y-%m-%dT%H:%M:%SZ")}


def _greeting(now: float, answers: Answers) -> Json:
    given = filled_in(_NAME, answers["name"])
    return {"text": "Hello, whoever you are!" if given is None else f"Hello, {given['name']}!"}


def _says(sentence: str) -> Callable[[float, Answers], Json]:
    return lambda now, answers: {"text": sentence}


def _item(number: int) -> Resource:
    return Resource(
        uri=f"probe://items/{number}",
        name=f"item-{number}",
        title=f"Item {number}",
        description=f"Number {number} of {_ITEMS}, so that the list needs a second page",
        mime_type="text/plain",
        read=_says(f"Item {number} of {_ITEMS}"),
    )


def _square(uri: str) -> Json | None:
    """The square of a number from 0 to 9999; None for a URI of another form."""
    found = _SQUARE.fullmatch(uri)
    if found is None:
        return None
    number = int(found[1])
    return {"text": encode({"number": number, "square": number * number}).decode()}


RESOURCES = (
    Resource(
        uri=TEXT_URI,
        name="text",
        title="Text",
        description="Two lines of text",
        mime_type="text/plain",
        read=_text,
    ),
    Resource(
        uri="probe://blob",
        name="blob",
        title="Image",
        description="A PNG image of four coloured squares",
        mime_type="image/png",
        read=_blob,
    ),
    Resource(
        uri="probe://clock",
        name="clock",
        title="Clock",
        description="The time, which changes every 2 seconds; subscribe to it",
        mime_type="text/plain",
        read=_clock,
        ticks_s=_TICK_S,
    ),
    Resource(
        uri="probe://greeting",
        name="greeting",
        title="Greeting",
        description="Asks for your name before it can be read",
        mime_type="text/plain",
        read=_greeting,
        inputs={"name": form_ask("Whom shall this resource greet?", _NAME)},
    ),
    *(_item(number) for number in range(1, _ITEMS + 1)),
)

TEMPLATES = (
    Template(
        uri_template="probe://squares/{number}",
        name="squares",
        title="Squares",
        description="A number from 0 to 9999 and its square, as JSON",
        mime_type="application/json",
        match=_square,
        completions={"number": tuple(str(number) for number in range(100))},
    ),
)

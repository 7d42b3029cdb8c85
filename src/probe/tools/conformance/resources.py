"""Fixtures for resources, the template, and a changing resource."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from ...engine.catalogue.catalogue import Answers, Resource, Template
from ...wire.jsonrpc import Json, encode
from .content import PNG

_TICK_S: Final = 3.0

# RFC 6570: a simple expansion gives unreserved characters and percent-encoded octets only.
_TEMPLATE: Final = re.compile(r"test://template/((?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2}){1,200})/data")


def static_text(now: float, answers: Answers) -> Json:
    """A sentence."""
    return {"text": "This is the content of the static text resource."}


def static_binary(now: float, answers: Answers) -> Json:
    """The image of the tools."""
    return {"blob": PNG}


def watched(now: float, answers: Answers) -> Json:
    """The number of ticks since 1970: one more with each tick, without anything to keep between two reads."""
    return {"text": f"Tick {int(now // _TICK_S)}"}


def templated(uri: str) -> Json | None:
    """The data of one id, or None for a uri that is not of the family."""
    found = _TEMPLATE.fullmatch(uri)
    if found is None:
        return None
    try:
        item_id = unquote_to_bytes(found[1]).decode()
    except UnicodeDecodeError:
        return None
    body = encode({"id": item_id, "templateTest": True, "data": f"Data for ID: {item_id}"})
    return {"text": body.decode()}


RESOURCES = (
    Resource(
        uri="test://static-text",
        name="static-text",
        title="Static text",
        description="A sentence that never changes",
        mime_type="text/plain",
        read=static_text,
    ),
    Resource(
        uri="test://static-binary",
        name="static-binary",
        title="Static binary",
        description="A PNG image of 2 by 2 pixels",
        mime_type="image/png",
        read=static_binary,
    ),
    Resource(
        uri="test://watched-resource",
        name="watched-resource",
        title="Watched resource",
        description="A number that grows every 3 seconds, to subscribe to",
        mime_type="text/plain",
        read=watched,
        ticks_s=_TICK_S,
    ),
)

TEMPLATES = (
    Template(
        uri_template="test://template/{id}/data",
        name="template-data",
        title="Data by id",
        description="A JSON object that names the id in its uri",
        mime_type="application/json",
        match=templated,
        completions={"id": ("123", "124", "456")},
    ),
)

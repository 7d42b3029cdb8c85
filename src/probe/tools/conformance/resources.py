"""Fixtures for resources, the template and a changing resource, and for prompts with the completion of arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

from ...engine.catalogue.catalogue import Answers, Argument, Prompt, Resource, Template
from ...engine.catalogue.tool import shown, text
from ...wire.jsonrpc import Json, encode
from .content import PNG
from .questions import entered, question

_TICK_S: Final = 3.0

# RFC 6570: a simple expansion gives unreserved characters and percent-encoded octets only.
_TEMPLATE: Final = re.compile(r"test://template/((?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2}){1,200})/data")


def _static_text(now: float, answers: Answers) -> Json:
    return {"text": "This is the content of the static text resource."}


def _static_binary(now: float, answers: Answers) -> Json:
    return {"blob": PNG}


def _watched(now: float, answers: Answers) -> Json:
    """The number of ticks since 1970, so that nothing is kept between two reads."""
    return {"text": f"Tick {int(now // _TICK_S)}"}


def _templated(uri: str) -> Json | None:
    """The data of one id; None for a URI of another form."""
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
        read=_static_text,
    ),
    Resource(
        uri="test://static-binary",
        name="static-binary",
        title="Static binary",
        description="A PNG image of 2 by 2 pixels",
        mime_type="image/png",
        read=_static_binary,
    ),
    Resource(
        uri="test://watched-resource",
        name="watched-resource",
        title="Watched resource",
        description="A number that grows every 3 seconds, to subscribe to",
        mime_type="text/plain",
        read=_watched,
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
        match=_templated,
        completions={"id": ("123", "124", "456")},
    ),
)


def _user(block: Json) -> Json:
    return {"role": "user", "content": block}


def _simple(_: Mapping[str, str], answers: Answers) -> list[Json]:
    return [_user(text("This is a simple prompt for testing."))]


def _with_arguments(arguments: Mapping[str, str], answers: Answers) -> list[Json]:
    return [_user(text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"))]


def _with_embedded_resource(arguments: Mapping[str, str], answers: Answers) -> list[Json]:
    embedded = {
        "uri": arguments["resourceUri"],
        "mimeType": "text/plain",
        "text": "Embedded resource content for testing.",
    }
    return [
        _user({"type": "resource", "resource": embedded}),
        _user(text("Please process the embedded resource above.")),
    ]


def _with_image(_: Mapping[str, str], answers: Answers) -> list[Json]:
    return [
        _user({"type": "image", "data": PNG, "mimeType": "image/png"}),
        _user(text("Please analyze the image above.")),
    ]


def _with_input(_: Mapping[str, str], answers: Answers) -> list[Json]:
    answer = answers["user_context"]
    context = entered(answer, "context", str)
    said = f"there is none in the answer: {shown(answer)}" if context is None else context
    return [_user(text(f"Prompt with context: {said}"))]


PROMPTS = (
    Prompt(
        name="test_simple_prompt",
        title="Simple prompt",
        description="One user message without arguments",
        render=_simple,
    ),
    Prompt(
        name="test_prompt_with_arguments",
        title="Prompt with arguments",
        description="One user message that repeats two arguments, which can be completed",
        render=_with_arguments,
        arguments=(
            Argument("arg1", "The first value", completions=("testValue1", "testing", "other")),
            Argument("arg2", "The second value", completions=("testValue2", "tested", "another")),
        ),
    ),
    Prompt(
        name="test_prompt_with_embedded_resource",
        title="Prompt with an embedded resource",
        description="A user message with a text resource, and one with text",
        render=_with_embedded_resource,
        arguments=(Argument("resourceUri", "The uri that the embedded resource gets"),),
    ),
    Prompt(
        name="test_prompt_with_image",
        title="Prompt with an image",
        description="A user message with a PNG image, and one with text",
        render=_with_image,
    ),
    Prompt(
        name="test_input_required_result_prompt",
        title="Prompt that asks",
        description="Asks for a context by a form, and repeats it in one user message",
        render=_with_input,
        inputs={
            "user_context": question("What is it about?", context={"type": "string", "title": "Context"}),
        },
    ),
)

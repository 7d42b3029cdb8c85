"""Fixtures for prompts and the completion of their arguments."""

from __future__ import annotations

from collections.abc import Mapping

from ...engine.catalogue.catalogue import Answers, Argument, Prompt
from ...engine.catalogue.params import shown
from ...engine.catalogue.tool import text
from ...wire.jsonrpc import Json
from .content import PNG
from .input_required import entered, question


def _user(block: Json) -> Json:
    return {"role": "user", "content": block}


def simple(_: Mapping[str, str], answers: Answers) -> list[Json]:
    """One sentence."""
    return [_user(text("This is a simple prompt for testing."))]


def with_arguments(arguments: Mapping[str, str], answers: Answers) -> list[Json]:
    """Both arguments in one sentence."""
    return [_user(text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"))]


def with_embedded_resource(arguments: Mapping[str, str], answers: Answers) -> list[Json]:
    """A resource under the given uri, and what to do with it."""
    embedded = {
        "uri": arguments["resourceUri"],
        "mimeType": "text/plain",
        "text": "Embedded resource content for testing.",
    }
    return [
        _user({"type": "resource", "resource": embedded}),
        _user(text("Please process the embedded resource above.")),
    ]


def with_image(_: Mapping[str, str], answers: Answers) -> list[Json]:
    """An image, and what to do with it."""
    return [
        _user({"type": "image", "data": PNG, "mimeType": "image/png"}),
        _user(text("Please analyze the image above.")),
    ]


def with_input(_: Mapping[str, str], answers: Answers) -> list[Json]:
    """The words of the person, or a sentence about the answer that came instead."""
    answer = answers["user_context"]
    context = entered(answer, "context", str)
    said = f"there is none in the answer: {shown(answer)}" if context is None else context
    return [_user(text(f"Prompt with context: {said}"))]


PROMPTS = (
    Prompt(
        name="test_simple_prompt",
        title="Simple prompt",
        description="One user message without arguments",
        render=simple,
    ),
    Prompt(
        name="test_prompt_with_arguments",
        title="Prompt with arguments",
        description="One user message that repeats two arguments, which can be completed",
        render=with_arguments,
        arguments=(
            Argument("arg1", "The first value", completions=("testValue1", "testing", "other")),
            Argument("arg2", "The second value", completions=("testValue2", "tested", "another")),
        ),
    ),
    Prompt(
        name="test_prompt_with_embedded_resource",
        title="Prompt with an embedded resource",
        description="A user message with a text resource, and one with text",
        render=with_embedded_resource,
        arguments=(Argument("resourceUri", "The uri that the embedded resource gets"),),
    ),
    Prompt(
        name="test_prompt_with_image",
        title="Prompt with an image",
        description="A user message with a PNG image, and one with text",
        render=with_image,
    ),
    Prompt(
        name="test_input_required_result_prompt",
        title="Prompt that asks",
        description="Asks for a context by a form, and repeats it in one user message",
        render=with_input,
        inputs={
            "user_context": question("What is it about?", context={"type": "string", "title": "Context"}),
        },
    ),
)

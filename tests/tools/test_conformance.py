"""Toolset `conformance`: what the official suite compares, and the documented texts that it does not compare."""

from __future__ import annotations

import base64
import io
import json
import re
import wave
import zlib
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from trio.testing import MockClock

from probe.engine.catalogue.catalogue import Prompt, Resource
from probe.engine.catalogue.tool import ArgumentsError, Tool, ToolFailureError
from probe.tools.catalogue import CONFORMANCE
from probe.tools.conformance import schema
from probe.wire.jsonrpc import Json

from .fakes import FakeContext, call, texts


def tool(name: str) -> Tool:
    return next(item for item in CONFORMANCE.tools if item.name == name)


def resource(uri: str) -> Resource:
    return next(item for item in CONFORMANCE.resources if item.uri == uri)


def prompt(name: str) -> Prompt:
    return next(item for item in CONFORMANCE.prompts if item.name == name)


def check_png(data: str) -> None:
    """A PNG of 2 by 2 pixels whose every checksum is right."""
    body = base64.b64decode(data, validate=True)
    assert body.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(body):
        length = int.from_bytes(body[at : at + 4], "big")
        kind, inner = body[at + 4 : at + 8], body[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + inner) == int.from_bytes(body[at + 8 + length : at + 12 + length], "big")
        chunks[kind] = inner
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    assert chunks[b"IHDR"][:8] == (2).to_bytes(4, "big") * 2
    assert len(zlib.decompress(chunks[b"IDAT"])) == 2 * (1 + 2 * 3)


async def test_simple_text() -> None:
    assert await call(tool("test_simple_text")) == {
        "content": [{"type": "text", "text": "This is a simple text response for testing."}]
    }


async def test_image_content_is_a_real_png() -> None:
    (block,) = (await call(tool("test_image_content")))["content"]
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    check_png(block["data"])


async def test_audio_content_is_a_real_wav() -> None:
    (block,) = (await call(tool("test_audio_content")))["content"]
    assert (block["type"], block["mimeType"]) == ("audio", "audio/wav")
    with wave.open(io.BytesIO(base64.b64decode(block["data"], validate=True))) as sound:
        assert (sound.getnchannels(), sound.getsampwidth(), sound.getframerate(), sound.getnframes()) == (
            1,
            1,
            8000,
            16,
        )
        assert len(sound.readframes(17)) == 16


async def test_embedded_resource() -> None:
    assert (await call(tool("test_embedded_resource")))["content"] == [
        {
            "type": "resource",
            "resource": {
                "uri": "test://embedded-resource",
                "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            },
        }
    ]


async def test_multiple_content_types() -> None:
    first, second, third = (await call(tool("test_multiple_content_types")))["content"]
    assert first == {"type": "text", "text": "Multiple content types test:"}
    assert (second["type"], second["mimeType"]) == ("image", "image/png")
    assert third["resource"] == {
        "uri": "test://mixed-content-resource",
        "mimeType": "application/json",
        "text": '{"test":"data","value":123}',
    }


async def test_error_handling_is_a_tool_error() -> None:
    assert await call(tool("test_error_handling")) == {
        "content": [{"type": "text", "text": "This tool intentionally returns an error for testing"}],
        "isError": True,
    }


async def test_logging_sends_three_messages_while_it_runs(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(tool("test_tool_with_logging"), context=context)
    assert context.events == [
        ("log", "info", "Tool execution started"),
        ("sleep", 0.05),
        ("log", "info", "Tool processing data"),
        ("sleep", 0.05),
        ("log", "info", "Tool execution completed"),
    ]
    assert texts(result)[0]


async def test_progress_goes_0_50_100(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(tool("test_tool_with_progress"), context=context)
    assert [(done, total) for done, total, _ in context.of("progress")] == [(0, 100), (50, 100), (100, 100)]
    assert [event[0] for event in context.events] == ["progress", "sleep", "progress", "sleep", "progress"]
    assert texts(result)[0]


async def test_sampling_passes_the_prompt_on(autojump_clock: MockClock) -> None:
    answer = {"type": "text", "text": "This is a test response from the client"}
    context = FakeContext(answer={"role": "assistant", "content": answer, "model": "test-model"})
    result = await call(tool("test_sampling"), {"prompt": "Say it"}, context)
    assert context.of("sample") == [
        ({"messages": [{"role": "user", "content": {"type": "text", "text": "Say it"}}], "maxTokens": 100},)
    ]
    assert texts(result) == ["LLM response: This is a test response from the client"]


async def test_sampling_fails_without_text(autojump_clock: MockClock) -> None:
    with pytest.raises(ToolFailureError, match="it has: image"):
        await call(tool("test_sampling"), {"prompt": "x"}, FakeContext(answer={"content": {"type": "image"}}))


async def test_elicitation_asks_for_two_required_fields(autojump_clock: MockClock) -> None:
    sent = {"username": "testuser", "email": "test@example.com"}
    context = FakeContext(answer={"action": "accept", "content": sent})
    result = await call(tool("test_elicitation"), {"message": "Who?"}, context)
    ((message, form),) = context.of("elicit")
    assert message == "Who?"
    assert {name: field["type"] for name, field in form["properties"].items()} == {
        "username": "string",
        "email": "string",
    }
    assert form["required"] == ["username", "email"]
    assert texts(result) == ['User response: action=accept, content={"username":"testuser","email":"test@example.com"}']


async def test_elicitation_shows_a_refusal(autojump_clock: MockClock) -> None:
    result = await call(tool("test_elicitation"), {"message": "Who?"}, FakeContext(answer={"action": "decline"}))
    assert texts(result) == ["User response: action=decline, content={}"]


async def asked(name: str) -> Json:
    """The form that a fixture shows."""
    context = FakeContext(answer={"action": "accept", "content": {"a": 1}})
    assert texts(await call(tool(name), context=context)) == ['Elicitation completed: action=accept, content={"a":1}']
    ((_, form),) = context.of("elicit")
    assert form["type"] == "object"
    properties: Json = form["properties"]
    return properties


async def test_elicitation_has_a_default_of_each_type(autojump_clock: MockClock) -> None:
    fields = await asked("test_elicitation_sep1034_defaults")
    assert {name: (field["type"], field["default"]) for name, field in fields.items()} == {
        "name": ("string", "John Doe"),
        "age": ("integer", 30),
        "score": ("number", 95.5),
        "status": ("string", "active"),
        "verified": ("boolean", True),
    }
    assert fields["status"]["enum"] == ["active", "inactive", "pending"]


async def test_elicitation_has_each_kind_of_choice(autojump_clock: MockClock) -> None:
    fields = await asked("test_elicitation_sep1330_enums")
    for field in fields.values():
        field.pop("description")
    single, titled, legacy, multi, titled_multi = (
        fields.pop(name) for name in ("untitledSingle", "titledSingle", "legacyEnum", "untitledMulti", "titledMulti")
    )
    assert fields == {}
    assert single == {"type": "string", "enum": ["option1", "option2", "option3"]}
    assert set(titled) == {"type", "oneOf"}
    assert [option["const"] for option in titled["oneOf"]] == ["value1", "value2", "value3"]
    assert set(legacy) == {"type", "enum", "enumNames"}
    assert legacy["enum"] == ["opt1", "opt2", "opt3"]
    assert len(legacy["enumNames"]) == 3
    assert multi == {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}}
    assert titled_multi == {"type": "array", "items": {"anyOf": titled["oneOf"]}}
    assert all(option["title"] for option in titled["oneOf"])


def test_the_2020_12_schema_is_listed_whole() -> None:
    listed = tool("json_schema_2020_12_tool").describe()["inputSchema"]
    assert listed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert listed["type"] == "object"
    assert listed["$defs"]["address"]["$anchor"] == "addressDef"
    assert set(listed["$defs"]["address"]["properties"]) == {"street", "city"}
    assert set(listed["properties"]) == {"name", "address", "contactMethod", "phone", "email"}
    assert listed["properties"]["address"] == {"$ref": "#/$defs/address"}
    assert listed["properties"]["contactMethod"]["enum"] == ["phone", "email"]
    assert listed["allOf"] == [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}]
    assert listed["if"] == {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]}
    assert (listed["then"], listed["else"]) == ({"required": ["phone"]}, {"required": ["email"]})
    assert listed["additionalProperties"] is False
    Draft202012Validator.check_schema(listed)


_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3))
_ADDRESS = st.one_of(_SCALARS, st.dictionaries(st.sampled_from(["street", "city", "zip"]), _SCALARS))
_CONTACT = st.fixed_dictionaries(
    {},
    optional={
        "name": st.one_of(st.text(max_size=3), _SCALARS),
        "address": _ADDRESS,
        "contactMethod": st.one_of(st.sampled_from(["phone", "email", "post"]), _SCALARS),
        "phone": st.one_of(st.text(max_size=3), _SCALARS),
        "email": st.one_of(st.text(max_size=3), _SCALARS),
        "other": _SCALARS,
    },
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no failure
@given(_CONTACT)
@example({"contactMethod": "phone", "phone": "1"})
@example({"contactMethod": "email", "email": "a"})
@example({"phone": "1"})
@example({"email": "a", "address": {"street": "s", "city": 5}})
def test_the_2020_12_tool_judges_as_its_schema_does(arguments: Json) -> None:
    subject = tool("json_schema_2020_12_tool")
    accepted = Draft202012Validator(subject.describe()["inputSchema"]).is_valid(arguments)
    if not accepted:
        with pytest.raises(ArgumentsError):
            subject.read_arguments(arguments)
    else:
        result: Json = schema.run(subject.read_arguments(arguments))
        assert json.loads(texts(result)[0].removeprefix("Accepted: ")) == arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "email is required unless contactMethod is phone"),
        ({"contactMethod": "phone", "email": "a"}, "phone is required when contactMethod is phone"),
        ({"contactMethod": "post", "email": "a"}, 'contactMethod must be one of phone, email, got "post"'),
        ({"email": "a", "address": {"city": 5}}, "address.city must be a string, got 5"),
        ({"email": "a", "address": []}, "address must be an object, got []"),
        ({"email": 5}, "email must be a string, got 5"),
        ({"zip": 5}, 'unknown parameter "zip": it takes name, address, contactMethod, phone, email'),
    ],
)
def test_the_2020_12_tool_says_what_is_wrong(arguments: Json, message: str) -> None:
    with pytest.raises(ArgumentsError, match=f"^{re.escape(message)}$"):
        tool("json_schema_2020_12_tool").read_arguments(arguments)


async def test_reconnection_hangs_up_before_it_works(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(tool("test_reconnection"), context=context)
    assert context.events == [("hang_up",), ("sleep", 0.2)]
    assert texts(result)[0]
    assert "isError" not in result


@pytest.mark.parametrize(("name", "param"), [("test_sampling", "prompt"), ("test_elicitation", "message")])
def test_free_text_is_required_and_bounded(name: str, param: str) -> None:
    with pytest.raises(ArgumentsError, match=f"^{param} is required$"):
        tool(name).read_arguments({})
    with pytest.raises(ArgumentsError, match=f"^{param} must be a string of at most 1000 characters, got "):
        tool(name).read_arguments({param: "x" * 1001})
    assert tool(name).read_arguments({param: "x" * 1000}) == {param: "x" * 1000}


def test_static_resources() -> None:
    assert resource("test://static-text").read(0.0, {}) == {"text": "This is the content of the static text resource."}
    assert resource("test://static-text").mime_type == "text/plain"
    binary = resource("test://static-binary")
    assert binary.mime_type == "image/png"
    check_png(binary.read(0.0, {})["blob"])


def test_the_watched_resource_changes_with_each_tick_and_not_between() -> None:
    watched = resource("test://watched-resource")
    assert watched.ticks_s == 3
    reads = [watched.read(at, {})["text"] for at in (300.0, 302.9, 303.0, 305.9, 306.0)]
    assert reads == ["Tick 100", "Tick 100", "Tick 101", "Tick 101", "Tick 102"]


@pytest.mark.parametrize(
    ("sent", "item_id"), [("123", "123"), ("a.b_c~d-e", "a.b_c~d-e"), ("caf%C3%A9", "caf\u00e9"), ("a%2Fb", "a/b")]
)
def test_the_template_names_the_id(sent: str, item_id: str) -> None:
    (template,) = CONFORMANCE.templates
    found = template.match(f"test://template/{sent}/data")
    assert found is not None
    assert json.loads(found["text"]) == {"id": item_id, "templateTest": True, "data": f"Data for ID: {item_id}"}
    assert (template.uri_template, template.mime_type) == ("test://template/{id}/data", "application/json")


def test_the_template_text_is_the_documented_one() -> None:
    (template,) = CONFORMANCE.templates
    found = template.match("test://template/123/data")
    assert found == {"text": '{"id":"123","templateTest":true,"data":"Data for ID: 123"}'}


@pytest.mark.parametrize(
    "uri",
    [
        "test://template//data",
        "test://template/a/b/data",
        "test://template/123/data\n",
        "test://template/123/data/",
        "xtest://template/123/data",
        "test://template/%ff/data",
        "test://template/%2/data",
        f"test://template/{'x' * 201}/data",
        "test://nonexistent-resource-for-conformance-testing",
    ],
)
def test_the_template_takes_no_other_uri(uri: str) -> None:
    assert CONFORMANCE.templates[0].match(uri) is None


def user_texts(messages: list[Json]) -> list[Any]:
    assert {message["role"] for message in messages} == {"user"}
    return [message["content"].get("text") for message in messages]


def test_simple_prompt() -> None:
    assert user_texts(prompt("test_simple_prompt").render({}, {})) == ["This is a simple prompt for testing."]
    assert "arguments" not in prompt("test_simple_prompt").describe()


def test_prompt_with_arguments() -> None:
    subject = prompt("test_prompt_with_arguments")
    assert user_texts(subject.render({"arg1": "testValue1", "arg2": "testValue2"}, {})) == [
        "Prompt with arguments: arg1='testValue1', arg2='testValue2'"
    ]
    assert [(item.name, item.required) for item in subject.arguments] == [("arg1", True), ("arg2", True)]
    for item in subject.arguments:
        assert any(value.startswith("test") for value in item.completions)
        assert not all(value.startswith("test") for value in item.completions)


def test_prompt_with_embedded_resource() -> None:
    first, second = prompt("test_prompt_with_embedded_resource").render({"resourceUri": "test://given"}, {})
    assert first["content"] == {
        "type": "resource",
        "resource": {
            "uri": "test://given",
            "mimeType": "text/plain",
            "text": "Embedded resource content for testing.",
        },
    }
    assert second["content"] == {"type": "text", "text": "Please process the embedded resource above."}
    assert [item.name for item in prompt("test_prompt_with_embedded_resource").arguments] == ["resourceUri"]


def test_prompt_with_image() -> None:
    first, second = prompt("test_prompt_with_image").render({}, {})
    assert (first["content"]["type"], first["content"]["mimeType"]) == ("image", "image/png")
    check_png(first["content"]["data"])
    assert second["content"] == {"type": "text", "text": "Please analyze the image above."}
    assert "arguments" not in prompt("test_prompt_with_image").describe()

"""Toolset `features`: what each tool, resource and prompt gives, in shapes that the revisions define."""

from __future__ import annotations

import base64
import io
import re
import struct
import wave
import zlib
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import AnyUrl, TypeAdapter

from probe.engine.catalogue.catalogue import Prompt, Resource
from probe.engine.catalogue.tool import Ask, ClientRequestError, Tool, ToolFailureError
from probe.settings import Settings
from probe.tools.catalogue import FEATURES, TOOLSETS
from probe.tools.features.resources import TEXT
from probe.wire.errors import McpError
from probe.wire.jsonrpc import Json
from probe.wire.revisions import LEGACY, MODERN
from probe.wire.v2025.registry import shape_result
from probe.wire.v2026.codec import complete
from probe.wire.v2026.headers import header_params

from ..support.rows import each
from ..support.schemas import schema
from .fakes import FakeContext, call, texts

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
REVISIONS = [*LEGACY, *MODERN]
SINCE_FORMS = ["2025-06-18", "2025-11-25", "2026-07-28"]
FORMS = ["all", "basic", "formats", "choices"]


def tool(name: str) -> Tool:
    return next(item for item in FEATURES.tools if item.name == name)


def resource(uri: str) -> Resource:
    return next(item for item in FEATURES.resources if item.uri == uri)


def prompt(name: str) -> Prompt:
    return next(item for item in FEATURES.prompts if item.name == name)


async def outcome(name: str, arguments: Json | None = None, context: FakeContext | None = None) -> Json:
    """The structured content, checked by the tool's output schema and against the text beside it."""
    chosen = tool(name)
    result = await call(chosen, arguments, context)
    assert chosen.output_schema is not None
    Draft202012Validator(chosen.output_schema).validate(result["structuredContent"])
    value: Json = result["structuredContent"]
    return value


def shaped(method: str, result: Json, revision: str) -> Json:
    if revision in LEGACY:
        return dict(shape_result(method, revision, result))
    return dict(complete(method, result, server_info={"name": "probe", "version": "0"}))


# Lists.


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_lists_have_the_shape_of_each_revision(revision: str) -> None:
    every = [item for group in TOOLSETS for item in group.tools if item.is_defined(revision)]
    lists: dict[str, tuple[str, Json]] = {
        "tools/list": ("ListToolsResult", {"tools": [item.describe() for item in every]}),
        "resources/list": ("ListResourcesResult", {"resources": [item.describe() for item in FEATURES.resources]}),
        "resources/templates/list": (
            "ListResourceTemplatesResult",
            {"resourceTemplates": [item.describe() for item in FEATURES.templates]},
        ),
        "prompts/list": ("ListPromptsResult", {"prompts": [item.describe() for item in FEATURES.prompts]}),
    }
    for method, (definition, result) in lists.items():
        schema(revision).check(shaped(method, result, revision), definition)


@pytest.mark.parametrize(
    ("name", "since", "until"),
    [
        ("elicit_form", "2025-11-25", None),  # SEP-1034 and SEP-1330
        ("elicit_url", "2025-11-25", None),  # SEP-1036
        ("elicit_simple_form", "2025-06-18", None),
        ("ping_client", "2025-03-26", "2025-11-25"),  # 2026-07-28 has no ping
        ("content_types", "2025-06-18", None),  # resource_link, lastModified
        ("routed_tool", "2026-07-28", None),  # Custom Headers
    ],
)
def test_a_tool_is_offered_where_the_revision_has_the_feature(name: str, since: str, until: str | None) -> None:
    assert (tool(name).since, tool(name).until) == (since, until)


def test_every_other_tool_is_offered_everywhere() -> None:
    limited = {item.name for item in FEATURES.tools if (item.since, item.until) != ("2025-03-26", None)}
    versions = {"elicit_form", "elicit_simple_form", "elicit_url", "ping_client", "content_types", "routed_tool"}
    assert limited == versions


def test_what_needs_a_capability_says_so() -> None:
    needs = {item.name: item.requires for item in FEATURES.tools if item.requires}
    elicitation = ("elicitation",)
    assert needs == {
        "elicit_form": elicitation,
        "elicit_simple_form": elicitation,
        "elicit_url": ("elicitation.url",),
        "list_roots": ("roots",),
    }


# Logging and announcements.


async def test_one_message_is_logged_at_each_level_in_order() -> None:
    context = FakeContext()
    assert await outcome("log_levels", {}, context) == {"logged": LEVELS}
    assert [event[0] for event in context.of("log")] == LEVELS
    assert all(level in data for level, data, _ in context.of("log"))
    assert context.of("log")[2] == ("notice", "Message 3 of 8 has the level notice", "log_levels")


@pytest.mark.parametrize("kind", ["tools", "prompts", "resources"])
async def test_a_list_is_announced_once(kind: str) -> None:
    context = FakeContext()
    assert await outcome("announce_list_change", {"list": kind}, context) == {"announced": kind}
    assert context.events == [("announce", kind)]


def test_what_may_be_announced_is_declared() -> None:
    assert tool("announce_list_change").announces == ("tools", "prompts", "resources")


# Forms.


async def asked(name: str, arguments: Json) -> Json:
    """The params of the elicitation that a tool sends."""
    context = FakeContext(answer={"action": "cancel"})
    await outcome(name, arguments, context)
    ((message, form, key),) = context.of("elicit")
    assert key == "form"
    return {"message": message, "requestedSchema": form}


@pytest.mark.parametrize("fields", FORMS)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_form_is_one_of_the_revision(revision: str, fields: str) -> None:
    check_form(await asked("elicit_form", {"fields": fields}), revision)


@pytest.mark.parametrize("revision", SINCE_FORMS)
async def test_the_simple_form_is_one_of_each_revision(revision: str) -> None:
    check_form(await asked("elicit_simple_form", {}), revision)


def check_form(params: Json, revision: str) -> None:
    request: Json = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}
    schema(revision).check(request, "ElicitRequest")
    # The schemas allow members that they do not define; a client of the revision would not know them.
    union = schema(revision).definitions
    kinds = [part["$ref"].rpartition("/")[2] for part in union["PrimitiveSchemaDefinition"]["anyOf"]]
    for name, field in params["requestedSchema"]["properties"].items():
        fitting = [kind for kind in kinds if set(field) <= set(union[kind]["properties"])]
        assert any(schema(revision).fits(field, union[kind]) for kind in fitting), name


async def test_the_whole_form_has_every_kind_of_field_with_a_default() -> None:
    form = (await asked("elicit_form", {}))["requestedSchema"]
    fields = form["properties"]
    assert all("default" in field and field["title"] for field in fields.values())
    assert [field["type"] for field in fields.values() if field["type"] not in ("string", "array")] == [
        "integer",
        "number",
        "boolean",
    ]
    formats = [field["format"] for field in fields.values() if "format" in field]
    assert formats == ["email", "uri", "date", "date-time"]
    choices = ["enum" in fields["colour"], "oneOf" in fields["size"]]
    several = ["enum" in fields["colours"]["items"], "anyOf" in fields["days"]["items"]]
    assert choices + several == [True] * 4
    assert {"minLength", "maxLength"} <= set(fields["name"])
    parts = [(await asked("elicit_form", {"fields": part}))["requestedSchema"] for part in FORMS[1:]]
    assert {name: field for part in parts for name, field in part["properties"].items()} == fields
    assert [name for part in parts for name in part["required"]] == form["required"]


@pytest.mark.parametrize("fields", FORMS)
async def test_a_form_sent_back_with_its_defaults_has_no_problems(fields: str) -> None:
    properties = (await asked("elicit_form", {"fields": fields}))["requestedSchema"]["properties"]
    content = {name: field["default"] for name, field in properties.items()}
    context = FakeContext(answer={"action": "accept", "content": content})
    assert await outcome("elicit_form", {"fields": fields}, context) == {
        "action": "accept",
        "content": content,
        "problems": [],
    }


async def test_a_misfit_is_a_finding_and_no_failure() -> None:
    content = {"name": "A", "count": 7, "ratio": "0.5", "confirmed": True, "shoe": 43}
    context = FakeContext(answer={"action": "accept", "content": content})
    assert await outcome("elicit_form", {"fields": "basic"}, context) == {
        "action": "accept",
        "content": content,
        "problems": [
            'name must be a string of 2 to 40 characters, got "A"',
            'ratio must be a number from 0 to 1, got "0.5"',
            'the form has no field "shoe"',
        ],
    }


@pytest.mark.parametrize("name", ["elicit_form", "elicit_simple_form"])
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_decline_or_dismiss(name: str, action: str) -> None:
    value = await outcome(name, {}, FakeContext(answer={"action": action}))
    assert value == {"action": action, "content": None, "problems": []}


# Other questions.


async def test_the_roots_come_back_as_they_are() -> None:
    roots = [{"uri": "file:///home/ada", "name": "Home", "_meta": {"x": 1}}, {"uri": "file:///tmp"}]
    context = FakeContext(answer={"roots": roots})
    assert await outcome("list_roots", {}, context) == {"roots": roots}
    assert context.of("roots") == [("roots",)]


DECLARED = {"elicitation/create": "form", "sampling/createMessage": "completion", "roots/list": "roots"}


@pytest.mark.parametrize(
    "declared",
    [
        tuple(DECLARED),
        ("elicitation/create", "roots/list"),
        ("sampling/createMessage",),
        ("roots/list",),
    ],
)
async def test_everything_the_client_declares_is_asked_at_once(declared: tuple[str, ...]) -> None:
    answers = {key: {"answer": key} for key in DECLARED.values()}
    context = FakeContext(declared=declared, by_key=answers)
    keys = [DECLARED[method] for method in declared]
    assert await outcome("ask_several", {}, context) == {"asked": keys, "answers": {key: answers[key] for key in keys}}
    ((asks,),) = context.of("ask")
    assert [ask.method for ask in asks.values()] == list(declared)
    for ask in asks.values():
        check_ask(ask, "2025-11-25")
        check_ask(ask, "2026-07-28")


def check_ask(ask: Ask, revision: str) -> None:
    request: Json = {"jsonrpc": "2.0", "id": 1, "method": ask.method, "params": ask.params}
    schema(revision).check(request, schema(revision).request_of(ask.method))


async def test_a_client_that_declares_nothing_cannot_be_asked() -> None:
    context = FakeContext(declared=())
    with pytest.raises(ToolFailureError, match="none of elicitation, sampling and roots"):
        await outcome("ask_several", {}, context)
    assert context.events == []


async def test_a_ping_that_is_answered_and_one_that_is_not() -> None:
    context = FakeContext()
    assert await outcome("ping_client", {}, context) == {"answered": True}
    assert context.events == [("ping",)]
    with pytest.raises(ClientRequestError):
        await outcome("ping_client", {}, FakeContext(answer=ClientRequestError("no answer")))


# Results.


async def test_the_structured_output_has_every_json_type() -> None:
    found: set[str] = set()

    def walk(value: Any) -> None:
        found.add(type(value).__name__)
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(part)

    walk(value := await outcome("structured_output"))
    assert found == {"dict", "list", "str", "int", "float", "bool", "NoneType"}
    assert value["limits"]["largest"] == 9007199254740991
    assert value["station"]["name"].endswith("\U0001f989")


async def test_the_output_schema_notices_what_is_missing_or_too_much_at_any_depth() -> None:
    value, validator = await outcome("structured_output"), Draft202012Validator(tool("structured_output").output_schema)
    for wrong in (
        {**value, "station": {**value["station"], "position": {"latitude": 1}}},
        {**value, "readings": [{**value["readings"][0], "more": 1}]},
        {**value, "grid": [[1.5]]},
        {**value, "limits": {"largest": 1}},
        {**value, "notes": [None]},
    ):
        assert not validator.is_valid(wrong)


KINDS = ["text", "image", "audio", "resource_link", "embedded_text", "embedded_blob"]


@pytest.mark.parametrize("revision", SINCE_FORMS)
@pytest.mark.parametrize("kind", KINDS)
async def test_each_content_block_is_one_of_the_revision(kind: str, revision: str) -> None:
    (block,) = (await call(tool("content_types"), {"kind": kind}))["content"]
    schema(revision).check(block, "ContentBlock")
    annotations = block["annotations"]
    schema(revision).check(annotations, "Annotations")
    assert set(annotations) == {"audience", "priority", "lastModified"}


async def test_all_blocks_come_in_order_and_differ_in_type_and_priority() -> None:
    blocks = (await call(tool("content_types")))["content"]
    each = [(await call(tool("content_types"), {"kind": kind}))["content"][0] for kind in KINDS]
    assert blocks == each
    assert [block["type"] for block in blocks] == ["text", "image", "audio", "resource_link", "resource", "resource"]
    priorities = [block["annotations"]["priority"] for block in blocks]
    assert priorities == sorted(priorities, reverse=True)
    assert (priorities[0], priorities[-1]) == (1, 0)
    assert {tuple(block["annotations"]["audience"]) for block in blocks} == {
        ("user", "assistant"),
        ("user",),
        ("assistant",),
    }


async def test_the_image_is_a_png_of_four_colours() -> None:
    (block,) = (await call(tool("content_types"), {"kind": "image"}))["content"]
    data = base64.b64decode(block["data"], validate=True)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, rest = {}, data[8:]
    while rest:
        (size,) = struct.unpack(">I", rest[:4])
        kind, body, checksum = rest[4:8], rest[8 : 8 + size], rest[8 + size : 12 + size]
        assert zlib.crc32(kind + body) == struct.unpack(">I", checksum)[0]
        chunks[kind], rest = body, rest[12 + size :]
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    assert struct.unpack(">IIBB", chunks[b"IHDR"][:10]) == (64, 64, 2, 3)
    pixels = zlib.decompress(chunks[b"IDAT"])
    assert len(pixels) == 64 * 17
    assert {pixels[row * 17 + 1 : row * 17 + 17] for row in range(64)} == {
        bytes([0b00000000] * 8 + [0b01010101] * 8),
        bytes([0b10101010] * 8 + [0b11111111] * 8),
    }


async def test_the_sound_lasts_half_a_second() -> None:
    (block,) = (await call(tool("content_types"), {"kind": "audio"}))["content"]
    with wave.open(io.BytesIO(base64.b64decode(block["data"], validate=True))) as sound:
        assert sound.getframerate() == 8000
        assert sound.getnframes() / sound.getframerate() == pytest.approx(0.5, abs=0.01)
        samples = sound.readframes(10_000)
    assert 60 < min(samples) < 100
    assert 150 < max(samples) < 200, "it is heard, and no louder than it need be"
    assert 120 < sum(samples) / len(samples) < 136, "it swings around silence"


async def test_the_link_leads_to_a_resource_of_that_size_and_type() -> None:
    (link,) = (await call(tool("content_types"), {"kind": "resource_link"}))["content"]
    target = resource(link["uri"])
    assert len(target.read(0, {})["text"].encode()) == link["size"]
    assert (target.name, target.title, target.mime_type) == (link["name"], link["title"], link["mimeType"])
    (embedded,) = (await call(tool("content_types"), {"kind": "embedded_text"}))["content"]
    assert embedded["resource"] == {"uri": target.uri, "mimeType": target.mime_type, **target.read(0, {})}


async def test_a_tool_error_is_a_result_and_a_protocol_error_is_none() -> None:
    result = await call(tool("fail"))
    assert result["isError"] is True
    assert texts(result) == ["Simulated tool error: the tool ran, failed, and says so in its result"]
    with pytest.raises(McpError) as caught:
        await call(tool("fail"), {"how": "protocol_error"})
    assert (caught.value.code, caught.value.data) == (-32603, {"simulated": True})


HINTS = {
    "read_only_hint": "readOnlyHint",
    "destructive_hint": "destructiveHint",
    "idempotent_hint": "idempotentHint",
    "open_world_hint": "openWorldHint",
}


@pytest.mark.parametrize(("name", "hint"), HINTS.items())
async def test_each_hint_has_a_tool_that_says_it_alone_and_does_nothing(name: str, hint: str) -> None:
    assert tool(name).describe()["annotations"] == {key: key == hint for key in HINTS.values()}
    assert await outcome(name) == {"hint": hint, "changed": False}


async def test_the_routed_tool_names_a_header_for_each_parameter() -> None:
    """2026-07-28 basic/transports/streamable-http, Custom Headers."""
    mirrored = header_params(tool("routed_tool").describe()["inputSchema"])
    assert {param.path: (param.header, param.type) for param in mirrored.values()} == {
        ("region",): ("Mcp-Param-Region", "string"),
        ("priority",): ("Mcp-Param-Priority", "integer"),
        ("dry_run",): ("Mcp-Param-Dry-Run", "boolean"),
    }
    assert await outcome("routed_tool") == {"region": "eu-north", "priority": 5, "dry_run": False}
    given = {"region": "ap-south", "priority": 9, "dry_run": True}
    assert await outcome("routed_tool", given) == given


def test_no_other_tool_has_headers() -> None:
    assert [item.name for item in FEATURES.tools if header_params(item.describe()["inputSchema"])] == ["routed_tool"]


# Resources.

GREETED = {"name": {"action": "accept", "content": {"name": "Grace"}}}


def test_the_list_needs_a_second_page_in_every_era() -> None:
    size = Settings().page_size
    legacy = [item for item in FEATURES.resources if not item.inputs]
    assert size < len(legacy) < len(FEATURES.resources) <= 2 * size
    items = [item.uri for item in FEATURES.resources if item.uri.startswith("probe://items/")]
    assert items == [f"probe://items/{number}" for number in range(1, 61)]


@each("item", FEATURES.resources)
@each("revision", REVISIONS)
def test_each_resource_can_be_read_under_a_uri_that_no_parser_changes(item: Resource, revision: str) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9+.-]*://[a-z0-9.-]+(/[a-z0-9.-]+)*", item.uri), "RFC 3986, in lower case"
    assert str(TypeAdapter(AnyUrl).validate_python(item.uri)) == item.uri, "as the Python SDK normalises it"
    answers = GREETED if item.inputs else {}
    contents = {"uri": item.uri, "mimeType": item.mime_type, **item.read(1_780_000_000.0, answers)}
    result = shaped("resources/read", {"contents": [contents]}, revision)
    schema(revision).check(result, "ReadResourceResult")


def test_what_the_resources_say() -> None:
    assert resource("probe://text").read(0, {}) == {"text": TEXT}
    assert base64.b64decode(resource("probe://blob").read(0, {})["blob"]).startswith(b"\x89PNG")
    assert resource("probe://items/60").read(0, {}) == {"text": "Item 60 of 60"}
    assert resource("probe://items/1").read(0, {}) == {"text": "Item 1 of 60"}


def test_the_clock_changes_with_each_tick_and_not_between() -> None:
    clock = resource("probe://clock")
    assert clock.ticks_s == 2.0
    said = [clock.read(1_780_000_000.0 + after, {})["text"] for after in (0, 0.5, 1.999, 2, 3.9, 4)]
    first, second, third = "2026-05-28T20:26:40Z", "2026-05-28T20:26:42Z", "2026-05-28T20:26:44Z"
    assert said == [first, first, first, second, second, third]
    assert [item.uri for item in FEATURES.resources if item.ticks_s is not None] == ["probe://clock"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"action": "accept", "content": {"name": "Grace"}}, "Hello, Grace!"),
        ({"action": "decline"}, "Hello, whoever you are!"),
        ({"action": "cancel"}, "Hello, whoever you are!"),
    ],
)
def test_the_greeting_asks_for_a_name(answer: Json, text: str) -> None:
    greeting = resource("probe://greeting")
    assert set(greeting.inputs) == {"name"}
    check_ask(greeting.inputs["name"], "2026-07-28")
    assert greeting.read(0, {"name": answer}) == {"text": text}


def test_the_greeting_refuses_what_does_not_fit_its_form() -> None:
    with pytest.raises(McpError) as caught:
        resource("probe://greeting").read(0, {"name": {"action": "accept", "content": {"name": ""}}})
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    ("uri", "contents"),
    [
        ("probe://squares/0", '{"number":0,"square":0}'),
        ("probe://squares/12", '{"number":12,"square":144}'),
        ("probe://squares/9999", '{"number":9999,"square":99980001}'),
    ],
)
def test_the_template_reads_its_family(uri: str, contents: str) -> None:
    (template,) = FEATURES.templates
    assert template.match(uri) == {"text": contents}


@pytest.mark.parametrize("number", ["", "-1", "007", "10000", "1.5", "x", "1/2", "\u0661", "1\n"])
def test_the_template_knows_no_other_uri(number: str) -> None:
    (template,) = FEATURES.templates
    assert template.match(f"probe://squares/{number}") is None


def test_each_completion_of_the_template_is_one_of_its_family() -> None:
    (template,) = FEATURES.templates
    offered = template.completions["number"]
    assert all(template.match(template.uri_template.replace("{number}", number)) for number in offered)
    assert len(set(offered)) == len(offered) == 100


# Prompts.

ORDERED = {"order": {"action": "accept", "content": {"dish": "cake", "guests": 9}}}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("name", "arguments", "answers"),
    [("headlines", {"year": "1969"}, {}), ("attachments", {}, {}), ("recipe", {}, ORDERED)],
)
def test_each_prompt_has_the_shape_of_each_revision(name: str, arguments: Any, answers: Any, revision: str) -> None:
    result = {"messages": prompt(name).render(arguments, answers)}
    schema(revision).check(shaped("prompts/get", result, revision), "GetPromptResult")


def test_the_years_are_more_than_one_answer_may_have() -> None:
    """server/utilities/completion: "Maximum 100 items per response"."""
    years, styles = prompt("headlines").arguments
    assert len(set(years.completions)) == len(years.completions) == 150
    assert len([year for year in years.completions if year.startswith("19")]) == 100
    assert (years.required, styles.required) == (True, False)
    assert styles.completions == ("broadsheet", "tabloid", "telegram")


def test_headlines_takes_exactly_what_completion_offers() -> None:
    headlines = prompt("headlines")
    (message,) = headlines.render({"year": "1969", "style": "tabloid"}, {})
    assert message["content"]["text"] == "Write three made-up headlines of the year 1969, as in a tabloid."
    for year in headlines.arguments[0].completions:
        assert headlines.render({"year": year}, {})
    for arguments, said in [
        ({"year": "1899"}, "year must be one of"),
        ({"year": "1969", "style": "gossip"}, 'style must be one of broadsheet, tabloid, telegram, got "gossip"'),
    ]:
        with pytest.raises(McpError) as caught:
            headlines.render(arguments, {})
        assert caught.value.code == -32602
        assert said in caught.value.message


def test_attachments_has_a_resource_an_image_and_words_of_the_assistant() -> None:
    messages = prompt("attachments").render({}, {})
    assert [(message["role"], message["content"]["type"]) for message in messages] == [
        ("user", "resource"),
        ("user", "image"),
        ("user", "text"),
        ("assistant", "text"),
    ]
    assert messages[0]["content"]["resource"]["text"] == TEXT


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (ORDERED["order"], "Write a short recipe: cake for 9."),
        ({"action": "accept", "content": {"dish": "soup"}}, "Write a short recipe: soup for 4."),
        ({"action": "decline"}, "Write a short recipe: anything you like."),
    ],
)
def test_the_recipe_asks_for_the_order(answer: Json, text: str) -> None:
    recipe = prompt("recipe")
    assert set(recipe.inputs) == {"order"}
    check_ask(recipe.inputs["order"], "2026-07-28")
    (message,) = recipe.render({}, {"order": answer})
    assert message["content"]["text"] == text

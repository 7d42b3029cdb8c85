"""`server/discover`, the lists, resources, prompts and completion: what each promises in 2026-07-28."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from trio.testing import MockClock

from probe import __version__
from probe.settings import Settings

from ..support.legacy import ALL_CAPABILITIES, RpcError
from ..support.modern import PREFIX, SUBSCRIPTION_ID, TASKS, VERSION, Modern
from ..support.probe import Probe, running
from ..support.schemas import schema

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
SELECTIONS = [
    "probe", "streaming", "features", "dispatch", "conformance", "probe,streaming,features", "all", "chatty",
    "announce_list_change",
]  # fmt: skip
COMPLETION = {"ref": {"type": "ref/prompt", "name": "headlines"}, "argument": {"name": "year", "value": "19"}}


async def everything(client: Modern, method: str) -> list[dict[str, Any]]:
    """All pages of a list."""
    items: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    while True:
        page = await client.call(method, params)
        items += page[LISTS[method]]
        if "nextCursor" not in page:
            return items
        params = {"cursor": page["nextCursor"]}


async def refusal(client: Modern, method: str, params: Mapping[str, Any]) -> RpcError:
    with pytest.raises(RpcError) as caught:
        await client.call(method, params)
    return caught.value


# Discovery.


@pytest.mark.proves(
    "2026-07-28/versioning/2", "2026-07-28/discover/1", "2026-07-28/discover/2", "2026-07-28/logging/2",
    "2026-07-28/versioning/3",
)  # fmt: skip
async def test_discovery_tells_versions_capabilities_and_who_this_is(probe: Probe) -> None:
    result = await probe.modern(tools=Settings().tools).call("server/discover")
    schema(VERSION).check(result, "DiscoverResult")
    assert result["supportedVersions"] == [VERSION]
    assert result["capabilities"] == {
        "logging": {},
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "extensions": {TASKS: {}},
    }
    assert result["_meta"] == {
        PREFIX + "serverInfo": {"name": "mcp-probe", "title": "MCP Probe", "version": __version__}
    }
    assert "serverInfo" not in result
    assert result["instructions"]


@pytest.mark.proves("2026-07-28/basic/21", "2026-07-28/basic/50")
async def test_discovery_depends_on_nobody(probe: Probe) -> None:
    """Not on what the client declares, says about itself or has said before; its identity changes nothing."""
    first = await probe.modern().call("server/discover")
    bare = probe.modern(capabilities={})
    for info in ({"name": "", "version": ""}, {"name": "claude-code", "version": "1", "com.example": 5}):
        assert await bare.call("server/discover", meta={PREFIX + "clientInfo": info}) == first
    request = bare.request("server/discover")
    del request["params"]["_meta"][PREFIX + "clientInfo"]
    async with bare.post(request) as answer:
        assert bare.result(await answer.json(), "server/discover", request["id"]) == first


@pytest.mark.parametrize("selection", SELECTIONS)
async def test_capabilities_and_handlers_match(selection: str, probe: Probe) -> None:
    """What is declared answers; what is not is 404 with -32601, like a method that does not exist."""
    client = probe.modern(tools=selection)
    declared = (await client.call("server/discover"))["capabilities"]
    methods: dict[str, tuple[str, dict[str, Any]]] = {
        "tools/list": ("tools", {}),
        "resources/list": ("resources", {}),
        "resources/templates/list": ("resources", {}),
        "resources/read": ("resources", {"uri": "x:y"}),
        "prompts/list": ("prompts", {}),
        "prompts/get": ("prompts", {"name": "nope"}),
        "completion/complete": ("completions", COMPLETION),
    }
    for method, (capability, params) in methods.items():
        request = client.request(method, params)
        async with client.post(request) as answer:
            status, body = answer.status, await answer.json()
        schema(VERSION).check_message(body)
        missing = body.get("error", {}).get("code") == -32601
        assert missing == (capability not in declared), method
        assert status == (404 if missing else 200)
        if method in LISTS and not missing and method != "resources/templates/list":
            assert body["result"][LISTS[method]], "what is declared is there"


@pytest.mark.parametrize("selection", SELECTIONS)
async def test_a_list_whose_change_can_be_announced_says_so(selection: str, probe: Probe) -> None:
    client = probe.modern(tools=selection)
    declared = (await client.call("server/discover"))["capabilities"]
    tools = {tool["name"] for tool in await everything(client, "tools/list")}
    triggers = {
        "tools": {"announce_list_change", "test_trigger_tool_change"},
        "prompts": {"announce_list_change", "test_trigger_prompt_change"},
        "resources": {"announce_list_change"},
    }
    for capability, names in triggers.items():
        if capability in declared:
            assert declared[capability].get("listChanged", False) == bool(names & tools)


# Every result.


@pytest.mark.proves(
    "2026-07-28/basic/7", "2026-07-28/basic/8", "2026-07-28/basic/9", "2026-07-28/basic/49", "2026-07-28/caching/1",
    "2026-07-28/caching/2",
)  # fmt: skip
async def test_each_result_has_its_type_names_its_server_and_carries_hints_where_it_can_be_cached(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern()
    task = (await client.tool("pure_task"))["taskId"]
    public, private = (60_000, "public"), (0, "private")
    rows: list[tuple[str, dict[str, Any], Any]] = [
        ("server/discover", {}, public),
        *((method, {}, public) for method in LISTS),
        ("resources/read", {"uri": "probe://text"}, private),
        ("resources/read", {"uri": "probe://clock"}, private),
        ("resources/read", {"uri": "probe://squares/7"}, private),
        ("prompts/get", {"name": "attachments"}, None),
        ("tools/call", {"name": "chatty"}, None),
        ("tools/call", {"name": "simple_tool", "arguments": {"delayMs": 10}}, None),
        ("tools/call", {"name": "simple_tool", "arguments": {"delayMs": -1}}, None),
        ("completion/complete", COMPLETION, None),
        ("tasks/get", {"taskId": task}, None),
        ("tasks/update", {"taskId": task, "inputResponses": {}}, None),
        ("tasks/cancel", {"taskId": task}, None),
    ]
    for method, params, hints in rows:
        result = await client.call(method, params)
        assert result["resultType"] == "complete"
        assert result["_meta"][PREFIX + "serverInfo"]["name"] == "mcp-probe"
        assert SUBSCRIPTION_ID not in result["_meta"]
        found = (result["ttlMs"], result["cacheScope"]) if "cacheScope" in result else None
        assert found == hints, method


@pytest.mark.proves("2026-07-28/basic/39", "2026-07-28/basic/40", "2026-07-28/basic/41", "2026-07-28/basic/42")
async def test_the_keys_of_every_meta_are_legal(autojump_clock: MockClock) -> None:
    """Those of the protocol, of the extension and of our own: an optional prefix of labels, and a name."""
    async with running(idle_deadline_s=1) as probe:
        client = probe.modern()
        expired = await client.tool("simple_tool", {"delayMs": 5000})
        extensions = (await client.call("server/discover"))["capabilities"]["extensions"]
        keys = {*expired["_meta"], *extensions, SUBSCRIPTION_ID}
    assert len(keys) == 5
    label = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
    legal = re.compile(rf"(?:{label}(?:\.{label})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
    assert [key for key in keys if not legal.fullmatch(key)] == []


# Lists.


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("selection", ["all", "probe,streaming,features", "conformance"])
async def test_a_list_is_the_same_each_time_for_everybody(method: str, selection: str, probe: Probe) -> None:
    client, other = probe.modern(tools=selection), probe.modern(tools=selection, capabilities={})
    first = await everything(client, method)
    assert first
    assert [await everything(client, method), await everything(other, method)] == [first, first]
    async with running() as another:
        assert await everything(another.modern(tools=selection), method) == first
    names = [item.get("uri", item["name"]) for item in first]
    assert len(names) == len(set(names))


async def test_the_official_suite_finds_a_tool_without_arguments_first(probe: Probe) -> None:
    tools = await everything(probe.modern(tools="conformance"), "tools/list")
    assert tools[0]["name"] == "test_simple_text"
    assert "required" not in tools[0]["inputSchema"]
    assert "x-mcp-header" not in json.dumps(tools[0])


@pytest.mark.proves("2026-07-28/basic/27", "2026-07-28/basic/28", "2026-07-28/basic/29", "2026-07-28/basic/33")
async def test_every_schema_of_a_tool_is_valid_2020_12_and_names_no_other_dialect(probe: Probe) -> None:
    for tool in await everything(probe.modern(), "tools/list"):
        for member in ("inputSchema", "outputSchema"):
            if member in tool:
                Draft202012Validator.check_schema(tool[member])
                dialect = tool[member].get("$schema", "https://json-schema.org/draft/2020-12/schema")
                assert dialect == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.proves("2026-07-28/caching/3")
@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("page_size", [1, 7, 1000])
async def test_pages_are_complete_in_order_and_cached_alike(method: str, page_size: int) -> None:
    async with running(page_size=page_size) as probe:
        client = probe.modern()
        whole = await everything(client, method)
        params: dict[str, Any] = {}
        pages: list[dict[str, Any]] = []
        while not pages or "nextCursor" in pages[-1]:
            pages.append(await client.call(method, params))
            params = {"cursor": pages[-1].get("nextCursor")}
        assert [item for page in pages for item in page[LISTS[method]]] == whole
        assert [len(page[LISTS[method]]) for page in pages[:-1]] == [page_size] * (len(pages) - 1)
        assert 1 <= len(pages[-1][LISTS[method]]) <= page_size
        assert {(page["ttlMs"], page["cacheScope"]) for page in pages} == {(60_000, "public")}
        if len(pages) > 1:
            again = await client.call(method, {"cursor": pages[0]["nextCursor"]})
            assert again == pages[1], "a cursor can be used again"


async def test_a_cursor_is_of_one_list_and_anything_else_is_an_error() -> None:
    async with running(page_size=2) as probe:
        client = probe.modern()
        given = {method: (await client.call(method)).get("nextCursor") for method in LISTS}
        for method in LISTS:
            others = [cursor for other, cursor in given.items() if other != method and cursor]
            odd = ["", "0", "nonsense", "dG9vbHM6MA", "dG9vbHM6OTk5", "é", "x" * 5000, f"{given[method]}="]
            for cursor in (*others, *odd):
                error = await refusal(client, method, {"cursor": cursor})
                assert error.code == -32602
                assert "params.cursor" in error.message


# Resources, prompts, completion.


async def test_resources_are_read_with_their_uri_and_type(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    for item in await everything(client, "resources/list"):
        result = await client.call("resources/read", {"uri": item["uri"]})
        if result["resultType"] == "input_required":
            assert item["uri"] == "probe://greeting"
            continue
        [contents] = result["contents"]
        assert (contents["uri"], contents["mimeType"]) == (item["uri"], item["mimeType"])
        assert ("text" in contents) != ("blob" in contents)


async def test_a_template_is_read_by_its_uris(probe: Probe) -> None:
    client = probe.modern()
    result = await client.call("resources/read", {"uri": "probe://squares/12"})
    assert json.loads(result["contents"][0]["text"]) == {"number": 12, "square": 144}
    result = await client.call("resources/read", {"uri": "test://template/a%20b/data"})
    assert json.loads(result["contents"][0]["text"])["id"] == "a b"


@pytest.mark.proves("2026-07-28/basic/13", "2026-07-28/basic/15", "2026-07-28/basic/17")
@pytest.mark.parametrize(
    "uri",
    ["test://nonexistent-resource-for-conformance-testing", "probe://squares/10000", "probe://TEXT", "x", "", "a b"],
)
async def test_a_resource_that_is_not_there_is_told_by_its_uri(uri: str, probe: Probe) -> None:
    """server/resources: -32602 in place of -32002, which this revision "MUST NOT emit"."""
    error = await refusal(probe.modern(), "resources/read", {"uri": uri})
    assert (error.code, error.data) == (-32602, {"uri": uri})


async def test_prompts_say_what_is_missing(probe: Probe) -> None:
    client = probe.modern()
    for params, part in [
        ({"name": "nope"}, "Unknown prompt: nope"),
        ({"name": "headlines"}, "year"),
        ({"name": "headlines", "arguments": {"style": "tabloid"}}, "year"),
        ({"name": "headlines", "arguments": {"year": "1899"}}, "year"),
        ({"name": "headlines", "arguments": {"year": "1950", "style": "haiku"}}, "style"),
        ({"name": "test_prompt_with_arguments", "arguments": {"arg1": "x"}}, "arg2"),
    ]:
        error = await refusal(client, "prompts/get", params)
        assert error.code == -32602
        assert part in error.message
    result = await client.call("prompts/get", {"name": "headlines", "arguments": {"year": "1950"}})
    assert "1950" in result["messages"][0]["content"]["text"]


async def test_completion_gives_at_most_100_values_and_says_how_many_there_are(probe: Probe) -> None:
    client = probe.modern()
    rows = [("", 100, 150, True), ("19", 100, 100, False), ("202", 10, 10, False), ("x", 0, 0, False)]
    for value, shown, total, more in rows:
        argument = {"name": "year", "value": value}
        result = await client.call("completion/complete", {**COMPLETION, "argument": argument})
        completion = result["completion"]
        assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (shown, total, more)
        assert all(item.startswith(value) for item in completion["values"])
    template = {"type": "ref/resource", "uri": "probe://squares/{number}"}
    argument = {"name": "number", "value": "1"}
    result = await client.call("completion/complete", {"ref": template, "argument": argument})
    assert result["completion"]["values"][:2] == ["1", "10"]


@pytest.mark.parametrize(
    ("ref", "argument"),
    [
        ({"type": "ref/prompt", "name": "nope"}, "year"),
        ({"type": "ref/prompt", "name": "headlines"}, "nope"),
        ({"type": "ref/prompt", "name": "attachments"}, "year"),
        ({"type": "ref/resource", "uri": "probe://nope/{x}"}, "x"),
        ({"type": "ref/resource", "uri": "probe://squares/{number}"}, "nope"),
        ({"type": "ref/tool", "name": "chatty"}, "x"),
    ],
)
async def test_completion_of_what_is_not_there_is_an_error(ref: dict[str, str], argument: str, probe: Probe) -> None:
    error = await refusal(
        probe.modern(), "completion/complete", {"ref": ref, "argument": {"name": argument, "value": ""}}
    )
    assert error.code == -32602


# What a request says beside the point.


@pytest.mark.proves("2026-07-28/basic/38", "2026-07-28/versioning/4")
@pytest.mark.parametrize("method", ["server/discover", *LISTS])
async def test_unknown_keys_and_extensions_change_nothing(method: str, probe: Probe) -> None:
    plain = await probe.modern().call(method)
    capabilities = {
        **ALL_CAPABILITIES,
        "extensions": {"com.example/x": {"a": 1}, PREFIX + "ui": {"mimeTypes": ["x"]}, "no prefix": 5},
        "experimental": {"streams": {}},
        "tasks": {"list": {}, "cancel": {}},
        "unknown": [],
    }
    meta = {
        "com.example/x": {"deep": [1, 2]},
        PREFIX + "unknown": None,
        PREFIX + "subscriptionId": 5,
        PREFIX + "serverInfo": {"name": "me"},
        PREFIX + "related-task": {"taskId": "x"},
        "traceparent": "not a trace",
        "tracestate": 5,
        "": "",
        " odd key ": [],
    }
    client = probe.modern(capabilities=capabilities)
    assert await client.call(method, {"unknown": {"a": [None]}, "name": 5, "task": {"ttl": 5}}, meta=meta) == plain


@pytest.mark.proves("2026-07-28/versioning/4", "2026-07-28/basic/21", "2026-07-28/basic/46")
async def test_the_extension_counts_for_the_request_that_declares_it(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern(tools="conformance")
    declared = client.capabilities
    arguments = {"seconds": 1, "label": "x"}
    for capabilities, kind in ((declared, "task"), ({}, "complete"), (declared, "task"), ({"tasks": {}}, "complete")):
        client.capabilities = capabilities
        assert (await client.tool("slow_compute", arguments))["resultType"] == kind


@pytest.mark.proves("2026-07-28/transports/1")
async def test_what_is_sent_is_utf_8_on_one_line(probe: Probe) -> None:
    """Some readers of JSON answers, the official suite among them, read line by line."""
    client = probe.modern()
    async with client.post(client.request("resources/read", {"uri": "probe://text"})) as answer:
        body = await answer.body()
    assert "café" in body.decode()
    assert b"\n" not in body

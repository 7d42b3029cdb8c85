"""Resources, subscriptions, prompts, completion, logging and pages, as 2025-11-25 server/* describes them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Argument, Prompt, Template, Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, content
from probe.tools.catalogue import CONFORMANCE, DISPATCH, FEATURES, PROBE, STREAMING

from ..support.legacy import Legacy, RpcError
from ..support.probe import Probe, running

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def error(client: Legacy, method: str, params: dict[str, Any] | None = None) -> tuple[int, str]:
    with pytest.raises(RpcError) as caught:
        await client.call(method, params)
    return caught.value.code, caught.value.message


# Ids, and arguments of tasks.


@pytest.mark.parametrize("id", [0, -1, 2**53 + 1, 10**30, "", "5", "é\u2028\U0001f600", "x" * 256])
async def test_every_legal_id_comes_back_with_the_same_value_and_type(id: Any, probe: Probe) -> None:
    client = await probe.client()
    async with client.post(client.request("ping", None, id)) as answer:
        message = await answer.json()
    assert (type(message["id"]), message["id"]) == (type(id), id)


# Resources.


async def test_each_listed_resource_can_be_read_under_its_uri_and_type(revision: str, probe: Probe) -> None:
    client = await probe.client(revision, tools="conformance")
    listed = (await client.call("resources/list"))["resources"]
    assert [item["name"] for item in listed][:3] == ["static-text", "static-binary", "watched-resource"]
    for item in listed:
        (part,) = (await client.call("resources/read", {"uri": item["uri"]}))["contents"]
        assert (part["uri"], part["mimeType"]) == (item["uri"], item["mimeType"])
        assert ("text" in part) is not ("blob" in part)


async def test_a_binary_resource_is_base64(revision: str, probe: Probe) -> None:
    """2025-11-25 server/resources, Binary Content."""
    client = await probe.client(revision)
    (part,) = (await client.call("resources/read", {"uri": "test://static-binary"}))["contents"]
    assert base64.b64decode(part["blob"], validate=True).startswith(b"\x89PNG")


async def test_a_template_reads_any_uri_of_its_family(revision: str, probe: Probe) -> None:
    client = await probe.client(revision, tools="conformance")
    (template,) = (await client.call("resources/templates/list"))["resourceTemplates"]
    assert template["uriTemplate"] == "test://template/{id}/data"
    (part,) = (await client.call("resources/read", {"uri": "test://template/caf%C3%A9/data"}))["contents"]
    assert part["uri"] == "test://template/caf%C3%A9/data"
    assert '"id":"café"' in part["text"]


@pytest.mark.parametrize(
    "uri", ["test://nope", "", "static-text", "test://template//data", "test://template/a/b/data", "TEST://static-text"]
)
async def test_an_unknown_resource_is_32002_with_its_uri(uri: str, revision: str, probe: Probe) -> None:
    """2025-11-25 server/resources, Error Handling: "Resource not found: -32002"."""
    client = await probe.client(revision)
    for method in ("resources/read", "resources/subscribe"):
        with pytest.raises(RpcError) as caught:
            await client.call(method, {"uri": uri})
        assert (caught.value.code, caught.value.data) == (-32002, {"uri": uri})


async def test_a_subscriber_hears_of_each_change_until_it_unsubscribes(
    revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client(revision)
    uri = "test://watched-resource"
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        await client.call("resources/subscribe", {"uri": uri})
        await client.call("resources/subscribe", {"uri": uri})
        before = (await client.call("resources/read", {"uri": uri}))["contents"][0]["text"]
        await trio.sleep(10)
        heard = client.noted("notifications/resources/updated")
        assert heard == [{"uri": uri}] * len(heard)
        assert len(heard) in (3, 4), "one every 3 seconds, also for one that subscribed twice"
        assert (await client.call("resources/read", {"uri": uri}))["contents"][0]["text"] != before
        await client.call("resources/unsubscribe", {"uri": uri})
        await trio.sleep(10)
        assert len(client.notes) == len(heard)
        nursery.cancel_scope.cancel()


async def test_a_change_is_announced_when_it_can_be_read(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    uri = "test://watched-resource"
    await client.call("resources/subscribe", {"uri": uri})
    texts = []
    async with client.get() as answer:
        await answer.first(1)
        for _ in range(3):
            await answer.first(1)
            texts.append((await client.call("resources/read", {"uri": uri}))["contents"][0]["text"])
    assert len(set(texts)) == 3


async def test_a_subscription_to_what_never_changes_is_fine_and_silent(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        assert await client.call("resources/subscribe", {"uri": "test://static-text"}) == {}
        assert await client.call("resources/subscribe", {"uri": "test://template/1/data"}) == {}
        await trio.sleep(30)
        assert client.notes == []
        nursery.cancel_scope.cancel()


async def test_a_session_has_so_many_subscriptions_and_one_more_is_refused_and_recorded(
    autojump_clock: MockClock,
) -> None:
    async with running(max_subscriptions=2) as probe:
        client = await probe.client()
        for number in (1, 2, 2):
            await client.call("resources/subscribe", {"uri": f"test://template/{number}/data"})
        assert probe.events("limit.reached") == []
        with pytest.raises(RpcError, match=r"the limit max_subscriptions is 2") as caught:
            await client.call("resources/subscribe", {"uri": "test://template/3/data"})
        assert caught.value.code == -32000
        assert [(event["limit"], event["value"]) for event in probe.events("limit.reached")] == [
            ("max_subscriptions", 2)
        ]
        await client.call("resources/unsubscribe", {"uri": "test://template/1/data"})
        assert await client.call("resources/subscribe", {"uri": "test://template/3/data"}) == {}


async def test_one_sessions_subscription_is_not_anothers(probe: Probe, autojump_clock: MockClock) -> None:
    client, other = await probe.client(), await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        await nursery.start(other.listen)
        await client.call("resources/subscribe", {"uri": "test://watched-resource"})
        await other.call("resources/unsubscribe", {"uri": "test://watched-resource"})
        await trio.sleep(10)
        assert client.notes
        assert other.notes == []
        nursery.cancel_scope.cancel()


async def test_unsubscribing_what_was_not_subscribed_is_harmless(probe: Probe) -> None:
    client = await probe.client()
    assert await client.call("resources/unsubscribe", {"uri": "test://nope"}) == {}


async def test_a_change_that_nobody_can_hear_is_recorded_as_dropped(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await client.call("resources/subscribe", {"uri": "test://watched-resource"})
    await trio.sleep(4)
    dropped = probe.events("message.dropped")[0]
    assert dropped["message"]["method"] == "notifications/resources/updated"
    assert dropped["why"] == "the client has no stream open, which the protocol allows"


# Prompts.


async def test_each_listed_prompt_can_be_got_with_its_arguments(revision: str, probe: Probe) -> None:
    client = await probe.client(revision, tools="conformance")
    for prompt in (await client.call("prompts/list"))["prompts"]:
        arguments = {item["name"]: "x" for item in prompt.get("arguments", [])}
        result = await client.call("prompts/get", {"name": prompt["name"], "arguments": arguments})
        assert result["description"] == prompt["description"]
        assert all(message["role"] == "user" for message in result["messages"])


async def test_the_arguments_stand_in_the_prompt(probe: Probe) -> None:
    client = await probe.client()
    params = {"name": "test_prompt_with_arguments", "arguments": {"arg1": "hello", "arg2": "world"}}
    (message,) = (await client.call("prompts/get", params))["messages"]
    assert message["content"]["text"] == "Prompt with arguments: arg1='hello', arg2='world'"


async def test_an_unknown_prompt_and_a_missing_argument_are_invalid_params(revision: str, probe: Probe) -> None:
    """2025-11-25 server/prompts, Error Handling: both -32602."""
    client = await probe.client(revision)
    assert await error(client, "prompts/get", {"name": "nope"}) == (-32602, "Unknown prompt: nope")
    assert await error(client, "prompts/get", {"name": "test_prompt_with_arguments", "arguments": {"arg2": "x"}}) == (
        -32602,
        "Missing arguments of prompt test_prompt_with_arguments: arg1",
    )


# Completion.

PROMPT = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
TEMPLATE = {"type": "ref/resource", "uri": "test://template/{id}/data"}


@pytest.mark.parametrize(
    ("ref", "name", "value", "values"),
    [
        (PROMPT, "arg1", "", ["testValue1", "testing", "other"]),
        (PROMPT, "arg1", "test", ["testValue1", "testing"]),
        (PROMPT, "arg1", "Test", []),
        (PROMPT, "arg2", "an", ["another"]),
        (TEMPLATE, "id", "12", ["123", "124"]),
        ({"type": "ref/prompt", "name": "test_prompt_with_embedded_resource"}, "resourceUri", "", []),
    ],
)
async def test_completion_offers_the_values_that_begin_so(
    ref: dict[str, str], name: str, value: str, values: list[str], revision: str, probe: Probe
) -> None:
    client = await probe.client(revision)
    result = await client.call("completion/complete", {"ref": ref, "argument": {"name": name, "value": value}})
    assert result == {"completion": {"values": values, "total": len(values), "hasMore": False}}


@pytest.mark.parametrize(
    ("ref", "name", "part"),
    [
        ({"type": "ref/prompt", "name": "nope"}, "a", "Unknown prompt nope"),
        ({"type": "ref/resource", "uri": "test://nope"}, "a", "Unknown resource template test://nope"),
        (PROMPT, "arg3", "has no argument arg3"),
        (TEMPLATE, "uri", "has no argument uri"),
        ({"type": "ref/tool", "name": "x"}, "a", "params.ref.type must be"),
        ({"type": "ref/prompt"}, "a", "params.ref.name is required"),
    ],
)
async def test_completion_of_what_does_not_exist_is_invalid_params(
    ref: dict[str, str], name: str, part: str, revision: str, probe: Probe
) -> None:
    """2025-11-25 server/utilities/completion, Error Handling: "Invalid prompt name: -32602"."""
    client = await probe.client(revision)
    code, message = await error(client, "completion/complete", {"ref": ref, "argument": {"name": name, "value": ""}})
    assert code == -32602
    assert part in message


@pytest.mark.parametrize(("offered", "shown", "more"), [(100, 100, False), (101, 100, True)])
async def test_at_most_100_completions_are_sent_with_the_true_total(offered: int, shown: int, more: bool) -> None:
    """ "Maximum 100 items per response"."""
    values = [f"v{number}" for number in range(offered)]
    prompt = Prompt("p", "P", "D", lambda arguments: [], (Argument("a", "D", completions=values),))
    async with running(toolsets=[Toolset("many", (), prompts=(prompt,))], tools="many") as probe:
        client = await probe.client(tools="many")
        params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}}
        result = (await client.call("completion/complete", params))["completion"]
        assert (result["values"], result["total"], result["hasMore"]) == (values[:shown], offered, more)


# Logging.


async def shout(context: ToolContext) -> ToolResult:
    for level in LEVELS:
        context.log(level, {"level": level}, "shouter")  # type: ignore[arg-type]
    return content([])


LOUD = [Toolset("loud", (Tool(name="shout", title="T", description="D", run=shout),))]


@pytest.mark.parametrize("level", LEVELS)
async def test_the_level_lets_through_what_is_as_severe_or_more(level: str, revision: str) -> None:
    """2025-11-25 server/utilities/logging: RFC 5424 severities."""
    async with running(toolsets=LOUD) as probe:
        client = await probe.client(revision)
        assert await client.call("logging/setLevel", {"level": level}) == {}
        await client.tool("shout")
        expected = LEVELS[LEVELS.index(level) :]
        assert client.noted("notifications/message") == [
            {"level": name, "logger": "shouter", "data": {"level": name}} for name in expected
        ]


async def test_until_a_level_is_set_it_is_info() -> None:
    """ "If no logging/setLevel request has been sent, the server MAY decide which messages to send automatically"."""
    async with running(toolsets=LOUD) as probe:
        client = await probe.client()
        await client.tool("shout")
        assert [note["level"] for note in client.noted("notifications/message")] == LEVELS[1:]


# Pages.

MANY = [
    Toolset(
        "many",
        tuple(Tool(name=f"t{n}", title="T", description="D", run=lambda arguments: content([])) for n in range(5)),
        resources=CONFORMANCE.resources,
        templates=tuple(
            Template(f"x{n}://{{id}}", f"x{n}", "T", "D", "text/plain", lambda uri: None) for n in range(5)
        ),
        prompts=tuple(Prompt(f"p{n}", "P", "D", lambda arguments: []) for n in range(4)),
    )
]
LISTS = [
    ("tools/list", "tools", "name", [f"t{n}" for n in range(5)]),
    ("resources/list", "resources", "name", ["static-text", "static-binary", "watched-resource"]),
    ("resources/templates/list", "resourceTemplates", "name", [f"x{n}" for n in range(5)]),
    ("prompts/list", "prompts", "name", [f"p{n}" for n in range(4)]),
]


async def pages(client: Legacy, method: str, member: str) -> list[list[dict[str, Any]]]:
    result = await client.call(method)
    found = [result[member]]
    while "nextCursor" in result:
        result = await client.call(method, {"cursor": result["nextCursor"]})
        found.append(result[member])
    return found


@pytest.mark.parametrize("size", [1, 2, 4, 5, 50])
@pytest.mark.parametrize(("method", "member", "key", "names"), LISTS)
async def test_the_pages_of_a_list_hold_everything_once_and_in_order(
    method: str, member: str, key: str, names: list[str], size: int
) -> None:
    """2025-11-25 server/utilities/pagination; a full last page has no further one after it."""
    async with running(toolsets=MANY, page_size=size) as probe:
        client = await probe.client()
        found = await pages(client, method, member)
        assert [item[key] for page in found for item in page] == names
        assert [len(page) for page in found[:-1]] == [size] * (len(found) - 1)
        assert found[-1]


async def test_a_cursor_of_one_list_is_no_cursor_of_another() -> None:
    """ "Clients MUST treat cursors as opaque tokens"; "Invalid cursors SHOULD result in -32602"."""
    async with running(toolsets=MANY, page_size=2) as probe:
        client = await probe.client()
        cursor = (await client.call("tools/list"))["nextCursor"]
        for method in ("resources/list", "resources/templates/list", "prompts/list", "tasks/list"):
            code, message = await error(client, method, {"cursor": cursor})
            assert code == -32602
            assert "params.cursor" in message


# Capabilities.


@pytest.mark.parametrize(
    ("tools", "declared"),
    [
        ("streaming", {"logging", "tools", "tasks"}),
        ("probe", {"logging", "tools", "tasks"}),
        ("dispatch", {"logging", "tools", "tasks"}),
        ("simple_tool", {"logging", "tools", "tasks"}),
        ("features", {"logging", "tools", "tasks", "resources", "prompts", "completions"}),
        ("conformance", {"logging", "tools", "tasks", "resources", "prompts", "completions"}),
        ("all", {"logging", "tools", "tasks", "resources", "prompts", "completions"}),
    ],
)
async def test_what_a_selection_offers_is_declared_and_the_rest_does_not_exist(
    tools: str, declared: set[str], probe: Probe
) -> None:
    client = Legacy(probe.app, f"/mcp?tools={tools}")
    result = await client.initialize()
    assert result["capabilities"].keys() == declared
    if "resources" in declared:
        return
    for method in (
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "prompts/list",
    ):
        code, message = await error(client, method, {"uri": "test://static-text"})
        assert (code, f"selection {tools!r} offers no" in message) == (-32601, True)


async def test_a_selection_names_toolsets_and_single_tools(probe: Probe) -> None:
    client = await probe.client(tools="chatty,probe,chatty")
    names = [tool["name"] for tool in (await client.call("tools/list"))["tools"]]
    assert names == [tool.name for tool in PROBE.tools] + ["chatty"]


async def test_without_a_selection_the_servers_own_is_offered(probe: Probe) -> None:
    client = Legacy(probe.app, "/mcp")
    await client.initialize()
    names = [tool["name"] for tool in (await client.call("tools/list"))["tools"]]
    served = [tool for group in (PROBE, STREAMING, FEATURES, DISPATCH) for tool in group.tools]
    assert names == [tool.name for tool in served if tool.name != "routed_tool"], "which is for 2026-07-28 only"

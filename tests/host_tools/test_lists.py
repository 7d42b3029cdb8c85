"""Which tools of hosts a client sees by what it selects, and who is told when they change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.hosts import ECHO, PLAIN, SECRET, Host, calling, connected, hosting
from ..support.http import exchange
from ..support.legacy import Legacy, RpcError
from ..support.listening import listening
from ..support.modern import Modern
from ..support.pipes import pipe
from ..support.probe import Probe, running
from .test_calls import REVISIONS, user

CHANGED = "notifications/tools/list_changed"


async def names(client: Legacy | Modern) -> list[str]:
    """All tools that a client sees, page by page."""
    found, cursor = [], None
    while True:
        page = await client.call("tools/list", {} if cursor is None else {"cursor": cursor})
        found += [tool["name"] for tool in page["tools"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            return found


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_tool_is_shown_as_it_was_registered(
    probe: Probe, host: Host, revision: str, autojump_clock: MockClock
) -> None:
    hints = {"title": "E", "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True}
    await host.update({**ECHO, "title": "Echo", "annotations": hints}, PLAIN)
    client = await user(probe, revision)
    echo, plain = (await client.call("tools/list"))["tools"]
    expected = {
        "name": "demo__echo",
        "description": "Gives back what it gets.",
        "inputSchema": ECHO["inputSchema"],
        "annotations": hints,
        "title": "Echo",
        "outputSchema": ECHO["outputSchema"],
    }
    if revision == "2025-03-26":
        del expected["title"], expected["outputSchema"]
    assert echo == expected
    assert (plain["name"], plain["inputSchema"]) == ("demo__plain", {"type": "object"})
    assert plain.get("title") == (None if revision == "2025-03-26" else "plain")
    assert "outputSchema" not in plain


@pytest.mark.parametrize("revision", REVISIONS)
async def test_icons_are_for_the_revisions_that_have_them(
    probe: Probe, host: Host, revision: str, autojump_clock: MockClock
) -> None:
    icons = [
        {"src": "https://example.org/a.png", "mimeType": "image/png", "sizes": ["48x48", "96x96"], "theme": "dark"},
        {"src": "data:image/svg+xml;base64,PHN2Zy8+"},
    ]
    await host.update({**ECHO, "icons": icons}, {**PLAIN, "icons": []})
    echo, plain = (await (await user(probe, revision)).call("tools/list"))["tools"]
    assert echo.get("icons") == (icons if revision in {"2025-11-25", "2026-07-28"} else None)
    assert "icons" not in plain


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_is_selected_is_what_there_is(
    probe: Probe, host: Host, revision: str, autojump_clock: MockClock
) -> None:
    hosted = ["demo__echo", "demo__plain"]
    assert await names(await user(probe, revision, "hosts")) == hosted
    assert await names(await user(probe, revision, "demo__plain")) == ["demo__plain"]
    assert await names(await user(probe, revision, "demo__plain,demo__echo,other__x")) == hosted
    assert await names(await user(probe, revision, "simple_tool,hosts")) == ["simple_tool", *hosted]
    assert (await names(await user(probe, revision, "all")))[-2:] == hosted
    local = await names(await user(probe, revision, "probe"))
    assert local
    assert not set(local) & set(hosted)
    with pytest.raises(RpcError) as caught:
        await (await user(probe, revision, "probe")).tool("demo__echo", {"word": "a"})
    assert (caught.value.code, caught.value.message) == (-32602, "Unknown tool: demo__echo")
    with pytest.raises(RpcError):
        await (await user(probe, revision, "demo__plain")).tool("demo__echo", {"word": "a"})
    assert await host.hear_all() == []
    assert probe.record()["toolset"] == ""


async def test_by_default_hosts_are_served(probe: Probe, host: Host, autojump_clock: MockClock) -> None:
    client = Modern(probe.app, "/mcp")
    assert (await names(client))[-2:] == ["demo__echo", "demo__plain"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_tool_can_be_selected_before_its_host_is_there(
    probe: Probe, revision: str, autojump_clock: MockClock
) -> None:
    client = await user(probe, revision, "demo__echo")
    assert await names(client) == []
    with pytest.raises(RpcError):
        await client.tool("demo__echo")
    async with connected(probe.app) as host:
        await host.register()
        assert await names(client) == ["demo__echo"], "and a session sees it without another handshake"
        async with calling(client, "demo__echo", {"word": "a"}) as call:
            await host.answer((await host.dispatched())[0], output={"word": "a"})
        assert "isError" not in call.result or not call.result["isError"]
    assert await names(client) == []


@pytest.mark.parametrize("selection", ["demo_echo", "demo__", "__echo", "-a__b", "x" * 33 + "__b", "demo__echo,no"])
async def test_what_can_never_be_a_tool_is_refused(
    probe: Probe, host: Host, selection: str, autojump_clock: MockClock
) -> None:
    assert await refused(probe, selection)


async def refused(probe: Probe, selection: str) -> bool:
    """Whether a selection is answered with 400 in both eras."""
    client = Modern(probe.app, f"/mcp?tools={selection}")
    async with client.post(client.request("tools/list")) as answer:
        modern = answer.status
        await answer.body()
    async with exchange(probe.app, "POST", f"/mcp?tools={selection}", Legacy(probe.app, "").headers, b"{}") as answer:
        legacy = answer.status
        await answer.body()
    return (modern, legacy) == (400, 400)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_without_a_secret_there_are_no_hosts(revision: str, autojump_clock: MockClock) -> None:
    async with running() as probe:
        client = await user(probe, revision, "hosts")
        assert await names(client) == []
        assert await refused(probe, "demo__echo")
        assert await names(await user(probe, revision, "hosts,simple_tool")) == ["simple_tool"]
        if isinstance(client, Modern):
            assert "tools" not in (await client.call("server/discover"))["capabilities"]
            listed = (await probe.modern(tools="hosts,simple_tool").call("server/discover"))["capabilities"]["tools"]
        else:
            again = Legacy(probe.app, "/mcp?tools=hosts")
            assert "tools" not in (await again.initialize(revision))["capabilities"]
            again = Legacy(probe.app, "/mcp?tools=hosts,simple_tool")
            listed = (await again.initialize(revision))["capabilities"]["tools"]
        assert listed.get("listChanged", False) is False


@pytest.mark.parametrize("selection", ["hosts", "demo__echo", "simple_tool,hosts"])
async def test_with_hosts_the_list_can_change(probe: Probe, selection: str, autojump_clock: MockClock) -> None:
    discovered = await probe.modern(tools=selection).call("server/discover")
    assert discovered["capabilities"]["tools"] == {"listChanged": True}
    initialized = await Legacy(probe.app, f"/mcp?tools={selection}").initialize()
    assert initialized["capabilities"]["tools"] == {"listChanged": True}


async def test_the_list_has_pages(autojump_clock: MockClock) -> None:
    async with hosting(page_size=3) as (probe, host):
        await host.update(*({**PLAIN, "name": f"t{number}"} for number in range(7)))
        expected = [f"demo__t{number}" for number in range(7)]
        for client in (probe.modern(tools="hosts"), await probe.client(tools="hosts")):
            assert await names(client) == expected
            first = await client.call("tools/list")
            assert len(first["tools"]) == 3
            await host.update(PLAIN)
            with pytest.raises(RpcError) as caught:
                await client.call("tools/list", {"cursor": first["nextCursor"]})
            assert caught.value.code == -32602, "the page is not there any more"
            await host.update(*({**PLAIN, "name": f"t{number}"} for number in range(7)))


@asynccontextmanager
async def told(probe: Probe, selection: str) -> AsyncIterator[list[str]]:
    """What a legacy session is told on its GET stream."""
    client = await probe.client(tools=selection)
    methods: list[str] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        await wait_all_tasks_blocked()
        client.notes = Heard(methods)
        yield methods
        nursery.cancel_scope.cancel()


class Heard(list[dict[str, Any]]):
    """The notes of a client, of which only the methods are looked at."""

    def __init__(self, methods: list[str]) -> None:
        super().__init__()
        self._methods = methods

    def append(self, note: dict[str, Any]) -> None:
        self._methods.append(note["method"])


async def test_those_and_only_those_hear_of_a_change_who_can_see_it(probe: Probe, autojump_clock: MockClock) -> None:
    async with (
        told(probe, "hosts") as hosts,
        told(probe, "demo__echo") as single,
        told(probe, "announce_list_change") as none,
        listening(probe.modern(tools="hosts"), toolsListChanged=True) as ear,
        listening(probe.modern(tools="demo__echo"), toolsListChanged=True) as narrow,
        listening(probe.modern(tools="announce_list_change"), toolsListChanged=True) as local,
        listening(probe.modern(tools="hosts"), promptsListChanged=True) as uninterested,
        pipe(probe.engine, selection="hosts") as client,
    ):
        await client.initialize()
        assert ear.honoured == narrow.honoured == local.honoured == {"toolsListChanged": True}
        for count in (1, 2, 3):
            async with changing(probe, count):
                await trio.sleep(1)
                # One while the host is there, and one for each that has gone before.
                assert hosts == single == [CHANGED] * (2 * count - 1)
                assert ear.methods == narrow.methods == [CHANGED] * (2 * count - 1)
                assert (await client.hear())["method"] == CHANGED
            await trio.sleep(1)
            assert (await client.hear())["method"] == CHANGED
        assert (none, local.methods, uninterested.methods) == ([], [], [])


@asynccontextmanager
async def changing(probe: Probe, count: int) -> AsyncIterator[None]:
    """A host comes, and goes at the end."""
    async with connected(probe.app, f"instance-of-a-host-{count}") as host:
        await host.register()
        yield


async def test_a_host_that_changes_all_the_time_is_told_of_ten_times_a_second(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    async with told(probe, "hosts") as hosts, listening(probe.modern(tools="hosts"), toolsListChanged=True) as ear:
        await trio.sleep(1)
        for number in range(200):
            await host.update({**PLAIN, "name": f"t{number}"})
            await trio.sleep(0.01)
        await trio.sleep(1)
        assert 18 <= len(hosts) <= 22
        assert len(ear.methods) == len(hosts)
        assert await names(probe.modern(tools="hosts")) == ["demo__t199"]


async def test_where_nothing_has_changed_nobody_is_told(autojump_clock: MockClock) -> None:
    async with hosting() as (probe, host), told(probe, "hosts") as hosts, connected(probe.app) as again:
        await trio.sleep(1)
        await host.update(ECHO, PLAIN)
        await trio.sleep(1)
        # What clients do not see.
        await host.update({**ECHO, "idleMs": 5000}, PLAIN)
        await trio.sleep(1)
        await again.register()
        await trio.sleep(1)
        assert hosts == []
        await again.update(PLAIN, ECHO)
        await trio.sleep(1)
        assert hosts == [CHANGED], "the order is a change"


async def test_a_host_that_is_back_in_time_has_changed_nothing(autojump_clock: MockClock) -> None:
    async with running(toolhost_secret=SECRET) as probe, told(probe, "hosts") as hosts:
        async with connected(probe.app) as host:
            await host.register()
            await trio.sleep(1)
            await host.update(PLAIN)
            await trio.sleep(0.01)
        async with connected(probe.app) as host:
            await host.register("demo", [PLAIN])
            await trio.sleep(1)
            assert hosts == [CHANGED, CHANGED]


async def test_a_session_without_a_stream_misses_the_news_and_sees_the_tools(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client(tools="hosts")
    async with connected(probe.app) as host:
        await host.register()
        await trio.sleep(1)
        # A host that comes and goes must not fill the log with news that nobody could get.
        assert not probe.events("message.dropped")
        assert await names(client) == ["demo__echo", "demo__plain"]

"""`/api/server`, `/api/tools` and the live tables."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from probe import __version__
from probe.log.context import Context
from probe.log.events import HostClosed, HostConnected
from probe.settings import Limits, Settings, described
from probe.tools.catalogue import TOOLSETS
from probe.web import paths
from probe.web.api import tables as tables_page
from probe.web.paths import Paths
from probe.wire.revisions import LEGACY, MODERN

from ...support.api import LOCAL, get, page, refusal
from ...support.http import exchange
from ...support.probe import EPOCH, Probe, running

ROOT = Path(__file__).parents[3]
TEXTS = {spec.name for spec in described(Settings) if spec.type is str}
SHOWN = {"host", "public_url", "tools", "rooms", "allowed_hosts", "allowed_origins", "log_format", "log_level"}
KEY = "5ec2e7" + "0" * 58


def limit(server: Any, name: str) -> Any:
    return next(item for item in server["limits"] if item["name"] == name)


async def test_the_server_says_who_it_is_and_since_when() -> None:
    before = trio.current_time()
    async with running() as probe:
        made = trio.current_time()
        server = await page(probe, "/api/server")
        now = trio.current_time()
        assert (server["name"], server["version"], server["run"]) == ("MCP Probe", __version__, probe.engine.run)
        assert (server["started_at"], server["state"]) == (EPOCH, "ready")
        assert server["uptime_s"] <= now - before
        later = await page(probe, "/api/server")
        assert later["uptime_s"] >= now - made
        assert server["revisions"] == ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


async def test_the_address_of_mcp_is_as_the_page_was_asked_for_unless_it_is_set(probe: Probe) -> None:
    assert (await page(probe, "/api/server"))["mcp"] == "http://127.0.0.1:8000/mcp"
    async with running(public_url="https://probe.example/") as other:
        assert (await page(other, "/api/server"))["mcp"] == "https://probe.example/mcp"


async def test_there_is_no_address_of_mcp_where_only_pages_are_served(probe: Probe) -> None:
    beside = Probe(probe.engine, Paths(probe.engine, pages_only=True))
    assert (await page(beside, "/api/server"))["mcp"] is None
    for of, known in ((probe, True), (beside, False)):
        assert ("/mcp, /ws, " in (await refusal(of, "/api/nope", 404))["detail"]) is known


async def test_a_draining_server_says_so() -> None:
    async with running(grace_s=0) as probe:
        await probe.engine.drain()
        assert (await page(probe, "/api/server"))["state"] == "draining"


async def test_toolsets_are_shown_with_their_tools_and_whether_they_are_served() -> None:
    async with running(tools="probe,chatty") as probe:
        groups = (await page(probe, "/api/server"))["toolsets"]
    assert [(group["name"], group["tools"]) for group in groups] == [
        (group.name, [tool.name for tool in group.tools]) for group in TOOLSETS if group.tools
    ]
    assert [group["name"] for group in groups if group["default"]] == ["probe"]


async def test_every_limit_is_shown_with_its_unit_and_reason() -> None:
    async with running(max_tasks=7) as probe:
        server = await page(probe, "/api/server")
    assert [item["name"] for item in server["limits"]] == [spec.name for spec in fields(Limits)]
    assert all(item["unit"] and item["reason"] for item in server["limits"])
    assert limit(server, "max_tasks")["value"] == 7


async def test_use_of_limits_is_shown(probe: Probe) -> None:
    names = ("max_sessions", "max_tasks", "max_calls", "max_listens", "call_records", "max_feed_readers")
    before = await page(probe, "/api/server")
    assert [limit(before, name)["used"] for name in names] == [0] * 6
    assert limit(before, "max_unsent_bytes")["used"] == paths.RESERVED, "the page itself"
    assert limit(before, "max_body_bytes")["used"] is None, "nothing that is shared"
    client = await probe.client()
    task = {"name": "pure_task", "arguments": {"durationMs": 60_000}, "task": {"ttl": 600_000}}
    await client.call("tools/call", task)
    modern = probe.modern()

    async def call() -> None:
        slow = {"name": "simple_tool", "arguments": {"delayMs": 5000}}
        async with modern.post(modern.request("tools/call", slow)):
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        async with (
            modern.post(modern.request("subscriptions/listen", {"notifications": {}})),
            exchange(probe.app, "GET", "/dashboard/events", LOCAL),
            exchange(probe.app, "GET", "/dashboard/events?tables=calls", LOCAL),
        ):
            await trio.testing.wait_all_tasks_blocked()
            during = await page(probe, "/api/server")
        nursery.cancel_scope.cancel()
    assert [limit(during, name)["used"] for name in names] == [1, 1, 1, 1, 2, 2], "all readers have a place"
    assert len(during["feed"]) == 2


async def test_pages_whose_calls_wait_are_counted(probe: Probe) -> None:
    assert limit(await page(probe, "/api/server"), "max_interactions")["used"] == 0
    await probe.modern().tool("elicit_url")
    assert limit(await page(probe, "/api/server"), "max_interactions")["used"] == 1


async def test_websockets_that_are_open_are_counted(probe: Probe) -> None:
    assert limit(await page(probe, "/api/server"), "max_websockets")["used"] == 0
    scope = {
        "type": "websocket",
        "scheme": "ws",
        "http_version": "1.1",
        "path": "/ws",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8000")],
        "client": ("127.0.0.1", 5),
        "subprotocols": ["mcp"],
    }
    heard, opened = [{"type": "websocket.connect"}], trio.Event()

    async def receive() -> Any:
        return heard.pop() if heard else await trio.sleep_forever()

    async def send(message: Any) -> None:
        assert message["type"] == "websocket.accept"
        opened.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(probe.app, scope, receive, send)
        await opened.wait()
        assert limit(await page(probe, "/api/server"), "max_websockets")["used"] == 1
        nursery.cancel_scope.cancel()
    assert limit(await page(probe, "/api/server"), "max_websockets")["used"] == 0


async def test_the_use_of_the_log_is_shown(probe: Probe) -> None:
    await probe.client()
    server, log = await page(probe, "/api/server"), probe.engine.log
    assert server["log"] == {"first": 1, "last": log.last, "entries": len(log), "bytes": log.bytes, "missed": 0}
    assert limit(server, "event_log_events")["used"] == len(log)
    assert limit(server, "event_log_bytes")["used"] == log.bytes


@pytest.mark.parametrize("path", ["/api", "/api/server", "/api/tools", "/api/openapi.json"])
async def test_no_secret_setting_and_no_path_can_be_read(path: str) -> None:
    values = {name: f"hidden-{name}" for name in TEXTS - SHOWN - {"request_state_keys", "audit_db", "trusted_proxies"}}
    async with running(request_state_keys=KEY, trusted_proxies="198.51.100.77", **values) as probe:
        async with exchange(probe.app, "GET", path, LOCAL) as answer:
            body = (await answer.body()).decode()
        assert KEY not in body
        assert "hidden-" not in body
        assert "198.51.100.77" not in body


async def test_a_text_is_shown_only_where_that_was_decided(probe: Probe) -> None:
    """A setting that is added is not shown until somebody says that it may be."""
    shown = {item["name"]: item["value"] for item in (await page(probe, "/api/server"))["settings"]}
    assert {name for name in shown if name in TEXTS} == SHOWN
    assert "request_state_keys" in TEXTS - SHOWN
    assert shown.keys() - SHOWN == {spec.name for spec in described(Settings)} - TEXTS
    assert shown["host"] == probe.engine.settings.host


async def test_the_audit_says_where_it_is_kept(probe: Probe) -> None:
    audit = (await page(probe, "/api/server"))["audit"]
    assert audit == {"store": "memory", "state": "ok", "since": None, "why": None, "lost": 0}


async def test_tool_hosts_are_off_unless_there_is_a_secret_which_nobody_is_shown(probe: Probe) -> None:
    assert (await page(probe, "/api/server"))["tool_hosts"] == {"enabled": False, "connected": 0}
    async with running(toolhost_secret=KEY, tools="probe") as other:
        other.engine.log.append(HostConnected("127.0.0.1:5"), Context(connection="h1", exchange=1))
        other.engine.log.append(HostConnected("127.0.0.1:6"), Context(connection="h2", exchange=2))
        other.engine.log.append(HostClosed(None, 1008, "not registered", 0, 0), Context(connection="h1"))
        server = await page(other, "/api/server")
        assert server["tool_hosts"] == {"enabled": True, "connected": 1}
        assert limit(server, "max_tool_hosts")["used"] == 1
        assert server["toolsets"][-1] == {"name": "hosts", "default": False, "tools": []}
        assert KEY not in json.dumps(server)


# --- tools ---


async def test_every_tool_is_shown_as_it_is(probe: Probe) -> None:
    tools = (await page(probe, "/api/tools"))["tools"]
    assert [tool["name"] for tool in tools] == [tool.name for group in TOOLSETS for tool in group.tools]
    by_name = {tool["name"]: tool for tool in tools}
    for group in TOOLSETS:
        for tool in group.tools:
            shown, entry = by_name[tool.name], tool.describe()
            assert shown["input_schema"] == entry["inputSchema"]
            assert shown["output_schema"] == tool.output_schema
            assert (shown["toolset"], shown["task_support"]) == (group.name, tool.task_support)
            assert (shown["since"], shown["until"]) == (tool.offered_since, tool.until or MODERN[-1])
            assert shown["shows"] == tool.shows != ""
            assert shown["requires"] == list(tool.requires)


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_tool_is_said_to_run_in_a_revision_exactly_where_that_lists_it(revision: str, probe: Probe) -> None:
    client = await probe.client(revision)
    listed = [tool["name"] for tool in (await client.call("tools/list"))["tools"]]
    shown = (await page(probe, "/api/tools"))["tools"]
    assert [tool["name"] for tool in shown if tool["since"] <= revision <= tool["until"]] == listed


async def test_every_tool_leads_to_its_place_in_the_documentation(probe: Probe) -> None:
    for tool in (await page(probe, "/api/tools"))["tools"]:
        file, anchor = tool["docs"].split("#")
        text = (ROOT / file).read_text(encoding="utf-8")
        part = text.split(f'<a id="{anchor}"></a>')[1].split("<a id=")[0]
        assert re.search(rf"^\| `{tool['name']}` \|", part, re.MULTILINE)


# --- tables ---


@pytest.mark.parametrize("name", ["sessions", "tasks", "streams"])
async def test_a_table_is_whole_and_as_new_as_the_log(name: str, probe: Probe) -> None:
    assert (await page(probe, f"/api/{name}"))[name] == []
    for _ in range(3):
        client = await probe.client()
        task = {"name": "pure_task", "arguments": {"durationMs": 60_000}, "task": {"ttl": 600_000}}
        await client.call("tools/call", task)
        await client.tool("progress", {"steps": 1, "step_ms": 0})
    # Asked at once, before anything that follows the log has had its turn.
    table = await page(probe, f"/api/{name}")
    assert (table["run"], table["seq"]) == (probe.engine.run, probe.engine.log.last)
    assert len(table[name]) >= 3
    assert len({row["id"] for row in table[name]}) == len(table[name])
    assert table["next"] is None


@pytest.mark.parametrize("name", ["sessions", "tasks", "streams"])
async def test_a_page_of_a_table_is_bounded_in_bytes_and_has_the_newest(name: str) -> None:
    async with running(api_page_bytes=64 * 1024, max_tasks=1000, max_tasks_per_session=1000) as probe:
        client = await probe.client()
        for _ in range(400):
            if name == "sessions":
                client = await probe.client(capabilities={"experimental": {"x": {"pad": "x" * 300}}})
            elif name == "streams":
                await client.tool("progress", {"steps": 1, "step_ms": 0})
            else:
                arguments = {"durationMs": 60_000}
                await client.call("tools/call", {"name": "pure_task", "arguments": arguments, "task": {"ttl": 600_000}})
        probe.engine.observer.catch_up()
        ids, pages, cursor = probe.engine.observer.tables.all(name), list[list[str]](), ""  # type: ignore[arg-type]
        while True:
            async with exchange(probe.app, "GET", f"/api/{name}{cursor}", LOCAL) as answer:
                assert answer.status == 200
                body = await answer.body()
            assert len(body) < 64 * 1024 + 1000
            table = json.loads(body)
            pages.insert(0, [row["id"] for row in table[name]])
            if table["next"] is None:
                break
            assert table["next"] == pages[0][0]
            cursor = f"?cursor={table['next']}"
        assert [id for page_ in pages for id in page_] == ids
        assert len(pages) > 1


async def test_a_page_of_a_table_has_one_row_at_least_and_no_cursor_of_a_row_that_is_gone(probe: Probe) -> None:
    for _ in range(3):
        await probe.client()
    tables = probe.engine.observer.tables
    probe.engine.observer.catch_up()
    found = [await tables_page._newest(tables, "sessions", ["s1", "s2"], most) for most in (0, 10**6)]
    assert [(len(rows), next) for rows, next in found] == [(1, "s2"), (2, None)]
    assert "gone" in (await refusal(probe, "/api/sessions?cursor=s9"))["detail"]


async def test_rows_say_what_clients_did(probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    (row,) = (await page(probe, "/api/sessions"))["sessions"]
    assert (row["client_name"], row["era"], row["tools"]) == ("test-client", "legacy", {"simple_tool": 1})


async def test_tool_hosts_are_a_table_like_the_others(probe: Probe) -> None:
    log = probe.engine.log
    for number in range(1, 4):
        log.append(HostConnected("127.0.0.1:5"), Context(connection=f"h{number}", exchange=number))
    table = await page(probe, "/api/hosts")
    assert (table["run"], table["seq"], table["next"]) == (probe.engine.run, log.last, None)
    assert [row["id"] for row in table["hosts"]] == ["h1", "h2", "h3"]
    assert [row["id"] for row in (await page(probe, "/api/hosts?cursor=h3"))["hosts"]] == ["h1", "h2"]
    assert (await refusal(probe, "/api/hosts?state=closed"))["known"] == ["cursor"]


# `/health` and `/ready`.


@pytest.mark.parametrize("headers", [LOCAL, {"host": "10.0.0.7:8000"}, {}])
async def test_health_and_readiness_are_told_to_whoever_asks(headers: dict[str, str], probe: Probe) -> None:
    """A prober of an orchestrator calls by address, which is no name of this server."""
    assert await get(probe, "/health", headers) == (200, "application/json", {"status": "alive"})
    assert await get(probe, "/ready", headers) == (200, "application/json", {"status": "ready"})


async def test_while_draining_the_server_is_alive_but_not_ready_and_takes_no_new_work() -> None:
    async with running(grace_s=0) as probe:
        client = await probe.client()
        await probe.engine.drain()
        assert (await get(probe, "/ready"))[0] == 503
        assert (await get(probe, "/health"))[0] == 200
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        del client.headers["mcp-session-id"]
        async with client.post(client.request("initialize", params)) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_health_is_read_only(method: str, probe: Probe) -> None:
    async with exchange(probe.app, method, "/health", LOCAL) as answer:
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")

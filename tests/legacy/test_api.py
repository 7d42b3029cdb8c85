"""`/api`, `/health` and `/ready` over the same application as `/mcp`."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ..support.http import exchange
from ..support.probe import Probe, running

LOCAL = {"host": "127.0.0.1:8000"}


async def get(probe: Probe, target: str, headers: dict[str, str] = LOCAL, method: str = "GET") -> tuple[int, str, Any]:
    async with exchange(probe.app, method, target, headers) as answer:
        return answer.status, answer.headers["content-type"], await answer.json()


async def test_events_are_read_page_by_page_from_a_cursor(probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    cursor, seen = 0, []
    while True:
        status, kind, page = await get(probe, f"/api/events?since={cursor}&limit=4")
        assert (status, kind, page["gap"]) == (200, "application/json", None)
        assert page["last"] == probe.engine.log.last
        if not page["events"]:
            break
        assert len(page["events"]) <= 4
        seen += page["events"]
        cursor = page["next"]
    assert [event["seq"] for event in seen] == list(range(1, probe.engine.log.last + 1))
    assert {"seq", "at", "mono", "kind"} <= seen[0].keys()
    received = [event["message"]["method"] for event in seen if event["kind"] == "message.received"]
    assert received == ["initialize", "notifications/initialized", "tools/call"]


async def test_reading_the_api_writes_no_events(probe: Probe) -> None:
    before = probe.engine.log.last
    await get(probe, "/api/events")
    await get(probe, "/api/calls")
    assert probe.engine.log.last == before


async def test_what_was_pushed_out_is_a_gap_and_not_silence() -> None:
    async with running(event_log_events=100) as probe:
        client = await probe.client()
        for _ in range(50):
            await client.call("ping")
        _, _, page = await get(probe, "/api/events")
        assert page["gap"] == {"first": 1, "last": probe.engine.log.last - 100}
        assert page["events"][0]["seq"] == page["gap"]["last"] + 1


async def test_a_page_has_at_most_500_events(probe: Probe) -> None:
    client = await probe.client()
    for _ in range(110):
        await client.call("ping")
    for target in ("/api/events", "/api/events?limit=99999"):
        _, _, page = await get(probe, target)
        assert len(page["events"]) == 500


async def test_a_page_is_bounded_in_bytes() -> None:
    async with running(api_page_bytes=64 * 1024) as probe:
        client = await probe.client()
        for _ in range(10):
            await client.call("ping", {"x": "y" * 30_000})
        async with exchange(probe.app, "GET", "/api/events?since=10", LOCAL) as answer:
            assert len(await answer.body()) < 100_000


async def test_messages_are_shown_as_they_came(probe: Probe) -> None:
    """Not read and written again: of a page of large ones that would be most of the work."""
    client = await probe.client()
    body = b'{ "jsonrpc":"2.0" ,"id" : 1.0e0, "method": "ping" }'
    async with exchange(probe.app, "POST", "/mcp", client.headers, body):
        pass
    async with exchange(probe.app, "GET", "/api/events", LOCAL) as answer:
        assert b'"message":' + body in await answer.body()


@pytest.mark.parametrize("target", ["/api/events", "/api/calls?limit=500"])
async def test_others_run_while_a_page_is_made(target: str, probe: Probe) -> None:
    client = await probe.client()
    for _ in range(120):
        await client.call("tools/call", {"name": "chatty", "arguments": {"x": "y" * 100}})
    await get(probe, "/api/events?limit=1")
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        _, _, page = await get(probe, target)
        nursery.cancel_scope.cancel()
    rows = len(page.get("events") or page["calls"])
    assert turns > rows >= 120


async def test_no_session_id_can_be_read_from_the_api(probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    for target in ("/api/events", "/api/calls"):
        async with exchange(probe.app, "GET", target, LOCAL) as answer:
            assert client.headers["mcp-session-id"].encode() not in await answer.body()


async def test_calls_are_listed_newest_first(probe: Probe) -> None:
    client = await probe.client()
    for id in ("a", "b", "c"):
        await client.call("tools/call", {"name": "chatty"}, id)
    _, kind, page = await get(probe, "/api/calls")
    assert kind == "application/json"
    assert [record["request_id"] for record in page["calls"]] == ["c", "b", "a"]
    assert page["calls"][0] == probe.record()
    _, _, page = await get(probe, "/api/calls?limit=2")
    assert [record["request_id"] for record in page["calls"]] == ["c", "b"]


async def test_answers_are_not_cached(probe: Probe) -> None:
    for target in ("/api/events", "/api/calls", "/health", "/ready"):
        async with exchange(probe.app, "GET", target, LOCAL) as answer:
            assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("name", ["since", "limit"])
@pytest.mark.parametrize("value", ["-1", "1.5", "x", "", "+1", "%201", "1e3", "0x1", "9" * 16, "%D9%A3", "%00"])
async def test_a_query_that_is_no_number_is_a_problem_that_says_so(name: str, value: str, probe: Probe) -> None:
    """RFC 9457."""
    status, kind, problem = await get(probe, f"/api/events?{name}={value}")
    assert (status, kind) == (400, "application/problem+json")
    assert problem["status"] == 400
    assert problem["detail"].startswith(f"{name} must be a whole number from 0")


@pytest.mark.parametrize(
    "target", ["/", "/api", "/api/", "/api/nope", "/mcp/", "/MCP", "/api/events/1", "/%00", "/a" * 500]
)
async def test_an_unknown_path_is_a_problem_that_names_the_known_ones(target: str, probe: Probe) -> None:
    status, kind, problem = await get(probe, target)
    assert (status, kind, problem["title"]) == (404, "application/problem+json", "Not Found")
    assert "/api/events" in problem["detail"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_the_api_is_read_only(method: str, probe: Probe) -> None:
    async with exchange(probe.app, method, "/api/events", LOCAL, b"{}") as answer:
        assert (answer.status, answer.headers["content-type"]) == (405, "application/problem+json")
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", ["/api/events", "/api/calls", "/", "/nope"])
@pytest.mark.parametrize(
    "bad",
    [{"host": "evil.example"}, {**LOCAL, "origin": "http://evil.example"}, {**LOCAL, "origin": "null"}, {}],
)
async def test_a_foreign_host_or_origin_sees_nothing(path: str, bad: dict[str, str], probe: Probe) -> None:
    """A page that rebinds its name to loopback must not read what clients sent."""
    async with exchange(probe.app, "GET", path, bad) as answer:
        assert answer.status == 403
        assert b"events" not in await answer.body()


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

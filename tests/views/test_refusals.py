"""The table of refusals: which errors count on a client, and which of them have another cause."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.log.context import Context
from probe.log.events import SessionOpened
from probe.views.tables import UNATTRIBUTED, TableName

from ..support.http import exchange
from ..support.legacy import Legacy, RpcError
from ..support.pipes import pipe
from ..support.probe import Probe, running
from ..support.tasks import create, named

HEADERS = {
    "host": "127.0.0.1:8000",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


def rows(probe: Probe, table: TableName) -> list[dict[str, Any]]:
    probe.engine.observer.catch_up()
    tables = probe.engine.observer.tables
    return [json.loads(row) for row in tables.rows(table, tables.all(table))]


def counted(probe: Probe) -> dict[str, tuple[int, int]]:
    """How many requests of each client were refused, and how many violations of it were noted."""
    return {row["id"]: (row["refused"], row["misuse"]) for row in rows(probe, "sessions")}


def refusals(probe: Probe) -> list[tuple[Any, ...]]:
    return [(row["session"], row["method"], row["status"], row["code"]) for row in rows(probe, "refusals")]


async def error_of(client: Legacy, method: str, params: dict[str, Any] | None = None) -> int:
    with pytest.raises(RpcError) as caught:
        await client.call(method, params)
    return int(caught.value.code)


async def post(probe: Probe, body: bytes, **headers: str) -> int:
    async with exchange(probe.app, "POST", "/mcp", {**HEADERS, **headers}, body) as answer:
        await answer.body()
        return answer.status


async def test_a_request_refused_with_400_counts_on_the_client_that_the_body_names(probe: Probe) -> None:
    client = probe.modern()
    await client.call("tools/list")
    async with client.post(client.request("tools/call", {"name": "fail"}), {"mcp-name": "other"}) as answer:
        assert answer.status == 400
    assert counted(probe) == {"m1": (1, 0)}
    assert refusals(probe) == [("m1", "tools/call", 400, -32020)]
    (row,) = rows(probe, "refusals")
    (error,) = [event for event in probe.events("message.emitted") if event["rpc"] == "error"]
    assert (row["id"], row["at"], row["exchange"]) == (str(error["seq"]), error["at"], error["exchange"])
    assert row["message"] == error["message"]["error"]["message"]


async def test_errors_of_a_session_count_whether_they_come_with_200_or_not(probe: Probe) -> None:
    client = await probe.client()
    assert await error_of(client, "no/such") == -32601
    assert await error_of(client, "tools/call", {"name": "no_such_tool"}) == -32602
    async with client.post({"jsonrpc": "2.0", "id": None, "method": "ping"}) as answer:
        assert answer.status == 400
    assert counted(probe) == {"s1": (3, 0)}
    assert refusals(probe) == [
        ("s1", "no/such", 200, -32601),
        ("s1", "tools/call", 200, -32602),
        ("s1", "ping", 400, -32600),
    ]


@pytest.mark.parametrize(
    ("body", "headers", "refused"),
    [
        (b"{", {}, (None, None, 400, -32700)),
        (b"{}", {"content-type": "text/plain"}, (None, None, 415, -32600)),
        (b"{}", {"origin": "http://evil.example"}, (None, None, 403, -32600)),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
            {"mcp-session-id": "never-existed"},
            (None, "ping", 404, -32600),
        ),
    ],
)
async def test_a_refused_request_without_a_client_is_unattributed(
    probe: Probe, body: bytes, headers: dict[str, str], refused: tuple[Any, ...]
) -> None:
    assert await post(probe, body, **headers) == refused[2]
    assert refusals(probe) == [refused]
    (row,) = rows(probe, "sessions")
    assert (row["id"], row["era"], row["transport"], row["refused"]) == (UNATTRIBUTED, None, None, 1)
    assert (row["requests"], row["opened_at"]) == (0, row["last_at"])


@pytest.mark.parametrize("transport", ["stdio", "websocket"])
async def test_errors_on_a_connection_count_without_a_status(probe: Probe, transport: str) -> None:
    async with pipe(probe.engine, transport=transport) as client:
        await client.initialize()
        for request in (client.legacy("no/such"), client.modern("no/such")):
            with pytest.raises(RpcError):
                await client.call(request)
        await client.finish()
    assert refusals(probe) == [("s1", "no/such", None, -32601), ("m1", "no/such", None, -32601)]
    assert counted(probe) == {"s1": (1, 0), "m1": (1, 0)}


async def test_what_a_limit_refuses_does_not_count(autojump_clock: MockClock) -> None:
    async with running(max_body_bytes=1024, max_in_flight=1, idle_connection_s=5) as probe:
        client = await probe.client()
        assert await post(probe, b" " * 2000) == 413
        assert await post(probe, b" " * 5000, **{"content-length": "5000"}) == 413
        long = client.request("tools/call", {"name": "progress", "arguments": {"steps": 100}})
        async with client.post(long), client.post(client.request("ping")) as answer:
            assert answer.status == 429
        assert len([event for event in probe.events("message.emitted") if event["rpc"] == "error"]) == 3
        assert (counted(probe), refusals(probe)) == ({"s1": (0, 0)}, [])


async def test_messages_that_are_no_longer_kept_do_not_count(autojump_clock: MockClock) -> None:
    async with running(stream_retention_s=1) as probe:
        client = await probe.client()
        async with client.post(client.request("tools/call", {"name": "progress", "arguments": {"steps": 2}})) as answer:
            events = [event async for event in answer.events()]
        await trio.sleep(1000)
        async with client.get(events[0].id) as again:
            assert again.status == 410
        assert counted(probe) == {"s1": (0, 0)}


async def test_what_a_shutdown_refuses_does_not_count(probe: Probe) -> None:
    client = await probe.client()
    probe.engine.draining = True
    async with client.post(client.request("ping")) as answer:
        assert answer.status == 503
    assert (counted(probe), refusals(probe)) == ({"s1": (0, 0)}, [])


async def test_a_tool_that_was_asked_to_fail_does_not_count(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    assert await error_of(client, "tools/call", {"name": "fail", "arguments": {"how": "protocol_error"}}) == -32603
    task = await create(client, "failing_task", errorCode="validation")
    assert await error_of(client, "tasks/result", named(task)) == -32602
    assert (counted(probe), refusals(probe)) == ({"s1": (0, 0)}, [])
    assert await error_of(client, "tasks/result", {"taskId": "no-such-task"}) == -32602
    assert refusals(probe) == [("s1", "tasks/result", None, -32602)]


async def test_a_violation_of_nobody_is_unattributed(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.notify("notifications/initialized")
        await client.finish()
    assert counted(probe) == {UNATTRIBUTED: (0, 1)}


async def test_the_row_of_what_is_unattributed_stays_when_clients_make_room(probe: Probe) -> None:
    await post(probe, b"{")
    for number in range(2001):
        fact = SessionOpened("id", "2025-11-25", "n", "v", b"{}")
        probe.engine.log.append(fact, Context(session=f"s{number}"))
    assert len(rows(probe, "sessions")) == 2000
    await post(probe, b"{")
    assert counted(probe)[UNATTRIBUTED] == (2, 0)

"""Who may become a tool host, judged before the upgrade; and that no secret is ever in the log."""

from __future__ import annotations

import json
from typing import Any

import pytest
from trio.testing import MockClock

from ..support.hosts import INSTANCE, SECRET, connected, handshake, hosting, scope
from ..support.http import exchange
from ..support.probe import Probe, running

REFUSED: dict[str, tuple[int, dict[str, Any]]] = {
    "from a web page": (403, {"origin": "http://127.0.0.1:8000"}),
    "from a page without origin": (403, {"origin": "null"}),
    "to another server": (403, {"host": "evil.example"}),
    "without a secret": (401, {"secret": None}),
    "with a wrong secret": (401, {"secret": SECRET[:-1] + "x"}),
    "with the beginning of the secret": (401, {"secret": SECRET[:-1]}),
    "with more than the secret": (401, {"secret": SECRET + "x"}),
    "with no secret at all": (401, {"secret": ""}),
    "in another scheme": (401, {"secret": None, "authorization": f"Basic {SECRET}"}),
    "with the secret alone": (401, {"secret": None, "authorization": SECRET}),
    "in other letters": (401, {"secret": None, "authorization": "Bearer gehéimnis-des-betreibers"}),
    "without the subprotocol": (400, {"subprotocols": ()}),
    "with another subprotocol": (400, {"subprotocols": ("mcp", "mcp-probe.toolhost.v2")}),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_handshake_is_refused_with_a_status_and_a_reason(
    probe: Probe, name: str, autojump_clock: MockClock
) -> None:
    status, how = REFUSED[name]
    asgi_scope = scope(**how)
    got, headers, problem = await handshake(probe.app, asgi_scope)
    assert (got, problem["status"], headers["content-type"]) == (status, status, "application/problem+json")
    assert headers.get("www-authenticate") == ('Bearer realm="toolhost"' if status == 401 else None)
    (request,), (response,) = probe.events("http.request"), probe.events("http.response")
    assert (request["path"], request["exchange"]) == ("/toolhost", response["exchange"])
    assert (response["status"], response["problem"]) == (status, problem["detail"])
    assert probe.events("host.connected") == []
    sent = dict(asgi_scope["headers"]).get(b"authorization")
    assert dict(request["headers"]).get("authorization") == (None if sent is None else "[redacted]")
    assert SECRET[:-1] not in json.dumps([problem, *everything(probe)])


def everything(probe: Probe) -> list[Any]:
    return [entry.encoded().decode() for entry in probe.engine.log.since(0, 1_000_000).entries]


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"secret": None, "authorization": f"bearer {SECRET}"},
        {"secret": None, "authorization": f"BEARER  {SECRET} "},
        {"subprotocols": ("mcp", "mcp-probe.toolhost.v1")},
        {"host": "localhost:8000"},
    ],
)
async def test_whoever_has_the_secret_is_let_in(probe: Probe, how: dict[str, Any], autojump_clock: MockClock) -> None:
    events: list[dict[str, Any]] = []
    given = iter([{"type": "websocket.connect"}])

    async def receive() -> dict[str, Any]:
        return next(given, {"type": "websocket.disconnect", "code": 1001})

    async def send(event: Any) -> None:
        events.append(event)

    await probe.app(scope(**how), receive, send)
    assert events[0] == {"type": "websocket.accept", "subprotocol": "mcp-probe.toolhost.v1"}
    (connected,), (closed,) = probe.events("host.connected"), probe.events("host.closed")
    assert (connected["client"], connected["connection"]) == ("127.0.0.1:50000", closed["connection"])
    facts = {name: closed[name] for name in ("host", "code", "by", "failed", "late")}
    assert facts == {"host": None, "code": 1001, "by": "client", "failed": 0, "late": 0}
    assert probe.events("http.response")[0]["status"] == 101


async def test_without_a_secret_there_is_no_such_place(autojump_clock: MockClock) -> None:
    async with running() as probe:
        assert (await handshake(probe.app, scope()))[0] == 404
        assert (await handshake(probe.app, scope(secret="")))[0] == 404
        async with exchange(probe.app, "GET", "/toolhost", {"host": "127.0.0.1:8000"}) as answer:
            assert answer.status == 404


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_plain_request_is_told_to_upgrade(probe: Probe, method: str, autojump_clock: MockClock) -> None:
    async with exchange(probe.app, method, "/toolhost", {"host": "127.0.0.1:8000"}) as answer:
        assert (answer.status, answer.headers["upgrade"]) == (426, "websocket")
        assert "mcp-probe.toolhost.v1" in (await answer.json())["detail"]


async def test_one_host_more_than_may_be_connected_is_told_to_come_later(autojump_clock: MockClock) -> None:
    async with hosting(max_tool_hosts=2) as (probe, _):
        async with connected(probe.app) as other:
            status, headers, problem = await handshake(probe.app, scope())
            assert (status, headers["retry-after"]) == (503, "5")
            assert "max_tool_hosts" in problem["detail"]
            (limit,) = probe.events("limit.reached")
            assert (limit["limit"], limit["value"]) == ("max_tool_hosts", 2)
            # Whether the secret is right is judged before.
            assert (await handshake(probe.app, scope(secret="wrong")))[0] == 401
            await other.go()
        async with connected(probe.app) as another:
            await another.register("another")


async def test_a_server_that_ends_lets_nobody_in_and_says_goodbye(autojump_clock: MockClock) -> None:
    async with hosting(grace_s=0) as (probe, host):
        await probe.engine.drain()
        assert await host.hear_close() == (1001, "the server is shutting down")
        status, headers, problem = await handshake(probe.app, scope())
        assert (status, headers["retry-after"]) == (503, "5")
        assert "shutting down" in problem["detail"]
        await probe.app.wait_idle()
        (closed,) = probe.events("host.closed")
        assert (closed["code"], closed["by"]) == (1001, "the server is shutting down")


async def test_the_instance_of_a_host_is_never_in_the_log(probe: Probe, autojump_clock: MockClock) -> None:
    async with connected(probe.app) as host:
        params = host.registration()
        for garbage in (
            [{"jsonrpc": "2.0", "id": 1, "method": "host.register", "params": params}],
            [[{"jsonrpc": "2.0", "id": 1, "method": "host.register", "params": params}]],
            {"jsonrpc": "2.0", "method": "host.register", "params": params},
            {"id": 7, "method": "host.register", "params": params},
            {"jsonrpc": "2.0", "id": 7, "method": "Host.Register", "params": params},
            {"jsonrpc": "2.0", "id": 7, "method": ["host.register"], "params": params},
        ):
            await host.say(garbage)
        assert [message["error"]["code"] for message in await host.hear_all()] == [-32600, -32601, -32600]
        await host.refused("host.register", {**params, "name": "not a name"})
        await host.refused("host.register", {**params, "tools": [5]})
        await host.register()
        await host.refused("host.register", params)
        await host.refused("host.update", {**params, "tools": 5})
    log = everything(probe)
    assert not [line for line in log if INSTANCE in line]
    registered = [event for event in probe.events("host.message") if event["method"] == "host.register"]
    assert registered[0]["message"]["params"]["instance"] == "[redacted]"
    assert registered[0]["message"]["params"]["tools"] == params["tools"], "the rest is evidence"

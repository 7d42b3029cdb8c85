"""Requests beside the endpoints, connections below HTTP, and frames of WebSockets."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

from probe.log.context import Recorder
from probe.log.event_log import EventLog
from probe.server.endpoints.socket_facts import SocketFacts
from probe.server.endpoints.websocket import FRAMES, FrameFacts
from probe.settings import Limits

from ..support.http import exchange, http_scope
from ..support.probe import Probe, running
from ..support.shown import as_value

HOST = {"host": "127.0.0.1:8000"}


async def get(probe: Probe, target: str, method: str = "GET", headers: dict[str, str] | None = None) -> int:
    async with exchange(probe.app, method, target, {**HOST, **(headers or {})}) as answer:
        await answer.body()
        return answer.status


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/canary/ref.json", 404),
        ("GET", "/.well-known/oauth-protected-resource", 404),
        ("GET", "/interaction/nope", 404),
        ("PUT", "/interaction/nope", 405),
        ("GET", "/favicon.ico", 404),
        ("GET", "/ws", 426),
        ("GET", "/toolhost", 404),
        ("POST", "/mcp/", 404),
    ],
)
async def test_a_request_beside_the_endpoints_is_in_the_log(
    method: str, target: str, status: int, probe: Probe
) -> None:
    headers = {"user-agent": "curl", "cookie": "a=b", "authorization": "Bearer x", "sec-fetch-mode": "no-cors"}
    assert await get(probe, f"{target}?client=me", method, headers) == status
    (asked,), (answered,) = probe.events("http.request"), probe.events("http.response")
    assert (asked["method"], asked["path"], asked["label"]) == (method, target, "me")
    assert asked["hidden"] == ["cookie", "authorization"]
    assert ["sec-fetch-mode", "no-cors"] in asked["headers"]
    assert "Bearer" not in str(asked)
    assert (answered["status"], answered["cause"], answered["exchange"]) == (status, asked["seq"], asked["exchange"])
    assert answered["content_type"]
    if status == 405:
        assert ["allow", "GET, HEAD, POST"] in answered["headers"]


@pytest.mark.parametrize(
    "path", ["/", "/dashboard", "/dashboard/x", "/api", "/api/nope", "/health", "/ready", "/metrics"]
)
async def test_whoever_observes_is_not_observed(path: str, probe: Probe) -> None:
    await get(probe, path)
    assert probe.events("http.request", "http.response") == []


async def test_an_endpoint_s_own_request_is_recorded_once(probe: Probe) -> None:
    await get(probe, "/mcp")
    assert len(probe.events("http.request")) == len(probe.events("http.response")) == 1


async def test_a_websocket_at_no_endpoint_is_in_the_log(probe: Probe) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(event: dict[str, Any]) -> None:
        pass

    scope = {**http_scope("GET", "/socket", HOST), "type": "websocket", "scheme": "ws", "subprotocols": []}
    del scope["method"]
    await probe.app(scope, receive, send)
    (answered,) = probe.events("http.response")
    assert (probe.events("http.request")[0]["path"], answered["status"]) == ("/socket", 404)


async def test_a_stranger_gets_no_more_into_the_log_than_its_rate_allows(autojump_clock: MockClock) -> None:
    async with running(requests_per_second=1, request_burst=3) as probe:
        scope = http_scope("GET", "/ws", HOST)
        scope["client"] = ("192.0.2.1", 5)

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(event: dict[str, Any]) -> None:
            pass

        before = probe.engine.log.last
        for _ in range(50):
            await probe.app(scope, receive, send)
        assert len(probe.events("http.request")) == 3
        assert probe.engine.log.last - before == 2 * 3 + 1


# -- below HTTP


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def log() -> EventLog:
    return EventLog(lambda: (0.0, 0.0), max_events=1000, max_bytes=10**6)


def told(log: EventLog) -> list[dict[str, Any]]:
    return [as_value(entry) for entry in log.since(0, 1000).entries]


def test_a_connection_is_opened_refused_and_closed() -> None:
    kept = log()
    sockets = SocketFacts(kept, Limits(), Clock())
    sockets.opened(4, "::1", 5000)
    sockets.carries(4)
    sockets.refused(4, 431, "the head is too large")
    sockets.closed(4, "client", 2)
    sockets.closed(4, "client", 2)
    opened, refused, closed = told(kept)
    assert (opened["kind"], opened["client"], opened["connection"]) == ("socket.opened", "[::1]:5000", "tcp4")
    assert (refused["kind"], refused["status"], refused["cause"]) == ("socket.refused", 431, opened["seq"])
    assert (closed["kind"], closed["by"], closed["requests"], closed["cause"]) == (
        "socket.closed", "client", 2, opened["seq"]
    )  # fmt: skip
    assert {entry["connection"] for entry in (refused, closed)} == {"tcp4"}


def test_connections_of_one_address_are_recorded_as_often_as_it_may_ask() -> None:
    kept, clock = log(), Clock()
    sockets = SocketFacts(kept, Limits(requests_per_second=1, request_burst=3), clock)
    for number in range(1, 11):
        sockets.opened(number, "192.0.2.1", number)
        sockets.refused(number, None, "no HTTP")
        sockets.closed(number, "client", 0)
    assert [entry["kind"] for entry in told(kept)].count("socket.opened") == 3
    assert len(told(kept)) == 9
    sockets.opened(11, "192.0.2.2", 1)
    sockets.carries(11)
    clock.now = 1.0
    sockets.opened(12, "192.0.2.1", 1)
    sockets.carries(12)
    assert [entry["connection"] for entry in told(kept)[9:]] == ["tcp11", "tcp12"]


# -- frames


def test_control_frames_are_told_in_their_order_and_a_flood_of_them_is_not() -> None:
    kept, clock = log(), Clock()
    frames = FrameFacts(clock)
    frames.note("sent", "ping", 0)
    frames.opened(Recorder(kept).bind(connection="w5").caused_by(7))
    frames.note("sent", "ping", 4)
    frames.note("received", "pong", 4)
    for _ in range(100):
        frames.note("received", "ping", 0)
    frames.note("received", "text", 9, "not UTF-8")
    frames.note("sent", "close", 2)
    frames.note("received", "close", 2)
    entries = told(kept)
    assert [(entry["direction"], entry["opcode"], entry["size"]) for entry in entries[:2]] == [
        ("sent", "ping", 4), ("received", "pong", 4)
    ]  # fmt: skip
    assert len(entries) == 20 + 3
    assert [(entry["direction"], entry["opcode"], entry["refused"]) for entry in entries[20:]] == [
        ("received", "text", "not UTF-8"), ("sent", "close", None), ("received", "close", None)
    ]  # fmt: skip
    assert {(entry["connection"], entry["cause"]) for entry in entries} == {("w5", 7)}
    clock.now = 2.0
    frames.note("received", "ping", 0)
    assert len(told(kept)) == len(entries) + 1


async def test_a_listener_tells_frames_by_its_extension_and_a_binary_one_is_refused(probe: Probe) -> None:
    notes: list[Any] = []
    scope = {**http_scope("GET", "/ws", HOST), "type": "websocket", "scheme": "ws", "subprotocols": ["mcp"]}
    scope["extensions"] = {FRAMES: notes.append}
    events: list[dict[str, Any]] = [
        {"type": "websocket.connect"},
        {"type": "websocket.receive", "bytes": b"123", "text": None},
        {"type": "websocket.disconnect", "code": 1003},
    ]

    async def receive() -> dict[str, Any]:
        if len(events) == 2:
            notes[0]("sent", "ping", 0, None)
        return events.pop(0)

    async def send(event: dict[str, Any]) -> None:
        pass

    await probe.app(scope, receive, send)
    ping, binary = probe.events("websocket.frame")
    opened = probe.events("connection.opened")[0]
    assert (ping["opcode"], ping["direction"], ping["cause"]) == ("ping", "sent", opened["seq"])
    assert (binary["opcode"], binary["size"], binary["refused"]) == ("binary", 3, "messages are text")
    assert {ping["connection"], binary["connection"]} == {opened["connection"]}

"""Requests by address, in memory: 429 in every form a request has, by whose word, and who has no limit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.core.clients import NetworksError
from probe.server.endpoints.websocket import WebSocketWire
from probe.web.paths import Paths
from probe.wire.toolhost import SUBPROTOCOL

from ..support.api import LOCAL as PAGE
from ..support.http import exchange
from ..support.legacy import HEADERS, Legacy
from ..support.modern import Modern
from ..support.probe import Probe, running
from .strangers import ANN, BEN, LOCAL, legacy, modern, reached, seen_from

SLOWLY: dict[str, Any] = {"requests_per_second": 0.5, "request_burst": 3}
"""Three at once, then one in two seconds."""
PROXIED: dict[str, Any] = {**SLOWLY, "trusted_proxies": LOCAL}


SECRET = "known-to-this-test"
SERVED = 426
"""What `/ws` says to a request that is no handshake: it loads nothing, so virtual time may be used."""


async def status(app: Any, target: str = "/ws", headers: dict[str, str] | None = None) -> int:
    async with exchange(app, "GET", target, {**PAGE, **(headers or {})}) as answer:
        await answer.body()
        return answer.status


async def spend(app: Any, headers: dict[str, str] | None = None) -> None:
    assert [await status(app, headers=headers) for _ in range(3)] == [SERVED] * 3


async def test_beyond_the_burst_a_page_is_429_until_it_may_come_again(autojump_clock: MockClock) -> None:
    async with running(**SLOWLY) as probe:
        ann = seen_from(probe.app, ANN)
        await spend(ann)
        async with exchange(ann, "GET", "/ws", PAGE) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (429, "2")
            assert answer.headers["content-type"] == "application/problem+json"
            assert "requests_per_second" in (await answer.json())["detail"]
        assert await status(seen_from(probe.app, BEN)) == SERVED, "another address"
        await trio.sleep(2)
        assert await status(ann) == SERVED
        assert await status(ann) == 429
        assert reached(probe) == [("requests_per_second", 0.5)] * 2, "told once each time that it begins"


async def test_both_eras_are_told_in_their_own_words(autojump_clock: MockClock) -> None:
    async with running(**SLOWLY) as probe:
        client, other = await legacy(probe, ANN), modern(probe, ANN)
        await client.call("ping")
        async with client.post(client.request("ping")) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (429, "2")
            error = (await answer.json())["error"]
            assert error["code"] == -32000
            assert "requests_per_second" in error["message"]
        async with other.post(other.request("server/discover")) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (429, "2")
            assert (await answer.json())["error"]["code"] == 1002
        first = Legacy(seen_from(probe.app, ANN), "/mcp")
        async with first.post(first.request("initialize")) as answer:
            assert (await answer.json())["error"]["code"] == -32000, "it has no header that says a revision"
        assert len(probe.events("http.request")) == 3, "what is refused leaves no trace that could push out others"


async def test_a_refused_request_costs_nothing_and_reads_nothing(autojump_clock: MockClock) -> None:
    async with running(**SLOWLY) as probe:
        ann = seen_from(probe.app, ANN)
        await spend(ann)
        for _ in range(100):
            async with exchange(ann, "POST", "/mcp", HEADERS, b"x" * 1_000_000) as answer:
                assert answer.status == 429
        await trio.sleep(2)
        assert await status(ann) == SERVED


async def test_a_platform_s_questions_are_always_answered(autojump_clock: MockClock) -> None:
    async with running(**SLOWLY) as probe:
        ann = seen_from(probe.app, ANN)
        for path in ("/health", "/ready"):
            assert [await status(ann, path) for _ in range(10)] == [200] * 10
        await spend(ann)


async def test_a_site_is_one_client_and_this_machine_none(autojump_clock: MockClock) -> None:
    async with running(**SLOWLY) as probe:
        for host in (1, 2, 3):
            assert await status(seen_from(probe.app, f"2001:db8:0:1::{host}")) == SERVED
        assert await status(seen_from(probe.app, "2001:db8:0:1:ffff::")) == 429
        assert await status(seen_from(probe.app, "2001:db8:0:2::1")) == SERVED
        for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
            assert {await status(seen_from(probe.app, address)) for _ in range(10)} == {SERVED}


# By whose word.


def said(value: str) -> dict[str, str]:
    return {"x-forwarded-for": value}


async def test_behind_a_trusted_proxy_each_client_has_its_own(autojump_clock: MockClock) -> None:
    async with running(**PROXIED) as probe:
        await spend(probe.app, said(ANN))
        assert await status(probe.app, headers=said(ANN)) == 429
        assert await status(probe.app, headers=said(f"{BEN}, {ANN}")) == 429, "what the client wrote itself"
        assert await status(probe.app, headers=said(f"127.0.0.1, {ANN}:4711")) == 429
        assert await status(probe.app, headers=said(BEN)) == SERVED
        assert await status(probe.app) == SERVED, "the proxy's own"


async def test_a_stranger_is_not_believed(autojump_clock: MockClock) -> None:
    async with running(**PROXIED) as probe:
        ann = seen_from(probe.app, ANN)
        for number in range(3):
            assert await status(ann, headers=said(f"192.0.2.{number}")) == SERVED
        assert await status(ann, headers=said("192.0.2.99")) == 429
        assert await status(ann, headers=said("127.0.0.1")) == 429


async def test_nobody_is_believed_unless_the_operator_says_so(autojump_clock: MockClock) -> None:
    async with running(**SLOWLY) as probe:
        assert {await status(probe.app, headers=said(ANN)) for _ in range(10)} == {SERVED}


@pytest.mark.parametrize("header", ["garbage", "unknown", ANN + ", ,", "garbage, 127.0.0.1"])
async def test_who_cannot_be_known_has_limits_all_the_same(header: str, autojump_clock: MockClock) -> None:
    async with running(**PROXIED) as probe:
        await spend(probe.app, said(header))
        assert await status(probe.app, headers=said(header)) == 429
        assert await status(probe.app, headers=said("more garbage")) == 429, "all of them together"


@pytest.mark.parametrize("header", ["127.0.0.1", "::1", "127.0.0.1, 127.0.0.2"])
async def test_a_client_on_the_proxy_s_machine_has_no_limits_as_without_a_proxy(
    header: str, autojump_clock: MockClock
) -> None:
    async with running(**PROXIED) as probe:
        assert {await status(probe.app, headers=said(header)) for _ in range(10)} == {SERVED}


async def test_several_headers_are_one_list(autojump_clock: MockClock) -> None:
    async with running(**PROXIED) as probe:
        headers = [*PAGE.items(), ("x-forwarded-for", BEN), ("x-forwarded-for", ANN)]
        for expected in (SERVED, SERVED, SERVED, 429):
            async with exchange(probe.app, "GET", "/ws", headers) as answer:
                assert answer.status == expected
        assert await status(probe.app, headers=said(ANN)) == 429
        assert await status(probe.app, headers=said(BEN)) == SERVED


async def test_the_event_log_shows_the_client_and_its_proxy(autojump_clock: MockClock) -> None:
    async with running(trusted_proxies=LOCAL) as probe:
        client = Modern(probe.app, "/mcp")
        async with client.post(client.request("server/discover"), said(ANN)) as answer:
            await answer.json()
        (request,) = probe.events("http.request")
        assert (request["client"], request["peer"]) == (ANN, "127.0.0.1:50000"), "the client's port is not known"
        assert ["x-forwarded-for", ANN] in [list(pair) for pair in request["headers"]], "as received, as evidence"
        assert [event["client"] for event in probe.events("client.seen")] == [ANN]


@pytest.mark.parametrize("path", ["/ws", "/toolhost"])
async def test_a_connection_is_logged_with_the_client_and_its_proxy(path: str, autojump_clock: MockClock) -> None:
    async with running(trusted_proxies=LOCAL, toolhost_secret=SECRET) as probe:
        headers = [(b"authorization", f"Bearer {SECRET}".encode())] if path == "/toolhost" else []
        socket = Socket(probe, LOCAL, path, [*headers, (b"x-forwarded-for", b"2001:db8::1")])
        socket.leave()
        await socket.run()
        seen = probe.events("http.request") + probe.events("connection.opened") + probe.events("host.connected")
        assert [(event["client"], event["peer"]) for event in seen] == [("2001:db8::1", "127.0.0.1:50000")] * 2


async def test_an_ipv6_address_with_a_port_has_brackets_and_is_its_own_peer(autojump_clock: MockClock) -> None:
    async with running(trusted_proxies=LOCAL) as probe:
        client = Modern(seen_from(probe.app, "2001:db8::1"), "/mcp")
        async with client.post(client.request("server/discover"), said(ANN)) as answer:
            await answer.json()
        (request,) = probe.events("http.request")
        assert (request["client"], request["peer"]) == ("[2001:db8::1]:50000", None)


@pytest.mark.parametrize("value", ["nonsense", "10.0.0.1/8", "127.0.0.1, 0.0.0.0/0"])
async def test_proxies_that_are_none_keep_the_server_from_starting(value: str) -> None:
    async with running() as probe:
        object.__setattr__(probe.engine.settings, "trusted_proxies", value)
        with pytest.raises(NetworksError):
            Paths(probe.engine)


# How much.


async def test_a_large_body_counts_as_several_requests(autojump_clock: MockClock) -> None:
    """One at the door and one for each whole 64 KiB, in whatever parts they come."""
    async with running(requests_per_second=0.5, request_burst=10) as probe:
        ann, began = seen_from(probe.app, ANN), trio.current_time()
        async with exchange(ann, "POST", "/mcp", HEADERS, b" " * (10 * 65536)) as answer:
            assert (answer.status, trio.current_time() - began) == (400, 2), "one more than the burst"
        async with exchange(ann, "GET", "/ws", PAGE) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (429, "2")
        await trio.sleep(2)
        assert await status(ann) == SERVED
        assert {await status(seen_from(probe.app, LOCAL)) for _ in range(20)} == {SERVED}


async def test_a_body_below_a_piece_counts_once(autojump_clock: MockClock) -> None:
    async with running(**SLOWLY) as probe:
        ann = seen_from(probe.app, ANN)
        for _ in range(3):
            async with exchange(ann, "POST", "/mcp", HEADERS, b" " * 65535) as answer:
                assert answer.status == 400
        assert await status(ann) == 429


# On a WebSocket.


class Socket:
    """The application's side of a WebSocket: what the client says is put into `say`."""

    def __init__(
        self, probe: Probe, address: str, path: str = "/ws", headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        self.say, self._receive = trio.open_memory_channel[dict[str, Any]](100)
        self.sent: list[dict[str, Any]] = []
        self.heard: list[tuple[float, Any]] = []
        self._probe = probe
        self._scope = {
            "type": "websocket",
            "scheme": "ws",
            "http_version": "1.1",
            "path": path,
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1:8000"), *headers],
            "subprotocols": ["mcp", SUBPROTOCOL],
            "client": (address, 50000),
        }
        self.say.send_nowait({"type": "websocket.connect"})

    async def run(self, app: Any = None) -> None:
        async def send(event: dict[str, Any]) -> None:
            self.sent.append(event)
            self.heard.append((trio.current_time(), event.get("text")))

        await (app or self._probe.app)(self._scope, self._receive.receive, send)

    def text(self, value: Any) -> None:
        self.say.send_nowait({"type": "websocket.receive", "text": json.dumps(value)})

    def leave(self) -> None:
        self.say.send_nowait({"type": "websocket.disconnect", "code": 1000})


async def test_a_handshake_beyond_the_burst_is_refused(autojump_clock: MockClock) -> None:
    async with running(**SLOWLY) as probe:
        await spend(seen_from(probe.app, ANN))
        socket = Socket(probe, ANN)
        await socket.run()
        head, body = socket.sent
        assert (head["type"], head["status"]) == ("websocket.http.response.start", 429)
        assert (b"retry-after", b"2") in head["headers"]
        assert (b"content-type", b"application/json") in head["headers"]
        error = json.loads(body["body"])["error"]
        assert (error["code"], "requests_per_second" in error["message"]) == (-32000, True)


async def test_a_tool_host_beyond_the_burst_is_refused_as_it_always_is(autojump_clock: MockClock) -> None:
    async with running(**SLOWLY) as probe:
        await spend(seen_from(probe.app, ANN))
        socket = Socket(probe, ANN, "/toolhost")
        await socket.run()
        head, body = socket.sent
        assert head["status"] == 429
        assert (b"content-type", b"application/problem+json") in head["headers"]
        assert "requests_per_second" in json.loads(body["body"])["detail"]


def ping(id: int) -> dict[str, Any]:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    info = {"io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"}}
    said = {**meta, **info, "io.modelcontextprotocol/clientCapabilities": {}}
    return {"jsonrpc": "2.0", "id": id, "method": "server/discover", "params": {"_meta": said}}


async def test_messages_are_read_as_slowly_as_the_rate_says(autojump_clock: MockClock) -> None:
    async with running(**SLOWLY) as probe, trio.open_nursery() as nursery:
        socket, began = Socket(probe, ANN), trio.current_time()
        nursery.start_soon(socket.run)
        for id in range(5):
            socket.text(ping(id))
        await trio.sleep(20)
        answers = [(round(at - began), json.loads(text)["id"]) for at, text in socket.heard if text]
        assert answers == [(0, 0), (0, 1), (2, 2), (4, 3), (6, 4)], "the handshake was one"
        assert reached(probe) == [("requests_per_second", 0.5)]
        socket.leave()


async def test_many_connections_of_one_address_share_its_rate(autojump_clock: MockClock) -> None:
    async with running(requests_per_second=1, request_burst=4) as probe, trio.open_nursery() as nursery:
        sockets, began = [Socket(probe, ANN) for _ in range(4)], trio.current_time()
        for socket in sockets:
            nursery.start_soon(socket.run)
        await wait_all_tasks_blocked()
        for socket in sockets:
            for id in range(3):
                socket.text(ping(id))
        await trio.sleep(30)
        times = sorted(round(at - began) for socket in sockets for at, text in socket.heard if text)
        assert times == list(range(1, 13)), "each waits its own turn"
        for socket in sockets:
            socket.leave()


async def test_a_large_message_counts_as_several(autojump_clock: MockClock) -> None:
    async with running(requests_per_second=1, request_burst=2) as probe, trio.open_nursery() as nursery:
        socket, began = Socket(probe, ANN), trio.current_time()
        nursery.start_soon(socket.run)
        request = ping(1)
        request["params"]["_meta"]["x.test/padding"] = "x" * (4 * 65536)
        socket.text(request)
        await trio.sleep(20)
        assert [round(at - began) for at, text in socket.heard if text] == [4]
        socket.leave()


async def test_a_client_that_leaves_is_heard_at_once_whatever_it_owes(autojump_clock: MockClock) -> None:
    async with running(**SLOWLY) as probe:
        ann, socket = seen_from(probe.app, ANN), Socket(probe, ANN)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(socket.run)
            await wait_all_tasks_blocked()
            for _ in range(2):
                await status(ann)
            before = trio.current_time()
            socket.leave()
        assert trio.current_time() == before


async def test_a_message_that_waits_is_not_lost_by_who_stops_waiting(autojump_clock: MockClock) -> None:
    say, heard = trio.open_memory_channel[dict[str, Any]](10)

    async def send(event: Any) -> None:
        raise AssertionError

    wire = WebSocketWire(heard.receive, send, float)
    say.send_nowait({"type": "websocket.receive", "text": "12345"})
    began = trio.current_time()
    for _ in range(3):
        with trio.move_on_after(1) as waiting:
            await wire.receive()
        assert waiting.cancelled_caught
    assert await wire.receive() == b"12345"
    assert trio.current_time() == began + 5, "it is counted once"


async def test_a_close_of_ours_waits_for_no_message(autojump_clock: MockClock) -> None:
    say, heard = trio.open_memory_channel[dict[str, Any]](10)

    async def send(event: Any) -> None:
        assert event["type"] == "websocket.close"

    wire = WebSocketWire(heard.receive, send, lambda size: 1000.0)
    for _ in range(5):
        say.send_nowait({"type": "websocket.receive", "text": "too late"})
    say.send_nowait({"type": "websocket.disconnect", "code": 1001})
    began = trio.current_time()
    assert (await wire.close(1001, "done")).code == 1001
    assert trio.current_time() == began


async def test_a_tool_host_is_not_slowed_once_it_is_let_in(autojump_clock: MockClock) -> None:
    """It has the secret, and reports progress for the calls of many clients."""
    async with running(toolhost_secret="0123456789abcdef", **SLOWLY) as probe, trio.open_nursery() as nursery:
        socket = Socket(probe, ANN)
        socket._scope["path"] = "/toolhost"
        socket._scope["subprotocols"] = [SUBPROTOCOL]
        socket._scope["headers"].append((b"authorization", b"Bearer 0123456789abcdef"))
        nursery.start_soon(socket.run)
        await wait_all_tasks_blocked()
        for _ in range(50):
            socket.say.send_nowait({"type": "websocket.receive", "text": "{}"})
        before = trio.current_time()
        socket.leave()
        await wait_all_tasks_blocked()
        assert trio.current_time() == before
        assert reached(probe) == []

"""The wire client against servers that end, break and hang; and the breaker."""

from __future__ import annotations

import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from probe.gateway.breaker import Plan, serve_breaker
from probe.gateway.client.live import Sending, Target, TargetError, connect, exchange, exchanging, target
from probe.gateway.client.records import ClientExchange
from probe.gateway.client.websocket import converse
from probe.gateway.marks import BLOCK
from probe.gateway.side import Side, modern, modern_call, with_headers
from probe.wire.jsonrpc import request

from ..support.process import PATIENCE_S
from .runs import probe, steps

Handler = Callable[[trio.SocketStream], Awaitable[object]]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def server(handler: Handler) -> AsyncIterator[Target]:
    """Hands each connection to the handler, and closes it afterwards."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some(65536)
            await handler(stream)

    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, serve, listeners)
        yield target(f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/mcp")
        nursery.cancel_scope.cancel()


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@pytest.mark.parametrize(
    ("sent", "end", "messages"),
    [
        (HEAD + chunk(b'data: {"id":1,"result":{}}\n\n') + b"0\r\n\r\n", "complete", 1),
        (HEAD + chunk(b'data: {"id":1,"result":{}}\n\n'), "cut", 1),
        (HEAD + chunk(b'data: {"id":1,"res'), "cut", 0),
        (b"", "cut", 0),
        (HEAD + b"zz\r\n", "broken", 0),
    ],
)
async def test_the_end_of_a_response_is_what_it_was(sent: bytes, end: str, messages: int) -> None:
    async with server(lambda stream: stream.send_all(sent)) as to:
        record = await exchange(to, Sending("x"))
    assert (record.end, len(record.messages)) == (end, messages)
    assert bool(record.faults) == (end == "broken")


async def _never(stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def test_what_never_ends_has_timed_out_and_what_is_not_there_is_refused() -> None:
    async with server(_never) as to:
        record = await exchange(to, Sending("x"), 0.05)
        assert (record.status, record.end) == (None, "timed out")
    refused = await exchange(to, Sending("x"))
    assert (refused.status, refused.end) == (None, "refused")
    assert refused.problem


async def test_each_message_is_stamped_when_it_comes_whatever_the_caller_does() -> None:
    second = trio.Event()

    async def two(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD + chunk(b'data: {"method":"one"}\n\n'))
        await second.wait()
        await stream.send_all(chunk(b'data: {"method":"two"}\n\n: comment\n\n') + b"0\r\n\r\n")

    async with server(two) as to, exchanging(to, Sending("x")) as live:
        assert await live.wait_messages(1)
        assert not live.over
        second.set()
        assert await live.wait_over()
        record = live.record()
    assert [item.message for item in record.messages] == [{"method": "one"}, {"method": "two"}]
    assert len(record.comments) == 1
    assert record.began <= record.messages[0].at <= record.messages[1].at <= record.ended


async def test_a_request_is_written_as_it_is_given() -> None:
    got: list[bytes] = []

    async def keep(stream: trio.SocketStream) -> None:
        got.append(bytes(await stream.receive_some(65536)))

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, keep, listeners)
        port = listeners[0].socket.getsockname()[1]
        to = target(f"http://127.0.0.1:{port}/mcp?client=x", headers=[("Authorization", "Bearer y")])
        await exchange(to, Sending("x", "POST", (("X-MiXeD", "a"), ("X-Twice", "1"), ("X-Twice", "2")), b"{}"))
        nursery.cancel_scope.cancel()
    head = ["POST /mcp?client=x HTTP/1.1", f"Host: 127.0.0.1:{port}", "Authorization: Bearer y", "Content-Length: 2"]
    assert got[0].decode().split("\r\n") == [*head, "X-MiXeD: a", "X-Twice: 1", "X-Twice: 2", "", "{}"]


async def test_http2_and_websockets_tell_the_same() -> None:
    async with probe() as direct:
        over2 = target(direct.url, h2="always")
        side = Side("direct", over2)
        record = await side.ask(modern("x", "server/discover", mark=7))
        assert (record.protocol, record.status, record.end) == ("HTTP/2", 200, "complete")
        large = await side.ask(modern_call(side, "x", "long_output", {"blocks": 64, "chars": 65536}, mark=7))
        assert large.messages[0].size > 64 * 65536
        padded = with_headers(modern("x", "server/discover", mark=7), ("X-Pad", "x" * 2000))
        assert (await side.ask(padded)).status == 200
        async with side.asking(modern_call(side, "x", "progress", {"steps": 50}, mark=7, token=1)) as live:
            await live.wait_messages(1)
            await live.close()
        assert live.record().end == "closed here"
        spoken = await converse(direct.at("/ws"), "x", [request(1, "ping", None)], 1)
        assert (spoken.status, spoken.end, len(spoken.messages)) == (101, "complete", 1)
        refused = await converse(direct.at("/nothing"), "x", [], 0)
        assert refused.status == 404


async def test_a_connection_is_closed_whose_handshake_fails() -> None:
    left = trio.Event()

    async def talk_plainly(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 400 no TLS here\r\n\r\n")
        with suppress(trio.BrokenResourceError):
            while await stream.receive_some(65536):
                pass
        left.set()

    async with server(talk_plainly) as plain:
        with pytest.raises(OSError, match=r"(?i)wrong.version|handshake") as caught:
            await connect(replace(plain, tls=ssl.create_default_context()))
        # The exception holds what the handshake held.
        with trio.fail_after(PATIENCE_S):
            await left.wait()
        assert caught.value is not None


@pytest.mark.parametrize("url", ["", "ftp://x/mcp", "http://", "http://x:port/", "x"])
def test_what_is_no_address_is_said_so(url: str) -> None:
    with pytest.raises(TargetError):
        target(url)


@pytest.mark.parametrize(
    ("moment", "end", "came"),
    [("before", "cut", 0), ("after", "cut", 1), ("later", "cut", 6), ("reset", "reset", 1), ("stall", "timed out", 1)],
)
async def test_the_breaker_breaks_once(moment: str, end: str, came: int) -> None:
    plan = Plan()
    async with probe() as direct, trio.open_nursery() as nursery:
        port = await nursery.start(serve_breaker, 0, direct.host, direct.port, plan)
        side = Side("through", target(f"http://127.0.0.1:{port}/mcp"))
        plan.moments[7] = moment  # type: ignore[assignment]
        arguments = {"steps": 8, "step_ms": 100, "mark": 7}
        sending = modern_call(side, "x", "progress", arguments, mark=7, token=1)
        first = await side.ask(sending, 1.5)
        assert (first.end, len(first.messages)) == (end, came)
        assert plan.broken == [7]
        again = await side.ask(sending)
        assert (again.end, len(again.messages)) == ("complete", 9)
        nursery.cancel_scope.cancel()


async def test_the_breaker_breaks_behind_an_event_also_where_others_came_with_it() -> None:
    events = [b'data: {"jsonrpc":"2.0","method":"x","params":{"n":%d}}\n\n' % n for n in range(9)]
    answer = HEAD + chunk(b"".join(events)) + b"0\r\n\r\n"
    within_the_fifth = len(HEAD) + 5 * len(events[0]) - 9

    async def send(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            await stream.send_all(answer[:within_the_fifth])
            # A piece of its own.
            await trio.testing.wait_all_tasks_blocked()
            await stream.send_all(answer[within_the_fifth:])

    async with server(send) as direct, trio.open_nursery() as nursery:
        port = await nursery.start(serve_breaker, 0, direct.host, direct.port, Plan({7: "later"}))
        side = Side("through", target(f"http://127.0.0.1:{port}/mcp"))
        found = await side.ask(modern_call(side, "x", "progress", {"mark": 7}, mark=7, token=1))
        assert (found.end, len(found.messages)) == ("cut", 6)
        nursery.cancel_scope.cancel()


class _Noting(Side):
    """Notes the session and the id of each request that it sends in a session."""

    sent: list[tuple[str, Any]]

    async def ask(self, sending: Sending, seconds: float | None = None) -> ClientExchange:
        session = dict(sending.headers).get("Mcp-Session-Id")
        with suppress(ValueError):
            message = json.loads(sending.body)
            if session is not None and "method" in message and "id" in message:
                self.sent.append((session, message["id"]))
        return await super().ask(sending, seconds)


_SENDING = ("reach.legacy", "sessions", "ids", "failures", "results", "large.quick", "bodies", "heads", "errors")


async def test_a_session_of_the_check_uses_no_id_twice() -> None:
    async with probe() as direct:
        side = _Noting("direct", direct)
        side.sent, side.offers = [], frozenset({"tool:structured_output", "tool:content_types", "tool:chatty"})
        for number, step in enumerate(steps(_SENDING)):
            await step.run(side, (number + 1) * BLOCK)
    assert len({session for session, _ in side.sent}) >= len(_SENDING)
    assert [sent for sent, times in Counter(side.sent).items() if times > 1] == []

"""A modern call ends with its connection or its HTTP/2 stream, however that ends (product contract, section 3).

2026-07-28 basic/transports/streamable-http, Cancellation. The peers leave in every way that sockets know, at an answer
that has begun and at one that has not. A call that is not cancelled would complete, after five seconds or much later.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import h2.events
import h11
import pytest
import trio

from probe.server.listener.transport import Transport

from ..support.inside import SERVICES, engine_tasks
from ..support.modern import Modern
from ..support.probe import Probe, running
from ..support.shown import as_value, newest
from .peers import PATIENCE_S, Dialer, Http1, Http2, Wire
from .servers import Start, on_both

PROMPT_MS = 4000
"""Far above what it takes, and below what would be left of the shortest work."""


@dataclass(frozen=True)
class Kind:
    """A call and how far its answer is when the peer leaves: so many messages, so many comments."""

    tool: str
    arguments: dict[str, Any]
    keep_alive_s: float = 15.0
    messages: int = 0
    comments: int = 0

    @property
    def begun(self) -> bool:
        return bool(self.messages or self.comments)


KINDS = {
    "a stream with progress": Kind("progress", {"steps": 100, "step_ms": 200}, messages=2),
    "a stream that is silent": Kind("simple_tool", {"delayMs": 5000}, keep_alive_s=0.05, comments=1),
    "an object not yet begun": Kind("progress", {"steps": 100, "step_ms": 5000}),
}


class Bell:
    """Wakes a test whenever the engine records something."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self._append = probe.engine.log.append
        self._waiting = trio.lowlevel.ParkingLot()
        probe.engine.log.append = self._record  # type: ignore[method-assign]

    def _record(self, *entry: Any) -> int:
        seq = self._append(*entry)
        self._waiting.unpark_all()
        return seq

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that has to happen."""
        with trio.fail_after(PATIENCE_S):
            while not condition():
                await self._waiting.park()

    async def started(self, count: int) -> None:
        await self.until(lambda: len(self.probe.events("call.started")) >= count)

    async def settled(self, count: int) -> None:
        """Wait until so many calls are over, and the engine has let go of them."""
        await self.until(lambda: len(self.probe.events("call.settled")) >= count)
        with trio.fail_after(PATIENCE_S):
            await self.probe.engine.modern.wait_quiet()


@asynccontextmanager
async def serving(start: Start, kind: Kind | None = None) -> AsyncIterator[tuple[Bell, int, Modern]]:
    """An engine behind a real listener: what it records, the port, and a client to make and check messages with."""
    keep_alive_s = 15.0 if kind is None else kind.keep_alive_s
    async with running(keep_alive_s=keep_alive_s) as probe:
        yield Bell(probe), await start(probe.app, keep_alive_s=keep_alive_s), probe.modern()


def request(client: Modern, kind: Kind, id: Any = "it") -> dict[str, Any]:
    """The call; a token only where its answer shall be a stream."""
    meta = {"progressToken": "token"} if kind.messages else {}
    return client.request("tools/call", {"name": kind.tool, "arguments": kind.arguments}, id=id, meta=meta)


def as_http1(client: Modern, message: dict[str, Any], *, size: int = 0) -> bytes:
    """A POST as it goes over the wire; its body is filled up to `size` bytes."""
    body = json.dumps(message).encode().ljust(size)
    head = {**client.headers(message), "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"POST {client.target} HTTP/1.1\r\n{lines}\r\n".encode() + body


async def post_http2(peer: Http2, client: Modern, message: dict[str, Any]) -> int:
    """Send a POST; the stream's id."""
    headers = [(name, value) for name, value in client.headers(message).items() if name != "host"]
    stream_id = await peer.request(client.target, end=False, headers=headers)
    await peer.data(stream_id, json.dumps(message).encode(), end=True)
    return stream_id


def told(client: Modern, body: bytes) -> list[dict[str, Any]]:
    """The messages in a body, whole or begun, each of them checked."""
    if body.startswith(b"{"):
        found = [json.loads(body)]
    else:
        blocks = body.decode().split("\n\n")[:-1]
        found = [json.loads(block.removeprefix("data: ")) for block in blocks if not block.startswith(":")]
    for message in found:
        if "method" in message:
            client.check(message)
        else:
            client.result(message, "tools/call", message["id"])
    return found


def as_far_as(kind: Kind, body: bytes) -> bool:
    """Whether an answer has come as far as the peer waits for."""
    return body.count(b"data: ") >= kind.messages and body.count(b": keep-alive") >= kind.comments


async def read_http1(peer: Http1, enough: Callable[[bytes], bool]) -> bytes:
    """Read the body of the response until there is enough of it."""
    body = b""
    head = await peer._next()
    assert isinstance(head, h11.Response)
    assert head.status_code == 200
    while not enough(body):
        event = await peer._next()
        assert isinstance(event, h11.Data), event
        body += bytes(event.data)
    return body


def check_gone(probe: Probe, kind: Kind, body: bytes, client: Modern, *, id: Any = "it") -> None:
    """The call is recorded as what it was, stopped in time where it stood, and silent since."""
    (found,) = [record for record in newest(probe.engine.records, 100) if record.request_id == id]
    record = as_value(found)
    assert (record["outcome"], record["cancelled_by"]) == ("disconnected", "disconnect")
    assert (record["done"], record["answered"]) == (False, False)
    assert record["cancel_latency_ms"] < PROMPT_MS
    heard = [message["params"]["progress"] for message in told(client, body)]
    assert heard == list(range(1, len(heard) + 1))
    if kind.tool == "progress":
        assert len(heard) <= (record["steps_done"] or 0) < 100, "the steps where the tool stood"
    else:
        assert record["steps_done"] is None
    emitted = [event for event in probe.events("message.emitted") if event["call"] == record["call"]]
    assert len(emitted) == record["emitted"] == (record["steps_done"] if kind.messages else 0)
    (cancelled,) = [event for event in probe.events("call.cancelled") if event["call"] == record["call"]]
    assert (cancelled["by"], cancelled["effect"]) == ("disconnect", True)
    assert all(event["seq"] < cancelled["seq"] for event in emitted), "nothing is sent afterwards"
    (settled,) = [event for event in probe.events("call.settled") if event["call"] == record["call"]]
    assert (settled["sent_after_cancel"], settled["answered"]) == (0, False)


async def check_quiet(bell: Bell, dial: Dialer, port: int, client: Modern) -> None:
    """The server goes on, and meanwhile nothing comes of what was cancelled."""
    mark = bell.probe.engine.log.last
    peer = await dial.http1(port)
    after = Kind("simple_tool", {"delayMs": 100})
    message = request(client, after, "after")
    await peer.wire.send(as_http1(client, message))
    expects_answer(peer)
    (response,) = told(client, await read_whole_http1(peer))
    assert response["id"] == "after"
    emitted = [event["message"] for event in bell.probe.events("message.emitted") if event["seq"] > mark]
    assert emitted == [response]
    await bell.until(lambda: engine_tasks() == SERVICES)


async def read_whole_http1(peer: Http1) -> bytes:
    answer = await peer.answer()
    assert answer.status == 200
    return answer.body


def expects_answer(peer: Http1) -> None:
    """Tell the state machine of the peer that a request is under way, whose bytes were sent past it."""
    peer._state.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    peer._state.send(h11.EndOfMessage())


# HTTP/1.1: the connection is the stream.


async def half_close(wire: Wire) -> None:
    """FIN, but ready to read on. A server cannot tell that from a peer that has gone, and need not: no client of this
    protocol does it."""
    await wire.stream.send_eof()


STREAM, SILENT, OBJECT = KINDS.values()
leaves_http1 = pytest.mark.parametrize(
    ("leave", "kind"),
    [(Wire.close, STREAM), (Wire.close, SILENT), (Wire.close, OBJECT), (half_close, STREAM), (Wire.reset, OBJECT)],
    ids=["close-stream", "close-silent", "close-object", "half-close-stream", "reset-object"],
)


@on_both
@pytest.mark.proves("2026-07-28/streamable-http/15", "2026-07-28/streamable-http/16", "2026-07-28/cancellation/3")
@leaves_http1
async def test_http1_the_end_of_the_connection_cancels_the_call(
    start: Start, dial: Dialer, leave: Callable[[Wire], Awaitable[None]], kind: Kind
) -> None:
    async with serving(start, kind) as (bell, port, client):
        peer = await dial.http1(port)
        await peer.wire.send(as_http1(client, request(client, kind)))
        expects_answer(peer)
        await bell.started(1)
        body = await read_http1(peer, lambda body: as_far_as(kind, body)) if kind.begun else b""
        await leave(peer.wire)
        await bell.settled(1)
        check_gone(bell.probe, kind, body, client)
        await check_quiet(bell, dial, port, client)


async def test_http1_a_peer_that_leaves_as_its_stream_begins_cancels_the_call_once(
    start: Start, dial: Dialer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_now = Transport.write_now

    def broken(self: Transport, data: Any) -> int:
        if b"text/event-stream" in bytes(data):
            raise BrokenPipeError
        return write_now(self, data)

    monkeypatch.setattr(Transport, "write_now", broken)
    kind = KINDS["a stream with progress"]
    async with serving(start, kind) as (bell, port, client):
        wire = await dial.wire(port)
        await wire.send(as_http1(client, request(client, kind)))
        await bell.settled(1)
        await bell.until(lambda: bool(bell.probe.events("http.closed")))
        cancelled = [(event["by"], event["effect"]) for event in bell.probe.events("call.cancelled")]
        assert cancelled == [("disconnect", True)]
        assert [event["by"] for event in bell.probe.events("http.closed")] == ["client"]


@pytest.mark.proves("2026-07-28/streamable-http/15", "2026-07-28/streamable-http/17")
@leaves_http1
async def test_http1_a_pipelined_request_does_not_hide_that_the_peer_left(
    start: Start, dial: Dialer, leave: Callable[[Wire], Awaitable[None]], kind: Kind
) -> None:
    """The second request never begins: its answer would have to wait for that of the first."""
    async with serving(start, kind) as (bell, port, client):
        peer = await dial.http1(port)
        second = as_http1(client, request(client, KINDS["a stream with progress"], "second"))
        await peer.wire.send(as_http1(client, request(client, kind)) + second)
        expects_answer(peer)
        await bell.started(1)
        body = await read_http1(peer, lambda body: as_far_as(kind, body)) if kind.begun else b""
        await leave(peer.wire)
        await bell.settled(1)
        check_gone(bell.probe, kind, body, client)
        await check_quiet(bell, dial, port, client)
        assert [record.request_id for record in newest(bell.probe.engine.records, 10)] == ["after", "it"]


@on_both
async def test_http1_pipelined_requests_are_answered_one_after_the_other(start: Start, dial: Dialer) -> None:
    async with serving(start) as (bell, port, client):
        peer = await dial.http1(port)
        first = Kind("progress", {"steps": 3, "step_ms": 50}, messages=3)
        second = Kind("simple_tool", {"delayMs": 50})
        await peer.wire.send(as_http1(client, request(client, first, 1)) + as_http1(client, request(client, second, 2)))
        expects_answer(peer)
        one = told(client, await read_whole_http1(peer))
        peer._state.start_next_cycle()
        expects_answer(peer)
        two = told(client, await read_whole_http1(peer))
        assert [message.get("id") for message in [*one, *two]] == [None, None, None, 1, 2]
        assert [record.outcome for record in newest(bell.probe.engine.records, 10)] == ["completed"] * 2
        await peer.wire.close()
        await bell.until(lambda: engine_tasks() == SERVICES)
        assert bell.probe.events("call.cancelled") == [], "a complete response leaves nothing to cancel"


AHEAD = [100_000, 300_000]
"""Bytes behind a running request: less than is read ahead, and more."""


@pytest.mark.parametrize(
    ("leave", "size", "secure"),
    [
        (half_close, AHEAD[1], False),
        (Wire.close, AHEAD[1], True),
        (Wire.reset, AHEAD[0], True),
    ],
)
async def test_http1_much_that_is_pipelined_does_not_hide_that_the_peer_left(
    start: Start, dial: Dialer, certificate: Any, leave: Callable[[Wire], Awaitable[None]], size: int, secure: bool
) -> None:
    files = {"certfile": certificate.certfile, "keyfile": certificate.keyfile} if secure else {}
    kind = KINDS["an object not yet begun"]
    async with running() as probe:
        bell, port, client = Bell(probe), await start(probe.app, **files), probe.modern()
        wire = await dial.wire(port, tls=certificate.client() if secure else None)
        await wire.send(as_http1(client, request(client, kind)))
        await bell.started(1)
        await wire.send(as_http1(client, request(client, kind, "second"), size=size))
        await trio.testing.wait_all_tasks_blocked(0.1)
        await leave(wire)
        await bell.settled(1)
        check_gone(bell.probe, kind, b"", client)
        assert [record.request_id for record in newest(probe.engine.records, 10)] == ["it"]
        await bell.until(lambda: engine_tasks() == SERVICES)


# HTTP/2: each stream has its own end.


@asynccontextmanager
async def beside(peer: Http2, client: Modern, bell: Bell) -> AsyncIterator[None]:
    """Two more calls on the same connection, a stream and an object, which must get through unharmed."""
    stream = Kind("progress", {"steps": 12, "step_ms": 50}, messages=12)
    lone = Kind("simple_tool", {"delayMs": 600})
    ids = [await post_http2(peer, client, request(client, kind, name)) for name, kind in (("s", stream), ("o", lone))]
    await bell.started(2)
    yield
    with trio.fail_after(PATIENCE_S):
        answers = [told(client, (await peer.answer(id)).body) for id in ids]
    assert [message["params"]["progress"] for message in answers[0][:-1]] == list(range(1, 13))
    assert [messages[-1]["id"] for messages in answers] == ["s", "o"]
    outcomes = {record.request_id: record.outcome for record in newest(bell.probe.engine.records, 100)}
    assert (outcomes["s"], outcomes["o"]) == ("completed", "completed")


@on_both
@pytest.mark.proves("2026-07-28/streamable-http/15", "2026-07-28/streamable-http/17", "2026-07-28/cancellation/3")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_http2_rst_stream_cancels_its_call_and_no_other(start: Start, dial: Dialer, kind: Kind) -> None:
    async with serving(start, kind) as (bell, port, client):
        peer = await dial.http2(port)
        async with beside(peer, client, bell):
            stream_id = await post_http2(peer, client, request(client, kind))
            await bell.started(3)
            await peer.drained(lambda: as_far_as(kind, peer.body(stream_id)))
            await peer.reset(stream_id)
            await bell.until(lambda: "it" in [e["request_id"] for e in bell.probe.events("call.settled")])
            check_gone(bell.probe, kind, peer.body(stream_id), client)
            received = len(peer.body(stream_id))
            await peer.ping()
        assert len(peer.body(stream_id)) == received, "nothing more comes on a stream that was reset"
        assert peer.find(h2.events.ConnectionTerminated) is None
        await check_quiet(bell, dial, port, client)


async def goaway(peer: Http2) -> None:
    """The polite end of a connection."""
    peer.state.close_connection()
    await peer.flush()
    await peer.wire.close()


async def goaway_alone(peer: Http2) -> None:
    """A peer that says goodbye but leaves the closing to the server."""
    peer.state.close_connection()
    await peer.flush()


async def close(peer: Http2) -> None:
    await peer.wire.close()


async def reset(peer: Http2) -> None:
    await peer.wire.reset()


MANY = 20


@on_both
@pytest.mark.proves("2026-07-28/streamable-http/15", "2026-07-28/streamable-http/16", "2026-07-28/cancellation/3")
@pytest.mark.parametrize(
    ("leave", "kind"),
    [(goaway_alone, STREAM), (goaway, OBJECT), (close, STREAM), (reset, OBJECT)],
    ids=["GOAWAY", "GOAWAY and close", "close", "reset"],
)
async def test_http2_the_end_of_the_connection_cancels_all_its_calls(
    start: Start, dial: Dialer, leave: Callable[[Http2], Awaitable[None]], kind: Kind
) -> None:
    async with serving(start, kind) as (bell, port, client):
        peer, other = await dial.http2(port), await dial.http2(port)
        async with beside(other, client, bell):
            ids = [await post_http2(peer, client, request(client, kind, number)) for number in range(MANY)]
            await bell.started(2 + MANY)
            await peer.drained(lambda: all(as_far_as(kind, peer.body(id)) for id in ids))
            await leave(peer)
            await bell.until(
                lambda: {r.request_id for r in newest(bell.probe.engine.records, 99) if r.outcome} >= {*range(MANY)}
            )
            for number, id in enumerate(ids):
                check_gone(bell.probe, kind, peer.body(id), client, id=number)
        await check_quiet(bell, dial, port, client)


@on_both
async def test_http2_a_completed_call_leaves_nothing_to_cancel(start: Start, dial: Dialer) -> None:
    async with serving(start) as (bell, port, client):
        peer = await dial.http2(port)
        async with beside(peer, client, bell):
            pass
        await peer.wire.close()
        await bell.until(lambda: engine_tasks() == SERVICES)
        assert bell.probe.events("call.cancelled") == []
        delivered = bell.probe.events("message.delivered")
        assert sum(event["last"] - event["first"] + 1 for event in delivered) == 14, "13 messages and one object"


# Subscriptions are requests like others.


@on_both
@pytest.mark.parametrize("way", ["RST_STREAM", "close", "reset"])
async def test_a_subscription_ends_with_its_stream(start: Start, dial: Dialer, way: str) -> None:
    async with serving(start) as (bell, port, client):
        peer = await dial.http2(port)
        asked = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
        stream_id = await post_http2(peer, client, client.request("subscriptions/listen", asked, id="L"))
        await peer.drained(lambda: b"acknowledged" in peer.body(stream_id))
        assert len(bell.probe.engine.modern.listeners) == 1
        await {"RST_STREAM": lambda: peer.reset(stream_id), "close": peer.wire.close, "reset": peer.wire.reset}[way]()
        await bell.settled(1)
        await bell.until(lambda: len(bell.probe.engine.modern.listeners) == 0)
        (settled,) = bell.probe.events("call.settled")
        assert (settled["outcome"], settled["cancelled_by"]) == ("disconnected", "disconnect")
        await check_quiet(bell, dial, port, client)

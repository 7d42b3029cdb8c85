"""Streamable HTTP as 2025-11-25 basic/transports describes it: statuses, headers, answers, event streams."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.engine.streams.reading import Reading
from probe.engine.streams.stream import Stream
from probe.log.context import Recorder
from probe.log.event_log import EventLog
from probe.server.endpoints.event_stream import EventStream
from probe.settings import build

from ..support.http import Answer, Event, exchange, http_scope
from ..support.legacy import HEADERS, Legacy
from ..support.probe import Probe, running
from ..support.shown import newest

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]


def slow(client: Legacy, seconds: int, id: Any = None) -> dict[str, Any]:
    """A call that reports progress once per second."""
    arguments = {"steps": seconds, "step_ms": 1000}
    return client.request(
        "tools/call", {"name": "progress", "arguments": arguments, "_meta": {"progressToken": "token"}}, id
    )


def as_bytes(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


async def whole(answer: Answer) -> list[Event]:
    return [event async for event in answer.events()]


# Answers.


@pytest.mark.proves("2025-11-25/transports/12")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_request_that_is_answered_at_once_gets_one_json_object(revision: str, probe: Probe) -> None:
    client = await probe.client(revision)
    request = client.request("tools/list")
    async with client.post(request) as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        assert client.result(await answer.json())["tools"]


@pytest.mark.proves("2025-11-25/transports/10")
@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "method": "notifications/made/up", "params": {"x": 1}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "no"}},
        {"jsonrpc": "2.0", "error": {"code": -32700, "message": "could not read it"}},
    ],
)
async def test_a_notification_or_response_is_accepted_with_202_and_no_body(message: Any, probe: Probe) -> None:
    client = await probe.client()
    async with client.post(message) as answer:
        assert (answer.status, await answer.body()) == (202, b"")
        assert "content-type" not in answer.headers
        assert answer.headers["content-length"] == "0"


@pytest.mark.proves("2025-11-25/transports/12", "2025-11-25/transports/15", "2025-11-25/transports/17")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_that_takes_time_gets_a_stream_that_ends_with_its_response(revision: str, probe: Probe) -> None:
    client = await probe.client(revision)
    async with client.post(client.request("tools/call", {"name": "simple_tool"}, "it")) as answer:
        assert answer.status == 200
        assert {name: answer.headers[name] for name in ("content-type", "cache-control", "x-accel-buffering")} == {
            "content-type": "text/event-stream",
            "cache-control": "no-cache, no-transform",
            "x-accel-buffering": "no",
        }
        events = await client.read(answer)
    assert [event.message["id"] for event in events] == ["it"]


@pytest.mark.proves("2025-11-25/transports/4", "2025-11-25/transports/13", "2025-11-25/transports/22")
async def test_a_stream_begins_with_a_priming_event(probe: Probe) -> None:
    """ "immediately send an SSE event consisting of an event ID and an empty data field"; and how long to wait."""
    client = await probe.client()
    async with client.post(slow(client, 5)) as answer, client.get() as standalone:
        for stream in (answer, standalone):
            (event,) = await stream.first(1)
            assert event.id
            assert (event.data, event.retry) == ("", 500)


@pytest.mark.parametrize("revision", REVISIONS[:-1])
async def test_before_2025_11_25_no_event_is_without_a_message(
    revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    """Priming events are new there; clients of earlier revisions read the data of each event as a message."""
    client = await probe.client(revision)
    async with client.post(slow(client, 3, "it")) as old:
        first = await old.first(2)
        async with client.get(last_event_id=first[-1].id) as new:
            rest = await whole(old), await whole(new)
    assert [event.data for event in rest[0]] == [], "nothing when the connection was displaced, either"
    events = [*first, *rest[1]]
    assert len(events) == 4
    assert all(event.message and event.retry is None and event.id for event in events)
    async with client.get() as standalone:
        await trio.sleep(1)
        await client.delete()
        assert await whole(standalone) == []


@pytest.mark.proves("2025-11-25/transports/24")
async def test_event_ids_are_unique_across_all_streams_of_a_session(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client(tools="all")
    await client.call("resources/subscribe", {"uri": "test://watched-resource"})
    async with client.get() as first, client.get() as second:
        ids = []
        for _ in range(3):
            async with client.post(slow(client, 3)) as answer:
                ids += [event.id for event in await whole(answer)]
        await client.delete()
        ids += [event.id for stream in (first, second) for event in await whole(stream)]
    assert len(ids) == len(set(ids)) > 15
    assert None not in ids


@pytest.mark.proves("2025-11-25/transports/14")
async def test_the_work_is_polled_when_the_server_closes_the_connection(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    with trio.fail_after(5):
        async with client.post(client.request("tools/call", {"name": "test_reconnection"}, "it")) as answer:
            events = await whole(answer)
        assert [event.data for event in events] == ["", ""], "the connection ends without the response"
        assert events[-1].retry == 500
        async with client.get(last_event_id=events[-1].id) as again:
            (response,) = await client.read(again)
    assert client.result(response.message)["content"][0]["text"].startswith("The result was fetched after")


# Event streams while nothing happens, and while nobody reads.


async def test_a_quiet_stream_carries_a_comment_every_15_seconds(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with client.get() as answer:
        await trio.sleep(46)
        await client.delete()
        assert [event.data for event in await whole(answer)] == [""]
        assert answer.comments == ["keep-alive"] * 3


async def test_the_interval_of_comments_is_a_setting_and_messages_make_them_needless(autojump_clock: MockClock) -> None:
    async with running(keep_alive_s=2) as probe:
        client = await probe.client()
        async with client.post(slow(client, 20)) as answer:
            await client.read(answer)
            assert answer.comments == []


async def test_the_interval_of_comments_runs_from_what_was_sent_last(autojump_clock: MockClock) -> None:
    async with running(keep_alive_s=2) as probe:
        client = await probe.client()
        arguments = {"steps": 3, "step_ms": 2900}
        call = {"name": "progress", "arguments": arguments, "_meta": {"progressToken": "token"}}
        async with client.post(client.request("tools/call", call)) as answer:
            start = trio.current_time()
            came = [(round(trio.current_time() - start, 1), part[:2]) async for part in answer.parts()]
    assert came[:7] == [(0, b"id"), (2, b": "), (2.9, b"id"), (4.9, b": "), (5.8, b"id"), (7.8, b": "), (8.7, b"id")]


async def test_messages_need_no_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[None] = []
    original = trio.CancelScope.__enter__

    def enter(self: trio.CancelScope) -> trio.CancelScope:
        entered.append(None)
        return original(self)

    monkeypatch.setattr(trio.CancelScope, "__enter__", enter)
    log = EventLog(lambda: (0.0, 0.0), max_events=1000, max_bytes=10**6)
    counts = []
    for messages in (1, 50):
        stream, before = Stream("p1", "response", Recorder(log), build({}).limits), len(entered)
        reading = Reading(Recorder(log))
        reading.add(stream, 0)
        writer = EventStream(reading, retry_ms=0, keep_alive_s=15)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(writer.run, taken, trio.sleep_forever)
            for _ in range(messages):
                stream.append(b"{}")
                await wait_all_tasks_blocked()
            stream.end(0)
        assert writer.written == messages
        counts.append(len(entered) - before)
    assert counts[0] == counts[1]


async def taken(event: Any) -> None:
    await trio.lowlevel.checkpoint()


@pytest.mark.proves("2025-11-25/transports/19", "2025-11-25/transports/20", "2025-11-25/transports/21")
async def test_a_get_stream_carries_nothing_of_the_requests_that_run(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with client.get() as standalone:
        assert (standalone.status, standalone.headers["content-type"]) == (200, "text/event-stream")
        async with client.post(slow(client, 3)) as answer:
            assert len(await client.read(answer)) == 4
        await client.tool("test_tool_with_logging")
        assert len(client.noted("notifications/message")) == 3
        await client.delete()
        assert [event.data for event in await whole(standalone)] == [""]


@pytest.mark.proves("2025-11-25/transports/23")
async def test_each_message_goes_to_one_of_several_get_streams(probe: Probe, autojump_clock: MockClock) -> None:
    """ "it MUST NOT broadcast the same message across multiple streams": the newest that is read gets it."""
    client = await probe.client()
    await client.call("resources/subscribe", {"uri": "test://watched-resource"})
    async with client.get() as older:
        async with client.get() as newer:
            await trio.sleep(6)
            got = await newer.first(3)
        assert [bool(event.data) for event in got] == [False, True, True]
        await wait_all_tasks_blocked()
        await trio.sleep(3)
        after = await older.first(2)
    assert [bool(event.data) for event in after] == [False, True], "once the newer one has gone, the older one goes on"


async def test_a_get_beyond_the_limit_ends_the_oldest_stream_properly() -> None:
    async with running(max_standalone_streams=2) as probe:
        client = await probe.client()
        async with client.get() as first, client.get() as second, client.get() as third:
            with trio.fail_after(5):
                assert [event.data for event in await whole(first)] == [""]
            await second.first(1)
            await third.first(1)
            await client.call("ping")


class Peer:
    """A client at the ASGI level: its body arrives in parts, and it takes what it is sent when it likes."""

    def __init__(self, app: Any, scope: dict[str, Any], parts: list[dict[str, Any]]) -> None:
        self.app = app
        self.scope = scope
        self.sent: list[dict[str, Any]] = []
        self.reads = trio.Event()
        self.reads.set()
        self.breaks = False
        self._parts = iter(parts)
        self._disconnect: dict[str, Any] = {"type": "http.disconnect"}
        self._left = trio.Event()

    async def _receive(self) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        for part in self._parts:
            return part
        await self._left.wait()
        return self._disconnect

    def leave(self, reason: str | None) -> None:
        """The connection ends; with a reason it was the listener that ended it."""
        self._disconnect |= {"reason": reason} if reason else {}
        self._left.set()

    async def _send(self, event: Any) -> None:
        await self.reads.wait()
        if self.breaks and event.get("body"):
            raise BrokenPipeError
        self.sent.append(dict(event))

    async def run(self) -> None:
        await self.app(self.scope, self._receive, self._send)

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None


def body(data: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": more}


async def test_a_body_in_parts_is_one_body(probe: Probe) -> None:
    client = await probe.client()
    parts = [body(bytes([byte]), more=True) for byte in b'{"jsonrpc":"2.0","id":1,"method":"ping"}']
    peer = Peer(probe.app, http_scope("POST", "/mcp", client.headers), [*parts, body(b"")])
    await peer.run()
    assert peer.sent[1]["body"] == b'{"jsonrpc":"2.0","id":1,"result":{}}'


async def test_a_body_that_does_not_come_to_its_end_gets_408(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    peer = Peer(probe.app, http_scope("POST", "/mcp", client.headers), [body(b'{"jsonrpc"', more=True)])
    began = trio.current_time()
    with trio.fail_after(120):
        await peer.run()
    assert peer.status == 408
    assert trio.current_time() - began == pytest.approx(60), "idle_connection_s"
    assert await client.call("ping") == {}


async def test_a_body_that_is_far_too_large_is_not_read_to_its_end() -> None:
    async with running(max_body_bytes=1024) as probe:
        client = await probe.client()
        endless = [body(b" " * 1000, more=True)] * 100
        peer = Peer(probe.app, http_scope("POST", "/mcp", client.headers), endless)
        with trio.fail_after(5):
            await peer.run()
        assert peer.status == 413


async def test_a_client_that_goes_before_its_body_is_complete_is_not_answered(probe: Probe) -> None:
    client = await probe.client()
    gone = [body(b'{"jsonrpc"', more=True), {"type": "http.disconnect"}]
    peer = Peer(probe.app, http_scope("POST", "/mcp", client.headers), gone)
    with trio.fail_after(5):
        await peer.run()
    assert peer.sent == []
    assert await client.call("ping") == {}


async def test_a_reader_that_never_reads_stops_neither_the_work_nor_others(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client, other = await probe.client(), await probe.client()
    peer = Peer(probe.app, http_scope("POST", "/mcp", client.headers), [body(as_bytes(slow(client, 10, "it")))])
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.run)
            await wait_all_tasks_blocked()
            peer.reads = trio.Event()
            assert (await other.tool("simple_tool", {"delayMs": 100}))["structuredContent"]
            assert await client.call("ping") == {}
            await trio.sleep(11)
            assert (newest(probe.engine.records, 50)[-1].outcome) == "completed", "the work is done"
            peer.reads.set()
    data = b"".join(event.get("body", b"") for event in peer.sent)
    assert data.count(b"notifications/progress") == 10, "and the reader still gets everything"


async def test_a_reader_that_falls_behind_the_bounds_is_told_by_the_end_of_its_connection(
    autojump_clock: MockClock,
) -> None:
    """What it missed cannot be had any more: resuming is 410, not a silent gap."""
    async with running(replay_messages=8) as probe:
        client = await probe.client()
        peer = Peer(probe.app, http_scope("POST", "/mcp", client.headers), [body(as_bytes(slow(client, 30)))])
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(peer.run)
                await wait_all_tasks_blocked()
                peer.reads = trio.Event()
                await trio.sleep(20)
                peer.reads.set()
                await wait_all_tasks_blocked()
                assert peer.sent[-1]["more_body"] is False
                (closed,) = probe.events("http.closed")
                assert closed["by"].startswith("overflow")
            async with client.get(last_event_id="p1-1") as answer:
                assert answer.status == 410


# Who ended the connection.


async def test_a_client_that_does_not_read_was_cut_off_by_the_server(probe: Probe) -> None:
    client = await probe.client()
    peer = Peer(probe.app, http_scope("GET", "/mcp", client.headers), [body(b"")])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.run)
        await wait_all_tasks_blocked()
        peer.leave("write timeout")
    assert [event["by"] for event in probe.events("http.closed")] == ["write timeout"]


async def test_what_the_socket_did_not_take_was_not_delivered(probe: Probe) -> None:
    """ASGI: sending to a client that has gone is an `OSError`; the disconnect, which says why, comes after."""
    client = await probe.client()
    peer = Peer(probe.app, http_scope("POST", "/mcp", client.headers), [body(as_bytes(slow(client, 1)))])
    peer.breaks = True
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.run)
        await wait_all_tasks_blocked()
        assert probe.events("http.closed") == []
        peer.leave(None)
    assert [event["by"] for event in probe.events("http.closed")] == ["client"]
    assert probe.events("message.delivered")[1:] == [], "only the answer to initialize"


async def test_a_stream_that_ends_with_the_server_was_not_closed_by_the_client(probe: Probe) -> None:
    client = await probe.client()
    peer = Peer(probe.app, http_scope("GET", "/mcp", client.headers), [body(b"")])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.run)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [event["by"] for event in probe.events("http.closed")] == ["server"]


# Methods that are not served.


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "get", "X" * 30])
async def test_other_http_methods_are_refused_with_what_is_allowed(method: str, probe: Probe) -> None:
    client = await probe.client()
    for headers in (HEADERS, client.headers):
        async with exchange(probe.app, method, "/mcp", headers) as answer:
            assert (answer.status, answer.headers["allow"]) == (405, "POST, GET, DELETE")


@pytest.mark.proves("2025-11-25/transports/19")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_get_and_delete_need_a_session(method: str, probe: Probe) -> None:
    async with exchange(probe.app, method, "/mcp", HEADERS) as answer:
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("accept", ["application/json", "", "text/html"])
async def test_a_get_without_accept_for_events_is_not_acceptable(accept: str, probe: Probe) -> None:
    client = await probe.client()
    async with exchange(probe.app, "GET", "/mcp", {**client.headers, "accept": accept}) as answer:
        assert answer.status == 406


# Host and Origin; every form of them is in core/test_inbound.py.


async def test_a_body_declared_far_too_large_is_refused_without_waiting_for_it(probe: Probe) -> None:
    client = await probe.client()
    async with exchange(probe.app, "POST", "/mcp", {**client.headers, "content-length": "99999999999"}, b"{") as answer:
        assert answer.status == 413

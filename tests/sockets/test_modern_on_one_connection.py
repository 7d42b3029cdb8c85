"""One HTTP/2 connection for everything: a legacy session, modern requests with the same ids, several subscriptions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ..support.legacy import HEADERS
from ..support.modern import SUBSCRIPTION_ID, Modern
from ..support.probe import running
from ..support.shown import as_value, newest
from .peers import Dialer, Http1, Http2
from .servers import Start, on_both

LISTS = {"toolsListChanged": True}


async def post(peer: Http2, message: dict[str, Any], headers: dict[str, str]) -> int:
    """POST a message; the id of its stream."""
    lines = [(name, value) for name, value in headers.items() if name != "host"]
    stream = await peer.request("/mcp?tools=all", end=False, headers=lines)
    await peer.data(stream, json.dumps(message).encode(), end=True)
    return stream


def heard(peer: Http2, stream: int) -> list[dict[str, Any]]:
    """The messages of an event stream so far, the priming event apart."""
    lines = peer.body(stream).decode().split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


async def hears(peer: Http2, stream: int, count: int) -> list[dict[str, Any]]:
    await peer.drained(lambda: len(heard(peer, stream)) >= count)
    return heard(peer, stream)


async def open_session(peer: Http2) -> dict[str, str]:
    """A legacy session; the headers of its requests."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    answer = await peer.answer(await post(peer, message, HEADERS))
    session = {"mcp-session-id": answer.headers[b"mcp-session-id"].decode(), "mcp-protocol-version": "2025-11-25"}
    headers = {**HEADERS, **session}
    started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await peer.answer(await post(peer, started, headers))).status == 202
    return headers


@on_both
@pytest.mark.proves("2026-07-28/versioning/6", "2026-07-28/versioning/7")
async def test_a_session_and_modern_requests_with_the_same_id_do_not_touch(start: Start, dial: Dialer) -> None:
    async with running(tools="all") as probe:
        client, peer = probe.modern(), await dial.http2(await start(probe.app))
        session = await open_session(peer)
        slow = {"name": "progress", "arguments": {"steps": 100, "step_ms": 100}, "_meta": {"progressToken": 7}}
        old = await post(peer, {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": slow}, session)
        request = client.request("tools/call", {**slow, "_meta": {}}, id=7, meta={"progressToken": 7})
        new, other = [await post(peer, request, Modern.headers(request)) for _ in range(2)]
        for stream in (old, new, other):
            await hears(peer, stream, 2)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert (await peer.answer(await post(peer, cancelled, session))).status == 202
        assert all("method" in message for message in heard(peer, old)), "no response"
        await peer.reset(new)
        await hears(peer, other, len(heard(peer, other)) + 3)
        newest_first = map(as_value, newest(probe.engine.records, 9))
        records = {record["era"] + str(record["cancelled_by"]) for record in newest_first}
        assert records == {"legacynotification", "moderndisconnect", "modernNone"}


@on_both
async def test_several_subscriptions_live_side_by_side_and_one_ends_alone(start: Start, dial: Dialer) -> None:
    async with running(tools="all") as probe:
        client, peer = probe.modern(), await dial.http2(await start(probe.app))
        # An id may stand twice here: each subscription has a stream of its own to tell them apart by.
        ids = (1, "1", "b", "b")
        requests = [client.request("subscriptions/listen", {"notifications": LISTS}, id=id) for id in ids]
        streams = [await post(peer, request, Modern.headers(request)) for request in requests]
        for stream in streams:
            await hears(peer, stream, 1)
        announce = client.request("tools/call", {"name": "announce_list_change", "arguments": {}})
        assert (await peer.answer(await post(peer, announce, Modern.headers(announce)))).status == 200
        for stream, request in zip(streams, requests, strict=True):
            for message in await hears(peer, stream, 2):
                id = client.check(message)["params"]["_meta"][SUBSCRIPTION_ID]
                assert (type(id), id) == (type(request["id"]), request["id"])
        await peer.reset(streams[2])
        await peer.ping()
        while len(probe.engine.modern.listeners) == 4:
            await peer.ping()
        assert (await peer.answer(await post(peer, announce, Modern.headers(announce)))).status == 200
        for stream in (streams[0], streams[1], streams[3]):
            await hears(peer, stream, 3)
        assert len(heard(peer, streams[2])) == 2


# The headers that mirror a modern request, as they go over the wire; names in memory are lower case already.


SPELLINGS: list[Callable[[str], str]] = [str.lower, str.upper, str.title, str.swapcase]


@on_both
@pytest.mark.proves("2026-07-28/streamable-http/43")
@pytest.mark.parametrize("spelled", SPELLINGS, ids=["lower", "upper", "title", "swapped"])
async def test_header_names_are_compared_without_regard_to_case(
    start: Start, dial: Dialer, spelled: Callable[[str], str]
) -> None:
    async with running() as probe:
        client, port = probe.modern(), await start(probe.app)
        peer = Http1(await dial.wire(port))
        message = client.request("tools/call", {"name": "routed_tool", "arguments": {"priority": 7}})
        for priority, status in (("7", 200), ("8", 400)):
            headers = {**Modern.headers(message), "mcp-param-priority": priority}
            del headers["host"]
            lines = [(spelled(name), value) for name, value in headers.items()]
            answer = await peer.ask("/mcp", headers=lines, body=json.dumps(message).encode())
            assert answer.status == status
            body = json.loads(answer.body)
            if status == 200:
                client.result(body, "tools/call", message["id"])
            else:
                assert body["error"]["code"] == -32020

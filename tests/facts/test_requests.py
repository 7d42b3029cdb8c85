"""Which session a request names, by which connection it came, and what was hidden of it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.streams.stream import answer
from probe.log.context import Recorder
from probe.log.event_log import EventLog
from probe.log.redaction import hidden_members
from probe.server.endpoints.exchange import CONNECTION
from probe.wire.jsonrpc import result_response

from ..support.http import exchange, http_scope
from ..support.legacy import HEADERS, Legacy
from ..support.probe import Probe, running
from ..support.shown import as_value

ID = "mcp-session-id"


def last(probe: Probe, kind: str) -> dict[str, Any]:
    return probe.events(kind)[-1]


async def ping(client: Legacy) -> int:
    async with client.post(client.request("ping")) as response:
        await response.body()
        return response.status


async def test_a_request_names_its_session_also_when_that_has_ended(probe: Probe) -> None:
    first, second = await probe.client(), await probe.client()
    assert await ping(second) == 200
    assert last(probe, "http.request")["named"] == "s2"
    assert await first.delete() == 204
    assert last(probe, "http.request")["named"] == "s1"
    assert await ping(first) == 404
    asked = last(probe, "http.request")
    assert (asked["named"], asked["session"], asked["session_in_query"]) == ("s1", None, False)
    first.headers[ID] = "never given"
    assert await ping(first) == 404
    assert last(probe, "http.request")["named"] is None


async def test_the_id_of_a_session_in_the_url_is_noticed_and_hidden(probe: Probe) -> None:
    client = await probe.client()
    id = client.headers[ID]
    client.target = f"/mcp?tools=all&sid={id}&x=1"
    assert await ping(client) == 200
    asked = last(probe, "http.request")
    assert (asked["session_in_query"], asked["query"]) == (True, "tools=all&sid=[redacted]&x=1")
    assert asked["hidden"] == ["?sid"]
    assert id not in json.dumps(probe.events("http.request"))


async def test_hidden_headers_and_parameters_are_named(probe: Probe) -> None:
    headers = {**HEADERS, "cookie": "a=b", "Authorization": "Bearer x"}
    async with exchange(probe.app, "POST", "/mcp?token=abc&client=n", headers, b"{}") as response:
        await response.body()
    assert last(probe, "http.request")["hidden"] == ["cookie", "authorization", "?token"]


async def test_the_type_of_what_is_hidden_in_a_message_stays_known(probe: Probe) -> None:
    client = await probe.client()
    params = {"name": "simple_tool", "arguments": {"password": 5, "a/b": [{"token": None}]}}
    await client.call("tools/call", params)
    assert last(probe, "message.received")["hidden"] == [
        ["/params/arguments/password", "integer"], ["/params/arguments/a~1b/0/token", "null"]
    ]  # fmt: skip
    await client.call("ping")
    assert last(probe, "message.received")["hidden"] == []


def test_what_the_server_hides_of_its_own_messages_is_told() -> None:
    log = EventLog(lambda: (0.0, 0.0), max_events=10, max_bytes=10**6)
    for content in ({"token": 5}, {"kept": 5}):
        answer(Recorder(log), result_response(1, {"structuredContent": content}))
    told = [as_value(entry)["hidden"] for entry in log.since(0, 10).entries]
    assert told == [[["/result/structuredContent/token", "integer"]], []]


@pytest.mark.parametrize(
    ("value", "type"),
    [
        ("x", "string"),
        (1, "integer"),
        (1.0, "number"),
        (True, "boolean"),
        (None, "null"),
        ({}, "object"),
        ([], "array"),
    ],
)
def test_each_json_type_has_its_name(value: Any, type: str) -> None:
    assert hidden_members({"apiKey": value}) == (("/apiKey", type),)


def test_not_more_than_a_hundred_places_are_kept() -> None:
    assert len(hidden_members([{"token": place} for place in range(1000)])) == 100


async def test_a_listener_that_numbers_its_connections_is_believed(probe: Probe) -> None:
    async def nothing() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(event: dict[str, Any]) -> None:
        pass

    for number, stream in ((7, 3), (8, None)):
        scope = http_scope("POST", "/mcp", HEADERS)
        scope["extensions"] = {CONNECTION: {"number": number, "stream_id": stream}}
        await probe.app(scope, nothing, send)
        asked, answered = last(probe, "http.request"), last(probe, "http.response")
        assert (asked["connection"], asked["stream_id"]) == (f"tcp{number}", stream)
        assert answered["connection"] == f"tcp{number}"
    await probe.client()
    assert (last(probe, "http.request")["connection"], last(probe, "http.request")["stream_id"]) == (None, None)


# What an event stream carries beside messages, whether these have event ids, and why a response ended.


def controls(probe: Probe) -> list[tuple[Any, ...]]:
    return [(event["what"], event["event_id"], event["retry_ms"]) for event in probe.events("stream.control")]


async def test_the_priming_event_and_the_retry_before_a_hang_up_are_told(autojump_clock: MockClock) -> None:
    async with running(sse_retry_ms=700) as probe:
        client = await probe.client()
        request = client.request("tools/call", {"name": "test_reconnection"})
        async with client.post(request) as answer:
            events = [event async for event in answer.events()]
        last = events[-1]
        assert controls(probe) == [("priming", "p1-0", 700), ("retry", last.id, last.retry)]
        asked, closed = probe.events("http.request")[-1], probe.events("http.closed")[-1]
        call = probe.events("call.started")[0]
        for event in probe.events("stream.control"):
            assert (event["cause"], event["exchange"]) == (asked["seq"], asked["exchange"])
            assert (event["stream"], event["call"], event["session"]) == ("p1", call["call"], "s1")
        assert (closed["by"], closed["exchange"]) == ("hang-up", asked["exchange"])


async def test_an_older_revision_is_sent_no_such_events(autojump_clock: MockClock) -> None:
    async with running() as probe:
        client = await probe.client("2025-06-18")
        await client.tool("progress", {"steps": 2, "step_ms": 1})
        assert controls(probe) == []


async def test_each_keep_alive_comment_is_told_when_it_was_sent(autojump_clock: MockClock) -> None:
    async with running(keep_alive_s=10) as probe:
        client = await probe.client("2025-06-18")
        async with client.get() as answer:
            await trio.sleep(35)
            assert answer.status == 200
        told = probe.events("stream.control")
        assert [event["what"] for event in told] == ["comment"] * 3
        times = [event["mono"] for event in told]
        assert [round(after - before) for before, after in pairwise(times)] == [10, 10]
        assert told[0]["stream"] == "g1"
        assert probe.events("http.closed")[-1]["by"] == "client"


async def test_only_streams_that_can_be_resumed_give_event_ids(autojump_clock: MockClock) -> None:
    async with running() as probe:
        await (await probe.client()).tool("progress", {"steps": 2, "step_ms": 1}, _meta={"progressToken": 1})
        assert probe.events("message.delivered")[-1]["event_ids"] is True
        assert probe.events("http.closed")[-1]["by"] == "end of stream"
        modern = probe.modern()
        await modern.tool("progress", {"steps": 2, "step_ms": 1}, meta={"progressToken": 1})
        assert probe.events("message.delivered")[-1]["event_ids"] is False
        await (await probe.client()).call("ping")
        assert probe.events("message.delivered")[-1]["event_ids"] is False

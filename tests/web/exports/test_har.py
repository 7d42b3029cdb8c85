"""A HAR file is valid, and has each HTTP request with its bodies as the sockets had them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import referencing
from msgspec import structs
from msgspec.structs import replace

from probe.log.context import Context
from probe.log.event_log import Entry
from probe.log.events import HttpRequest, HttpResponse, MessageEmitted, MessagesDelivered
from probe.web.exports import har
from probe.web.exports.har import HarExchanges

from ...support.api import LOCAL
from ...support.facts import received
from ...support.http import exchange
from ...support.probe import Probe

EMITTED = MessageEmitted(1, "response", None, 1, b'{"id":1,"result":{}}')
_SCHEMAS = json.loads((Path(__file__).parent / "har_schema" / "har-schema.json").read_text())
_REGISTRY: Any = referencing.Registry().with_resources(
    (name, referencing.Resource.from_contents(schema)) for name, schema in _SCHEMAS.items()
)
VALIDATOR = jsonschema.Draft6Validator(_SCHEMAS["har.json"], registry=_REGISTRY)


def valid(body: bytes) -> list[Any]:
    archive = json.loads(body)
    VALIDATOR.validate(archive)
    entries: list[Any] = archive["log"]["entries"]
    return entries


async def archived(probe: Probe, query: str = "") -> list[Any]:
    async with exchange(probe.app, "GET", f"/api/export.har{query}", LOCAL) as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        assert answer.headers["content-disposition"].endswith('.har"')
        return valid(await answer.body())


async def test_each_request_has_its_bodies_and_times(probe: Probe) -> None:
    client = await probe.client()
    await client.tool("progress", {"steps": 2, "step_ms": 0}, _meta={"progressToken": 7, "apiKey": "hush"})
    entries = await archived(probe, "?client=s1")
    assert [entry["request"]["method"] for entry in entries] == ["POST"] * 3
    assert [entry["response"]["status"] for entry in entries] == [200, 202, 200]
    call = entries[-1]
    assert json.loads(call["request"]["postData"]["text"])["params"]["_meta"]["apiKey"] == "[redacted]"
    assert call["response"]["content"]["mimeType"] == "text/event-stream"
    blocks = call["response"]["content"]["text"].strip().split("\n\n")
    data = [block.partition("data:")[2].strip() for block in blocks]
    assert [json.loads(text).get("method", "response") for text in data if text] == [
        "notifications/progress",
        "notifications/progress",
        "response",
    ]
    assert blocks[-1].startswith("id: ")
    for entry in entries:
        assert entry["time"] == pytest.approx(entry["timings"]["wait"] + entry["timings"]["receive"])
        assert entry["request"]["url"].startswith("http://127.0.0.1:8000/mcp?tools=all")
    assert json.loads(entries[0]["response"]["content"]["text"])["result"]["protocolVersion"] == "2025-11-25"


async def test_a_refusal_has_its_words_and_its_body(probe: Probe) -> None:
    await probe.client()
    async with exchange(probe.app, "POST", "/mcp", {**LOCAL, "content-type": "text/plain"}, b"{}") as answer:
        await answer.body()
    refused = (await archived(probe))[-1]
    assert (refused["response"]["status"], refused["response"]["statusText"]) == (415, "Unsupported Media Type")
    assert "error" in json.loads(refused["response"]["content"]["text"])
    assert "application/json" in refused["comment"]


async def test_a_batch_is_an_array_again(probe: Probe) -> None:
    client = await probe.client("2025-03-26")
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (8, 9)]
    async with client.post(batch) as answer:
        await answer.body()
    last = (await archived(probe))[-1]
    assert json.loads(last["request"]["postData"]["text"]) == batch
    assert sorted(item["id"] for item in json.loads(last["response"]["content"]["text"])) == [8, 9]


def entry(path: str = "/mcp", query: str = "", **headers: str) -> Entry:
    fact = HttpRequest("GET", path, query, "2", "127.0.0.1:1", tuple(headers.items()))
    return Entry(1, 1.5, 2.5, Context(connection="tcp1", exchange=1), fact)


@pytest.mark.parametrize(
    "head",
    [
        entry('/a b"<>\\^`{|}\u00ff', "x=[redacted]&y=%zz&=&&é", host="h\u00e9 <x>"),
        entry("//", "", host=""),
        entry("*"),
        entry("http://x/y", "a&" * 5000),
    ],
    ids=range(4),
)
def test_whatever_a_client_sent_the_file_is_valid_and_a_request_without_a_response_has_status_0(head: Entry) -> None:
    exchanges = HarExchanges()
    exchanges.take(head)
    (found,) = valid(har.begin() + b",".join(exchanges.entries(lambda seq: head)) + har.END)
    assert (found["response"]["status"], found["time"]) == (0, 0)
    assert not set('<>"{}|\\^` ') & set(found["request"]["url"])


def test_the_messages_of_a_websocket_stand_at_its_request() -> None:
    log = [
        structs.replace(entry("/ws", host="x"), context=Context(connection="w1", exchange=1)),
        Entry(2, 3.5, 4.5, Context(connection="w1", exchange=2, session="s1"), received({"id": 1})),
        Entry(3, 4.5, 5.5, Context(connection="w1", exchange=2, session="s1", stream="1"), EMITTED),
    ]
    exchanges = HarExchanges()
    for item in log:
        exchanges.take(item)
    (found,) = valid(har.begin() + b",".join(exchanges.entries(lambda seq: log[seq - 1])) + har.END)
    assert found["_webSocketMessages"] == [
        {"type": "send", "time": 3.5, "opcode": 1, "data": '{"id": 1}'},
        {"type": "receive", "time": 4.5, "opcode": 1, "data": '{"id":1,"result":{}}'},
    ]


def test_a_file_may_claim_any_range_of_positions() -> None:
    context = Context(connection="tcp1", exchange=1, session="s1", stream="1")
    log = [
        entry(host="x"),
        Entry(2, 2.5, 3.5, context, replace(EMITTED, position=5)),
        Entry(3, 2.5, 3.5, context, MessagesDelivered(-(10**18), 10**18)),
        Entry(4, 2.5, 3.5, context, HttpResponse(200, "application/json", None)),
    ]
    exchanges = HarExchanges()
    for item in log:
        exchanges.take(item)
    (found,) = valid(har.begin() + b",".join(exchanges.entries(lambda seq: log[seq - 1])) + har.END)
    assert found["response"]["content"]["text"] == '{"id":1,"result":{}}'


async def test_what_has_no_room_is_left_out_and_said(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(har, "_MOST_BODY", 200)
    client = await probe.client()
    await client.tool("progress", {"steps": 9, "step_ms": 0}, _meta={"progressToken": 7})
    call = (await archived(probe))[-1]
    assert 0 < call["response"]["content"]["size"] < 400
    assert "have no room" in call["comment"]

"""How messages are recorded: each on its own, in one line, otherwise as it came; refusals, too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probe.log.event_log import Entry
from probe.log.events import Event, MessageEmitted, MessageReceived

from ..support.http import exchange
from ..support.legacy import Legacy
from ..support.modern import Modern
from ..support.probe import Probe


def entries(probe: Probe, kind: type[Event]) -> list[Entry]:
    return [entry for entry in probe.engine.log.since(0, 10**6).entries if isinstance(entry.fact, kind)]


def received(probe: Probe) -> list[MessageReceived]:
    return [entry.fact for entry in entries(probe, MessageReceived)]


def emitted(probe: Probe) -> list[MessageEmitted]:
    return [entry.fact for entry in entries(probe, MessageEmitted)]


async def send(client: Legacy, body: bytes) -> int:
    async with exchange(client.app, "POST", client.target, client.headers, body) as answer:
        await answer.body()
        return answer.status


async def test_each_message_of_a_batch_is_a_fact_of_its_own(probe: Probe) -> None:
    client = await probe.client("2025-03-26")
    batch = [client.request("ping", id=5), client.request("ping", id="5"), {"jsonrpc": "2.0", "id": 9, "result": {}}]
    async with client.post(batch) as answer:
        assert len(await answer.json()) == 2
    told = received(probe)[-3:]
    assert [(event.batch, event.rpc, event.method, event.id) for event in told] == [
        (0, "request", "ping", 5), (1, "request", "ping", "5"), (2, "response", None, 9)
    ]  # fmt: skip
    assert [json.loads(event.message) for event in told] == batch
    asked = entries(probe, MessageReceived)[-3:]
    assert len({entry.context.exchange for entry in asked}) == 1
    assert [entry.cause for entry in entries(probe, MessageEmitted)[-2:]] == [entry.seq for entry in asked[:2]]
    assert received(probe)[0].batch is None


@pytest.mark.parametrize("body", ["[]", "[1, 2]", json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "ping"}] * 2000)])
async def test_what_is_no_batch_that_could_be_served_is_refused_and_recorded(body: str, probe: Probe) -> None:
    client = await probe.client("2025-03-26")
    before = len(received(probe))
    assert await send(client, body.encode()) == 400
    told = received(probe)[before:]
    values = json.loads(body)
    whole = not values or len(values) > 100
    assert [json.loads(event.message) for event in told] == ([values] if whole else values)
    refusal, message = entries(probe, MessageEmitted)[-1], entries(probe, MessageReceived)[-1]
    assert refusal.context.exchange == message.context.exchange
    assert (emitted(probe)[-1].rpc, emitted(probe)[-1].id) == ("error", None)


async def test_line_breaks_become_spaces_and_everything_else_stays(probe: Probe) -> None:
    client = await probe.client()
    body = b'{\r\n\t"jsonrpc" : "2.0",\n "id":1.0e0, "id": "\\u0041\\n\xc3\xa9",\r "method":"ping"  , "x":1.00 }\n'
    assert await send(client, body) == 200
    event = received(probe)[-1]
    assert event.message == body.replace(b"\r", b" ").replace(b"\n", b" ")
    assert len(event.message) == len(body)
    assert (event.rpc, event.id) == ("request", "A\né")


async def test_a_message_with_a_secret_is_written_anew(probe: Probe) -> None:
    client = await probe.client()
    assert await send(client, b'{ "jsonrpc":"2.0", "id":1, "method":"ping",\n"params":{"password":"hunter2"} }') == 200
    event = received(probe)[-1]
    assert b"hunter2" not in event.message
    assert b"\n" not in event.message


async def test_ids_too_long_are_not_noted_and_methods_are_clipped(probe: Probe) -> None:
    client = await probe.client()
    await send(client, json.dumps({"jsonrpc": "2.0", "id": "x" * 2000, "method": "m" * 500}).encode())
    event = received(probe)[-1]
    assert (event.rpc, event.id, event.method) == ("request", None, "m" * 80 + "…")
    assert len(event.message) > 2500


async def test_a_refusal_is_emitted_and_delivered(probe: Probe) -> None:
    client: Modern = probe.modern()
    async with client.post(client.request("tools/list", id="it"), {"mcp-method": "other"}) as answer:
        refused = await answer.json()
        assert answer.status == 400
    (event,) = emitted(probe)
    assert (event.rpc, event.id, json.loads(event.message)) == ("error", "it", refused)
    (delivered,) = probe.events("message.delivered")
    assert (delivered["exchange"], delivered["session"], delivered["stream"]) == (1, "m1", None)
    (shown,) = probe.events("message.emitted")
    assert (shown["exchange"], shown["session"], shown["stream"]) == (1, "m1", None)
    assert shown["cause"] == probe.events("message.received")[0]["seq"]


async def test_the_refusal_of_an_answer_does_not_look_like_an_answer(probe: Probe) -> None:
    """The id of an answer is the server's: the client may have a request of its own with that id."""
    client = await probe.client()
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "result": {}}
    headers = {**client.headers, "mcp-session-id": "gone"}
    for message, id in ((answer, None), ({"jsonrpc": "2.0", "id": 1, "method": "ping"}, 1)):
        async with exchange(client.app, "POST", client.target, headers, json.dumps(message).encode()) as refused:
            assert refused.status == 404
            assert (await refused.json()).get("id") == id

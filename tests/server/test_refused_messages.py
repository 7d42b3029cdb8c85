"""`message.refused` names the refusal and has the message as its cause; `http.response` names it too."""

from __future__ import annotations

import json
from typing import Any

from ..support.http import exchange
from ..support.legacy import HEADERS
from ..support.modern import Modern
from ..support.pipes import pipe
from ..support.probe import Probe


def refusals(probe: Probe) -> list[tuple[str, Any]]:
    """Each refusal of a message with the id of that message, found by the cause."""
    received = {event["seq"]: event for event in probe.events("message.received")}
    refused = probe.events("message.refused")
    assert all(event["exchange"] == received[event["cause"]]["exchange"] for event in refused)
    return [(event["refusal"], received[event["cause"]]["id"]) for event in refused]


async def post(probe: Probe, headers: dict[str, str], value: Any) -> int:
    async with exchange(probe.app, "POST", "/mcp", headers, json.dumps(value).encode()) as answer:
        await answer.body()
        return answer.status


async def test_a_request_whose_headers_do_not_fit_its_body(probe: Probe) -> None:
    request = probe.modern().request("tools/list", id="one")
    assert await post(probe, {**Modern.headers(request), "mcp-method": "tools/call"}, request) == 400
    assert refusals(probe) == [("HEADER_MISMATCH", "one")]
    (response,) = probe.events("http.response")
    (refused,) = probe.events("message.refused")
    assert response["refusal"] == "HEADER_MISMATCH"
    assert response["problem"] == refused["problem"]
    (emitted,) = probe.events("message.emitted")
    assert emitted["cause"] == refused["cause"], "the error answers the message"


async def test_of_a_batch_the_one_that_is_at_fault(probe: Probe) -> None:
    client = await probe.client("2025-03-26")
    batch = [client.request("ping", id="fine"), client.request("ping", id="twice"), client.request("ping", id="twice")]
    assert await post(probe, client.headers, batch) == 400
    assert refusals(probe) == [("INVALID_REQUEST", "twice")]


async def test_a_request_without_a_message_has_only_its_response(probe: Probe) -> None:
    assert await post(probe, {**HEADERS, "host": "evil.example"}, {}) == 403
    (response,) = probe.events("http.response")
    assert response["refusal"] == "FORBIDDEN_HOST"
    assert probe.events("message.received", "message.refused") == []


async def test_an_unknown_method_of_a_session_is_refused(probe: Probe) -> None:
    client = await probe.client()
    async with client.post(client.request("no/such/method", id="it")) as answer:
        await answer.body()
    assert refusals(probe) == [("METHOD_NOT_FOUND", "it")]


async def test_on_a_connection_that_carries_everything(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.say(client.modern("no/such/method", id="unknown"))
        assert "error" in await client.hear()
    assert refusals(probe) == [("METHOD_NOT_FOUND", "unknown")]
    (refused,) = probe.events("message.refused")
    (opened,) = probe.events("connection.opened")
    assert refused["connection"] == opened["connection"]

"""What the log and the record say of an answer: made, and taken by a socket. Those are different facts."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from ..support.calls import ERAS
from ..support.http import http_scope
from ..support.modern import VERSION, Modern
from ..support.probe import Probe

CALLS = {
    "answered at once": ("chatty", {}),
    "answered after a wait": ("simple_tool", {"delayMs": 5}),
    "answered by a task": ("pure_task", {}),
    "refused": ("simple_tool", {"delayMs": -1}),
}


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("what", CALLS)
async def test_an_answer_is_linked_to_its_call_and_delivered(what: str, revision: str, probe: Probe) -> None:
    name, arguments = CALLS[what]
    client = await probe.of(revision)
    as_task = {"task": {}} if name == "pure_task" and revision != VERSION else {}
    await client.tool(name, arguments, **as_task)
    record = probe.record()
    answers = [event for event in probe.events("message.emitted") if "id" in event["message"]]
    assert answers[-1]["call"] == record["call"]
    assert record["answer_delivered"]


async def broken_off(probe: Probe, client: Modern, request: dict[str, Any], reason: str | None) -> None:
    """Serve a request whose connection breaks while its answer is written; `reason` is the server's, if it has one."""
    body, told = json.dumps(request).encode(), []

    async def receive() -> dict[str, Any]:
        if not told:
            told.append(True)
            return {"type": "http.request", "body": body, "more_body": False}
        return {"type": "http.disconnect", **({} if reason is None else {"reason": reason})}

    async def send(event: Any) -> None:
        if event["type"] == "http.response.body":
            raise OSError("the peer has gone")

    await probe.app(http_scope("POST", client.target, client.headers(request)), receive, send)


@pytest.mark.parametrize(("reason", "by"), [(None, "client"), ("write timeout", "write timeout")])
async def test_an_answer_that_breaks_off_leaves_its_trace(reason: str | None, by: str, probe: Probe) -> None:
    client = probe.modern()
    await broken_off(probe, client, client.request("tools/call", {"name": "long_output", "arguments": {}}), reason)
    assert [event["by"] for event in probe.events("http.closed")] == [by]
    assert probe.events("message.delivered") == []
    record = probe.record()
    assert (record["outcome"], record["answered"], record["answer_delivered"]) == ("completed", True, False)


async def test_a_stream_whose_head_cannot_be_sent_ends_by_its_client(probe: Probe) -> None:
    client = probe.modern()
    request = client.request(
        "tools/call", {"name": "progress", "arguments": {"steps": 2, "step_ms": 1000}}, meta={"progressToken": "t"}
    )
    bodies = iter([{"type": "http.request", "body": json.dumps(request).encode(), "more_body": False}])

    async def receive() -> dict[str, Any]:
        for body in bodies:
            return body
        await trio.sleep_forever()
        raise AssertionError

    async def send(_event: Any) -> None:
        raise OSError("the peer has gone")

    await probe.app(http_scope("POST", client.target, client.headers(request)), receive, send)
    assert [event["by"] for event in probe.events("http.closed")] == ["client"]
    assert probe.record()["outcome"] == "disconnected"


@pytest.mark.parametrize(
    ("method", "params", "member"),
    [
        ("tools/call", {"name": "chatty", "arguments": None}, "params.arguments"),
        ("tools/list", {"cursor": None}, "params.cursor"),
        ("prompts/get", {"name": "x", "arguments": None}, "params.arguments"),
        ("subscriptions/listen", {"notifications": {"toolsListChanged": None}}, "notifications.toolsListChanged"),
    ],
)
async def test_null_is_no_value_of_a_parameter(method: str, params: dict[str, Any], member: str, probe: Probe) -> None:
    client = probe.modern()
    async with client.post(client.request(method, params)) as answer:
        error = (await answer.json())["error"]
    assert (answer.status, error["code"]) == (400, -32602)
    assert member in error["message"]

"""What the event log and the call records tell, and what they hide (product contract, section 8)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, content

from ..support.http import exchange, http_scope
from ..support.legacy import Legacy, RpcError
from ..support.probe import EPOCH, Probe, running
from ..support.shown import as_value, newest

# What is hidden.


async def test_no_secret_reaches_the_log_or_the_records(probe: Probe) -> None:
    client = await probe.client()
    client.target += "&api_key=hush-1"
    client.headers |= {"Authorization": "Bearer hush-2", "cookie": "a=hush-3", "x-api-key": "hush-4"}
    await client.tool("simple_tool", {"password": "hush-5"}, _meta={"progressToken": "seen-1", "secret": "hush-6"})
    async with client.post(
        {"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": [{"privateKey": "hush-7"}]}}
    ):
        pass
    everything = json.dumps([probe.engine.log.since(0, 10**6).entries, probe.record()], default=repr)
    assert "hush-" not in everything
    assert "seen-1" in everything
    (arguments,) = [event["message"]["params"]["arguments"] for event in received(probe, "tools/call")]
    assert arguments == {"password": "[redacted]"}


async def test_the_session_id_never_appears_whole(probe: Probe) -> None:
    client = await probe.client()
    async with client.get() as answer:
        await answer.first(1)
        await client.tool("simple_tool")
        await client.tool("pure_task", task={})
    await client.delete()
    async with client.post(client.request("ping")) as answer:
        assert answer.status == 404
    id = client.headers["mcp-session-id"]
    everything = json.dumps(probe.engine.log.since(0, 10**6).entries, default=repr)
    assert id not in everything
    assert f"{id[:8]}\\u2026" in everything or f"{id[:8]}…" in everything, "enough to compare"
    short = [dict(event["headers"])["mcp-session-id"] for event in probe.events("http.request")[1:]]
    assert set(short) == {f"{id[:8]}…"}


# What is recorded.


def received(probe: Probe, method: str) -> list[dict[str, Any]]:
    return [event for event in probe.events("message.received") if event["message"].get("method") == method]


async def test_a_request_is_recorded_as_received_and_its_answer_as_sent(probe: Probe) -> None:
    client = await probe.client()
    mark = probe.engine.log.last
    await client.call("ping", {"_meta": {"x": [1.5, "é", None]}}, id="seven")
    new = [event for event in probe.events(*KINDS) if event["seq"] > mark]
    assert [event["kind"] for event in new] == KINDS
    request, message_in, message_out, response, delivered = new
    assert (request["method"], request["path"], request["query"], request["client"]) == (
        "POST",
        "/mcp",
        "tools=all",
        "127.0.0.1:50000",
    )
    assert ["mcp-protocol-version", "2025-11-25"] in [list(pair) for pair in request["headers"]]
    assert message_in["message"] == {
        "jsonrpc": "2.0",
        "id": "seven",
        "method": "ping",
        "params": {"_meta": {"x": [1.5, "é", None]}},
    }
    assert message_out["message"] == {"jsonrpc": "2.0", "id": "seven", "result": {}}
    assert (response["status"], response["content_type"], response["session"]) == (200, "application/json", "s1")
    assert {event["exchange"] for event in (request, message_in, response, delivered)} == {request["exchange"]}


KINDS = ["http.request", "message.received", "message.emitted", "http.response", "message.delivered"]


async def test_events_are_numbered_from_1_and_tell_the_time(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await trio.sleep(100)
    await client.call("ping")
    entries = probe.engine.log.since(0, 10**6).entries
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert entries[-1].at - entries[0].at == pytest.approx(100, abs=1)
    assert entries[0].at == pytest.approx(EPOCH, abs=1)
    assert entries[-1].mono - entries[0].mono == pytest.approx(entries[-1].at - entries[0].at)


@pytest.mark.parametrize(("id", "token"), [(5, "5"), ("5", 5), (0, ""), ("", 0), (10**30, 10**30)])
async def test_ids_and_tokens_are_recorded_with_their_type(id: Any, token: Any, probe: Probe) -> None:
    client = await probe.client()
    request = client.request("tools/call", {"name": "simple_tool", "_meta": {"progressToken": token}}, id)
    async with client.post(request) as answer:
        await client.read(answer)
    (started,) = probe.events("call.started")
    record = probe.record()
    for name, kept in (("request_id", id), ("progress_token", token)):
        for place in (started, record):
            assert (type(place[name]), place[name]) == (type(kept), kept)
    assert record["progress_token_type"] == ("string" if isinstance(token, str) else "integer")


async def test_emission_and_delivery_are_different_facts(probe: Probe, autojump_clock: MockClock) -> None:
    """Messages made while nobody reads are emitted; they are delivered when the client has come back."""
    client = await probe.client()
    call = {"name": "progress", "arguments": {"steps": 4, "step_ms": 1000}, "_meta": {"progressToken": "t"}}
    async with client.post(client.request("tools/call", call)) as answer:
        events = await answer.first(2)
    await trio.sleep(10)
    assert (probe.record()["emitted"], probe.record()["delivered"]) == (4, 1)
    assert spans(probe, "p1") == [(1, 1)]
    async with client.get(last_event_id=events[-1].id) as answer:
        await client.read(answer)
    assert (probe.record()["emitted"], probe.record()["delivered"]) == (4, 4)
    assert spans(probe, "p1") == [(1, 1), (2, 5)]
    emitted = [event["position"] for event in probe.events("message.emitted") if event["stream"] == "p1"]
    assert emitted == [1, 2, 3, 4, 5]


def spans(probe: Probe, stream: str) -> list[tuple[int, int]]:
    delivered = [event for event in probe.events("message.delivered") if event["stream"] == stream]
    return [(event["first"], event["last"]) for event in delivered]


async def test_a_closed_stream_says_who_closed_it_and_how_much_it_carried(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    call = {"name": "progress", "arguments": {"steps": 3, "step_ms": 1000}, "_meta": {"progressToken": "t"}}
    async with client.post(client.request("tools/call", call)) as answer:
        await answer.first(3)
    await trio.sleep(1)
    async with client.get(last_event_id="p1-2") as answer:
        await client.read(answer)
    closed = [(event["by"], event["messages"]) for event in probe.events("http.closed")]
    assert closed == [("client", 2), ("end of stream", 2)]


async def test_a_client_that_goes_before_its_request_is_complete_is_recorded_as_gone(probe: Probe) -> None:
    client = await probe.client()

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        raise AssertionError("nobody is there")

    await probe.app(http_scope("POST", "/mcp", client.headers), receive, send)
    last = probe.events("http.request", "http.response", "http.closed")[-2:]
    assert [event["kind"] for event in last] == ["http.request", "http.closed"]
    assert last[0]["exchange"] == last[1]["exchange"]
    assert (last[1]["by"], last[1]["stream"], last[1]["messages"]) == ("client", None, 0)


async def test_who_leaves_while_being_refused_has_ended_the_exchange(probe: Probe) -> None:
    client = await probe.client()
    parts = [{"type": "http.request", "body": b"{", "more_body": False}]

    async def receive() -> dict[str, Any]:
        return parts.pop() if parts else {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        if event["type"] == "http.response.body":
            raise OSError("the client has gone")

    await probe.app(http_scope("POST", "/mcp", client.headers), receive, send)
    refused, closed = probe.events("http.response", "http.closed")[-2:]
    assert (refused["status"], closed["by"]) == (400, "client")


async def test_an_exchange_that_fails_is_recorded_as_given_up(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await probe.client()

    def receive(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(probe.engine.legacy, "receive", receive)
    with pytest.raises(ExceptionGroup):
        async with client.post(client.request("ping")):
            pass
    (closed,) = probe.events("http.closed")
    assert closed["by"] == "the server gave it up"


async def test_an_exchange_has_one_end(probe: Probe) -> None:
    """A response that is whole, a refusal, or the close of its stream."""
    client = await probe.client()
    await client.call("ping")
    async with exchange(probe.app, "POST", "/mcp", client.headers, b"{") as answer:
        assert answer.status == 400
    assert probe.events("http.response")[-1]["problem"].startswith("Parse error")
    await client.tool("simple_tool", {"delayMs": 0})
    assert [event["by"] for event in probe.events("http.closed")] == ["end of stream"]


async def test_a_session_is_recorded_with_what_the_client_said_about_itself(probe: Probe) -> None:
    await probe.client("2025-06-18", capabilities={"roots": {"listChanged": True}, "experimental": {"x": {}}})
    (opened,) = probe.events("session.opened")
    assert {
        name: opened[name] for name in ("session", "revision", "client_name", "client_version", "capabilities")
    } == {
        "session": "s1",
        "revision": "2025-06-18",
        "client_name": "test-client",
        "client_version": "1.2.3",
        "capabilities": {"roots": {"listChanged": True}, "experimental": {"x": {}}},
    }


# Call records.


async def crash(context: ToolContext) -> ToolResult:
    raise RuntimeError("a defect")


async def forever(context: ToolContext) -> ToolResult:
    await context.sleep(10_000)
    return content([])


BROKEN = [
    Toolset("broken", tuple(Tool(name=run.__name__, title="T", description="D", run=run) for run in (crash, forever)))
]


async def test_the_record_of_a_completed_call_tells_everything(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client("2025-06-18")
    await trio.sleep(50)
    arguments = {"steps": 4, "step_ms": 500}
    await client.call("tools/call", {"name": "progress", "arguments": arguments, "_meta": {"progressToken": "t"}}, "it")
    record = probe.record()
    result = record.pop("result")
    assert (result["structuredContent"]["steps"], result["content"][0]["type"]) == (4, "text")
    (started,) = probe.events("call.started")
    (asked,) = [event for event in probe.events("message.received") if event["method"] == "tools/call"]
    assert record == {
        "run": probe.engine.run,
        "id": f"{probe.engine.run}.c1",
        "seq": started["seq"],
        "exchange": asked["exchange"],
        "call": "c1",
        "tool": "progress",
        "toolset": "streaming",
        "arguments": arguments,
        "era": "legacy",
        "revision": "2025-06-18",
        "transport": "http",
        "session": "s1",
        "client_name": "test-client",
        "client_version": "1.2.3",
        "label": None,
        "request_id": "it",
        "progress_token": "t",
        "progress_token_type": "string",
        "task": None,
        "started_at": pytest.approx(EPOCH + 50, abs=1),
        "outcome": "completed",
        "done": True,
        "steps_done": 4,
        "steps_total": 4,
        "emitted": 4,
        "delivered": 4,
        "coalesced": 0,
        "duration_ms": pytest.approx(2000, abs=1),
        "cancelled_by": None,
        "cancelled_how": None,
        "cancel_reason": None,
        "cancel_latency_ms": None,
        "answered": True,
        "answer_delivered": True,
    }


async def test_each_outcome_has_its_name(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    async with running(toolsets=BROKEN) as probe:
        client = await probe.client()
        outcomes = {}
        with pytest.raises(RpcError, match=r"^Internal error$"):
            await client.tool("crash")
        outcomes["crash"] = probe.record()
        assert (await client.tool("crash", {"x": 1}))["isError"]
        outcomes["argument"] = probe.record()
        assert (await client.tool("forever"))["isError"]
        outcomes["deadline"] = probe.record()
        async with client.post(client.request("tools/call", {"name": "forever"}, "it")) as answer:
            await client.cancel("it", "why not")
            await client.read(answer)
        outcomes["cancelled"] = probe.record()
    fields = ("outcome", "done", "answered", "cancelled_by", "cancel_reason")
    assert {name: tuple(record[field] for field in fields) for name, record in outcomes.items()} == {
        "crash": ("protocol_error", False, True, None, None),
        "argument": ("tool_error", False, True, None, None),
        "deadline": ("timed_out", False, True, "deadline", None),
        "cancelled": ("cancelled", False, False, "notification", "why not"),
    }
    assert "a defect" in caplog.text, "the operator sees it, the client does not"


async def test_a_call_that_runs_has_no_outcome_yet(probe: Probe) -> None:
    client = await probe.client()
    async with client.post(client.request("tools/call", {"name": "simple_tool", "arguments": {"delayMs": 5000}})):
        assert (probe.record()["outcome"], probe.record()["duration_ms"]) == (None, None)


async def test_a_call_of_an_unknown_tool_leaves_a_record(probe: Probe) -> None:
    client = await probe.client()
    with pytest.raises(RpcError):
        await client.tool("nope", {"a": 1})
    record = probe.record()
    assert (record["tool"], record["toolset"], record["arguments"]) == ("nope", "", {"a": 1})
    assert (record["outcome"], record["done"], record["answered"]) == ("protocol_error", False, True)
    assert record["result"]["error"]["code"] == -32602


async def test_a_modern_call_of_an_unknown_tool_leaves_a_record(probe: Probe) -> None:
    with pytest.raises(RpcError):
        await probe.modern().tool("x" * 200)
    record = probe.record()
    assert (record["tool"], record["toolset"], record["outcome"]) == ("x" * 80 + "…", "", "protocol_error")


async def test_records_keep_the_newest_calls_and_the_beginning_of_large_arguments() -> None:
    async with running(call_records=50, record_argument_bytes=256) as probe:
        client = await probe.client(tools="conformance")
        for number in range(55):
            await client.tool("test_simple_text", {"n": number})
        kept = [as_value(record)["arguments"]["n"] for record in newest(probe.engine.records, 100)]
        assert kept == list(range(54, 4, -1))
        await client.tool("test_simple_text", {"x": "y" * 1000})
        assert probe.record()["arguments"] == {"cut": '{"x":"' + "y" * 250, "bytes": 1008}


async def test_the_memory_of_the_log_is_bounded_whatever_clients_send() -> None:
    async with running(event_log_bytes=1024 * 1024) as probe:
        client = Legacy(probe.app, "/mcp")
        await client.initialize()
        for _ in range(30):
            await client.call("ping", {"x": "y" * 100_000})
        page = probe.engine.log.since(0, 10**6)
        assert page.gap is not None
        assert sum(len(getattr(entry.fact, "message", b"")) for entry in page.entries) <= 1024 * 1024

"""What the log tells of a response that refuses: its headers, a name for the reason, and bytes that are no JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probe.log.redaction import SHOWN_BYTES, shown_bytes

from ..support.http import exchange, http_scope
from ..support.legacy import HEADERS
from ..support.modern import Modern
from ..support.pipes import pipe
from ..support.probe import Probe, running
from ..support.until import until


async def post(probe: Probe, body: bytes, headers: dict[str, str] | None = None) -> int:
    async with exchange(probe.app, "POST", "/mcp", {**HEADERS, **(headers or {})}, body) as answer:
        await answer.body()
        return answer.status


def last(probe: Probe, kind: str) -> dict[str, Any]:
    return probe.events(kind)[-1]


# -- http.response.headers


async def test_a_response_tells_what_its_headers_asked_of_the_client(probe: Probe) -> None:
    client = await probe.client()
    opened = next(event for event in probe.events("http.response") if event["status"] == 200)
    id = client.headers["mcp-session-id"]
    assert opened["headers"] == [["mcp-session-id", f"{id[:8]}…"]]
    async with exchange(probe.app, "PUT", "/mcp", client.headers) as answer:
        assert answer.status == 405
    assert last(probe, "http.response")["headers"] == [["allow", "POST, GET, DELETE"]]
    await client.call("ping")
    assert last(probe, "http.response")["headers"] == []


async def test_a_busy_server_s_retry_after_is_told() -> None:
    async with running(max_sessions=1) as probe:
        await probe.client()
        body = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}}
        value = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": body}
        assert await post(probe, json.dumps(value).encode()) == 503
        response = last(probe, "http.response")
        assert (response["headers"], response["refusal"]) == ([["retry-after", "60"]], "BUSY")


async def test_a_tool_host_without_the_secret_is_told_how_to_give_it() -> None:
    async with running(toolhost_secret="s" * 20) as probe:
        scope = {**http_scope("GET", "/toolhost", {"host": "127.0.0.1"}), "type": "websocket", "subprotocols": []}
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        async def send(event: dict[str, Any]) -> None:
            sent.append(event)

        await probe.app(scope, receive, send)
        assert sent[0]["status"] == 401
        assert last(probe, "http.response")["headers"] == [["www-authenticate", 'Bearer realm="toolhost"']]


# -- a name for each refusal


def refused(probe: Probe) -> list[tuple[str, Any]]:
    """The refusals of messages, each with the id of its message, found by the cause."""
    received = {event["seq"]: event for event in probe.events("message.received")}
    events = probe.events("message.refused")
    for event in events:
        message = received[event["cause"]]
        assert (event["exchange"], event["connection"]) == (message["exchange"], message["connection"])
    return [(event["refusal"], received[event["cause"]]["id"]) for event in events]


REFUSED: list[tuple[str, Any, str]] = [
    ("2025-11-25", {"method": "nope"}, "METHOD_NOT_FOUND"),
    ("2025-11-25", {"method": "tools/call", "params": {}}, "INVALID_PARAMS"),
    ("2025-11-25", {"method": 5}, "INVALID_REQUEST"),
    ("2026-07-28", {"method": "nope"}, "METHOD_NOT_FOUND"),
    ("2026-07-28", {"method": "tools/call", "params": {}}, "INVALID_PARAMS"),
]


def message_of(client: Any, revision: str, said: dict[str, Any]) -> dict[str, Any]:
    make = client.modern if revision == "2026-07-28" else client.legacy
    return {**make("ping", said.get("params", {})), "method": said["method"]}


@pytest.mark.parametrize(("revision", "said", "refusal"), REFUSED)
async def test_a_refused_message_has_the_same_name_on_a_pipe(
    revision: str, said: dict[str, Any], refusal: str, probe: Probe
) -> None:
    async with pipe(probe.engine) as client:
        if revision != "2026-07-28":
            await client.initialize(revision)
        message = message_of(client, revision, said)
        await client.send_bytes(json.dumps(message).encode() + b"\n")
        await until(lambda: probe.events("message.refused"))
        assert refused(probe) == [(refusal, message["id"])]


async def test_a_refused_message_has_a_name_over_http_in_both_eras(probe: Probe) -> None:
    legacy = await probe.client()
    for said in ({"method": "nope"}, {"method": "tools/call", "params": {}}, {"method": 5}):
        async with legacy.post({"jsonrpc": "2.0", "id": 9, **said}) as answer:
            await answer.body()
    assert refused(probe) == [("METHOD_NOT_FOUND", 9), ("INVALID_PARAMS", 9), ("INVALID_REQUEST", 9)]
    modern: Modern = probe.modern()
    message = modern.request("nope")
    async with modern.post(message) as answer:
        assert answer.status == 404
    assert refused(probe)[-1] == ("METHOD_NOT_FOUND", message["id"])
    assert last(probe, "http.response")["refusal"] == "METHOD_NOT_FOUND"


async def test_headers_that_do_not_fit_the_body_refuse_the_message(probe: Probe) -> None:
    request = probe.modern().request("tools/list", id="one")
    assert await post(probe, json.dumps(request).encode(), {**Modern.headers(request), "mcp-method": "x"}) == 400
    assert refused(probe) == [("HEADER_MISMATCH", "one")]
    response = last(probe, "http.response")
    assert (response["refusal"], response["problem"]) == (
        "HEADER_MISMATCH",
        last(probe, "message.refused")["problem"],
    )


async def test_of_a_batch_the_message_at_fault_is_refused(probe: Probe) -> None:
    client = await probe.client("2025-03-26")
    batch = [client.request("ping", id=id) for id in ("fine", "twice", "twice")]
    assert await post(probe, json.dumps(batch).encode(), client.headers) == 400
    assert refused(probe) == [("INVALID_REQUEST", "twice")]


async def test_a_request_refused_before_its_message_has_only_a_response(probe: Probe) -> None:
    assert await post(probe, b"{}", {"host": "evil.example"}) == 403
    assert last(probe, "http.response")["refusal"] == "FORBIDDEN_HOST"
    assert probe.events("message.received", "message.refused") == []


async def test_a_method_that_fails_has_refused_nothing(probe: Probe) -> None:
    client = await probe.client()
    async with client.post(client.request("prompts/get", {"name": "no such prompt"})) as answer:
        assert "error" in await answer.json()
    assert refused(probe) == []


async def test_a_second_initialize_and_a_bad_one_are_refused(probe: Probe) -> None:
    client = await probe.client()
    async with client.post(client.request("initialize", {"protocolVersion": 5})) as answer:
        await answer.body()
    assert await post(probe, b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}') == 200
    assert [name for name, _ in refused(probe)] == ["INVALID_PARAMS", "INVALID_PARAMS"]


# -- what is no JSON


@pytest.mark.parametrize(
    ("body", "fault"),
    [(b"{", "syntax"), (b'"\xff"', "encoding"), (b"[" * 300, "nesting"), (b"[1e400]", "number"), (b"", "syntax")],
)
async def test_bytes_over_http_are_kept_with_what_is_wrong_with_them(body: bytes, fault: str, probe: Probe) -> None:
    assert await post(probe, body, {"content-length": str(len(body))}) == 400
    event = last(probe, "message.unreadable")
    assert (event["fault"], event["head"], event["size"], event["declared"]) == (
        fault, shown_bytes(body), len(body), len(body)
    )  # fmt: skip
    assert event["cause"] == probe.events("http.request")[-1]["seq"]
    assert probe.events("message.received") == []


async def test_a_body_that_is_too_large_is_kept_as_far_as_it_was_read() -> None:
    async with running(max_body_bytes=4096) as probe:
        assert await post(probe, b"x" * 5000) == 413
        event = last(probe, "message.unreadable")
        assert (event["fault"], event["size"], event["declared"]) == ("size", 5000, None)
        assert await post(probe, b"", {"content-length": "9999"}) == 413
        event = last(probe, "message.unreadable")
        assert (event["fault"], event["head"], event["size"], event["declared"]) == ("size", "", 0, 9999)


async def test_a_body_that_breaks_off_is_no_fault_of_its_json(probe: Probe) -> None:
    """A proxy or a dying client cuts it short: that must be told from a client that writes no JSON."""
    parts: list[dict[str, Any]] = [
        {"type": "http.request", "body": b'{"jsonrpc"', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return parts.pop(0)

    async def send(event: dict[str, Any]) -> None:
        pytest.fail("nobody is there")

    await probe.app(http_scope("POST", "/mcp", {**HEADERS, "content-length": "500"}), receive, send)
    event = last(probe, "message.unreadable")
    assert (event["fault"], event["head"], event["size"], event["declared"]) == ("incomplete", '{"jsonrpc"', 10, 500)
    assert last(probe, "http.closed")["by"] == "client"


async def test_a_line_that_is_no_json_is_kept_and_one_too_long_has_its_beginning() -> None:
    async with running(max_body_bytes=4096) as probe, pipe(probe.engine) as client:
        await client.send_bytes(b"\xef\xbb\xbf{}\n")
        await client.send_bytes(b"y" * 5000 + b"\n")
        for _ in range(2):
            await client.hear()
        bom, large = probe.events("message.unreadable")
        assert (bom["fault"], bom["head"], bom["size"], bom["declared"]) == ("syntax", r"\xef\xbb\xbf{}", 5, None)
        assert (large["fault"], large["head"]) == ("size", "y" * SHOWN_BYTES)
        assert 4096 < large["size"] <= 5001
        opened = probe.events("connection.opened")[0]
        assert {bom["cause"], large["cause"]} == {opened["seq"]}
        assert bom["connection"] == large["connection"] == opened["connection"]
        assert bom["exchange"] != large["exchange"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"a\\b": 1}', r'{"a\x5cb": 1}'),
        ("é\n\t\x7f".encode(), r"\xc3\xa9\x0a\x09\x7f"),
        (b'{"progressToken":1,"tokens":2,"my_secret":3', '{"progressToken":1,"tokens":2,"my_secret":3'),
        (b'{"params":{"apiKey": "hunter2"}, "rest"', '{"params":{"apiKey[redacted]'),
        (b"{'PASSWORD': 'hunter2'", "{'PASSWORD[redacted]"),
        (b"POST / HTTP/1.1\r\nAuthorization: Basic hunter2", r"POST / HTTP/1.1\x0d\x0aAuthorization[redacted]"),
        (b"mcp-session-id: hunter2", "mcp-session-id[redacted]"),
        ('{"secret":"hunter2"'.encode("utf-16-le"), "[redacted]"),
        (b"x" * 3000, "x" * 2048),
    ],
)
def test_what_is_shown_is_ascii_and_ends_before_a_secret(body: bytes, text: str) -> None:
    assert shown_bytes(body) == text

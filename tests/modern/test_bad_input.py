"""What a modern client gets for each kind of wrong input, as one table, and that the server goes on unharmed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from probe.wire.v2026.registry import REQUESTS

from ..legacy.test_bad_input import NOT_JSON
from ..support.http import exchange
from ..support.modern import PREFIX, TASKS, VERSION, Modern
from ..support.probe import Probe, running
from ..support.schemas import schema

INVALID_REQUEST, INVALID_PARAMS = -32600, -32602


class Got(NamedTuple):
    """A refusal: what was said, in how many words."""

    status: int
    code: int
    message: str
    id: Any


async def refused(client: Modern, body: bytes, headers: Mapping[str, str]) -> Got:
    """Post bytes and read an error that fits the schema."""
    with trio.fail_after(10):
        async with exchange(client.app, "POST", client.target, headers, body) as answer:
            assert answer.headers["content-type"] == "application/json"
            message = await answer.json()
    schema(VERSION).check_message(message)
    error = message["error"]
    assert len(error["message"]) < 1000, "a sentence, not a dump"
    return Got(answer.status, error["code"], error["message"], message.get("id"))


async def check_unharmed(probe: Probe) -> None:
    """Nothing is left over, no client mistake was a 5xx, and the next client is served."""
    assert (list(probe.engine.sessions), probe.engine.modern.running) == ([], set())
    assert len(probe.engine.modern.listeners) == 0
    assert all(event["status"] < 500 for event in probe.events("http.response"))
    assert (await probe.modern().tool("chatty"))["resultType"] == "complete"


# The body.


@pytest.mark.proves("2026-07-28/transports/1", "2026-07-28/basic/2", "2026-07-28/streamable-http/9")
@pytest.mark.parametrize(("what", "body", "part"), NOT_JSON, ids=[row[0] for row in NOT_JSON])
async def test_what_is_no_json_is_a_parse_error(what: str, body: bytes, part: str, probe: Probe) -> None:
    client = probe.modern()
    got = await refused(client, body, Modern.headers(client.request("tools/list")))
    assert (got.status, got.code, got.id) == (400, -32700, None)
    assert part in got.message
    await check_unharmed(probe)


async def test_a_body_may_be_as_large_as_the_limit_and_not_larger() -> None:
    async with running(max_body_bytes=2048) as probe:
        client = probe.modern()
        message = client.request("tools/list", {"unknown": ""})
        message["params"]["unknown"] = "x" * (2048 - len(json.dumps(message)))
        headers, body = Modern.headers(message), json.dumps(message).encode()
        async with exchange(probe.app, "POST", "/mcp", headers, body) as answer:
            assert answer.status == 200
        for more in (1, 5000):
            got = await refused(client, body + b" " * more, headers)
            assert (got.status, got.code) == (413, INVALID_REQUEST)
            assert "max_body_bytes" in got.message
        await check_unharmed(probe)


HUGE: Mapping[str, dict[str, Any]] = {
    "a name": {"name": "x" * 1_000_000},
    "arguments": {"name": "chatty", "arguments": {str(n): n for n in range(100_000)}},
    "an argument": {"name": "simple_tool", "arguments": {"delayMs": "9" * 1_000_000}},
    "an integer": {"name": "simple_tool", "arguments": {"delayMs": 10**4000}},
    "answers": {"name": "list_roots", "inputResponses": {str(n): {} for n in range(100_000)}},
    "an answer": {"name": "list_roots", "inputResponses": {"roots": {"roots": [5] * 100_000}}},
    "a state": {"name": "list_roots", "requestState": "A" * 1_000_000},
}


@pytest.mark.parametrize("what", HUGE)
async def test_what_is_huge_is_answered_by_a_sentence(what: str, probe: Probe) -> None:
    client = probe.modern()
    message = client.request("tools/call", HUGE[what])
    async with client.post(message) as answer:
        body = await answer.body()
        assert answer.status in (200, 400)
    schema(VERSION).check_message(json.loads(body))
    assert len(body) < 2000
    await check_unharmed(probe)


# Anything at all.

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KNOWN = [
    "chatty", "simple_tool", "routed_tool", "ask_several", "pure_task", "slow_compute", "recipe", "probe://text",
    "probe://greeting", "headlines", VERSION, "v9",
]  # fmt: skip
MEMBERS = [
    "name", "uri", "arguments", "taskId", "inputResponses", "requestState", "cursor", "ref", "argument", "context",
    "notifications", "task",
]  # fmt: skip
LIKELY = VALUES | st.sampled_from(KNOWN)
METAS = st.fixed_dictionaries(
    {
        PREFIX + "protocolVersion": st.just(VERSION) | st.just(VERSION) | LIKELY,
        PREFIX + "clientCapabilities": st.sampled_from([{}, {"extensions": {TASKS: {}}}, {"elicitation": {}}]) | VALUES,
    },
    optional={
        PREFIX + "clientInfo": VALUES,
        PREFIX + "logLevel": st.sampled_from(["debug", "emergency"]) | VALUES,
        "progressToken": VALUES,
        "x/y": VALUES,
    },
)
PARAMS = st.fixed_dictionaries({"_meta": METAS | METAS | METAS | VALUES}, optional=dict.fromkeys(MEMBERS, LIKELY))
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": st.sampled_from([*REQUESTS, "tools/call", "initialize", "notifications/x"])},
    optional={"id": st.integers() | st.text(max_size=3) | VALUES, "params": PARAMS | PARAMS | VALUES},
)
HEADER_VALUES = st.text(st.characters(min_codepoint=0, max_codepoint=255), max_size=8) | st.sampled_from(
    [*KNOWN, "=?base64?dA==?=", "=?base64?", *REQUESTS]
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from([
            "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region", "mcp-session-id", "last-event-id",
            "x-other",
        ]),
        HEADER_VALUES,
    ),
    max_size=2,
)  # fmt: skip


def due(body: Any) -> list[tuple[str, str]]:
    """Headers that mirror a body as far as it has something to mirror."""
    lines = [("host", "127.0.0.1:8000"), ("content-type", "application/json"), ("accept", "*/*")]
    lines.append(("mcp-protocol-version", VERSION))
    if isinstance(body, dict) and isinstance(body.get("method"), str):
        lines.append(("mcp-method", body["method"]))
        params = body["params"] if isinstance(body.get("params"), dict) else {}
        named = [params[key] for key in ("name", "uri", "taskId") if isinstance(params.get(key), str)]
        lines += [("mcp-name", name) for name in named[:1] if name.isascii() and name.isprintable()]
    return lines


# Each example is a whole engine with several messages: half as many as the profile has take half a minute.
@settings(max_examples=settings().max_examples // 2)
@given(bodies=st.lists(st.tuples(MESSAGES | MESSAGES | VALUES, HEADERS), max_size=8), draw=st.data())
async def test_no_message_and_no_header_whatever_is_answered_by_a_5xx_or_beside_the_schema(
    bodies: list[tuple[Any, list[tuple[str, str]]]], draw: st.DataObject
) -> None:
    async with running() as probe:
        with trio.fail_after(30):
            for body, headers in bodies:
                replaced = {name for name, _ in headers} if draw.draw(st.booleans()) else set()
                kept = [line for line in due(body) if line[0] not in replaced]
                await send_anything(probe, body, [*kept, *headers])
        await check_unharmed(probe)


async def send_anything(probe: Probe, body: Any, headers: list[tuple[str, str]]) -> None:
    """Post a value and read what comes at once: a call may go on for seconds, a subscription for ever."""
    async with exchange(probe.app, "POST", "/mcp?tools=all", headers, json.dumps(body).encode()) as answer:
        assert answer.status < 500 or answer.status == 503
        if answer.headers.get("content-type") == "application/json":
            message = await answer.json()
            method = body.get("method") if isinstance(body, dict) else None
            typed = message.get("result", {}).get("resultType") == "complete"
            schema(VERSION).check_message(message, method=method if typed and method in OWN else None)
            if "id" in message:
                assert (message["id"], type(message["id"])) == (body["id"], type(body["id"]))


OWN = [method for method in REQUESTS if not method.startswith(("tasks/", "server/"))]


@settings(max_examples=settings().max_examples // 2)
@given(body=st.binary(max_size=50))
async def test_no_bytes_whatever_are_answered_by_a_5xx(body: bytes) -> None:
    async with running() as probe:
        headers = Modern.headers({"method": "tools/list"})
        async with exchange(probe.app, "POST", "/mcp", headers, body) as answer:
            assert answer.status == 400
        await check_unharmed(probe)

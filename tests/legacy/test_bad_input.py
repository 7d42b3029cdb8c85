"""What a client gets for each kind of wrong input, as one table, and that the server goes on unharmed."""

from __future__ import annotations

import gc
import json
import re
from gzip import compress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from probe.server.endpoints.exchange import HttpExchange
from probe.wire.errors import Code, Refusal

from ..support.calls import misuses
from ..support.http import exchange
from ..support.legacy import HEADERS, Legacy, RpcError
from ..support.modern import Modern
from ..support.probe import Probe, running
from ..support.schemas import schema

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
DOCUMENT = Path(__file__).parents[2] / "docs" / "errors.md"

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602


class Bad(NamedTuple):
    """A request body and what is said about it. `id` is the echoed one; None: the answer has no id."""

    what: str
    body: bytes
    status: int
    code: int
    part: str
    id: Any = None


def ping(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", **members}).encode()


def request(method: Any, params: Any, id: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def call(**params: Any) -> bytes:
    return request("tools/call", params)


def nested(levels: int) -> bytes:
    """A ping of so many levels: the message and its params are two of them."""
    arrays = levels - 2
    return b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * arrays + b"]" * arrays + b"}}"


NOT_JSON = [
    ("an empty body", b"", "EOF"),
    ("no JSON", b"hello", "Parse error"),
    ("half a message", ping()[:-5], "EOF"),
    ("two messages", ping() + ping(), "trailing characters"),
    ("a byte order mark", b"\xef\xbb\xbf" + ping(), "Parse error"),
    ("UTF-16", ping().decode().encode("utf-16"), "Parse error"),
    ("bad UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', "Parse error"),
    ("overlong UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xc0\xaf"}', "Parse error"),
    ("UTF-8 of a surrogate", b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}', "Parse error"),
    ("an escaped lone surrogate", b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', "Parse error"),
    ("a raw control character", b'{"jsonrpc":"2.0","id":1,"method":"a\nb"}', "control character"),
    ("NaN", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', "Parse error"),
    ("Infinity", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}', "Parse error"),
    ("1e400", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[1e400]}}', "out of range"),
    ("-1E+0999", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-1E+0999}}', "out of range"),
    (
        "400 digits and a point",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"9" * 400 + b".5}",
        "Parse error",
    ),
    ("a number of 5000 digits", b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', "out of range"),
    ("a comment", b'{"jsonrpc":"2.0",/**/"id":1,"method":"ping"}', "Parse error"),
    ("65 levels", nested(65), "deeper than 64 levels"),
    ("100000 levels", b"[" * 100_000, "Parse error"),
]

NO_MESSAGE = [
    Bad("null", b"null", 400, INVALID_REQUEST, "got null"),
    Bad("a number", b"5", 400, INVALID_REQUEST, "got an integer"),
    Bad("a string", b'"ping"', 400, INVALID_REQUEST, "got a string"),
    Bad("an empty object", b"{}", 400, INVALID_REQUEST, "jsonrpc"),
    Bad("no jsonrpc", b'{"id":1,"method":"ping"}', 400, INVALID_REQUEST, "jsonrpc", 1),
    Bad("jsonrpc as a number", ping(jsonrpc=2.0), 400, INVALID_REQUEST, "jsonrpc", 1),
    Bad("JSON-RPC 1.0", ping(jsonrpc="1.0"), 400, INVALID_REQUEST, "jsonrpc", 1),
    Bad("no method", b'{"jsonrpc":"2.0","id":"a","params":{}}', 400, INVALID_REQUEST, "method", "a"),
    Bad("an answer without a result", b'{"jsonrpc":"2.0","id":"a"}', 400, INVALID_REQUEST, "method"),
    Bad("method as a number", ping(method=5), 400, INVALID_REQUEST, "method", 1),
    Bad("an empty method", ping(method=""), 400, INVALID_REQUEST, "method", 1),
    Bad("id null", ping(id=None), 400, INVALID_REQUEST, "got null"),
    Bad("id true", ping(id=True), 400, INVALID_REQUEST, "got a boolean"),
    Bad("id 1.0", ping(id=1.0), 400, INVALID_REQUEST, "got a number"),
    Bad("id as an object", ping(id={}), 400, INVALID_REQUEST, "got an object"),
    Bad("an id of 257 characters", ping(id="x" * 257), 400, INVALID_REQUEST, "max_id_length"),
    Bad("params as an array", ping(params=[]), 400, INVALID_REQUEST, "got an array", 1),
    Bad("params null", ping(params=None), 400, INVALID_REQUEST, "got null", 1),
    Bad(
        "result and error",
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}',
        400,
        -32600,
        "either",
    ),
    Bad("result as an array", b'{"jsonrpc":"2.0","id":1,"result":[]}', 400, INVALID_REQUEST, "got an array"),
    Bad("result without id", b'{"jsonrpc":"2.0","result":{}}', 400, INVALID_REQUEST, '"id"'),
    Bad("error without code", b'{"jsonrpc":"2.0","id":1,"error":{"message":""}}', 400, INVALID_REQUEST, '"code"'),
    Bad(
        "error code 1.5", b'{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}', 400, INVALID_REQUEST, '"code"'
    ),
    Bad("a batch", b"[" + ping() + b"]", 400, INVALID_REQUEST, "no batches"),
]

BAD_REQUESTS = [
    Bad("an unknown method", request("no/such", {}), 200, METHOD_NOT_FOUND, "no/such", 1),
    Bad("another case", request("Ping", {}), 200, METHOD_NOT_FOUND, "Ping", 1),
    Bad("a method of the server", request("sampling/createMessage", {}), 200, METHOD_NOT_FOUND, "sampling", 1),
    Bad(
        "a notification's method with an id", request("notifications/initialized", {}), 200, METHOD_NOT_FOUND, "init", 1
    ),
    Bad("initialize again", request("initialize", {}), 200, INVALID_PARAMS, "protocolVersion", 1),
    Bad("_meta as an array", ping(params={"_meta": []}), 200, INVALID_PARAMS, "params._meta must be an object", 1),
    Bad("no tool name", call(), 200, INVALID_PARAMS, "params.name is required", 1),
    Bad("a tool name as a number", call(name=5), 200, INVALID_PARAMS, "params.name must be a string", 1),
    Bad("an unknown tool", call(name="nope"), 200, INVALID_PARAMS, "Unknown tool: nope", 1),
    Bad("a tool of another selection", call(name="chatty"), 200, INVALID_PARAMS, "Unknown tool: chatty", 1),
    Bad("arguments as an array", call(name="simple_tool", arguments=[]), 200, INVALID_PARAMS, "must be an object", 1),
    Bad("task as an array", call(name="pure_task", task=[]), 200, INVALID_PARAMS, "params.task must be an object", 1),
    Bad("task null", call(name="pure_task", task=None), 200, INVALID_PARAMS, "params.task must be an object", 1),
    Bad("ttl 1.5", call(name="pure_task", task={"ttl": 1.5}), 200, INVALID_PARAMS, "ttl must be an integer", 1),
    Bad("a negative ttl", call(name="pure_task", task={"ttl": -1}), 200, INVALID_PARAMS, "at least 0", 1),
    Bad("a task tool without task", call(name="pure_task"), 200, METHOD_NOT_FOUND, "only runs as a task", 1),
    Bad("task for a plain tool", call(name="simple_tool", task={}), 200, METHOD_NOT_FOUND, "cannot run as a task", 1),
    *(
        Bad(f"level {level!r}", request("logging/setLevel", {"level": level}), 200, INVALID_PARAMS, "params.level", 1)
        for level in ["loud", "INFO", "", 3, None]
    ),
    *(
        Bad(f"cursor {cursor!r}", request("tools/list", {"cursor": cursor}), 200, INVALID_PARAMS, "params.cursor", 1)
        for cursor in ["", "0", "5", "nonsense", "dG9vbHM6MA", "dG9vbHM6LTE", "cHJvbXB0czoy", "dG9vbHM6OTk5", "é", 5]
    ),
    Bad("no uri", request("resources/read", {}), 200, INVALID_PARAMS, "params.uri is required", 1),
    Bad("an unknown task", request("tasks/get", {"taskId": "x"}), 200, INVALID_PARAMS, "Task not found: x", 1),
    Bad(
        "Python's spelling of a member",
        request("tasks/get", {"task_id": "x"}),
        200,
        -32602,
        "params.taskId is required",
        1,
    ),
]

BAD_BODIES = [
    *(Bad(what, body, 400, PARSE_ERROR, part) for what, body, part in NOT_JSON),
    *NO_MESSAGE,
    *BAD_REQUESTS,
]


async def check_answer(
    client: Legacy, bad: Bad, headers: dict[str, str] | list[tuple[str, str]], most: int = 1000
) -> None:
    with trio.fail_after(5):
        async with exchange(client.app, "POST", client.target, headers, bad.body) as answer:
            assert answer.headers["content-type"] == "application/json"
            message = await answer.json()
    schema(client.revision).check_message(message)
    assert answer.status == bad.status
    assert message["error"]["code"] == bad.code
    assert bad.part in message["error"]["message"]
    # The longest lists the name of every tool.
    assert len(message["error"]["message"]) < 2000, "a sentence, not a dump"
    assert (type(message.get("id")), message.get("id")) == (type(bad.id), bad.id)


async def check_unharmed(probe: Probe, *clients: Legacy) -> None:
    for client in clients:
        await client.call("ping")
    assert len(list(probe.engine.sessions)) == len(clients), "nothing was allocated"
    assert all(event["status"] < 500 for event in probe.events("http.response")), "a client mistake is no 5xx"


@pytest.mark.proves("2025-11-25/transports/1", "2025-11-25/transports/9", "2025-11-25/transports/11")
@pytest.mark.parametrize("bad", BAD_BODIES, ids=lambda bad: bad.what)
async def test_each_bad_body_has_its_answer_and_harms_nobody(bad: Bad, probe: Probe) -> None:
    client, other = await probe.client(tools="probe"), await probe.client()
    await check_answer(client, bad, client.headers)
    await check_unharmed(probe, client, other)


BAD_HEADERS = [
    ("no Content-Type", {"content-type": None}, 415, "Content-Type"),
    ("a form", {"content-type": "application/x-www-form-urlencoded"}, 415, "Content-Type"),
    ("plain text", {"content-type": "text/plain"}, 415, "Content-Type"),
    ("another JSON", {"content-type": "application/json-patch+json"}, 415, "Content-Type"),
    ("Latin-1", {"content-type": "application/json; charset=iso-8859-1"}, 415, "UTF-8"),
    ("gzip", {"content-encoding": "gzip"}, 415, "Content-Encoding"),
    ("no Accept", {"accept": None}, 406, "Accept"),
    ("JSON only", {"accept": "application/json"}, 406, "Accept"),
    ("events only", {"accept": "text/event-stream"}, 406, "Accept"),
    ("events refused", {"accept": "application/json, text/event-stream;q=0"}, 406, "Accept"),
    ("a weight that is none", {"accept": "application/json, text/event-stream;q=high"}, 406, "Accept"),
    ("an unknown revision", {"mcp-protocol-version": "2024-11-05"}, 400, "2025-11-25"),
    ("a revision that is none", {"mcp-protocol-version": "latest"}, 400, "'latest'"),
    ("an empty revision", {"mcp-protocol-version": ""}, 400, "MCP-Protocol-Version"),
    ("no session", {"mcp-session-id": None}, 400, "Mcp-Session-Id"),
    ("an unknown session", {"mcp-session-id": "0" * 43}, 404, "Session not found"),
    ("an empty session", {"mcp-session-id": ""}, 404, "Session not found"),
    ("a session id with odd bytes", {"mcp-session-id": "\x80\xff; drop"}, 404, "Session not found"),
]


@pytest.mark.proves("2025-11-25/transports/29", "2025-11-25/transports/32")
@pytest.mark.parametrize(
    ("headers", "status", "part"), [row[1:] for row in BAD_HEADERS], ids=[row[0] for row in BAD_HEADERS]
)
async def test_each_bad_header_has_its_answer_and_harms_nobody(
    headers: dict[str, str | None], status: int, part: str, probe: Probe
) -> None:
    """2025-11-25 basic/transports; the body "MAY comprise a JSON-RPC error response that has no id".

    It has one where only the session is at fault, as the message has been read then.
    """
    client = await probe.client()
    id = 1 if headers.keys() == {"mcp-session-id"} else None
    sent = {name: value for name, value in {**client.headers, **headers}.items() if value is not None}
    await check_answer(client, Bad("", ping(), status, INVALID_REQUEST, part, id), sent)
    await check_unharmed(probe, client)


async def test_nothing_of_a_refused_request_is_left_to_the_collector(probe: Probe) -> None:
    client = await probe.client()
    gc.collect()
    gc.disable()
    try:
        for headers in ({**client.headers, "host": "evil.example"}, {**client.headers, "mcp-session-id": "gone"}):
            async with exchange(probe.app, "POST", "/mcp", headers, ping()) as answer:
                await answer.body()
        assert not [kept for kept in gc.get_objects() if isinstance(kept, HttpExchange)]
    finally:
        gc.enable()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_an_encoded_body_is_refused_and_recorded_and_identity_is_read(era: str, probe: Probe) -> None:
    """RFC 9110, 15.5.16: Accept-Encoding says "which (if any) content codings would have been accepted"."""
    client = await probe.client()
    modern = probe.modern().request("tools/list", {})
    headers = Modern.headers(modern) if era == "modern" else client.headers
    plain = json.dumps(modern).encode() if era == "modern" else ping()
    async with exchange(probe.app, "POST", "/mcp", {**headers, "content-encoding": "gzip"}, compress(plain)) as answer:
        message = await answer.json()
    assert (answer.status, answer.headers["accept-encoding"]) == (415, "identity")
    assert message["error"]["code"] == INVALID_REQUEST
    assert probe.events("http.response")[-1]["problem"] == message["error"]["message"]
    async with exchange(probe.app, "POST", "/mcp", {**headers, "content-encoding": "identity"}, plain) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host", "localhost:8000"),
        ("content-type", "text/plain"),
        ("mcp-session-id", "another"),
        ("mcp-protocol-version", "2025-06-18"),
    ],
)
async def test_a_header_that_contradicts_itself_is_refused_and_one_that_repeats_itself_is_not(
    name: str, value: str, probe: Probe
) -> None:
    client = await probe.client()
    own = list(client.headers.items())
    await check_answer(client, Bad("", ping(), 400, INVALID_REQUEST, f"2 different {name}"), [*own, (name, value)])
    async with exchange(probe.app, "POST", "/mcp", [*own, (name, client.headers[name])], ping()) as answer:
        assert (await answer.json())["result"] == {}
    await check_unharmed(probe, client)


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("tools=nope", "unknown tools: nope; known are all, probe"),
        ("tools=probe,nope", "unknown tools: nope; known are all, probe"),
        ("tools=", "no tools named"),
        ("tools=,", "no tools named"),
        ("tools=a%0d%0aset-cookie:%20x=y", "unknown tools"),
        ("tools=%ff%00", "unknown tools"),
    ],
)
async def test_a_bad_selection_is_refused_with_the_known_names(query: str, part: str, probe: Probe) -> None:
    client = Legacy(probe.app, f"/mcp?{query}")
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    # All names of toolsets and tools are longer than other sentences.
    bad = Bad("", request("initialize", params), 400, INVALID_PARAMS, part, id=1)
    await check_answer(client, bad, HEADERS, most=3000)
    await check_unharmed(probe)


INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"protocolVersion": None}, "params.protocolVersion must be a string"),
        ({"protocolVersion": 20251125}, "params.protocolVersion must be a string"),
        ({"capabilities": []}, "params.capabilities must be an object"),
        ({"capabilities": {"sampling": True}}, "params.capabilities.sampling must be an object"),
        ({"capabilities": {"roots": {"listChanged": "yes"}}}, "listChanged must be a boolean"),
        ({"clientInfo": "me"}, "params.clientInfo must be an object"),
        ({"clientInfo": {"name": "a"}}, "params.clientInfo.version is required"),
        ({"clientInfo": {"name": 5, "version": "1"}}, "params.clientInfo.name must be a string"),
    ],
)
async def test_an_initialize_that_does_not_fit_opens_no_session(
    change: dict[str, Any], part: str, probe: Probe
) -> None:
    client = Legacy(probe.app, "/mcp")
    body = request("initialize", {**INITIALIZE, **change})
    await check_answer(client, Bad("", body, 200, INVALID_PARAMS, part, 1), HEADERS)
    await check_unharmed(probe)


@pytest.mark.parametrize("member", ["protocolVersion", "capabilities", "clientInfo"])
async def test_an_initialize_without_a_required_member_opens_no_session(member: str, probe: Probe) -> None:
    """Also when the member is there in Python's spelling, which the official models read as well."""
    client = Legacy(probe.app, "/mcp")
    left = {name: value for name, value in INITIALIZE.items() if name != member}
    python = {"protocol_version": "2025-11-25", "client_info": INITIALIZE["clientInfo"]}
    for params in (left, {**python, **left}):
        expected = Bad("", request("initialize", params), 200, INVALID_PARAMS, f"params.{member} is required", 1)
        await check_answer(client, expected, HEADERS)
    await check_unharmed(probe)


@pytest.mark.proves("2025-11-25/transports/11", "2025-11-25/transports/29")
@pytest.mark.parametrize("method", ["initialize", "notifications/initialized"])
@pytest.mark.parametrize("version", [{}, *({"mcp-protocol-version": revision} for revision in REVISIONS)])
async def test_a_notification_before_any_session_needs_one(method: str, version: dict[str, str], probe: Probe) -> None:
    """2025-03-26 did not have the version header."""
    client = Legacy(probe.app, "/mcp")
    body = json.dumps({"jsonrpc": "2.0", "method": method}).encode()
    headers = {**HEADERS, **version}
    await check_answer(client, Bad("", body, 400, INVALID_REQUEST, "Mcp-Session-Id"), headers)
    await check_unharmed(probe)


ARGUMENTS = [
    ("simple_tool", {"delayMs": -1}, "delayMs must be an integer from 0 to 5000, got -1"),
    ("simple_tool", {"delayMs": 5001}, "delayMs must be an integer from 0 to 5000, got 5001"),
    ("simple_tool", {"delayMs": 1.5}, "delayMs must be an integer from 0 to 5000, got 1.5"),
    ("simple_tool", {"delayMs": 1e300}, "delayMs must be an integer from 0 to 5000, got 1e+300"),
    ("simple_tool", {"delayMs": "5"}, 'delayMs must be an integer from 0 to 5000, got "5"'),
    ("simple_tool", {"delayMs": True}, "delayMs must be an integer from 0 to 5000, got true"),
    ("simple_tool", {"delayMs": None}, "delayMs must be an integer from 0 to 5000, got null"),
    ("simple_tool", {"delayMs": [5]}, "delayMs must be an integer from 0 to 5000, got [5]"),
    ("simple_tool", {"delay": 5}, 'unknown parameter "delay": it takes delayMs'),
    ("simple_tool", {"x" * 5000: 5}, "unknown parameter"),
    ("chatty", {"x": 1}, 'unknown parameter "x": it takes none'),
    ("sync_with_progress", {"mode": "exact"}, 'mode must be one of determinate, indeterminate, got "exact"'),
    ("sync_with_progress", {"mode": ["determinate"]}, "mode must be one of determinate, indeterminate, got"),
    ("sync_with_progress", {"mode": {}}, "mode must be one of determinate, indeterminate, got {}"),
    ("progress", {"steps": 0}, "steps must be an integer from 1 to 100, got 0"),
    ("long_output", {"chars": 65537}, "chars must be an integer from 1 to 65536, got 65537"),
]


@pytest.mark.parametrize(("tool", "arguments", "sentence"), ARGUMENTS)
async def test_bad_arguments_are_one_sentence_in_a_tool_error(
    tool: str, arguments: dict[str, Any], sentence: str, probe: Probe
) -> None:
    """2025-11-25 server/tools: "Input validation errors" are "reported in tool results with isError: true"."""
    client = await probe.client("2025-11-25")
    result = await client.tool(tool, arguments)
    assert result["isError"] is True
    assert sentence in result["content"][0]["text"]
    assert len(result["content"][0]["text"]) < 300
    await check_unharmed(probe, client)


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
@pytest.mark.parametrize(("tool", "arguments", "sentence"), ARGUMENTS)
async def test_bad_arguments_are_invalid_params_in_the_older_revisions(
    tool: str, arguments: dict[str, Any], sentence: str, revision: str, probe: Probe
) -> None:
    """2025-06-18 server/tools lists "Invalid arguments" among the protocol errors."""
    client = await probe.client(revision)
    with pytest.raises(RpcError) as caught:
        await client.tool(tool, arguments)
    assert caught.value.code == INVALID_PARAMS
    assert sentence in caught.value.message
    await check_unharmed(probe, client)


async def test_64_levels_are_accepted(probe: Probe) -> None:
    client = await probe.client()
    async with exchange(probe.app, "POST", "/mcp", client.headers, nested(64)) as answer:
        assert (await answer.json())["result"] == {}


async def test_a_body_may_be_as_large_as_the_limit_and_not_larger() -> None:
    async with running(max_body_bytes=1024) as probe:
        client = await probe.client()
        full = ping(params={"a": ""})
        largest = ping(params={"a": "x" * (1024 - len(full))})
        async with exchange(probe.app, "POST", "/mcp", client.headers, largest) as answer:
            assert (answer.status, await answer.json()) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})
        for more in (1, 5000):
            bad = Bad("", largest + b" " * more, 413, INVALID_REQUEST, "larger than 1024 bytes (max_body_bytes)")
            await check_answer(client, bad, client.headers)
        await check_unharmed(probe, client)


async def test_an_initialize_has_a_limit_of_its_own() -> None:
    """A session remembers what its client declared, so this bounds what a session costs."""
    async with running(max_initialize_bytes=1024) as probe:
        params = {**INITIALIZE, "capabilities": {"experimental": {"x": {"y": "z" * 1024}}}}
        bad = Bad("", request("initialize", params), 413, INVALID_REQUEST, "max_initialize_bytes", 1)
        await check_answer(Legacy(probe.app, "/mcp"), bad, HEADERS)
        await check_unharmed(probe)


async def test_a_million_faults_are_answered_as_quickly_as_one(probe: Probe) -> None:
    client = await probe.client()
    body = request("prompts/get", {"name": "x", "arguments": {str(n): n for n in range(100_000)}})
    await check_answer(client, Bad("", body, 200, INVALID_PARAMS, "100000 members", 1), client.headers)


# Ids.


async def test_5_and_its_string_are_different_ids_and_an_id_in_flight_is_not_used_twice(probe: Probe) -> None:
    """2025-11-25 basic: it "MUST NOT have been previously used by the requestor within the same session"."""
    client = await probe.client()
    slow = {"name": "simple_tool", "arguments": {"delayMs": 5000}}
    async with client.post(client.request("tools/call", slow, 5)):
        duplicate = Bad("", request("ping", {}, 5), 400, INVALID_REQUEST, "5 is already in flight", 5)
        await check_answer(client, duplicate, client.headers)
        assert [event["what"] for event in probe.events("client.misuse")] == ["duplicate id"]
        again = Bad("", request("tools/call", slow, 5), 400, INVALID_REQUEST, "5 is already in flight", 5)
        await check_answer(client, again, client.headers)
        # As a gateway does it whose connection broke: the client sent it once.
        assert len(probe.events("client.misuse")) == 1
        (twice,) = probe.events("request.repeated")
        first, second = (event for event in probe.events("message.received") if event["method"] == "tools/call")
        assert (twice["first"], twice["first_exchange"], twice["cause"]) == (
            first["seq"],
            first["exchange"],
            second["seq"],
        )
        assert (twice["exchange"], twice["id"], twice["method"]) == (second["exchange"], 5, "tools/call")
        assert await client.call("ping", id="5") == {}
    await client.cancel(5)
    other = await probe.client()
    assert await other.call("ping", id=5) == {}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_id_that_is_used_again_is_answered_and_recorded(revision: str, probe: Probe) -> None:
    """ "The request ID MUST NOT have been previously used by the requestor within the same session", says each."""
    client, other = await probe.client(revision), await probe.client(revision)
    for id in (2, "2", 0, 7):
        assert await client.call("ping", id=id) == {}
    assert misuses(probe) == []
    for id in (7, "2", 1):  # 1 was that of `initialize`
        assert await client.call("ping", id=id) == {}
    with pytest.raises(RpcError, match="no/such"):
        await client.call("no/such", id=2)
    assert await other.call("ping", id=7) == {}
    found = probe.events("client.misuse")
    assert {(event["what"], event["clause"].split(":")[0]) for event in found} == {
        ("id used before", f"{revision} basic, Requests")
    }
    assert [event["detail"] for event in found] == ["id 7 of ping", "id '2' of ping", "id 1 of ping", "id 2 of no/such"]


async def test_the_id_of_a_request_that_never_began_may_come_again(autojump_clock: MockClock) -> None:
    """429 asks for that; the other request of the batch never began, either."""
    async with running(max_in_flight=1) as probe:
        client = await probe.client("2025-03-26")
        async with client.post([json.loads(ping()) | {"id": id} for id in ("a", "b")]) as answer:
            assert answer.status == 429
        for id in ("a", "b"):
            assert await client.call("ping", id=id) == {}
        assert misuses(probe) == []


async def test_a_repeated_request_is_recorded_also_where_the_first_had_no_answer(autojump_clock: MockClock) -> None:
    async with running() as probe:
        client = await probe.client()
        again = client.request("tools/call", {"name": "simple_tool", "arguments": {"delayMs": 100}}, "again")
        async with client.post(again) as answer:
            answer.hang_up()
        await trio.sleep(1)
        await client.tool("simple_tool")
        assert misuses(probe) == []
        async with client.post(again) as answer:
            assert (await client.read(answer))[-1].message["result"]
        assert misuses(probe) == ["id used before"]


# Anything at all.

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
METHODS = [
    "initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read", "resources/subscribe",
    "prompts/get", "completion/complete", "logging/setLevel", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel",
    "notifications/initialized", "notifications/cancelled", "notifications/progress",
]  # fmt: skip
MEMBERS = [
    "name", "arguments", "_meta", "task", "uri", "ref", "argument", "level", "cursor", "taskId", "requestId", "reason",
    "protocolVersion", "capabilities", "clientInfo",
]  # fmt: skip
PARAMS = st.dictionaries(st.sampled_from(MEMBERS), VALUES | st.sampled_from(["simple_tool", "pure_task"]), max_size=4)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": st.sampled_from(METHODS)},
    optional={"id": st.integers() | st.text(max_size=3), "params": PARAMS | VALUES, "result": VALUES, "error": VALUES},
)


@given(bodies=st.lists(MESSAGES | VALUES, max_size=8), revision=st.sampled_from(REVISIONS))
async def test_no_message_whatever_is_answered_by_a_5xx_or_by_what_the_schema_does_not_define(
    bodies: list[Any], revision: str
) -> None:
    async with running() as probe:
        client = await probe.client(revision)
        with trio.fail_after(20):
            for body in bodies:
                await send_anything(client, body)
        await check_unharmed(probe, client)


async def send_anything(client: Legacy, body: Any) -> None:
    """Post a value and read what comes at once: a call may go on for seconds."""
    async with client.post(body) as answer:
        assert answer.status < 500
        if answer.headers.get("content-type") == "application/json":
            parsed = await answer.json()
            for message in parsed if isinstance(parsed, list) else [parsed]:
                schema(client.revision).check_message(message)


@given(body=st.binary(max_size=50))
async def test_no_bytes_whatever_are_answered_by_a_5xx(body: bytes) -> None:
    async with running() as probe:
        client = await probe.client()
        async with exchange(probe.app, "POST", "/mcp", client.headers, body) as answer:
            assert answer.status == 400
        await check_unharmed(probe, client)


# The documentation.


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without the head of the table."""
    lines = DOCUMENT.read_text().split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    table = [line for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def anchored(cell: str) -> tuple[str, str]:
    """The anchor of a cell, which a link names, and its text."""
    found = re.fullmatch(r'<a id="([^"]+)"></a>(.+)', cell)
    assert found is not None, cell
    return found[1], found[2]


def test_the_documentation_lists_every_refusal_as_the_code_has_it_with_an_anchor_of_its_name() -> None:
    table = [(*anchored(row[0]), row[1].split(",")[0], row[2]) for row in rows("Refused by HTTP status")]
    documented = [(int(status), int(code), when, name) for name, status, code, when in table]
    assert documented == sorted((item.status, int(item.code), item.when, item.name) for item in Refusal)


def test_the_documentation_lists_every_code_with_an_anchor_of_its_number() -> None:
    documented = {int(code): name for row in rows("JSON-RPC codes") for code, name in [(anchored(row[0])[1], row[1])]}
    assert all(anchor == code for anchor, code in (anchored(row[0]) for row in rows("JSON-RPC codes")))
    assert documented == {int(code): code.name for code in Code}

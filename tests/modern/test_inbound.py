"""The ladder over the endpoint: what is refused, in which order, with which status, code, data and id; which era."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import pytest

from ..support.http import exchange
from ..support.modern import PREFIX, TASKS, VERSION, Modern
from ..support.probe import Probe
from ..support.schemas import schema
from ..support.shown import newest

INFO = PREFIX + "clientInfo"
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED = -32020, -32021, -32022
INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32600, -32601, -32602
TYPED = {
    HEADER_MISMATCH: "HeaderMismatchError",
    MISSING_CAPABILITY: "MissingRequiredClientCapabilityError",
    UNSUPPORTED: "UnsupportedProtocolVersionError",
}
Headers = Mapping[str, str | list[str] | None]
"""Changes of headers: None leaves one out, a list sends several."""


@dataclass
class Draft:
    """A request on its way to being wrong."""

    message: dict[str, Any]
    headers: dict[str, str | list[str] | None] = field(default_factory=dict)
    target: str = "/mcp?tools=all"
    body: bytes | None = None
    method: str = "POST"

    @property
    def params(self) -> dict[str, Any]:
        return self.message["params"]  # type: ignore[no-any-return]

    @property
    def meta(self) -> dict[str, Any]:
        return self.params["_meta"]  # type: ignore[no-any-return]


@dataclass
class Got:
    """A whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, int]:
        """Status and code of a refusal, whose body fits the schema."""
        body = self.json
        assert self.headers["content-type"] == "application/json"
        schema(VERSION).check_message(body)
        if body["error"]["code"] in TYPED:
            schema(VERSION).check(body, TYPED[body["error"]["code"]])
        return self.status, body["error"]["code"]


async def send(client: Modern, draft: Draft) -> Got:
    """The headers that mirror the message, changed as the draft says."""
    mirrored: dict[str, str | list[str] | None] = dict(Modern.headers(draft.message))
    lines = [
        (name, value)
        for name, values in {**mirrored, **draft.headers}.items()
        if values is not None
        for value in ([values] if isinstance(values, str) else values)
    ]
    body = json.dumps(draft.message).encode() if draft.body is None else draft.body
    async with exchange(client.app, draft.method, draft.target, lines, body) as answer:
        return Got(answer.status, answer.headers, await answer.body())


def tool_call(client: Modern) -> Draft:
    """A call that passes every rung, with a header for each rung."""
    draft = Draft(client.request("tools/call", {"name": "routed_tool", "arguments": {"region": "us-east"}}, id="me"))
    draft.headers["mcp-param-region"] = "us-east"
    return draft


async def check_result(client: Modern, draft: Draft) -> dict[str, Any]:
    got = await send(client, draft)
    assert got.status == 200, got.body
    return client.result(got.json, draft.message["method"], draft.message["id"])


# The order.


def header(name: str, value: str | None) -> Callable[[Draft], None]:
    return lambda draft: draft.headers.update({name: value})


def without_capabilities(draft: Draft) -> None:
    del draft.meta[PREFIX + "clientCapabilities"]


def unsupported_revision(draft: Draft) -> None:
    draft.meta[PREFIX + "protocolVersion"] = "v999.0.0"
    draft.headers["mcp-protocol-version"] = "v999.0.0"


def unknown_method(draft: Draft) -> None:
    draft.message["method"] = "no/such"
    draft.headers.setdefault("mcp-name", "routed_tool")


def param(name: str, value: Any) -> Callable[[Draft], None]:
    return lambda draft: draft.params.update({name: value})


def message(name: str, value: Any) -> Callable[[Draft], None]:
    return lambda draft: draft.message.update({name: value})


LADDER: list[tuple[str, Callable[[Draft], None], int, int]] = [
    ("Host", header("host", "evil.example"), 403, INVALID_REQUEST),
    ("Origin", header("origin", "http://evil.example"), 403, INVALID_REQUEST),
    ("HTTP method", lambda draft: setattr(draft, "method", "PUT"), 405, INVALID_REQUEST),
    ("Content-Type", header("content-type", "text/plain"), 415, INVALID_REQUEST),
    ("Content-Encoding", header("content-encoding", "gzip"), 415, INVALID_REQUEST),
    ("Accept", header("accept", "application/json"), 406, INVALID_REQUEST),
    ("JSON", lambda draft: setattr(draft, "body", b"{"), 400, -32700),
    ("selection", lambda draft: setattr(draft, "target", "/mcp?tools=nope"), 400, INVALID_PARAMS),
    ("form", message("jsonrpc", "1.0"), 400, INVALID_REQUEST),
    ("_meta", without_capabilities, 400, INVALID_PARAMS),
    ("MCP-Protocol-Version", header("mcp-protocol-version", "2026-07-29"), 400, HEADER_MISMATCH),
    ("revision", unsupported_revision, 400, UNSUPPORTED),
    ("Mcp-Method", header("mcp-method", "tools/list"), 400, HEADER_MISMATCH),
    ("method", unknown_method, 404, METHOD_NOT_FOUND),
    ("Mcp-Name", header("mcp-name", "chatty"), 400, HEADER_MISMATCH),
    ("Mcp-Param", header("mcp-param-region", "ap-south"), 400, HEADER_MISMATCH),
    ("inputResponses", param("inputResponses", []), 400, INVALID_PARAMS),
]
WITHOUT_ID = {"Host", "Origin", "HTTP method", "Content-Type", "Content-Encoding", "Accept", "JSON"}


@pytest.mark.proves(
    "2026-07-28/basic/10", "2026-07-28/basic/11", "2026-07-28/basic/12", "2026-07-28/basic/15", "2026-07-28/basic/16",
    "2026-07-28/streamable-http/2", "2026-07-28/streamable-http/3", "2026-07-28/streamable-http/44",
    "2026-07-28/streamable-http/46",
)  # fmt: skip
@pytest.mark.parametrize(("rung", "spoil", "status", "code"), LADDER, ids=[row[0] for row in LADDER])
async def test_each_rung_refuses_with_its_status_and_code_and_with_the_id_where_the_body_was_read(
    rung: str, spoil: Callable[[Draft], None], status: int, code: int, probe: Probe
) -> None:
    client = probe.modern()
    draft = tool_call(client)
    spoil(draft)
    got = await send(client, draft)
    assert got.error == (status, code)
    assert got.json.get("id") == (None if rung in WITHOUT_ID else "me")
    assert len(got.json["error"]["message"]) < 300 or rung == "selection"
    assert list(probe.engine.sessions) == []
    await check_result(client, tool_call(client))


@pytest.mark.parametrize(("lower", "upper"), list(combinations(LADDER, 2)), ids=lambda row: row[0])
async def test_of_two_faults_the_lower_rung_answers(lower: Any, upper: Any, probe: Probe) -> None:
    """Told apart by their first words, too: several rungs have one status and code."""
    client = probe.modern()
    alone, both = tool_call(client), tool_call(client)
    lower[1](alone)
    upper[1](both)
    lower[1](both)
    if (lower[0], upper[0]) == ("Mcp-Method", "method"):
        both.headers["mcp-method"] = "tools/list"
    said, expected = await send(client, both), await send(client, alone)
    assert said.error == expected.error == lower[2:]
    words = [got.json["error"]["message"].split()[:3] for got in (said, expected)]
    assert words[0] == words[1]


async def test_what_climbs_the_ladder_and_has_no_result_is_an_error_with_status_200(probe: Probe) -> None:
    client = probe.modern()
    for method, params in [
        ("tools/call", {"name": "nope"}),
        ("prompts/get", {"name": "nope"}),
        ("resources/read", {"uri": "probe://nope"}),
        ("tasks/get", {"taskId": "nope"}),
        ("tools/list", {"cursor": "nope"}),
    ]:
        assert (await send(client, Draft(client.request(method, params)))).error == (200, INVALID_PARAMS)


async def test_a_mirrored_argument_agrees_with_its_header_or_the_tool_is_not_called(probe: Probe) -> None:
    client = probe.modern()
    arguments = {"region": "ap-south", "priority": 1, "dry_run": True}
    headers: Headers = {"mcp-param-region": "ap-south", "mcp-param-priority": "1", "mcp-param-dry-run": "true"}
    request = client.request("tools/call", {"name": "routed_tool", "arguments": arguments}, id="me")
    assert (await check_result(client, Draft(request, {**headers})))["structuredContent"] == arguments
    got = await send(client, Draft(request, {**headers, "mcp-param-priority": "2"}))
    assert (got.error, got.json["id"]) == ((400, HEADER_MISMATCH), "me")
    assert "Mcp-Param-Priority" in got.json["error"]["message"]
    assert len(newest(probe.engine.records, 5)) == 1, "the second call did not run"


@pytest.mark.proves(
    "2026-07-28/streamable-http/24", "2026-07-28/streamable-http/25", "2026-07-28/streamable-http/26",
    "2026-07-28/streamable-http/27", "2026-07-28/streamable-http/28", "2026-07-28/streamable-http/30",
    "2026-07-28/streamable-http/31",
)  # fmt: skip
async def test_every_annotation_that_is_published_is_legal(probe: Probe) -> None:
    """Counted in the whole schema: one anywhere but on a primitive property below `properties` alone would be more."""
    client = probe.modern()
    cursor: dict[str, Any] = {}
    annotated: dict[str, list[str]] = {}
    while True:
        page = await client.call("tools/list", cursor)
        for tool in page["tools"]:
            top = tool["inputSchema"].get("properties", {}).values()
            names = [member["x-mcp-header"] for member in top if "x-mcp-header" in member]
            assert json.dumps(tool["inputSchema"]).count('"x-mcp-header"') == len(names)
            assert all(member["type"] in ("string", "integer", "boolean") for member in top if "x-mcp-header" in member)
            if names:
                annotated[tool["name"]] = names
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert annotated == {"routed_tool": ["Region", "Priority", "Dry-Run"], "test_x_mcp_header": ["Region"]}


# What is no request.


@pytest.mark.proves("2026-07-28/streamable-http/8", "2026-07-28/basic/19", "2026-07-28/cancellation/16")
@pytest.mark.parametrize("method", ["notifications/cancelled", "notifications/progress", "tools/call", "no/such"])
@pytest.mark.parametrize("headers", [{}, {"mcp-method": None, "mcp-protocol-version": None}, {"mcp-method": "other"}])
async def test_a_notification_is_accepted_and_never_answered(method: str, headers: Any, probe: Probe) -> None:
    client = probe.modern()
    for params in ({"requestId": 1}, {"requestId": None, "name": "chatty"}, {}):
        draft = Draft({"jsonrpc": "2.0", "method": method, "params": {"name": "", **params}}, dict(headers))
        got = await send(client, draft)
        assert (got.status, got.body) == (202, b"")
    draft.body = json.dumps({"jsonrpc": "2.0", "method": method}).encode()
    assert (await send(client, draft)).status == 202
    assert [event["what"] for event in probe.events("client.misuse")] == [
        "notifications/cancelled over HTTP" if method == "notifications/cancelled" else "unknown notification"
    ] * 4
    assert newest(probe.engine.records, 5) == []


NOT_ONE_MESSAGE = {
    "an empty batch": [],
    "a batch of one": [{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}],
    "a batch of two notifications": [{"jsonrpc": "2.0", "method": "x"}] * 2,
    "a result": {"jsonrpc": "2.0", "id": 1, "result": {}},
    "an error": {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": ""}},
    "an error without id": {"jsonrpc": "2.0", "error": {"code": -1, "message": ""}},
    "null": None,
    "a number": 5,
    "a string": "tools/list",
    "an empty object": {},
}


@pytest.mark.proves(
    "2026-07-28/streamable-http/6", "2026-07-28/streamable-http/7", "2026-07-28/streamable-http/9",
    "2026-07-28/patterns/1",
)  # fmt: skip
@pytest.mark.parametrize("what", NOT_ONE_MESSAGE)
async def test_a_body_is_one_request_or_one_notification(what: str, probe: Probe) -> None:
    client = probe.modern()
    draft = tool_call(client)
    draft.body = json.dumps(NOT_ONE_MESSAGE[what]).encode()
    got = await send(client, draft)
    assert got.error == (400, INVALID_REQUEST)
    assert "id" not in got.json
    assert ("no batches" in got.json["error"]["message"]) == ("batch" in what)


@pytest.mark.proves("2026-07-28/basic/3", "2026-07-28/basic/4", "2026-07-28/basic/10", "2026-07-28/basic/20")
@pytest.mark.parametrize("id", [None, True, 1.0, 1.5, [], {}, "x" * 257])
async def test_an_id_that_is_none_is_refused_and_not_echoed(id: Any, probe: Probe) -> None:
    client = probe.modern()
    for method in ("tools/list", "notifications/cancelled"):
        draft = Draft(client.request(method))
        draft.message["id"] = id
        got = await send(client, draft)
        assert got.error == (400, INVALID_REQUEST)
        assert "id" not in got.json


@pytest.mark.proves("2026-07-28/basic/2", "2026-07-28/basic/3", "2026-07-28/basic/6", "2026-07-28/basic/10")
@pytest.mark.parametrize("id", [0, -1, 5, "5", "", "größe", 2**53, 10**30, "x" * 256])
async def test_results_and_errors_echo_the_id_in_value_and_type(id: Any, probe: Probe) -> None:
    client = probe.modern()
    for draft, status in (
        (Draft(client.request("tools/list", id=id)), 200),
        (Draft(client.request("tools/call", {"name": "nope"}, id=id)), 200),
        (Draft(client.request("no/such", id=id)), 404),
        (Draft(client.request("tools/list", id=id), {"mcp-method": "x"}), 400),
    ):
        got = await send(client, draft)
        schema(VERSION).check_message(got.json)
        assert (got.status, got.json["id"], type(got.json["id"])) == (status, id, type(id))


@pytest.mark.proves("2026-07-28/basic/5", "2026-07-28/basic/22", "2026-07-28/basic/23")
async def test_two_clients_may_use_one_id_at_the_same_time(probe: Probe, autojump_clock: object) -> None:
    """Ids are unique for their sender, whom the server does not know; each connection has its own answer."""
    one, other = probe.modern(), probe.modern()
    slow = one.request("tools/call", {"name": "simple_tool", "arguments": {"delayMs": 5000}}, id=5)
    async with one.post(slow) as first, other.post(slow) as second:
        for client, answer in ((one, first), (other, second)):
            result = client.result(await answer.json(), "tools/call", 5)
            assert result["structuredContent"] == {"message": "Completed after 5000ms"}


# Other HTTP methods, and what earlier revisions put into headers.


@pytest.mark.proves("2026-07-28/streamable-http/48", "2026-07-28/streamable-http/1")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("version", [VERSION, "2025-11-25", None])
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json, text/event-stream", None])
async def test_get_and_delete_are_405_without_a_session(
    method: str, version: str | None, accept: str | None, probe: Probe
) -> None:
    client = probe.modern()
    draft = tool_call(client)
    draft.method, draft.body = method, b""
    draft.headers |= {"mcp-protocol-version": version, "accept": accept}
    got = await send(client, draft)
    if version == "2025-11-25" and accept is None and method == "GET":
        assert got.error == (406, INVALID_REQUEST)
        return
    assert got.error == (405, INVALID_REQUEST)
    assert got.headers["allow"] == "POST"


@pytest.mark.proves("2026-07-28/streamable-http/48", "2026-07-28/streamable-http/49")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_the_modern_version_makes_get_and_delete_405_also_with_a_session(method: str, probe: Probe) -> None:
    legacy = await probe.client("2025-11-25")
    headers = {**legacy.headers, "mcp-protocol-version": VERSION, "accept": "text/event-stream"}
    async with exchange(probe.app, method, "/mcp", headers) as answer:
        got = Got(answer.status, answer.headers, await answer.body())
    assert got.error == (405, INVALID_REQUEST)
    assert await legacy.call("ping") == {}, "the session goes on"


@pytest.mark.proves("2026-07-28/streamable-http/49", "2026-07-28/streamable-http/50")
@pytest.mark.parametrize("session", [None, "x", "", "valid", "\x80\xff; drop"])
@pytest.mark.parametrize("last", [None, "s1-5", ""])
async def test_session_and_event_ids_are_ignored_and_none_is_minted(
    session: str | None, last: str | None, probe: Probe
) -> None:
    client, legacy = probe.modern(), await probe.client()
    value = legacy.headers["mcp-session-id"] if session == "valid" else session
    draft = tool_call(client)
    draft.headers |= {"mcp-session-id": value, "last-event-id": last}
    await check_result(client, draft)
    got = await send(client, draft)
    assert not {"mcp-session-id", "last-event-id"} & got.headers.keys()
    assert len(list(probe.engine.sessions)) == 1


# Which era.

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
MODERN_META = {PREFIX + "protocolVersion": VERSION, PREFIX + "clientCapabilities": {}}
BODIES = {
    "initialize": {"id": 1, "method": "initialize", "params": INITIALIZE},
    "initialize, modern": {"id": 1, "method": "initialize", "params": {**INITIALIZE, "_meta": MODERN_META}},
    "list": {"id": 1, "method": "tools/list", "params": {}},
    "list, modern": {"id": 1, "method": "tools/list", "params": {"_meta": MODERN_META}},
    "initialized": {"method": "notifications/initialized"},
    "cancelled": {"method": "notifications/cancelled", "params": {"requestId": 1}},
}
LEGACY_LIST, MODERN_LIST, SESSION, ACCEPTED = "legacy list", "modern list", "new session", "accepted"
# version header, session, body, what comes
ERAS: list[tuple[str | list[str] | None, str | None, str, Any]] = [
    (None, None, "initialize", SESSION),
    ("2025-03-26", None, "initialize", SESSION),
    ("2025-06-18", None, "initialize", SESSION),
    ("2025-11-25", None, "initialize", SESSION),
    ("2025-11-25", None, "initialize, modern", (400, HEADER_MISMATCH)),
    (None, None, "initialize, modern", (400, HEADER_MISMATCH)),
    (VERSION, None, "initialize", (400, INVALID_PARAMS)),
    (VERSION, "valid", "initialize", (400, INVALID_PARAMS)),
    (VERSION, None, "initialize, modern", (404, METHOD_NOT_FOUND)),
    (VERSION, "valid", "initialize, modern", (404, METHOD_NOT_FOUND)),
    ("2025-11-25", "valid", "list", LEGACY_LIST),
    ("2025-11-25", "valid", "list, modern", LEGACY_LIST),
    (None, "valid", "list", LEGACY_LIST),
    ("2025-11-25", "unknown", "list", (404, INVALID_REQUEST)),
    ("2025-11-25", "unknown", "list, modern", (404, INVALID_REQUEST)),
    (None, "unknown", "list", (404, INVALID_REQUEST)),
    (None, "", "list", (404, INVALID_REQUEST)),
    ("2025-11-25", None, "list", (400, INVALID_REQUEST)),
    ("2025-03-26", None, "list", (400, INVALID_REQUEST)),
    ("2025-11-25", None, "list, modern", (400, HEADER_MISMATCH)),
    (None, None, "list", (400, INVALID_PARAMS)),
    (None, None, "list, modern", (400, HEADER_MISMATCH)),
    (None, "valid", "list, modern", (400, HEADER_MISMATCH)),
    (None, "unknown", "list, modern", (400, HEADER_MISMATCH)),
    (VERSION, None, "list, modern", MODERN_LIST),
    (VERSION, "valid", "list, modern", MODERN_LIST),
    (VERSION, "unknown", "list, modern", MODERN_LIST),
    (VERSION, "valid", "list", (400, INVALID_PARAMS)),
    (f" {VERSION}\t", None, "list, modern", MODERN_LIST),
    ("v999.0.0", None, "list", (400, INVALID_PARAMS)),
    ("v999.0.0", None, "list, modern", (400, HEADER_MISMATCH)),
    ("v999.0.0", "valid", "list", (400, INVALID_REQUEST)),
    ("v999.0.0", "valid", "list, modern", (400, HEADER_MISMATCH)),
    ("v999.0.0", None, "initialize", (400, INVALID_REQUEST)),
    (VERSION, None, "initialized", ACCEPTED),
    (None, None, "initialized", (400, INVALID_REQUEST)),
    (None, "unknown", "initialized", (404, INVALID_REQUEST)),
    (None, None, "cancelled", ACCEPTED),
    ("2025-11-25", None, "cancelled", (400, INVALID_REQUEST)),
    ("", None, "list, modern", (400, HEADER_MISMATCH)),
    ([VERSION, "2025-11-25"], "valid", "list, modern", (400, HEADER_MISMATCH)),
    ([VERSION, VERSION], "valid", "list, modern", (400, HEADER_MISMATCH)),
    (["2025-11-25", "2025-06-18"], "valid", "list", (400, INVALID_REQUEST)),
    (["2025-11-25", "2025-11-25"], "valid", "list", LEGACY_LIST),
]


@pytest.mark.proves("2026-07-28/versioning/6", "2026-07-28/versioning/7", "2026-07-28/basic/21")
@pytest.mark.parametrize(("version", "session", "body", "expected"), ERAS)
async def test_which_era_serves_a_request(
    version: str | list[str] | None, session: str | None, body: str, expected: Any, probe: Probe
) -> None:
    legacy, client = await probe.client(), probe.modern()
    value = legacy.headers["mcp-session-id"] if session == "valid" else session
    draft = Draft({"jsonrpc": "2.0", **BODIES[body]})
    draft.headers = {"mcp-protocol-version": version, "mcp-session-id": value}
    got = await send(client, draft)
    sessions = len(list(probe.engine.sessions))
    if isinstance(expected, tuple):
        assert (got.error, sessions) == (expected, 1), "and nothing was allocated"
        return
    if expected == ACCEPTED:
        assert (got.status, got.body, sessions) == (202, b"", 1)
        return
    result = got.json["result"]
    assert got.status == 200
    assert ("mcp-session-id" in got.headers, sessions) == ((True, 2) if expected == SESSION else (False, 1))
    assert ("resultType" in result) == (expected == MODERN_LIST)
    assert ("protocolVersion" in result) == (expected == SESSION)


# The tasks extension.


@pytest.mark.proves(
    "2026-07-28/basic/46",
    "2026-07-28/basic/47",
    "2026-07-28/basic/48",
    "2026-07-28/versioning/4",
    "ext-tasks/tasks/28",
    "ext-tasks/tasks/34",
    "ext-tasks/tasks/35",
)
@pytest.mark.parametrize("capabilities", [{}, {"tasks": {}}, {"extensions": {}}, {"extensions": {TASKS.upper(): {}}}])
async def test_the_gate_of_the_extension_comes_before_any_look_up(capabilities: Any, probe: Probe) -> None:
    owner, client = probe.modern(), probe.modern(capabilities=capabilities)
    known = (await owner.tool("pure_task"))["taskId"]
    for method, params in [
        ("tools/call", {"name": "pure_task"}),
        *(("tasks/get", {"taskId": id}) for id in (known, "unknown")),
        *(("tasks/cancel", {"taskId": id}) for id in (known, "unknown")),
        *(("tasks/update", {"taskId": id, "inputResponses": {}}) for id in (known, "unknown")),
        *(("subscriptions/listen", {"notifications": {"taskIds": [id]}}) for id in (known, "unknown")),
    ]:
        got = await send(client, Draft(client.request(method, params, id=7)))
        assert (got.error, got.json["id"]) == ((400, MISSING_CAPABILITY), 7)
        assert got.json["error"]["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    assert (await owner.get_task(known))["status"] == "working"

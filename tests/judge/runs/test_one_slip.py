"""One slip is one finding: each slip of a client, sent to a real server, breaks one rule and no other."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pytest

from probe.log import ndjson

from ...support.process import served
from ...support.rows import each
from ..logs import MODERN, Judged, judged, recorded
from .scripted.wire import Http

PREFIX: Final = "io.modelcontextprotocol/"
META: Final = {
    PREFIX + "protocolVersion": MODERN,
    PREFIX + "clientInfo": {"name": "slips", "version": "1"},
    PREFIX + "clientCapabilities": {},
}
REQUEST: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
CALL: Final = {**REQUEST, "method": "tools/call", "params": {"_meta": META, "name": "simple_tool", "arguments": {}}}
LEGACY_REQUEST: Final = {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}}
LEGACY_CALL: Final = {**LEGACY_REQUEST, "method": "tools/call", "params": {"name": "simple_tool", "arguments": {}}}
REVISION: Final = "2025-11-25"
INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": REVISION,
        "capabilities": {"roots": {"listChanged": True}},
        "clientInfo": {"name": "slips", "version": "1"},
    },
}
Slip: TypeAlias = tuple[Any, Mapping[str, str | None], str | None]
"""A message, the headers that differ from those of a good client, and the rule that finds it, None for no finding."""


def without(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: member for name, member in value.items() if name not in names}


def with_meta(**changed: Any) -> dict[str, Any]:
    meta = {**META, **{PREFIX + name: member for name, member in changed.items()}}
    return {**REQUEST, "params": {"_meta": {name: member for name, member in meta.items() if member is not ...}}}


MODERN_SLIPS: Final[Mapping[str, Slip]] = {
    "params-array": ({**REQUEST, "params": []}, {}, "jsonrpc.params-object"),
    "params-null": ({**REQUEST, "params": None}, {}, "jsonrpc.params-object"),
    "params-text": ({**REQUEST, "params": "x"}, {}, "jsonrpc.params-object"),
    "no-params": (without(REQUEST, "params"), {}, "meta.protocol-version"),
    "no-meta": ({**REQUEST, "params": {}}, {}, "meta.protocol-version"),
    "meta-array": ({**REQUEST, "params": {"_meta": []}}, {}, "meta.protocol-version"),
    "no-version-in-meta": (with_meta(protocolVersion=...), {}, "meta.protocol-version"),
    "version-is-a-number": (with_meta(protocolVersion=20260728), {}, "meta.protocol-version"),
    "no-capabilities": (with_meta(clientCapabilities=...), {}, "meta.client-capabilities"),
    "capabilities-array": (with_meta(clientCapabilities=[]), {}, "meta.client-capabilities"),
    "no-info": (with_meta(clientInfo=...), {}, "meta.client-info"),
    "info-without-version": (with_meta(clientInfo={"name": "slips"}), {}, "jsonrpc.wire-schema"),
    "batch": ([REQUEST], {}, "jsonrpc.no-batch"),
    "batch-of-two": ([REQUEST, {**CALL, "id": 2}], {}, "jsonrpc.no-batch"),
    "batch-without-headers": ([REQUEST], {"mcp-method": None, "mcp-protocol-version": None}, "jsonrpc.no-batch"),
    "empty-batch": ([], {}, "jsonrpc.no-batch"),
    "id-null": ({**REQUEST, "id": None}, {}, "jsonrpc.request-id-type"),
    "id-fraction": ({**REQUEST, "id": 1.5}, {}, "jsonrpc.request-id-type"),
    "id-array": ({**REQUEST, "id": [1]}, {}, "jsonrpc.request-id-type"),
    "version-1": ({**REQUEST, "jsonrpc": "1.0"}, {}, "jsonrpc.version"),
    "version-missing": (without(REQUEST, "jsonrpc"), {}, "jsonrpc.version"),
    "method-is-a-number": ({**REQUEST, "method": 5}, {"mcp-method": "5"}, "jsonrpc.wire-schema"),
    "no-method": (without(REQUEST, "method"), {}, "jsonrpc.wire-schema"),
    "a-number": (7, {}, "jsonrpc.wire-schema"),
    "no-json": (b"{", {}, "jsonrpc.utf8-json"),
    "no-utf8": (b'{"\xff":1}', {}, "jsonrpc.utf8-json"),
    "arguments-array": (
        {**CALL, "params": {**CALL["params"], "arguments": []}}, {}, "tools.arguments-object"
    ),
    "progress-token-null": (
        {**REQUEST, "params": {"_meta": {**META, "progressToken": None}}}, {}, "progress.token-type"
    ),
    "cursor-number": ({**REQUEST, "params": {"_meta": META, "cursor": 1}}, {}, "page.cursor-opaque"),
}  # fmt: skip
MODERN_HEADERS: Final[Mapping[str, Slip]] = {
    "no-method-header": (REQUEST, {"mcp-method": None}, "http.mcp-method"),
    "other-method-header": (REQUEST, {"mcp-method": "tools/call"}, "http.mcp-method"),
    "no-name-header": (CALL, {"mcp-name": None}, "http.mcp-name"),
    "no-version-header": (REQUEST, {"mcp-protocol-version": None}, "http.meta-version-header"),
    "other-version-header": (REQUEST, {"mcp-protocol-version": "2025-11-25"}, "http.meta-version-equal"),
    "accept-json": (REQUEST, {"accept": "application/json"}, "http.post-accept"),
    "content-type-text": (REQUEST, {"content-type": "text/plain"}, "http.content-type"),
    "session-header": (REQUEST, {"mcp-session-id": "abc"}, "http.no-session-remains"),
}
LEGACY_SLIPS: Final[Mapping[str, Slip]] = {
    "params-array": ({**LEGACY_REQUEST, "params": []}, {}, "jsonrpc.params-object"),
    "call-params-array": ({**LEGACY_CALL, "params": []}, {}, "jsonrpc.params-object"),
    "call-without-params": (without(LEGACY_CALL, "params"), {}, "jsonrpc.wire-schema"),
    "call-without-name": ({**LEGACY_CALL, "params": {}}, {}, "jsonrpc.wire-schema"),
    "call-name-number": ({**LEGACY_CALL, "params": {"name": 1}}, {}, "jsonrpc.wire-schema"),
    "meta-array": ({**LEGACY_REQUEST, "params": {"_meta": []}}, {}, "jsonrpc.wire-schema"),
    "batch": ([LEGACY_REQUEST], {}, "jsonrpc.no-batch"),
    "empty-batch": ([], {}, "jsonrpc.no-batch"),
    "id-null": ({**LEGACY_REQUEST, "id": None}, {}, "jsonrpc.request-id-type"),
    "id-used": ({**LEGACY_REQUEST, "id": 1}, {}, "jsonrpc.id-unused-before"),
    "version-1": ({**LEGACY_REQUEST, "jsonrpc": "1.0"}, {}, "jsonrpc.version"),
    "no-method": (without(LEGACY_REQUEST, "method"), {}, "jsonrpc.wire-schema"),
    "no-json": (b"nope", {}, "jsonrpc.utf8-json"),
    "notification-with-id": (
        {"jsonrpc": "2.0", "id": 9, "method": "notifications/roots/list_changed"}, {},
        "jsonrpc.notification-without-id",
    ),
    "cancelled-params-array": (
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []}, {}, "jsonrpc.params-object"
    ),
    "cancelled-without-params": ({"jsonrpc": "2.0", "method": "notifications/cancelled"}, {}, "cancel.shape"),
    "progress-params-array": (
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": []}, {}, "jsonrpc.params-object"
    ),
    "roots-params-text": (
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed", "params": "x"}, {}, "jsonrpc.params-object"
    ),
    "task-params-array": ({**LEGACY_REQUEST, "method": "tasks/get", "params": []}, {}, "jsonrpc.params-object"),
    "progress-token-null": (
        {**LEGACY_REQUEST, "params": {"_meta": {"progressToken": None}}}, {}, "progress.token-type"
    ),
    "initialize-again": (INITIALIZE | {"id": 6}, {}, "session.reinitialize-without-id"),
    "task-status-of-a-client": (
        {"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": {
            "taskId": "t1", "status": "working", "createdAt": "2025-11-25T10:00:00Z",
            "lastUpdatedAt": "2025-11-25T10:00:00Z", "ttl": None}}, {}, "lifecycle.capabilities-respected",
    ),
    "elicitation-complete-of-a-client": (
        {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "e"}}, {},
        "jsonrpc.methods-of-revision",
    ),
    "answer-to-nothing": ({"jsonrpc": "2.0", "id": "none", "result": {}}, {}, "jsonrpc.response-id"),
    "answer-with-both": (
        {"jsonrpc": "2.0", "id": "none", "result": {}, "error": {"code": 1, "message": "x"}}, {}, "jsonrpc.response-id"
    ),
}  # fmt: skip
LEGACY_HEADERS: Final[Mapping[str, Slip]] = {
    # Whether another process had no session yet shows after a time only, which this client does not give.
    "no-session-header": (LEGACY_REQUEST, {"mcp-session-id": None}, "http.session-header"),
    # The id may be one of a server that was there before.
    "unknown-session": (LEGACY_REQUEST, {"mcp-session-id": "0123456789abcdef0123456789abcdef"}, None),
    "other-version-header": (LEGACY_REQUEST, {"mcp-protocol-version": "2025-06-18"}, "http.version-header-negotiated"),
    "no-version-header": (LEGACY_REQUEST, {"mcp-protocol-version": None}, "http.version-header"),
    "unknown-version-header": (
        LEGACY_REQUEST,
        {"mcp-protocol-version": "1999-01-01"},
        "http.version-header-negotiated",
    ),
    "accept-json": (LEGACY_REQUEST, {"accept": "application/json"}, "http.post-accept"),
}


def _modern(wire: Http, message: Any, headers: Mapping[str, str | None]) -> None:
    """The slip, between two good requests."""

    def told(of: Any) -> dict[str, str | None]:
        about = of if isinstance(of, dict) else REQUEST
        params = about.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        return {"mcp-protocol-version": MODERN, "mcp-method": str(about.get("method", "tools/list")), "mcp-name": name}

    for value, more in (({**REQUEST, "id": "first"}, {}), (message, headers), ({**CALL, "id": "last"}, {})):
        _send(wire, value, {**told(value), **more})


def _legacy(wire: Http, message: Any, headers: Mapping[str, str | None]) -> None:
    """The slip, between two good requests of a session."""
    opened = wire.send(INITIALIZE, {})
    assert list(opened)
    standard = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": REVISION}
    _send(wire, {"jsonrpc": "2.0", "method": "notifications/initialized"}, standard)
    _send(wire, {**LEGACY_REQUEST, "id": 2}, standard)
    _send(wire, message, {**standard, **headers})
    _send(wire, {**LEGACY_CALL, "id": 20}, standard)


def _send(wire: Http, message: Any, headers: Mapping[str, str | None]) -> None:
    reply = wire.send(message, headers)
    list(reply)
    reply.close()


SLIPS: Final[Mapping[str, tuple[Callable[..., None], Slip]]] = {
    **{f"modern-{name}": (_modern, slip) for name, slip in {**MODERN_SLIPS, **MODERN_HEADERS}.items()},
    **{f"legacy-{name}": (_legacy, slip) for name, slip in {**LEGACY_SLIPS, **LEGACY_HEADERS}.items()},
}


@pytest.fixture(scope="module")
def found() -> Mapping[str, Judged]:
    """The verdicts on each client, which made one slip, by its label."""
    with served("--tools", "all", "--event-log-events", "200000") as url:
        for name, (tell, (message, headers, _)) in SLIPS.items():
            tell(Http(f"{url}?client={name}"), message, headers)
        with urllib.request.urlopen(url.replace("/mcp", "/api/events.ndjson")) as log:
            return judged(recorded(ndjson.LogReader(log.read().splitlines(keepends=True))))


@each("name", SLIPS)
def test_a_slip_is_one_finding(found: Mapping[str, Judged], name: str) -> None:
    _, (_, _, rule) = SLIPS[name]
    faults = found[name].faults
    assert faults.keys() == ({rule} if rule else set()), {each: found[name].remarks[each] for each in faults}

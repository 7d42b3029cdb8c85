"""Rules `meta.*`, `logging.*` and `version.*`."""

from __future__ import annotations

from typing import Any

from probe.judge.verdicts import Verdict

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check
from .logs import MODERN, Log, judged

PREFIX = "io.modelcontextprotocol/"
VERSION, CAPABILITIES, INFO = PREFIX + "protocolVersion", PREFIX + "clientCapabilities", PREFIX + "clientInfo"
FULL = {VERSION: MODERN, CAPABILITIES: {}, INFO: {"name": "acme", "version": "1"}}
TRANSPORTS = ["http", "stdio", "websocket"]


def sent(meta: Any, transport: str = "http") -> Log:
    """One request of 2026-07-28; on a pipe a good one comes before it, which says the era."""
    log = Log()
    acme = getattr(log, transport)()
    if transport != "http":
        acme.answer(acme.modern("tools/list"), {"tools": []})
    acme.modern("tools/list", meta=meta)
    return log


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in FULL.items() if name not in names}


@each("transport", TRANSPORTS)
@each(
    "rule, meta, verdict",
    [
        ("meta.protocol-version", FULL, PASS),
        ("meta.protocol-version", without(VERSION), FAIL),
        ("meta.protocol-version", {**FULL, VERSION: 20260728}, FAIL),
        ("meta.protocol-version", {}, FAIL),
        ("meta.client-capabilities", FULL, PASS),
        ("meta.client-capabilities", without(CAPABILITIES), FAIL),
        ("meta.client-capabilities", {**FULL, CAPABILITIES: None}, FAIL),
        ("meta.client-capabilities", {**FULL, CAPABILITIES: []}, FAIL),
        ("meta.client-info", FULL, PASS),
        ("meta.client-info", without(INFO), WARN),
        ("jsonrpc.wire-schema", {**FULL, INFO: {"name": "acme"}}, FAIL),
    ],
)
def test_what_each_modern_request_says(rule: str, meta: Any, verdict: Verdict, transport: str) -> None:
    check(sent(meta, transport), rule, verdict)


def test_who_it_is_is_missed_once() -> None:
    log = Log()
    acme = log.http()
    for _ in range(3):
        acme.modern("tools/list", meta=without(INFO))
    assert len(judged(log)["acme"].remarks["meta.client-info"]) == 1


def test_a_newer_version_is_a_version() -> None:
    log = sent({**FULL, VERSION: "2031-01-01"})
    assert judged(log)["acme"]["meta.protocol-version"] is PASS


@each("transport", ["stdio", "websocket"])
def test_a_silent_request_on_a_pipe_may_be_of_the_legacy_era(transport: str) -> None:
    """It is known when the connection is over, and a probe that is followed by initialize is no modern client."""
    log = Log()
    pipe = getattr(log, transport)()
    pipe.modern("server/discover")
    pipe.request("tools/list")
    check(log, "meta.protocol-version", PASS, end=False)
    check(log, "meta.protocol-version", FAIL)
    pipe.close()
    check(log, "meta.protocol-version", FAIL, end=False)
    log = Log()
    pipe = getattr(log, transport)()
    pipe.modern("server/discover")
    pipe.request("tools/list")
    pipe.session()
    check(log, "meta.protocol-version", PASS)


def test_over_http_a_request_that_says_nothing_is_unknown() -> None:
    bare = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    log = Log()
    log.http(None).respond(log.http(None).post(bare), 400)
    found = judged(log)
    assert all(verdict <= UNCLEAR for each in found.values() for verdict in each.verdicts.values())
    log = Log()
    acme = log.http()
    acme.post(bare, headers={"mcp-method": "tools/list"})
    found = judged(log, only=["meta.protocol-version"])
    assert found["acme"]["meta.protocol-version"] is FAIL


def test_a_gap_hides_an_initialize() -> None:
    log = Log()
    pipe = log.stdio()
    pipe.modern("server/discover")
    pipe.request("tools/list")
    log.gap()
    check(log, "meta.protocol-version", PASS)


# -- capabilities


def declared(capabilities: Any, revision: str) -> Log:
    log = Log()
    if revision == MODERN:
        log.http().modern("tools/list", capabilities=capabilities)
    else:
        log.http().session(revision, capabilities=capabilities)
    return log


@each("revision", ["2025-03-26", "2025-06-18", "2025-11-25", MODERN])
@each(
    "capabilities, verdict",
    [
        ({"sampling": True}, FAIL),
        ({"roots": None}, FAIL),
        ({"experimental": ["x"]}, FAIL),
        ({"sampling": "yes"}, FAIL),
        ({"sampling": {}, "roots": {"listChanged": True}}, PASS),
        ({"vendor": True}, SILENT),
    ],
)
def test_capabilities_are_objects(capabilities: Any, verdict: Verdict, revision: str) -> None:
    check(declared(capabilities, revision), "meta.capability-objects", verdict)


def test_a_capability_that_the_revision_does_not_know_may_hold_anything() -> None:
    check(declared({"elicitation": True}, "2025-03-26"), "meta.capability-objects", SILENT)
    check(declared({"elicitation": True}, "2025-06-18"), "meta.capability-objects", FAIL)


def test_a_capability_that_is_hidden_is_not_judged() -> None:
    log = Log()
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": "[redacted]"},
        "clientInfo": {"name": "a", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    log.http().post(message, message={"hidden": (("/params/capabilities/roots", "object"),)})
    assert judged(log)["acme"].faults == {}


# -- keys


def keyed(key: str, revision: str = "2025-11-25", value: Any = 1) -> Log:
    log = Log()
    acme = log.http()
    if revision == MODERN:
        acme.modern("tools/list", more_meta={key: value})
    else:
        acme.session(revision).request("tools/list", {"_meta": {key: value}})
    return log


@each("revision", ["2025-06-18", "2025-11-25", MODERN])
@each(
    "key, verdict",
    [
        ("com.example/key", PASS),
        ("claudecode/toolUseId", PASS),
        ("vscode.conversationId", PASS),
        ("a", PASS),
        ("", PASS),
        ("com.example/", PASS),
        ("a_b-c.d", PASS),
        ("_foo", FAIL),
        ("a b", FAIL),
        ("com..example/x", FAIL),
        ("1com/x", FAIL),
        ("com.example-/x", FAIL),
        ("a/b/c", FAIL),
        ("/x", FAIL),
        ("é", FAIL),
    ],
)
def test_the_names_of_keys(key: str, verdict: Verdict, revision: str) -> None:
    check(keyed(key, revision), "meta.key-names", verdict)


def test_keys_that_a_revision_defines() -> None:
    check(keyed("progressToken"), "meta.key-names", SILENT)
    check(keyed("_foo", "2025-03-26"), "meta.capability-objects", SILENT)


def test_the_keys_of_a_result() -> None:
    log = Log()
    session = log.http().session()
    session.reply(session.get().ask("ping"), {"_meta": {"_foo": 1}})
    check(log, "meta.key-names", FAIL)


@each("revision", ["2025-11-25", MODERN])
@each(
    "key, verdict",
    [
        ("io.modelcontextprotocol/invented", WARN),
        ("dev.mcp/x", WARN),
        ("io.modelcontextprotocol/related-task", PASS),
        ("com.example.mcp/x", SILENT),
        ("mcp/x", SILENT),
    ],
)
def test_reserved_keys(key: str, verdict: Verdict, revision: str) -> None:
    found = judged(keyed(key, revision, {"taskId": "t"}))["acme"]
    assert found["meta.reserved-keys"] is (PASS if verdict is SILENT and revision == MODERN else verdict)
    assert found.faults == ({"meta.reserved-keys": WARN} if verdict is WARN else {})


PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


@each(
    "name, value, verdict",
    [
        ("traceparent", PARENT, PASS),
        ("traceparent", "cc" + PARENT[2:] + "-what-comes-later", PASS),
        ("traceparent", PARENT + "-more", FAIL),
        ("traceparent", "ff" + PARENT[2:], FAIL),
        ("traceparent", PARENT.upper(), FAIL),
        ("traceparent", f"00-{'0' * 32}-00f067aa0ba902b7-01", FAIL),
        ("traceparent", 5, FAIL),
        ("tracestate", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", PASS),
        ("tracestate", "1a-2f@foo=bar1 , ,b=c", PASS),
        ("tracestate", "", PASS),
        ("tracestate", "no equals sign", FAIL),
        ("tracestate", "UPPER=1", FAIL),
        ("tracestate", ",".join(f"a{number}=1" for number in range(33)), FAIL),
        ("baggage", "userId=alice,serverNode=DF%2028;prop=1;flag", PASS),
        ("baggage", "key = value", PASS),
        ("baggage", "a b=c", FAIL),
        ("baggage", 'a="b"', FAIL),
    ],
)
def test_trace_context(name: str, value: Any, verdict: Verdict) -> None:
    check(keyed(name, MODERN, value), "meta.trace-context", verdict)
    assert judged(keyed("x", MODERN))["acme"]["meta.trace-context"] is SILENT


# -- log levels


@each("revision", ["2025-03-26", "2025-06-18", "2025-11-25", MODERN])
@each(
    "level, verdict",
    [("debug", PASS), ("emergency", PASS), ("warn", FAIL), ("INFO", FAIL), ("trace", FAIL), (3, FAIL), (None, FAIL)],
)
def test_the_names_of_levels(level: Any, verdict: Verdict, revision: str) -> None:
    if revision == MODERN:
        check(keyed(PREFIX + "logLevel", MODERN, level), "logging.level", verdict)
    else:
        log = Log()
        log.stdio().session(revision).request("logging/setLevel", {"level": level})
        check(log, "logging.level", verdict)


def test_no_level_is_named() -> None:
    check(keyed("x", MODERN), "logging.level", SILENT)


# -- version.era-remembered


def probing(probes: int, requests: int, *, every: float = 5, transport: str = "stdio", new: bool = False) -> Log:
    log = Log()
    acme = getattr(log, transport)()
    for number in range(max(probes, requests)):
        if new:
            acme = getattr(log, transport)()
        if number < probes:
            acme.answer(acme.modern("server/discover"), {"ttlMs": 60_000, "capabilities": {"tools": {}}})
        if number < requests:
            acme.answer(acme.modern("tools/list"), {"tools": []})
        log.after(every)
    log.idle(1)
    return log


@each(
    "log, verdict",
    [
        (probing(20, 20), WARN),
        (probing(2, 20), PASS),
        (probing(5, 2), SILENT),
        (probing(20, 20, every=61), SILENT),
        (probing(20, 20, new=True), SILENT),
        (probing(20, 20, transport="websocket"), WARN),
        (probing(30, 0, transport="websocket"), WARN),
        (probing(20, 0, transport="http"), SILENT),
    ],
)
def test_the_era_is_remembered(log: Log, verdict: Verdict) -> None:
    found = judged(log)["acme"]
    assert found["version.era-remembered"] is verdict
    # Who probes again and again also asks again for what is fresh.
    assert found.faults.keys() <= {"version.era-remembered", "cache.fresh-kept", "cache.jitter"}


# -- version.missing-capability-learned

LACKING = {"code": -32021, "message": "no", "data": {"requiredCapabilities": {"sampling": {}}}}


def lacking(times: int, *, every: float = 5, arguments: Any = None, then: Any = None) -> Log:
    log = Log()
    acme = log.http()
    for number in range(times):
        given = {"number": number} if arguments == "other" else {}
        acme.answer(acme.modern("tools/call", {"name": "x", "arguments": given}), error=LACKING, status=400)
        log.after(every)
    if then is not None:
        acme.answer(acme.modern("tools/call", {"name": "x", "arguments": {}}, capabilities=then), {"content": []})
    log.idle(70)
    return log


@each(
    "log, verdict",
    [
        (lacking(3), WARN),
        (lacking(2), PASS),
        (lacking(3, every=40), PASS),
        (lacking(3, arguments="other"), PASS),
        (lacking(1, then={"sampling": {}}), PASS),
        (lacking(0), SILENT),
    ],
)
def test_a_missing_capability_is_learned(log: Log, verdict: Verdict) -> None:
    found = judged(log, only=["version.missing-capability-learned"]).get("acme")
    assert (SILENT if found is None else found["version.missing-capability-learned"]) is verdict

"""Rules `meta.*`, `logging.*` and `version.*`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from probe.judge.verdicts import Verdict

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, Story, check, play
from .logs import MODERN, Log, judged

PREFIX = "io.modelcontextprotocol/"
VERSION, CAPABILITIES, INFO = PREFIX + "protocolVersion", PREFIX + "clientCapabilities", PREFIX + "clientInfo"
FULL = {VERSION: MODERN, CAPABILITIES: {}, INFO: {"name": "acme", "version": "1"}}
NAMED, DECLARED, KNOWN = "meta.protocol-version", "meta.client-capabilities", "meta.client-info"
OBJECTS, KEYS, RESERVED = "meta.capability-objects", "meta.key-names", "meta.reserved-keys"
TRACE, LEVEL = "meta.trace-context", "logging.level"
REMEMBERED, LEARNED = "version.era-remembered", "version.missing-capability-learned"
LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
ALL = (*LEGACY, MODERN)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


def sent(meta: Any, transport: str = "http") -> Log:
    """One request of 2026-07-28; on a pipe a good one comes before it, which shows the era."""
    log = Log()
    acme = getattr(log, transport)()
    if transport != "http":
        acme.answer(acme.modern("tools/list"), {"tools": []})
    acme.modern("tools/list", meta=meta)
    return log


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in FULL.items() if name not in names}


def on_a_pipe(script: str, transport: str = "stdio") -> Log:
    """A probe for the era, and what follows it on the same pipe."""
    log = Log()
    pipe = getattr(log, transport)()
    pipe.modern("server/discover")
    play(log, script, {"list": lambda: pipe.request("tools/list"), "opens": pipe.session, "close": pipe.close})
    return log


def declared(capabilities: Any, revision: str) -> Log:
    log = Log()
    if revision == MODERN:
        log.http().modern("tools/list", capabilities=capabilities)
    else:
        log.http().session(revision, capabilities=capabilities)
    return log


def keyed(key: str, revision: str = "2025-11-25", value: Any = 1) -> Log:
    log = Log()
    acme = log.http()
    if revision == MODERN:
        acme.modern("tools/list", more_meta={key: value})
    else:
        acme.session(revision).request("tools/list", {"_meta": {key: value}})
    return log


def keyed_result() -> Log:
    log = Log()
    session = log.http().session()
    session.reply(session.get().ask("ping"), {"_meta": {"_foo": 1}})
    return log


def levelled(level: Any, revision: str) -> Log:
    if revision == MODERN:
        return keyed(PREFIX + "logLevel", MODERN, level)
    log = Log()
    log.stdio().session(revision).request("logging/setLevel", {"level": level})
    return log


def lacking(times: int, *, every: float = 5, arguments: Any = None, then: Any = None) -> Log:
    """Calls that lack the capability `sampling`."""
    log = Log()
    acme = log.http()
    error = {"code": -32021, "message": "no", "data": {"requiredCapabilities": {"sampling": {}}}}
    for number in range(times):
        given = {"number": number} if arguments == "other" else {}
        acme.answer(acme.modern("tools/call", {"name": "x", "arguments": given}), error=error, status=400)
        log.after(every)
    if then is not None:
        acme.answer(acme.modern("tools/call", {"name": "x", "arguments": {}}, capabilities=then), {"content": []})
    log.idle(70)
    return log


def of(rule: str, verdict: Verdict, stories: Iterable[Story]) -> list[tuple[str, Verdict, Story]]:
    return [(rule, verdict, story) for story in stories]


STORIES = [
    *(
        (rule, verdict, partial(sent, meta, transport))
        for rule, verdict, meta in (
            (NAMED, PASS, FULL),
            (NAMED, FAIL, without(VERSION)),
            (NAMED, FAIL, {**FULL, VERSION: 20260728}),
            (NAMED, FAIL, {}),
            (DECLARED, PASS, FULL),
            (DECLARED, FAIL, without(CAPABILITIES)),
            (DECLARED, FAIL, {**FULL, CAPABILITIES: None}),
            (DECLARED, FAIL, {**FULL, CAPABILITIES: []}),
            (KNOWN, PASS, FULL),
            (KNOWN, WARN, without(INFO)),
            ("jsonrpc.wire-schema", FAIL, {**FULL, INFO: {"name": "acme"}}),
        )
        for transport in ("http", "stdio", "websocket")
    ),
    # A silent request on a pipe may be of the legacy era, and a probe before initialize is no modern client.
    *of(NAMED, FAIL, (partial(on_a_pipe, "list", transport) for transport in ("stdio", "websocket"))),
    *of(NAMED, PASS, (partial(on_a_pipe, "list opens", transport) for transport in ("stdio", "websocket"))),
    (NAMED, PASS, partial(on_a_pipe, "list gap")),
    *(
        (OBJECTS, verdict, partial(declared, capabilities, revision))
        for verdict, capabilities in (
            (FAIL, {"sampling": True}),
            (FAIL, {"roots": None}),
            (FAIL, {"experimental": ["x"]}),
            (FAIL, {"sampling": "yes"}),
            (PASS, {"sampling": {}, "roots": {"listChanged": True}}),
            (SILENT, {"vendor": True}),
        )
        for revision in ALL
    ),
    # A capability that the revision does not know may hold anything.
    (OBJECTS, SILENT, partial(declared, {"elicitation": True}, "2025-03-26")),
    (OBJECTS, FAIL, partial(declared, {"elicitation": True}, "2025-06-18")),
    *(
        (KEYS, verdict, partial(keyed, key, revision))
        for verdict, keys in (
            (PASS, ("com.example/key", "claudecode/toolUseId", "vscode.conversationId", "a", "", "com.example/")),
            (PASS, ("a_b-c.d",)),
            (FAIL, ("_foo", "a b", "com..example/x", "1com/x", "com.example-/x", "a/b/c", "/x", "é")),
        )
        for key in keys
        for revision in ALL[1:]
    ),
    (KEYS, SILENT, partial(keyed, "progressToken")),
    (OBJECTS, SILENT, partial(keyed, "_foo", "2025-03-26")),
    (KEYS, FAIL, keyed_result),
    *(
        (TRACE, verdict, partial(keyed, name, MODERN, value))
        for name, verdict, values in (
            ("traceparent", PASS, (PARENT, "cc" + PARENT[2:] + "-what-comes-later")),
            ("traceparent", FAIL, (PARENT + "-more", "ff" + PARENT[2:], PARENT.upper(), 5)),
            ("traceparent", FAIL, (f"00-{'0' * 32}-00f067aa0ba902b7-01",)),
            ("tracestate", PASS, ("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "1a-2f@foo=bar1 , ,b=c", "")),
            ("tracestate", FAIL, ("no equals sign", "UPPER=1", ",".join(f"a{number}=1" for number in range(33)))),
            ("baggage", PASS, ("userId=alice,serverNode=DF%2028;prop=1;flag", "key = value")),
            ("baggage", FAIL, ("a b=c", 'a="b"')),
            ("x", SILENT, (1,)),
        )
        for value in values
    ),
    *(
        (LEVEL, verdict, partial(levelled, level, revision))
        for verdict, levels in ((PASS, ("debug", "emergency")), (FAIL, ("warn", "INFO", "trace", 3, None)))
        for level in levels
        for revision in ALL
    ),
    (LEVEL, SILENT, partial(keyed, "x", MODERN)),
]


@each("rule, verdict, story", STORIES)
def test_stories(rule: str, verdict: Verdict, story: Story) -> None:
    check(story(), rule, verdict)


@each("transport", ["stdio", "websocket"])
@each("script, verdict", [("list", PASS), ("list close", FAIL)])
def test_a_silent_request_is_judged_when_its_connection_is_over(script: str, verdict: Verdict, transport: str) -> None:
    check(on_a_pipe(script, transport), NAMED, verdict, end=False)


def test_a_missing_name_is_reported_once() -> None:
    log = Log()
    acme = log.http()
    for _ in range(3):
        acme.modern("tools/list", meta=without(INFO))
    assert len(judged(log)["acme"].remarks[KNOWN]) == 1


def test_a_newer_version_is_a_version() -> None:
    assert judged(sent({**FULL, VERSION: "2031-01-01"}))["acme"][NAMED] is PASS


def test_over_http_a_request_without_any_word_of_its_era_is_unknown() -> None:
    bare = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    log = Log()
    log.http(None).respond(log.http(None).post(bare), 400)
    found = judged(log)
    assert all(verdict <= UNCLEAR for each in found.values() for verdict in each.verdicts.values())
    log = Log()
    log.http().post(bare, headers={"mcp-method": "tools/list"})
    assert judged(log, only=[NAMED])["acme"][NAMED] is FAIL


def test_a_capability_that_is_hidden_is_not_judged() -> None:
    log = Log()
    client = {"name": "a", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {"roots": "[redacted]"}, "clientInfo": client}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    log.http().post(message, message={"hidden": (("/params/capabilities/roots", "object"),)})
    assert judged(log)["acme"].faults == {}


@each("revision", ["2025-11-25", MODERN])
@each(
    "key, verdict",
    [
        (PREFIX + "invented", WARN),
        ("dev.mcp/x", WARN),
        (PREFIX + "related-task", PASS),
        ("com.example.mcp/x", SILENT),
        ("mcp/x", SILENT),
    ],
)
def test_reserved_keys(key: str, verdict: Verdict, revision: str) -> None:
    found = judged(keyed(key, revision, {"taskId": "t"}))["acme"]
    assert found[RESERVED] is (PASS if verdict is SILENT and revision == MODERN else verdict)
    assert found.faults == ({RESERVED: WARN} if verdict is WARN else {})


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
    assert found[REMEMBERED] is verdict
    # A client that probes again and again also asks again for what is fresh.
    assert found.faults.keys() <= {REMEMBERED, "cache.fresh-kept", "cache.jitter"}


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
    found = judged(log, only=[LEARNED]).get("acme")
    assert (SILENT if found is None else found[LEARNED]) is verdict

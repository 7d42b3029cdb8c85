"""Rules `lifecycle.*`."""

from __future__ import annotations

from typing import Any

import pytest

from probe.judge.verdicts import Verdict
from probe.log import events
from probe.log.context import Context

from .logs import Log, judged

FAIL, WARN, UNCLEAR, PASS, NONE = (
    Verdict.FAIL,
    Verdict.WARN,
    Verdict.INCONCLUSIVE,
    Verdict.PASS,
    Verdict.NOT_OBSERVED,
)
TRANSPORTS = ["http", "stdio", "websocket"]
LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]


def client(transport: str = "http", label: str | None = "acme") -> tuple[Log, Any]:
    log = Log()
    return log, getattr(log, transport)(label)


def check(log: Log, rule: str, verdict: Verdict, *, end: bool = True, label: str = "acme") -> None:
    """The rule has the verdict, and no other has found a fault."""
    found = judged(log, end=end)[label]
    assert found[rule] is verdict, found.remarks[rule]
    assert found.faults == ({rule: verdict} if verdict > UNCLEAR else {}), found.faults


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_subject_that_says_nothing_is_not_observed(transport: str) -> None:
    log, acme = client(transport)
    if transport == "http":
        acme.request_head("OPTIONS")
    found = judged(log)["acme"]
    assert {verdict for rule, verdict in found.verdicts.items() if rule.startswith("lifecycle.")} == {NONE}


# -- lifecycle.initialize-first


def bare(acme: Any, method: str = "tools/list", **options: Any) -> Any:
    return acme.post({"jsonrpc": "2.0", "id": 40, "method": method}, **options)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("revision", LEGACY)
def test_a_client_begins_with_initialize(transport: str, revision: str) -> None:
    log, acme = client(transport)
    acme.session(revision)
    check(log, "lifecycle.initialize-first", PASS)
    log, acme = client(transport)
    bare(acme)
    acme.session(revision)
    check(log, "lifecycle.initialize-first", FAIL)
    log, acme = client(transport)
    bare(acme)
    check(log, "lifecycle.initialize-first", FAIL)
    check(log, "lifecycle.initialize-first", NONE, end=False)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_probe_a_ping_and_a_modern_request_may_come_first(transport: str) -> None:
    log, acme = client(transport)
    acme.modern("server/discover")
    acme.session()
    check(log, "lifecycle.initialize-first", PASS)
    log, acme = client(transport)
    bare(acme, "ping")
    acme.session()
    check(log, "lifecycle.initialize-first", PASS)
    log, acme = client(transport)
    bare(acme)
    acme.modern("tools/list")
    found = judged(log)["acme"]
    assert found["lifecycle.initialize-first"] is NONE


def test_initialized_before_initialize() -> None:
    log, acme = client("stdio")
    acme.notify("notifications/initialized")
    check(log, "lifecycle.initialize-first", FAIL, end=False)


def test_a_beginning_that_the_log_has_not_is_not_decided() -> None:
    log, acme = client()
    log.gap()
    bare(acme)
    acme.session()
    check(log, "lifecycle.initialize-first", UNCLEAR)


def test_requests_of_two_clients_under_one_label_are_not_told_apart() -> None:
    log, acme = client()
    bare(acme)
    log.http(name="other").session()
    log.http(name="third").session(id=90)
    check(log, "lifecycle.initialize-first", FAIL)  # it came before anybody else did
    log, acme = client()
    acme.request_head("GET")
    log.add(events.ClientSeen("", "2026-07-28", "a", "1", b"{}"), Context("tcp8", 800, "acme", "m1"))
    log.add(events.ClientSeen("", "2026-07-28", "b", "1", b"{}"), Context("tcp8", 801, "acme", "m2"))
    bare(acme)
    check(log, "lifecycle.initialize-first", UNCLEAR)


def test_a_session_of_an_earlier_run_is_none_of_this_rule() -> None:
    log, acme = client()
    bare(acme, headers={"mcp-session-id": "ffffffff…"})
    acme.session()
    check(log, "lifecycle.initialize-first", PASS)


def test_a_client_without_a_label_is_not_accused_for_what_belongs_to_nobody() -> None:
    log, acme = client(label=None)
    acme.respond(bare(acme), 400)
    acme.session()
    found = judged(log)
    assert "lifecycle.initialize-first" not in found["unattributed"].verdicts
    assert found["s1"]["lifecycle.initialize-first"] is PASS


def test_what_was_refused_for_a_limit_is_no_evidence() -> None:
    log, acme = client()
    asked = acme.post({"jsonrpc": "2.0", "id": 40, "method": "tools/list"})
    acme.respond(asked, 503)
    acme.session()
    check(log, "lifecycle.initialize-first", UNCLEAR)


# -- initialize itself


def initialize(params: Any, transport: str = "http") -> Log:
    log, acme = client(transport)
    acme.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    return log


GOOD = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "acme", "version": "1"}}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, PASS),
        ({"extra": 1}, PASS),
        ({"protocolVersion": 5}, FAIL),
        ({"protocolVersion": None}, FAIL),
        ({"capabilities": None}, FAIL),
        ({"capabilities": []}, FAIL),
        ({"clientInfo": "acme"}, FAIL),
        ({"clientInfo": {"name": "acme"}}, FAIL),
        ({"clientInfo": {"name": 5, "version": "1"}}, FAIL),
        ({"clientInfo": {"name": "acme", "version": ""}}, WARN),
    ],
)
def test_initialize_is_complete(change: Any, verdict: Verdict, transport: str) -> None:
    check(initialize({**GOOD, **change}, transport), "lifecycle.initialize-complete", verdict)


def test_a_missing_member_of_initialize() -> None:
    for name in GOOD:
        params = {key: value for key, value in GOOD.items() if key != name}
        check(initialize(params), "lifecycle.initialize-complete", FAIL)


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("2024-11-05", PASS),
        ("2025-11-25", PASS),
        ("2031-01-01", PASS),
        ("2026-07-28", WARN),
        ("DRAFT-2026-v1", WARN),
        ("2026-07-28-rc.1", WARN),
        ("1.0", FAIL),
        ("latest", FAIL),
        ("", FAIL),
        ("２025-11-25", FAIL),
    ],
)
def test_the_version_exists(version: str, verdict: Verdict) -> None:
    check(initialize({**GOOD, "protocolVersion": version}), "lifecycle.version-known", verdict)


# -- notifications/initialized


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_initialized_is_sent(transport: str) -> None:
    log, acme = client(transport)
    session = acme.session()
    session.request("tools/list")
    log.after(5)
    check(log, "lifecycle.initialized-sent", PASS)
    log, acme = client(transport)
    session = acme.session(initialized=False)
    session.request("tools/list")
    log.idle(5)
    # It may have been killed behind its first request.
    check(log, "lifecycle.initialized-sent", UNCLEAR)
    session.request("prompts/list")
    check(log, "lifecycle.initialized-sent", FAIL)
    check(log, "lifecycle.initialized-sent", NONE, end=False)
    log.idle(10)
    check(log, "lifecycle.initialized-sent", UNCLEAR, end=False)


def test_a_session_that_ends_without_initialized() -> None:
    log, acme = client()
    session = acme.session(initialized=False)
    session.request("tools/list")
    log.after(3)
    session.delete()
    check(log, "lifecycle.initialized-sent", FAIL, end=False)


def test_another_name_of_initialized() -> None:
    log, acme = client()
    session = acme.session(initialized=False)
    session.notify("initialized")
    session.request("tools/list")
    found = judged(log)["acme"]
    assert found["lifecycle.initialized-sent"] is FAIL
    assert found.remarks["lifecycle.initialized-sent"] == ['the notification is named "initialized"']


@pytest.mark.parametrize("late", ["http", "without session", "only ping", "limit", "gap", "at once", "unread"])
def test_initialized_that_is_late_or_lost_or_not_owed(late: str) -> None:
    log, acme = client()
    session = acme.session(initialized=False)
    asked = session.request("ping" if late == "only ping" else "tools/list")
    if late == "limit":
        acme.respond(asked, 429)
    if late == "gap":
        log.gap()
    log.idle(1 if late in ("http", "at once") else 12)
    if late == "http":
        session.notify("notifications/initialized")
    elif late == "without session":
        acme.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    elif late == "unread":
        headers = {"mcp-session-id": "abcdefgh…", "mcp-protocol-version": "2025-11-25"}
        unread = acme.request_head("POST", session.context, named=session.label, headers=headers)
        acme.respond(unread, 429, refusal="TOO_MANY_REQUESTS")
        log.idle(3)
    found = judged(log)["acme"]
    assert found["lifecycle.initialized-sent"] <= UNCLEAR if late != "http" else PASS
    assert "lifecycle.initialized-sent" not in found.faults


@pytest.mark.parametrize(
    ("transport", "wait", "verdict"),
    [("http", 3, WARN), ("http", 1, PASS), ("stdio", 0, WARN), ("websocket", 1, WARN)],
)
def test_a_request_before_initialized(transport: str, wait: float, verdict: Verdict) -> None:
    log, acme = client(transport)
    session = acme.session(initialized=False)
    session.request("tools/list")
    log.after(wait)
    session.notify("notifications/initialized")
    check(log, "lifecycle.initialized-before-requests", verdict)
    log, acme = client(transport)
    session = acme.session()
    session.request("tools/list")
    check(log, "lifecycle.initialized-before-requests", PASS)


def test_a_ping_before_initialized_is_allowed() -> None:
    log, acme = client("stdio")
    session = acme.session(initialized=False)
    session.request("ping")
    session.notify("notifications/initialized")
    check(log, "lifecycle.initialized-before-requests", NONE)


@pytest.mark.parametrize(("wait", "verdict"), [(3, WARN), (1, PASS)])
def test_initialized_again(wait: float, verdict: Verdict) -> None:
    log, acme = client()
    session = acme.session()
    log.after(wait)
    session.notify("notifications/initialized")
    check(log, "lifecycle.initialized-once", verdict)


def test_a_second_session_has_its_own_initialized() -> None:
    log, acme = client()
    for _ in range(2):
        log.after(5)
        acme.session()
    check(log, "lifecycle.initialized-once", PASS)


# -- lifecycle.waits-for-initialize


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_requests_wait_for_the_answer_to_initialize(transport: str) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "acme", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    for method, verdict in (("tools/list", WARN), ("ping", NONE)):
        log, acme = client(transport)
        acme.post(message)
        bare(acme, method)
        check(log, "lifecycle.waits-for-initialize", verdict)
    log, acme = client(transport)
    acme.session().request("tools/list")
    check(log, "lifecycle.waits-for-initialize", PASS)


def test_a_request_without_a_label_waits_for_nobody() -> None:
    log, acme = client(label=None)
    acme.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": GOOD})
    acme.respond(bare(acme), 400)
    assert all("lifecycle.waits-for-initialize" not in found.faults for found in judged(log).values())


def test_a_modern_probe_beside_initialize() -> None:
    log, acme = client("stdio")
    acme.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": GOOD})
    acme.modern("server/discover", id=2)
    check(log, "lifecycle.waits-for-initialize", NONE)


# -- lifecycle.capabilities-respected

ASKING = [
    ("prompts/list", {}),
    ("resources/read", {"uri": "x:y"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}),
    ("logging/setLevel", {"level": "info"}),
]


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(("method", "params"), ASKING)
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_what_the_server_declared_is_used(revision: str, method: str, params: Any, transport: str) -> None:
    log, acme = client(transport)
    acme.session(revision).request(method, params)
    check(log, "lifecycle.capabilities-respected", PASS)
    log, acme = client(transport)
    acme.session(revision, server={"tools": {}}).request(method, params)
    check(log, "lifecycle.capabilities-respected", WARN if revision == "2025-03-26" else FAIL)


def test_a_list_of_tools_does_no_harm() -> None:
    log, acme = client()
    acme.session(server={}).request("tools/list")
    check(log, "lifecycle.capabilities-respected", WARN)


def test_a_request_before_the_answer_was_read_cannot_know() -> None:
    log, acme = client("stdio")
    acme.session(server={}, initialized=False).request("prompts/list")
    found = judged(log)["acme"]
    assert found["lifecycle.capabilities-respected"] is NONE


@pytest.mark.parametrize(("query", "verdict"), [("tools=a", WARN), ("tools=b", NONE)])
def test_a_modern_client_that_has_asked_knows_of_that_url(query: str, verdict: Verdict) -> None:
    log, acme = client()
    asked = acme.modern("server/discover", query="tools=a&client=acme")
    acme.answer(asked, {"capabilities": {"tools": {}}, "supportedVersions": []})
    acme.modern("prompts/list", query=f"{query}&client=acme")
    check(log, "lifecycle.capabilities-respected", verdict)


def test_a_modern_client_need_not_ask() -> None:
    log, acme = client()
    acme.modern("prompts/list")
    check(log, "lifecycle.capabilities-respected", NONE)


@pytest.mark.parametrize("way", ["stdio", "websocket", "http"])
def test_a_notification_that_is_missing_in_the_log_was_perhaps_sent(way: str) -> None:
    log = Log()
    session = getattr(log, way)().session(initialized=False)
    log.gap()
    session.request("tools/list")
    log.idle(30)
    assert judged(log)["acme"].faults == {}


def test_a_remark_about_nobody_says_why() -> None:
    log = Log()
    acme = log.http(None)
    value = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    acme.respond(acme.post(value, Context(session="m1")), 400)
    (found,) = judged(log).values()
    said = "nothing says that this is one client; tools/list came before any initialize"
    assert found.remarks["lifecycle.initialize-first"] == [said]

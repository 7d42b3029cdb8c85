"""Rules `http.*` about the heads of requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from probe.judge.verdicts import Verdict

from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check
from .logs import MODERN, Log

BOTH = "application/json, text/event-stream"


def posts(headers: Mapping[str, str | None], **options: Any) -> Log:
    log = Log()
    client = log.http()
    head = client.request_head("POST", headers=headers, **options)
    client.respond(head, 200)
    return log


@pytest.mark.parametrize(
    ("accept", "verdict"),
    [
        (BOTH, PASS),
        ("Text/Event-Stream;q=0.5,APPLICATION/JSON; charset=utf-8", PASS),
        (f"{BOTH}, */*;q=0", PASS),
        ("*/*", WARN),
        ("application/*, text/event-stream", WARN),
        ("application/json", FAIL),
        ("application/json, text/event-stream;q=0.0", FAIL),
        ("text/html", FAIL),
        (None, FAIL),
    ],
)
def test_a_post_accepts_both_forms(accept: str | None, verdict: Verdict) -> None:
    check(posts({"accept": accept}), "http.post-accept", verdict)


@pytest.mark.parametrize(
    ("headers", "path"),
    [({"content-length": "0"}, "/mcp"), ({"content-type": None}, "/mcp"), ({"content-length": "9"}, "/login")],
)
def test_what_carries_no_message_is_no_post_of_the_protocol(headers: Mapping[str, str | None], path: str) -> None:
    for rule in ("http.post-accept", "http.content-type"):
        check(posts({"accept": "text/html", **headers}, path=path), rule, SILENT)


def test_a_preflight_is_no_post() -> None:
    log = Log()
    log.http().request_head("OPTIONS", headers={"accept": "*/*"})
    check(log, "http.post-accept", SILENT)


def gets(accept: str | None, headers: Mapping[str, str | None] | None = None) -> Log:
    log = Log()
    client = log.http()
    given = {"mcp-session-id": "abcdefgh…", **(headers or {}), "accept": accept}
    client.request_head("GET", headers=given)
    return log


@pytest.mark.parametrize(
    ("accept", "verdict"),
    [("text/event-stream", PASS), ("*/*", WARN), ("text/*", WARN), ("application/json", FAIL), (None, FAIL)],
)
def test_a_get_accepts_event_streams(accept: str | None, verdict: Verdict) -> None:
    check(gets(accept), "http.get-accept", verdict)


def test_a_browser_on_the_address_is_not_judged() -> None:
    check(gets("text/html,*/*", {"mcp-session-id": None}), "http.get-accept", SILENT)


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ("application/json", PASS),
        ('Application/JSON; Charset="UTF-8"', PASS),
        ("text/plain", WARN),
        ("application/json; charset=latin-1", WARN),
        (None, WARN),
    ],
)
def test_a_body_is_said_to_be_json(given: str | None, verdict: Verdict) -> None:
    check(posts({"content-type": given, "content-length": "20"}), "http.content-type", verdict)


LATER = ["2025-06-18", "2025-11-25"]


@pytest.mark.parametrize("revision", LATER)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_every_request_of_a_session_names_the_version(revision: str, method: str) -> None:
    for version, verdict in ((revision, PASS), (None, FAIL)):
        log = Log()
        client = log.http()
        session = client.session(revision)
        headers = {"mcp-session-id": "abcdefgh…", "mcp-protocol-version": version}
        client.respond(client.request_head(method, headers=headers, named=session.label))
        check(log, "http.version-header", verdict)


def test_the_first_revision_has_no_version_header() -> None:
    log = Log()
    log.http().session("2025-03-26").request("tools/list")
    check(log, "http.version-header", SILENT)
    check(log, "http.version-header-negotiated", SILENT)


@pytest.mark.parametrize(("initialized", "verdict"), [(False, SILENT), (True, FAIL)])
def test_a_client_that_declines_the_revision_of_the_server_owes_it_nothing(initialized: bool, verdict: Verdict) -> None:
    log = Log()
    client = log.http()
    session = client.session(asks="2024-11-05", initialized=initialized)
    headers = {"mcp-session-id": "abcdefgh…"}
    client.respond(client.request_head("DELETE", headers=headers, named=session.label), 405)
    check(log, "http.version-header", verdict)


def test_what_was_under_way_when_the_answer_came_names_no_version() -> None:
    log = Log()
    client = log.http()
    session = client.session(initialized=False)
    log.items.pop()
    log.seq -= 1
    client.respond(client.request_head("GET", headers={"mcp-session-id": "abcdefgh…"}, named=session.label))
    check(log, "http.version-header", SILENT)


@pytest.mark.parametrize(
    ("named", "verdict"),
    [
        ("2025-11-25", PASS),
        ("2025-11-25, 2025-11-25", WARN),
        ("2025-06-18", WARN),
        ("2025-11-25, 2025-06-18", WARN),
        ("latest", WARN),
    ],
)
def test_the_version_is_the_negotiated_one(named: str, verdict: Verdict) -> None:
    log = Log()
    client = log.http()
    session = client.session(initialized=False)
    headers = {"mcp-session-id": "abcdefgh…", "mcp-protocol-version": named}
    client.request_head("GET", headers=headers, named=session.label)
    check(log, "http.version-header-negotiated", verdict)


def test_a_modern_request_with_a_session_id_is_not_of_the_session() -> None:
    log = Log()
    client = log.http()
    session = client.session()
    client.modern("tools/list", headers={"mcp-session-id": "abcdefgh…"}, named=session.label)
    check(log, "http.version-header-negotiated", PASS)
    check(log, "http.no-session-remains", SILENT)


# Each row sends something after a session was opened, and says what `http.session-header` finds.
def bare(log: Log, value: Any, status: int = 400, refusal: str = "MISSING_SESSION", **options: Any) -> None:
    client = log.http()
    asked = client.post(value, headers={"mcp-protocol-version": "2025-11-25"}, **options)
    if status == 202:
        client.respond(asked, 202)
    else:
        client.refuse(asked, status, refusal)


REQUEST = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}


def test_a_request_on_the_connection_of_the_session_has_its_id() -> None:
    log = Log()
    log.http().session().request("tools/list", connection="tcp77")
    check(log, "http.session-header", PASS)
    bare(log, REQUEST, connection="tcp77")
    check(log, "http.session-header", FAIL)


def test_a_delete_has_the_id() -> None:
    log = Log()
    client = log.http()
    client.session()
    head = client.request_head("DELETE", headers={"mcp-protocol-version": "2025-11-25"}, connection="tcp2")
    client.respond(head, 405, refusal="METHOD_NOT_ALLOWED")
    check(log, "http.session-header", FAIL)


def test_on_another_connection_it_is_waited_for_another_process() -> None:
    for another, verdict in ((False, FAIL), (True, UNCLEAR)):
        log = Log()
        log.http().session()
        bare(log, REQUEST, connection="tcp99")
        if another:
            log.http().session()
        log.idle(11)
        check(log, "http.session-header", verdict)


def innocent_acts() -> list[Callable[[Log], None]]:
    def old_transport(log: Log) -> None:
        client = log.http()
        client.respond(client.request_head("GET", connection="tcp2"), 405, refusal="METHOD_NOT_ALLOWED")

    return [
        lambda log: bare(log, {"jsonrpc": "2.0", "id": 9, "method": "initialize"}, connection="tcp2"),
        lambda log: bare(log, {"jsonrpc": "2.0", "id": 9, "method": "server/discover"}, connection="tcp2"),
        lambda log: bare(log, REQUEST, 429, "TOO_MANY_REQUESTS", connection="tcp2"),
        lambda log: bare(log, REQUEST, 202, connection="tcp2"),
        lambda log: (log.http().modern("tools/list"), None)[1],
        old_transport,
    ]


@pytest.mark.parametrize("act", innocent_acts())
def test_what_needs_no_session_id(act: Callable[[Log], None]) -> None:
    log = Log()
    log.http().session()
    act(log)
    log.idle(30)
    check(log, "http.session-header", PASS, only=HEAD_RULES)


def test_a_ping_may_come_before_initialize() -> None:
    log = Log()
    log.http().session()
    bare(log, {"jsonrpc": "2.0", "id": 9, "method": "ping"}, connection="tcp2")
    check(log, "http.session-header", UNCLEAR, only=HEAD_RULES)


def test_without_an_open_session_there_is_no_id() -> None:
    log = Log()
    log.http().session().delete()
    bare(log, REQUEST)
    log.idle(30)
    check(log, "http.session-header", PASS, only=HEAD_RULES)


def test_two_clients_under_one_label_accuse_nobody() -> None:
    log = Log()
    log.http().session()
    log.http(name="other").session()
    bare(log, REQUEST, connection="tcp1")
    check(log, "http.session-header", UNCLEAR)


def test_without_a_label_nobody_has_sent_it() -> None:
    log = Log()
    client = log.http(None)
    client.session()
    asked = client.post(REQUEST, headers={"mcp-protocol-version": "2025-11-25"}, connection="tcp1")
    client.respond(asked, 400, refusal="MISSING_SESSION")
    log.idle(30)
    check(log, "http.session-header", SILENT, "s1")
    check(log, "http.session-header", SILENT, "unattributed")


def test_a_gap_leaves_open_whose_a_request_was() -> None:
    log = Log()
    log.http().session()
    bare(log, REQUEST, connection="tcp99")
    log.gap()
    log.idle(30)
    check(log, "http.session-header", UNCLEAR)


# Each row is a modern request with other headers.
MODERN_HEADS: list[tuple[str, str, Mapping[str, Any], Mapping[str, str | None], Verdict]] = [
    ("http.meta-version-header", "tools/list", {}, {}, PASS),
    ("http.meta-version-header", "tools/list", {}, {"mcp-protocol-version": None}, FAIL),
    ("http.meta-version-header", "tools/list", {}, {"mcp-protocol-version": f"{MODERN}, {MODERN}"}, WARN),
    ("http.meta-version-equal", "tools/list", {}, {}, PASS),
    ("http.meta-version-equal", "tools/list", {}, {"mcp-protocol-version": "2025-11-25"}, FAIL),
    ("http.meta-version-equal", "tools/list", {}, {"mcp-protocol-version": f"{MODERN}, 2025-11-25"}, FAIL),
    ("http.mcp-method", "tools/list", {}, {}, PASS),
    ("http.mcp-method", "tools/list", {}, {"mcp-method": " \ttools/list "}, PASS),
    ("http.mcp-method", "tools/list", {}, {"mcp-method": None}, FAIL),
    ("http.mcp-method", "tools/list", {}, {"mcp-method": "Tools/List"}, FAIL),
    ("http.mcp-method", "tools/list", {}, {"mcp-method": "tools/list, tools/list"}, WARN),
    ("http.mcp-method", "vendor/ÿ", {}, {"mcp-method": "vendor/y"}, UNCLEAR),
    ("http.mcp-name", "tools/call", {"name": "x"}, {}, PASS),
    ("http.mcp-name", "prompts/get", {"name": "x"}, {}, PASS),
    ("http.mcp-name", "resources/read", {"uri": "test://a"}, {}, PASS),
    ("http.mcp-name", "resources/read", {"uri": "test://a/%41"}, {"mcp-name": "test://a/A"}, FAIL),
    ("http.mcp-name", "tools/call", {"name": "é"}, {"mcp-name": "=?base64?w6k=?="}, PASS),
    ("http.mcp-name", "tools/call", {"name": "é"}, {"mcp-name": "\u00c3\u00a9"}, UNCLEAR),
    ("http.mcp-name", "tools/call", {"name": " x"}, {"mcp-name": "x"}, UNCLEAR),
    ("http.mcp-name", "tools/call", {"name": "x"}, {"mcp-name": None}, FAIL),
    ("http.mcp-name", "tools/call", {"name": "x"}, {"mcp-name": "y"}, FAIL),
    ("http.mcp-name", "tools/call", {"name": "x"}, {"mcp-name": "=?base64?w6k=?="}, FAIL),
    ("http.mcp-name", "tools/call", {"name": "x"}, {"mcp-name": "=?base64?w6k?="}, FAIL),
    ("http.mcp-name", "tools/list", {}, {}, SILENT),
    ("http.mcp-name-task", "tasks/get", {"taskId": "t1"}, {}, PASS),
    ("http.mcp-name-task", "tasks/cancel", {"taskId": "t1"}, {"mcp-name": None}, FAIL),
    ("http.mcp-name-task", "tasks/update", {"taskId": "t1"}, {"mcp-name": "t2"}, FAIL),
    ("http.no-posted-responses", "tools/list", {}, {}, PASS),
    ("http.no-session-remains", "tools/list", {}, {}, PASS),
    ("http.no-session-remains", "tools/list", {}, {"mcp-session-id": "abcdefgh…"}, WARN),
    ("http.no-session-remains", "tools/list", {}, {"last-event-id": "p1-1"}, WARN),
]


@pytest.mark.parametrize(("rule", "method", "params", "headers", "verdict"), MODERN_HEADS)
def test_a_modern_head_repeats_the_body(
    rule: str, method: str, params: Mapping[str, Any], headers: Mapping[str, str | None], verdict: Verdict
) -> None:
    log = Log()
    log.http().modern(method, params, headers=headers)
    check(log, rule, verdict, only=HEAD_RULES)


# The params of a made-up method or task are another rule's business.
HEAD_RULES = {row[0] for row in MODERN_HEADS} | {"http.session-header"}


def test_a_name_that_is_none_is_the_schemas_business() -> None:
    log = Log()
    log.http().modern("tools/call", {"name": 5}, headers={"mcp-name": None})
    check(log, "http.mcp-name", SILENT, only=HEAD_RULES)


def test_a_notification_needs_no_headers() -> None:
    log = Log()
    client = log.http()
    params = {"requestId": 1, "_meta": client.meta()}
    client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    for rule in ("http.meta-version-header", "http.mcp-method"):
        check(log, rule, SILENT, only=HEAD_RULES)


def test_legacy_requests_have_no_modern_headers() -> None:
    log = Log()
    session = log.http().session()
    # A client that speaks both eras may keep its `_meta`.
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN}
    session.request("tools/call", {"name": "x", "_meta": meta})
    for rule in HEAD_RULES - {"http.session-header"}:
        check(log, rule, SILENT, only=HEAD_RULES)


ANSWER = {"jsonrpc": "2.0", "id": "q1", "result": {}}


@pytest.mark.parametrize(
    ("headers", "verdict"),
    [
        ({"mcp-protocol-version": MODERN}, FAIL),
        ({"mcp-protocol-version": MODERN, "mcp-session-id": "abcdefgh…"}, SILENT),
        ({"mcp-protocol-version": "2025-11-25"}, SILENT),
        ({}, SILENT),
    ],
)
def test_only_a_session_takes_responses(headers: Mapping[str, str | None], verdict: Verdict) -> None:
    log = Log()
    log.http().post(ANSWER, headers=headers)
    check(log, "http.no-posted-responses", verdict, only=HEAD_RULES)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_modern_get_or_delete_is_left_over(method: str) -> None:
    log = Log()
    client = log.http()
    client.request_head(method, headers={"mcp-protocol-version": MODERN})
    check(log, "http.no-session-remains", WARN)
    log.items.clear()
    client.request_head(method)
    check(log, "http.no-session-remains", SILENT)


def test_who_had_a_session_before_the_log_is_not_known() -> None:
    log = Log()
    log.gap()
    log.http().modern("tools/list", headers={"mcp-session-id": "abcdefgh…"})
    check(log, "http.no-session-remains", UNCLEAR)

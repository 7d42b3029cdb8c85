"""Rules `http.*` about the heads of requests; `test_same_bytes.py` holds them to what the server refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from probe.judge.verdicts import Verdict

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check
from .logs import MODERN, Log, judged

Headers: TypeAlias = Mapping[str, str | None]

BOTH: Final = "application/json, text/event-stream"
ACCEPT, GET_ACCEPT, TYPE = "http.post-accept", "http.get-accept", "http.content-type"
VERSION, NEGOTIATED, SESSION = "http.version-header", "http.version-header-negotiated", "http.session-header"
ID: Final = {"mcp-session-id": "abcdefgh…"}


def head(method: str, headers: Headers, path: str = "/mcp") -> Log:
    log = Log()
    client = log.http()
    client.respond(client.request_head(method, headers=headers, path=path))
    return log


@each(
    "rule, method, headers, verdict",
    [
        (ACCEPT, "POST", {"accept": BOTH}, PASS),
        (ACCEPT, "POST", {"accept": "Text/Event-Stream;q=0.5,APPLICATION/JSON; charset=utf-8"}, PASS),
        (ACCEPT, "POST", {"accept": f"{BOTH}, */*;q=0"}, PASS),
        (ACCEPT, "POST", {"accept": "*/*"}, WARN),
        (ACCEPT, "POST", {"accept": "application/*, text/event-stream"}, WARN),
        (ACCEPT, "POST", {"accept": "application/json"}, FAIL),
        (ACCEPT, "POST", {"accept": "application/json, text/event-stream;q=0.0"}, FAIL),
        (ACCEPT, "POST", {"accept": "text/html"}, FAIL),
        (ACCEPT, "POST", {"accept": None}, FAIL),
        (ACCEPT, "OPTIONS", {"accept": "*/*"}, SILENT),
        (GET_ACCEPT, "GET", {**ID, "accept": "text/event-stream"}, PASS),
        (GET_ACCEPT, "GET", {**ID, "accept": "*/*"}, WARN),
        (GET_ACCEPT, "GET", {**ID, "accept": "text/*"}, WARN),
        (GET_ACCEPT, "GET", {**ID, "accept": "application/json"}, FAIL),
        (GET_ACCEPT, "GET", {**ID, "accept": None}, FAIL),
        (GET_ACCEPT, "GET", {"accept": "text/html,*/*"}, SILENT),  # a browser on the address
        (TYPE, "POST", {"content-type": "application/json"}, PASS),
        (TYPE, "POST", {"content-type": 'Application/JSON; Charset="UTF-8"'}, PASS),
        (TYPE, "POST", {"content-type": "text/plain"}, WARN),
        (TYPE, "POST", {"content-type": "application/json; charset=latin-1"}, WARN),
        (TYPE, "POST", {"content-type": None, "content-length": "20"}, WARN),
    ],
)
def test_heads(rule: str, method: str, headers: Headers, verdict: Verdict) -> None:
    check(head(method, headers), rule, verdict)


@each("rule", [ACCEPT, TYPE])
@each(
    "headers, path",
    [({"content-length": "0"}, "/mcp"), ({"content-type": None}, "/mcp"), ({"content-length": "9"}, "/login")],
)
def test_what_carries_no_message_is_no_post_of_the_protocol(rule: str, headers: Headers, path: str) -> None:
    check(head("POST", {"accept": "text/html", **headers}, path), rule, SILENT)


@each("method", ["POST", "GET", "DELETE"])
@each("revision", ["2025-06-18", "2025-11-25"])
@each("names, verdict", [(True, PASS), (False, FAIL)])
def test_every_request_of_a_session_names_the_version(
    method: str, revision: str, names: bool, verdict: Verdict
) -> None:
    log = Log()
    client = log.http()
    session = client.session(revision)
    headers = {**ID, "mcp-protocol-version": revision if names else None}
    client.respond(client.request_head(method, headers=headers, named=session.label))
    check(log, VERSION, verdict)


def test_an_initialize_in_a_session_and_a_version_without_one_are_not_judged() -> None:
    log = Log()
    client = log.http()
    client.request_head("GET", headers={"mcp-protocol-version": "2025-11-25"})
    check(log, VERSION, SILENT)
    session = client.session(initialized=False)
    client.respond(client.post(rpc("initialize"), headers=ID, named=session.label), 400)
    check(log, VERSION, SILENT, only={VERSION})


def test_the_first_revision_has_no_version_header() -> None:
    log = Log()
    log.http().session("2025-03-26").request("tools/list")
    for rule in (VERSION, NEGOTIATED):
        check(log, rule, SILENT)


@each("initialized, verdict", [(False, SILENT), (True, FAIL)])
def test_a_client_that_declines_the_revision_of_the_server_owes_it_nothing(initialized: bool, verdict: Verdict) -> None:
    log = Log()
    client = log.http()
    session = client.session(asks="2024-11-05", initialized=initialized)
    client.respond(client.request_head("DELETE", headers=ID, named=session.label), 405)
    check(log, VERSION, verdict)


def test_what_was_under_way_when_the_answer_came_names_no_version() -> None:
    log = Log()
    client = log.http()
    session = client.session(initialized=False)
    log.items.pop()
    log.seq -= 1
    client.respond(client.request_head("GET", headers=ID, named=session.label))
    check(log, VERSION, SILENT)


@each(
    "named, verdict",
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
    client.request_head("GET", headers={**ID, "mcp-protocol-version": named}, named=session.label)
    check(log, NEGOTIATED, verdict)


def test_a_modern_request_with_a_session_id_is_not_of_the_session() -> None:
    log = Log()
    client = log.http()
    session = client.session()
    client.modern("tools/list", headers=ID, named=session.label)
    check(log, NEGOTIATED, PASS)
    check(log, "http.no-session-remains", SILENT)


def rpc(method: str) -> Mapping[str, Any]:
    return {"jsonrpc": "2.0", "id": 9, "method": method}


def bare(
    method: str = "tools/list", connection: str = "tcp2", status: int = 400, refusal: str = "MISSING_SESSION"
) -> Callable[[Log], None]:
    """A request without a session id; tcp1 is the connection of the `initialize` of the first session."""

    def act(log: Log) -> None:
        client = log.http()
        asked = client.post(rpc(method), headers={"mcp-protocol-version": "2025-11-25"}, connection=connection)
        if status == 202:
            client.respond(asked, 202)
        else:
            client.refuse(asked, status, refusal)

    return act


def bare_head(method: str, headers: Headers) -> Callable[[Log], None]:
    def act(log: Log) -> None:
        client = log.http()
        asked = client.request_head(method, headers=headers, connection="tcp2")
        client.respond(asked, 405, refusal="METHOD_NOT_ALLOWED")

    return act


@each(
    "acts, verdict",
    [
        ([lambda log: log.http().session().request("tools/list")], PASS),
        ([bare()], FAIL),
        ([bare_head("DELETE", {"mcp-protocol-version": "2025-11-25"})], FAIL),
        ([bare(connection="tcp99")], FAIL),
        ([bare(connection="tcp99"), lambda log: log.http().session()], UNCLEAR),  # another process
        ([bare(connection="tcp1"), lambda log: log.http().session()], FAIL),  # that of `initialize`
        ([bare(connection="tcp99"), lambda log: log.gap()], UNCLEAR),
        ([lambda log: log.http(name="other").session(), bare(connection="tcp1")], UNCLEAR),  # two clients
        ([bare("ping")], UNCLEAR),  # legal before initialize
        ([bare("initialize")], PASS),
        ([bare("server/discover")], PASS),
        ([bare(status=429, refusal="TOO_MANY_REQUESTS")], PASS),
        ([bare(status=202)], PASS),
        ([lambda log: log.http().modern("tools/list")], PASS),
        ([bare_head("GET", {})], PASS),  # the old transport
    ],
)
def test_a_request_has_the_id_of_its_session(acts: list[Callable[[Log], Any]], verdict: Verdict) -> None:
    log = Log()
    log.http().session()
    for act in acts:
        act(log)
    log.idle(30)
    check(log, SESSION, verdict, only={SESSION})


def test_a_missing_id_is_one_fault() -> None:
    log = Log()
    log.http().session().request("tools/list", connection="tcp77")
    bare(connection="tcp77")(log)
    check(log, SESSION, FAIL)


def test_without_an_open_session_there_is_no_id() -> None:
    log = Log()
    log.http().session().delete()
    bare()(log)
    log.idle(30)
    check(log, SESSION, PASS, only={SESSION})


def test_without_a_label_nobody_has_sent_it() -> None:
    log = Log()
    client = log.http(None)
    client.session()
    asked = client.post(rpc("tools/list"), headers={"mcp-protocol-version": "2025-11-25"}, connection="tcp1")
    client.respond(asked, 400, refusal="MISSING_SESSION")
    log.idle(30)
    for label in ("s1", "unattributed"):
        check(log, SESSION, SILENT, label)


@each(
    "rule, method, params, headers, verdict",
    [
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
        ("http.mcp-name", "tools/call", {"name": 5}, {"mcp-name": None}, SILENT),  # the schema's business
        ("http.mcp-name", "tools/list", {}, {}, SILENT),
        ("http.mcp-name-task", "tasks/get", {"taskId": "t1"}, {}, PASS),
        ("http.mcp-name-task", "tasks/cancel", {"taskId": "t1"}, {"mcp-name": None}, FAIL),
        ("http.mcp-name-task", "tasks/update", {"taskId": "t1"}, {"mcp-name": "t2"}, FAIL),
        ("http.no-posted-responses", "tools/list", {}, {}, PASS),
        ("http.no-session-remains", "tools/list", {}, {}, PASS),
        ("http.no-session-remains", "tools/list", {}, ID, WARN),
        ("http.no-session-remains", "tools/list", {}, {"last-event-id": "p1-1"}, WARN),
    ],
)
def test_a_modern_head_repeats_the_body(
    rule: str, method: str, params: Mapping[str, Any], headers: Headers, verdict: Verdict
) -> None:
    log = Log()
    log.http().modern(method, params, headers=headers)
    check(log, rule, verdict, only=MODERN_RULES)


# The params of a made-up method or task are another rule's business.
MODERN_RULES: Final = {
    "http.meta-version-header",
    "http.meta-version-equal",
    "http.mcp-method",
    "http.mcp-name",
    "http.mcp-name-task",
    "http.no-posted-responses",
    "http.no-session-remains",
}


@each(
    "rule, headers, remark",
    [
        ("http.mcp-name", {"mcp-name": "wrong"}, 'Mcp-Name is "wrong", params.name is "x" (client or gateway)'),
        (
            "http.mcp-method",
            {"mcp-method": "wrong"},
            'Mcp-Method is "wrong", the method is "tools/call" (client or gateway)',
        ),
    ],
)
def test_a_head_that_differs_is_shown_so_that_no_value_reads_as_a_word(
    rule: str, headers: Headers, remark: str
) -> None:
    log = Log()
    log.http().modern("tools/call", {"name": "x"}, headers=headers)
    (found,) = judged(log).values()
    assert found.remarks[rule] == [remark]


def test_a_notification_needs_no_headers() -> None:
    log = Log()
    client = log.http()
    params = {"requestId": 1, "_meta": client.meta()}
    client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    for rule in ("http.meta-version-header", "http.mcp-method"):
        check(log, rule, SILENT, only=MODERN_RULES)


@each("rule", sorted(MODERN_RULES))
def test_legacy_requests_have_no_modern_headers(rule: str) -> None:
    log = Log()
    # A client that speaks both eras may keep its `_meta`.
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN}
    log.http().session().request("tools/call", {"name": "x", "_meta": meta})
    check(log, rule, SILENT, only=MODERN_RULES)


@each(
    "headers, verdict",
    [
        ({"mcp-protocol-version": MODERN}, FAIL),
        ({"mcp-protocol-version": MODERN, **ID}, SILENT),
        ({"mcp-protocol-version": "2025-11-25"}, SILENT),
        ({}, SILENT),
    ],
)
def test_only_a_session_takes_responses(headers: Headers, verdict: Verdict) -> None:
    log = Log()
    log.http().post({"jsonrpc": "2.0", "id": "q1", "result": {}}, headers=headers)
    check(log, "http.no-posted-responses", verdict, only=MODERN_RULES)


@each("method", ["GET", "DELETE"])
@each("headers, verdict", [({"mcp-protocol-version": MODERN}, WARN), ({}, SILENT)])
def test_a_modern_get_or_delete_is_left_over(method: str, headers: Headers, verdict: Verdict) -> None:
    log = Log()
    log.http().request_head(method, headers=headers)
    check(log, "http.no-session-remains", verdict)


def test_who_had_a_session_before_the_log_is_not_known() -> None:
    log = Log()
    log.gap()
    log.http().modern("tools/list", headers=ID)
    check(log, "http.no-session-remains", UNCLEAR)

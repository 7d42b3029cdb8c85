"""Rules `jsonrpc.*`: for each a good and a bad story, and the innocent ones that look like a fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from probe.judge.verdicts import Verdict
from probe.log import events
from probe.log.context import Context
from probe.log.event_log import Gap

from .logs import Http, HttpSession, Log, Pipe, judged

FAIL, WARN, UNCLEAR, PASS, NONE = (
    Verdict.FAIL,
    Verdict.WARN,
    Verdict.INCONCLUSIVE,
    Verdict.PASS,
    Verdict.NOT_OBSERVED,
)
LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]
PING = {"jsonrpc": "2.0", "id": 50, "method": "ping"}


def unreadable(log: Log, client: Http, fault: str, head: str, **more: Any) -> None:
    asked = client.request_head("POST", headers=more.pop("headers", {}))
    size = more.get("size", len(head))
    fact = events.MessageUnreadable(fault, "no", head, size, more.get("declared", size))  # type: ignore[arg-type]
    log.add(fact, asked.context, asked.seq)
    client.respond(asked, 400, refusal="PARSE_ERROR")


def in_session(value: Any, revision: str = "2025-11-25", **options: Any) -> Log:
    """A session in which one message is sent."""
    log = Log()
    session = log.http().session(revision)
    session.post(value, **options)
    return log


def in_pipe(value: Any, revision: str = "2025-11-25", transport: str = "stdio") -> Log:
    log = Log()
    getattr(log, transport)().session(revision).post(value)
    return log


def modern(value: Any = None, method: str = "tools/list", **options: Any) -> Log:
    log = Log()
    log.http().modern(method, **options, **({} if value is None else {"value": value}))
    return log


def check(log: Log, rule: str, verdict: Verdict, *, alone: bool = True) -> None:
    """The rule has the verdict, and no other has found a fault."""
    found = judged(log)["acme"]
    assert found[rule] is verdict, found.remarks[rule]
    if alone:
        assert found.faults == ({rule: verdict} if verdict > UNCLEAR else {}), found.faults


# -- one message: the value, and what its rule says of it

MESSAGES: list[tuple[str, Any, Verdict]] = [
    ("jsonrpc.version", {"id": 9, "method": "ping"}, FAIL),
    ("jsonrpc.version", {"jsonrpc": "1.0", "id": 9, "method": "ping"}, FAIL),
    ("jsonrpc.version", {"jsonrpc": 2.0, "method": "notifications/acme/later"}, FAIL),
    ("jsonrpc.version", PING, PASS),
    ("jsonrpc.request-id-type", {**PING, "id": None}, FAIL),
    ("jsonrpc.request-id-type", {**PING, "id": True}, FAIL),
    ("jsonrpc.request-id-type", {**PING, "id": 1.5}, FAIL),
    ("jsonrpc.request-id-type", {**PING, "id": ["a"]}, FAIL),
    ("jsonrpc.request-id-type", {**PING, "id": 8.0}, WARN),
    ("jsonrpc.request-id-type", {**PING, "id": "x" * 5_000}, PASS),
    ("jsonrpc.request-id-type", {**PING, "id": ""}, PASS),
    ("jsonrpc.notification-without-id", {"jsonrpc": "2.0", "id": None, "method": "notifications/cancelled"}, FAIL),
    ("jsonrpc.notification-without-id", {"jsonrpc": "2.0", "id": 5, "method": "notifications/x"}, FAIL),
    ("jsonrpc.params-object", {**PING, "params": None}, FAIL),
    ("jsonrpc.params-object", {**PING, "params": []}, FAIL),
    ("jsonrpc.params-object", {**PING, "params": {}}, PASS),
    ("jsonrpc.wire-schema", 5, FAIL),
    ("jsonrpc.wire-schema", {}, FAIL),
    ("jsonrpc.wire-schema", {"jsonrpc": "2.0", "id": 1, "method": 5}, FAIL),
    ("jsonrpc.wire-schema", {**PING, "method": "tools/call", "params": {}}, FAIL),
    ("jsonrpc.wire-schema", {"jsonrpc": "2.0", "method": "ping"}, FAIL),
    ("jsonrpc.wire-schema", {**PING, "method": "tools/call", "params": {"name": "x", "extra": [1]}}, PASS),
    ("jsonrpc.wire-schema", {**PING, "method": "vendor/anything", "params": {"name": 5}}, PASS),
    ("jsonrpc.wire-schema", {**PING, "method": "stream/resume", "params": {"streamId": 5}}, PASS),
    ("jsonrpc.wire-schema", {**PING, "method": "resources/read", "params": {"uri": "no uri"}}, PASS),
    ("jsonrpc.methods-of-revision", {**PING, "method": "subscriptions/listen", "params": {}}, WARN),
    ("jsonrpc.methods-of-revision", {**PING, "method": "server/discover", "params": {}}, WARN),
    ("jsonrpc.methods-of-revision", {**PING, "method": "sampling/createMessage", "params": {}}, WARN),
    ("jsonrpc.methods-of-revision", {**PING, "method": "vendor/anything"}, PASS),
]


@pytest.mark.parametrize(("rule", "value", "verdict"), MESSAGES)
def test_one_message_in_a_session(rule: str, value: Any, verdict: Verdict) -> None:
    check(in_session(value), rule, verdict)


@pytest.mark.parametrize(("rule", "value", "verdict"), MESSAGES[:13])
def test_the_same_on_a_pipe(rule: str, value: Any, verdict: Verdict) -> None:
    check(in_pipe(value, transport="websocket"), rule, verdict)


MODERN: list[tuple[str, str, dict[str, Any], Verdict]] = [
    ("jsonrpc.methods-of-revision", "ping", {}, WARN),
    ("jsonrpc.methods-of-revision", "logging/setLevel", {}, WARN),
    ("jsonrpc.methods-of-revision", "tasks/list", {}, WARN),
    (
        "jsonrpc.methods-of-revision",
        "tasks/get",
        {"params": {"taskId": "t"}, "capabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}},
        PASS,
    ),
    ("jsonrpc.methods-of-revision", "tools/list", {}, PASS),
    ("jsonrpc.request-id-type", "tools/list", {"id": 2.5}, FAIL),
    ("jsonrpc.wire-schema", "prompts/get", {}, FAIL),
]


@pytest.mark.parametrize(("rule", "method", "options", "verdict"), MODERN)
def test_one_modern_request(rule: str, method: str, options: dict[str, Any], verdict: Verdict) -> None:
    check(modern(method=method, **options), rule, verdict)


@pytest.mark.parametrize("revision", LEGACY)
def test_tasks_are_of_2025_11_25(revision: str) -> None:
    value = {**PING, "method": "tasks/get", "params": {"taskId": "t"}}
    found = judged(in_session(value, revision))["acme"]
    assert found["jsonrpc.methods-of-revision"] is (PASS if revision == "2025-11-25" else WARN)


def test_a_revision_that_asks_for_another_is_not_held_to_its_schema() -> None:
    log = Log()
    client = log.http()
    params = {"protocolVersion": "2030-01-01", "capabilities": {"experimental": {"x": 1}}, "clientInfo": client.info}
    client.opened(client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}), "2025-11-25")
    assert judged(log)["acme"].faults == {}


def test_nothing_is_observed_where_nothing_was_sent() -> None:
    log = Log()
    log.http().request_head("GET")
    found = judged(log)["acme"]
    assert {verdict for rule, verdict in found.verdicts.items() if rule.startswith("jsonrpc.")} == {NONE}


# -- bytes


@pytest.mark.parametrize(
    ("fault", "head", "more", "verdict"),
    [
        ("syntax", "{'id':1}", {}, FAIL),
        ("encoding", r"\xff", {}, FAIL),
        ("nesting", "[[[", {}, NONE),
        ("surrogate", r'"\x5cud800"', {}, NONE),
        ("size", "xxx", {}, NONE),
        ("number", "NaN", {}, UNCLEAR),
        ("incomplete", '{"json', {"declared": 500}, UNCLEAR),
        ("syntax", '{"json', {"declared": 500}, UNCLEAR),
        ("syntax", "", {"headers": {"content-type": None}}, NONE),
        ("syntax", "", {}, FAIL),
    ],
)
def test_bytes_that_are_no_json(fault: str, head: str, more: dict[str, Any], verdict: Verdict) -> None:
    log = Log()
    unreadable(log, log.http(), fault, head, **more)
    check(log, "jsonrpc.utf8-json", verdict)


def test_a_frame_that_is_no_json() -> None:
    log = Log()
    log.websocket().session().unreadable("DEBUG hello")
    check(log, "jsonrpc.utf8-json", FAIL)
    assert judged(in_session(PING))["acme"]["jsonrpc.utf8-json"] is PASS


# -- batches


def batch(revision: str, *values: Any, label: str | None = "acme") -> Log:
    log = Log()
    session = log.http(label).session(revision)
    head = session.client.request_head("POST", session.context, headers=session._headers({}), named=session.label)
    for place, value in enumerate(values):
        session.client.receive(value, head.context, head.seq, batch=place)
    return log


@pytest.mark.parametrize(("revision", "verdict"), [("2025-03-26", NONE), ("2025-06-18", FAIL), ("2025-11-25", FAIL)])
def test_an_array_of_messages(revision: str, verdict: Verdict) -> None:
    found = judged(batch(revision, PING, {**PING, "id": 51}))["acme"]
    assert found.verdicts.get("jsonrpc.no-batch", NONE) is verdict
    assert set(found.faults) == ({"jsonrpc.no-batch"} if verdict is FAIL else set())
    check(in_session(PING), "jsonrpc.no-batch", PASS)


@pytest.mark.parametrize(("revision", "verdict"), [("2025-03-26", UNCLEAR), ("2025-11-25", WARN), (None, UNCLEAR)])
def test_an_array_before_the_revision_is_known(revision: str | None, verdict: Verdict) -> None:
    log = Log()
    pipe = log.stdio()
    pipe.receive(PING, pipe.context, pipe.opened, batch=0)
    if revision is not None:
        pipe.session(revision)
    check(log, "jsonrpc.no-batch", verdict)


def test_initialize_in_a_batch() -> None:
    log = Log()
    pipe = log.stdio()
    params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": pipe.info}
    pipe.receive(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}, pipe.context, pipe.opened, batch=0
    )
    check(log, "jsonrpc.batch-without-initialize", FAIL)
    log = Log()
    log.http().session("2025-03-26")
    check(log, "jsonrpc.batch-without-initialize", PASS)


def test_the_same_id_twice_in_a_batch_is_no_retry() -> None:
    check(batch("2025-03-26", PING, PING), "jsonrpc.id-unused-before", FAIL)


# -- ids of requests


def twice(revision: str, *, answered: bool, same: bool, second_id: Any = 7, first: Any = None) -> Log:
    log = Log()
    session = log.http().session(revision)
    one = session.request("tools/list", id=7)
    if answered:
        session.answer(one, {"tools": []})
    if first is not None:
        session.client.respond(one, first)
    log.after(1)
    session.request("tools/list" if same else "prompts/list", id=second_id)
    return log


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ({"answered": True, "same": False}, FAIL),
        ({"answered": True, "same": True}, UNCLEAR),
        ({"answered": False, "same": False}, FAIL),
        ({"answered": False, "same": True}, UNCLEAR),
        ({"answered": False, "same": False, "first": 429}, UNCLEAR),
        ({"answered": True, "same": False, "second_id": "7"}, PASS),
        ({"answered": True, "same": False, "second_id": 8}, PASS),
    ],
)
def test_an_id_is_used_once_in_a_session(revision: str, options: dict[str, Any], verdict: Verdict) -> None:
    check(twice(revision, **options), "jsonrpc.id-unused-before", verdict)


def test_the_id_of_initialize_counts_and_a_new_session_starts_anew() -> None:
    log = Log()
    log.stdio().session(id=1).request("tools/list", id=1)
    check(log, "jsonrpc.id-unused-before", FAIL)
    log = Log()
    client = log.http()
    for _ in range(2):
        session = client.session(id=1)
        session.answer(session.request("tools/list", id=2))
    check(log, "jsonrpc.id-unused-before", PASS)


def test_an_id_is_free_again_after_the_answer_in_2026() -> None:
    log = Log()
    client = log.http()
    client.answer(client.modern("tools/list", id=1))
    client.modern("prompts/list", id=1)
    check(log, "jsonrpc.id-not-in-flight", NONE)
    client.modern("resources/list", id=2)
    check(log, "jsonrpc.id-not-in-flight", PASS)
    client.modern("resources/templates/list", id=1)
    # Another instance of the client in the same program may count, too: each request came on a connection of its own.
    check(log, "jsonrpc.id-not-in-flight", UNCLEAR)


def test_an_id_in_flight_on_a_pipe() -> None:
    log = Log()
    pipe = log.websocket(None)
    pipe.modern("tools/list", id=1)
    pipe.modern("prompts/list", id=1)
    found = judged(log)[pipe.name]
    assert found.faults == {"jsonrpc.id-not-in-flight": FAIL}


def _cancel(client: Http) -> None:
    params = {"requestId": 1, "_meta": client.meta()}
    client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def _several(log: Log) -> None:
    other = log.http(name="other")
    other.session(id=77)


@pytest.mark.parametrize(
    ("label", "spoil"),
    [
        (None, lambda log, client, first: None),
        ("acme", lambda log, client, first: _several(log)),
        ("acme", lambda log, client, first: log.gap()),
        ("acme", lambda log, client, first: _cancel(client)),
    ],
)  # fmt: skip
def test_an_id_in_flight_may_be_of_another_client(label: str | None, spoil: Callable[..., Any]) -> None:
    log = Log()
    client = log.http(label)
    log.add(events.ClientSeen("127.0.0.1", "2026-07-28", "acme", "1", b"{}"), Context("tcp9", 900, label, "m1"))
    first = client.modern("tools/list", id=1)
    spoil(log, client, first)
    client.modern("prompts/list", id=1)
    found = judged(log)[label or "m1"]
    assert found["jsonrpc.id-not-in-flight"] is UNCLEAR
    assert "jsonrpc.id-not-in-flight" not in found.faults


def test_another_client_under_the_same_label_shows_itself_in_its_message() -> None:
    log = Log()
    log.http().modern("tools/list", id=1)
    # The server has met it elsewhere, so there is no `client.seen`.
    log.http(name="other").modern("prompts/list", id=1)
    check(log, "jsonrpc.id-not-in-flight", UNCLEAR)


@pytest.mark.parametrize(("later", "verdict"), [(0.1, NONE), (1.5, FAIL)])
def test_an_answer_on_its_way_frees_its_id(later: float, verdict: Any) -> None:
    log = Log()
    pipe = log.websocket()
    pipe.answer(pipe.modern("tools/list", id=1), delivered=False)
    log.after(later)
    pipe.modern("prompts/list", id=1)
    check(log, "jsonrpc.id-not-in-flight", verdict)


@pytest.mark.parametrize("end", ["left", "refused"])
def test_a_request_that_is_over_leaves_its_id_free(end: str) -> None:
    log = Log()
    client = log.http()
    first = client.modern("tools/list", id=1)
    if end == "left":
        client.leave(first)
    else:
        client.respond(first, 400)
    client.modern("prompts/list", id=1)
    check(log, "jsonrpc.id-not-in-flight", NONE)


# -- answers


def asked(revision: str = "2025-11-25", transport: str = "http") -> tuple[Log, Any, Any]:
    """A client that is asked for its roots; and what asks."""
    log = Log()
    if transport == "http":
        session: HttpSession | Pipe = log.http().session(revision, capabilities={"roots": {}})
        assert isinstance(session, HttpSession)
        return log, session, session.get().ask("roots/list", id=5)
    session = getattr(log, transport)().session(revision, capabilities={"roots": {}})
    return log, session, session.ask("roots/list", id=5)


ROOTS = {"roots": []}


def test_a_question_that_no_socket_took_whole_has_an_id_all_the_same() -> None:
    log = Log()
    session = log.http().session(capabilities={"roots": {}})
    question = session.get().ask("roots/list", delivered=False)
    # The server gave the question up before the answer came.
    session.reply(question, ROOTS, matched=False)
    log.idle(20)
    check(log, "jsonrpc.response-id", NONE)


def answer(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 5, **members}


@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (answer(result=ROOTS), PASS),
        (answer(error={"code": -32601, "message": "no"}), PASS),
        (answer(error={"code": -32601.0, "message": "no"}), WARN),
        (answer(result=ROOTS, error={"code": 1, "message": ""}), FAIL),
        (answer(), FAIL),
        (answer(result=None), FAIL),
        (answer(result=[]), FAIL),
        (answer(error="no"), FAIL),
        (answer(error={"code": "x", "message": "no"}), FAIL),
        (answer(error={"code": 1}), FAIL),
    ],
)
def test_the_shape_of_an_answer(value: Any, verdict: Verdict, revision: str, transport: str) -> None:
    log, session, question = asked(revision, transport)
    session.reply(question, value=value, matched=verdict in (PASS, WARN))
    check(log, "jsonrpc.response-shape", verdict)


def test_an_answer_to_nothing_is_no_matter_of_its_shape() -> None:
    log = Log()
    log.http().session().post({"jsonrpc": "2.0", "id": 99})
    assert judged(log)["acme"]["jsonrpc.response-shape"] is NONE


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize(("id", "verdict"), [(5, PASS), ("5", FAIL), (6, FAIL), ("other", FAIL), (None, FAIL)])
def test_the_id_of_an_answer(id: Any, verdict: Verdict, transport: str) -> None:
    log, session, question = asked(transport=transport)
    log.after(1)
    session.reply(question, value={"jsonrpc": "2.0", "id": id, "result": ROOTS}, matched=id == 5)
    check(log, "jsonrpc.response-id", verdict)
    log.idle(11)
    check(log, "jsonrpc.response-id", verdict)


def test_a_twin_beside_the_right_answer_does_no_harm() -> None:
    log, session, question = asked()
    session.reply(question, value=answer(result=ROOTS) | {"id": "5"}, matched=False)
    session.reply(question, ROOTS)
    log.idle(11)
    assert judged(log)["acme"]["jsonrpc.response-id"] is PASS


def test_an_error_without_id_answers_what_could_not_be_read() -> None:
    log, session, question = asked()
    session.reply(question, value={"jsonrpc": "2.0", "error": {"code": -32700, "message": "?"}}, matched=False)
    assert judged(log)["acme"].faults == {}


def test_a_question_that_the_log_has_lost_may_have_had_the_id() -> None:
    log, session, question = asked()
    log.gap()
    session.reply(question, value=answer(result=ROOTS) | {"id": 77}, matched=False)
    log.idle(11)
    assert judged(log)["acme"].faults == {}


def test_a_late_answer_has_an_id_that_was_used() -> None:
    log, session, question = asked()
    log.after(600)
    session.reply(question, ROOTS, matched=False)
    log.idle(11)
    assert judged(log)["acme"].faults == {}


@pytest.mark.parametrize(("second", "verdict"), [(ROOTS, PASS), ({"roots": [], "_meta": {}}, WARN)])
def test_a_second_answer(second: Any, verdict: Verdict) -> None:
    log, session, question = asked()
    session.reply(question, ROOTS)
    session.reply(question, second, matched=False)
    check(log, "jsonrpc.answers-once", verdict)


@pytest.mark.parametrize(
    ("result", "verdict"),
    [(ROOTS, PASS), ({"roots": [{"uri": 5}]}, FAIL), ({"roots": [{"uri": "no uri", "name": "x", "extra": 1}]}, PASS)],
)
def test_the_result_of_an_answer_fits_its_schema(result: Any, verdict: Verdict) -> None:
    log, session, question = asked()
    session.reply(question, result)
    found = judged(log, only=["jsonrpc.wire-schema"])["acme"]
    assert found["jsonrpc.wire-schema"] is verdict


def test_what_redaction_hid_fits() -> None:
    log = Log()
    session = log.http().session()
    value = {
        "jsonrpc": "2.0",
        "id": 60,
        "method": "tools/call",
        "params": {"name": "x", "_meta": {"token": "[redacted]"}},
    }
    session.post(value, message={"hidden": (("/params/_meta/token", "object"),)})
    assert judged(log)["acme"].faults == {}


@pytest.mark.parametrize("transport", ["stdio", "websocket"])
def test_where_the_opening_of_a_connection_is_missing_a_bare_value_may_be_a_part_of_a_message(transport: str) -> None:
    log = Log()
    pipe = getattr(log, transport)()
    pipe.post(None)
    log.items[1] = Gap(2, pipe.opened)
    del log.items[2 : pipe.opened]
    assert judged(log)["acme"].faults == {}

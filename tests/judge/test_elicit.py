"""Rules `elicit.*`."""

from __future__ import annotations

from typing import Any

import pytest

from probe.judge.judge import Judge
from probe.judge.rules.all import PREDICATES
from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import Verdict

from .dialogues import CAPABILITIES, FORM, PAGE, STATE, WAYS, answer, ask, asked, open_round, open_session, reply, retry
from .logs import HEADER, Http, HttpSession, Log, Pipe, judged

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
INCONCLUSIVE, NOT_OBSERVED = Verdict.INCONCLUSIVE, Verdict.NOT_OBSERVED
ELICIT = "elicitation/create"
ACTION, FITS, TYPES = "elicit.action", "elicit.content-fits", "elicit.value-types"
ONLY, URL, DEFAULTS = "elicit.content-only-when-accepted", "elicit.url-no-content", "elicit.defaults"
FETCHED, SERVED = "elicit.url-not-prefetched", "elicit.declared-served"
ALL = (ACTION, FITS, TYPES, ONLY, URL, DEFAULTS, FETCHED, SERVED)

FIELDS: dict[str, Any] = {
    "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
    "count": {"type": "integer", "minimum": 0, "maximum": 100},
    "ratio": {"type": "number"},
    "ok": {"type": "boolean", "default": True},
    "email": {"type": "string", "format": "email"},
    "site": {"type": "string", "format": "uri"},
    "day": {"type": "string", "format": "date"},
    "moment": {"type": "string", "format": "date-time"},
    "colour": {"type": "string", "enum": ["red", "green"]},
    "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}]},
    "days": {"type": "array", "minItems": 1, "items": {"anyOf": [{"const": "sat", "title": "Saturday"}]}},
    "odd": {"type": "string", "pattern": "(?<unreadable"},
}


def form(*names: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    schema = {"type": "object", "properties": {name: FIELDS[name] for name in names}, "required": list(required)}
    return {"message": "?", "requestedSchema": schema}


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def rule(log: Log, id: str) -> Verdict:
    return judged(log)["acme"][id]


@pytest.mark.parametrize("way", WAYS)
def test_a_good_answer_on_every_way(way: str):
    log = asked(ELICIT, form("name", "count", "ok", required=("name",)), accept(name="ada", count=5, ok=True), way=way)
    found = judged(log)["acme"]
    assert found.faults == {}
    for id in (ACTION, FITS, TYPES, DEFAULTS, SERVED):
        assert found[id] is PASS, id


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("result", [{"action": "ok"}, {"action": "Accept", "content": {}}, {"content": {"name": "a"}}])
def test_an_unknown_action_fails(way: str, result: Any):
    found = judged(asked(ELICIT, FORM, result, way=way))["acme"]
    assert (found.faults, found[SERVED]) == ({ACTION: FAIL}, PASS)


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_each_action_passes(revision: str, action: str):
    found = judged(asked(ELICIT, FORM, {"action": action}, revision=revision))["acme"]
    assert (found[ACTION], found.faults) == (PASS, {})


@pytest.mark.parametrize(
    ("names", "required", "content"),
    [
        (["name"], ("name",), {}),
        (["name"], ("name",), {"name": None}),
        (["name"], (), {"name": "a"}),
        (["name"], (), {"name": "abcdef"}),
        (["name"], (), {"name": "ABC"}),
        (["count"], (), {"count": 101}),
        (["email"], (), {"email": "nobody"}),
        (["site"], (), {"site": "www.example.com"}),
        (["day"], (), {"day": "2026-02-30"}),
        (["day"], (), {"day": "28.7.2026"}),
        (["moment"], (), {"moment": "2026-07-28T12:00"}),
        (["colour"], (), {"colour": "blue"}),
        (["size"], (), {"size": "Small"}),
        (["days"], (), {"days": ["mon"]}),
    ],
)
def test_what_does_not_fit_the_form_is_a_warning(names: list[str], required: tuple[str, ...], content: Any):
    for way in ("http", "round"):
        assert judged(asked(ELICIT, form(*names, required=required), accept(**content), way=way))["acme"].faults == {
            FITS: WARN
        }


@pytest.mark.parametrize(
    ("name", "value"), [("count", "5"), ("count", 5.5), ("ratio", "0.5"), ("ratio", True), ("ok", "true"), ("ok", 1)]
)
def test_a_value_of_another_type_is_a_warning(name: str, value: Any):
    found = judged(asked(ELICIT, form(name, "count"), accept(**{name: value})))["acme"]
    # One of the two fields has a default; it is given.
    assert found.faults == {TYPES: WARN}


def test_a_text_for_a_list_is_a_warning_where_the_form_has_numbers():
    assert judged(asked(ELICIT, form("days", "count"), accept(days="sat")))["acme"].faults == {TYPES: WARN}


@pytest.mark.parametrize(
    ("names", "content"),
    [
        (("count",), {"count": 5.0}),
        (("name", "count", "ratio"), {"name": "", "count": None, "ratio": 0.25}),
        (("moment",), {"moment": "2026-07-28T12:00:60.5+02:00"}),
        (("moment",), {"moment": "2026-07-28t12:00:00z"}),
        (("email",), {"email": "Ada <ada@example.com>"}),
        (("site",), {"site": "urn:isbn:1"}),
        (("odd",), {"odd": "anything"}),
        (("name",), {"name": "ada", "more": 1}),
        (("days",), {"days": ["sat"]}),
    ],
)
def test_what_validators_may_take_is_no_fault(names: tuple[str, ...], content: Any):
    found = judged(asked(ELICIT, form(*names), accept(**content)))["acme"]
    assert (found.faults, found[FITS]) == ({}, PASS)


def test_hidden_values_are_not_judged():
    log = asked(
        ELICIT,
        form("name", "count", required=("name",)),
        accept(name="[redacted]", count="[redacted]"),
        hidden=(("/content/name", "string"), ("/content/count", "integer")),
    )
    found = judged(log)["acme"]
    assert (found.faults, found[FITS], found[TYPES]) == ({}, INCONCLUSIVE, NOT_OBSERVED)
    log = asked(ELICIT, form("name"), {"action": "accept", "content": "[redacted]"}, hidden=(("/content", "object"),))
    assert judged(log)["acme"][FITS] is NOT_OBSERVED


@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize("way", ["http", "round", "task"])
def test_content_belongs_to_accept(action: str, way: str):
    def verdicts(**result: Any) -> Any:
        return judged(asked(ELICIT, FORM, {"action": action, **result}, way=way))["acme"]

    assert verdicts(content={"name": "a"}).faults == {ONLY: WARN}
    # Libraries with fixed fields send these. null is not of the schema of ElicitResult, but that is another rule.
    assert verdicts(content={})[ONLY] is PASS
    assert verdicts()[ONLY] is PASS
    assert rule(asked(ELICIT, FORM, {"action": action, "content": None}), ONLY) is PASS


@pytest.mark.parametrize("action", ["accept", "decline"])
@pytest.mark.parametrize("way", ["http", "round"])
def test_a_page_has_no_content(action: str, way: str):
    def verdicts(**result: Any) -> Any:
        return judged(asked(ELICIT, PAGE, {"action": action, **result}, way=way))["acme"]

    assert verdicts(content={"name": "a"}).faults == {URL: WARN}
    for found in (verdicts(), verdicts(content={})):
        assert (found[URL], found[ONLY], found[FITS], found.faults) == (PASS, NOT_OBSERVED, NOT_OBSERVED, {})


def test_defaults_of_optional_fields_are_filled_in():
    def verdict(content: Any, required: tuple[str, ...] = ()) -> Any:
        return judged(asked(ELICIT, form("ok", "count", required=required), accept(**content)))["acme"]

    assert verdict({"ok": False})[DEFAULTS] is PASS
    assert verdict({"count": 1}).faults == {DEFAULTS: WARN}
    assert verdict({"count": 1, "ok": True}, required=("ok",))[DEFAULTS] is NOT_OBSERVED
    assert rule(asked(ELICIT, form("count"), accept(count=1)), DEFAULTS) is NOT_OBSERVED
    # The revision has no defaults but those of booleans, and no sentence about them.
    log = asked(ELICIT, form("ok", "count"), accept(count=1), revision="2025-06-18")
    assert judged(log)["acme"].faults == {}


@pytest.mark.parametrize("error", [{"code": -1, "message": "rejected"}, {"code": -32603, "message": "no window"}])
def test_an_error_says_nothing_of_the_form(error: Any):
    found = judged(asked(ELICIT, form("name"), None, error=error))["acme"]
    assert found.faults == {}
    assert [found[id] for id in ALL if id != SERVED] == [NOT_OBSERVED] * (len(ALL) - 1)
    assert found[SERVED] is INCONCLUSIVE


def test_silent():
    log = Log()
    open_session(log).request("tools/list")
    found = judged(log)["acme"]
    assert {found[id] for id in ALL} == {NOT_OBSERVED}


def _refused(*codes: int | None, capabilities: Any = None) -> Log:
    log = Log()
    session = open_session(log, capabilities=CAPABILITIES if capabilities is None else capabilities)
    for code in codes:
        question, call = ask(session, ELICIT, FORM)
        body = {"result": {"action": "cancel"}} if code is None else {"error": {"code": code, "message": "no"}}
        reply(session, question, {"jsonrpc": "2.0", "id": question.id, **body})
        session.answer(call, {"content": []})
    return log


@pytest.mark.parametrize(
    ("codes", "verdict"),
    [
        ((-32601, -32601), FAIL),
        ((-32601,), INCONCLUSIVE),
        ((None, -32601, -32601), INCONCLUSIVE),
        ((-32603, -32601, -32601), INCONCLUSIVE),
        ((None, None), PASS),
    ],
)
def test_only_method_not_found_to_every_question_fails(codes: Any, verdict: Verdict):
    found = judged(_refused(*codes))["acme"]
    assert found[SERVED] is verdict
    assert set(found.faults) <= {SERVED}


def test_a_gap_may_hide_a_question_that_was_served():
    log = Log()
    session = open_session(log)
    log.gap()
    for _ in range(3):
        question, call = ask(session, ELICIT, FORM)
        reply(session, question, {"jsonrpc": "2.0", "id": question.id, "error": {"code": -32601, "message": "no"}})
        session.answer(call, {"content": []})
        _page(session, after=0.2, headers=PROGRAM)
    found = judged(log)["acme"]
    assert (found[FETCHED], found[SERVED]) == (WARN, INCONCLUSIVE)


def test_what_was_not_declared_need_not_be_served():
    assert rule(_refused(-32601, -32601, capabilities={"elicitation": {"url": {}}}), SERVED) is NOT_OBSERVED
    assert rule(_refused(-32601, -32601, capabilities={}), SERVED) is NOT_OBSERVED
    assert rule(_refused(-32601, -32601, capabilities={"elicitation": {}}), SERVED) is FAIL


def _unanswered(seconds: float, *, alive: bool = True, withdrawn: float | None = None, gap: bool = False) -> Log:
    log = Log()
    session = open_session(log)
    question, _ = ask(session, ELICIT, FORM)
    if gap:
        log.gap()
    if withdrawn is not None:
        log.after(withdrawn)
        session.get().tell("notifications/cancelled", {"requestId": question.id})
        seconds -= withdrawn
    log.after(seconds)
    if alive:
        session.request("tools/list")
    log.idle(10)
    return log


def test_silence_is_a_warning_after_five_minutes():
    assert judged(_unanswered(299))["acme"].faults == {SERVED: WARN}
    assert judged(_unanswered(299, withdrawn=290))["acme"].faults == {SERVED: WARN}
    assert rule(_unanswered(299, withdrawn=60), SERVED) is INCONCLUSIVE
    assert rule(_unanswered(299, alive=False), SERVED) is NOT_OBSERVED
    assert rule(_unanswered(200), SERVED) is INCONCLUSIVE
    assert rule(_unanswered(299, gap=True), SERVED) is INCONCLUSIVE


def test_a_round_need_not_be_retried():
    log = Log()
    client = log.http()
    open_round(client, {"k": {"method": ELICIT, "params": FORM}})
    log.after(299)
    client.modern("tools/list")
    log.idle(10)
    assert judged(log)["acme"].faults == {}


BROWSER = {"sec-fetch-mode": "navigate", "sec-fetch-user": "?1", "user-agent": "Mozilla/5.0"}
PROGRAM = {"user-agent": "python-httpx/1"}


def _page(session: HttpSession | Pipe, *, after: float, headers: Any, **options: Any) -> None:
    log, answered = session.log, options.get("answered", False)
    path = f"/interaction/p{log.next('page')}"
    question, call = ask(session, ELICIT, {**PAGE, "url": f"http://127.0.0.1{path}"})
    if answered:
        reply(session, question, {"jsonrpc": "2.0", "id": question.id, "result": {"action": "accept"}})
    log.after(after)
    visitor = Http(log, None, {})
    visit = visitor.request_head(options.get("method", "GET"), path=path, headers=headers, query="")
    visitor.respond(visit, 200, content_type="text/html")
    log.after(5)
    if not answered:
        reply(session, question, {"jsonrpc": "2.0", "id": question.id, "result": {"action": "accept"}})
    session.answer(call, {"content": []})


@pytest.mark.parametrize(
    ("pages", "options", "verdict"),
    [
        (3, {"after": 0.2, "headers": PROGRAM}, FAIL),
        (3, {"after": 0.2, "headers": PROGRAM, "method": "HEAD"}, FAIL),
        (2, {"after": 0.2, "headers": PROGRAM}, WARN),
        (1, {"after": 0.2, "headers": PROGRAM}, WARN),
        (3, {"after": 0.2, "headers": BROWSER}, PASS),
        (3, {"after": 0.2, "headers": {"user-agent": "Mozilla/5.0 (no TLS, so no Sec-Fetch)"}}, WARN),
        (3, {"after": 3, "headers": PROGRAM}, INCONCLUSIVE),
        (3, {"after": 0.2, "headers": PROGRAM, "answered": True}, PASS),
        (3, {"after": 0.2, "headers": PROGRAM, "method": "POST"}, PASS),
    ],
)
def test_a_page_that_is_fetched_at_once(pages: int, options: Any, verdict: Verdict):
    log = Log()
    session = open_session(log)
    for _ in range(pages):
        _page(session, **options)
    found = judged(log)["acme"]
    assert found[FETCHED] is verdict
    assert set(found.faults) <= {FETCHED}


def test_three_pages_of_four_are_no_rule():
    log = Log()
    session = open_session(log)
    for headers in (BROWSER, PROGRAM, PROGRAM, PROGRAM):
        _page(session, after=0.2, headers=headers)
    assert rule(log, FETCHED) is WARN


def test_a_page_that_two_rounds_name_is_one_page():
    log = Log()
    client = log.http()
    open_round(client, {"k": {"method": ELICIT, "params": PAGE}})
    retry(client, {"k": {"action": "accept"}})
    answers = {"answers": {"inputResponses": {"k": {"action": "accept"}}, "requestState": STATE}}
    open_round(client, {"k": {"method": ELICIT, "params": PAGE}}, state="x" + STATE, **answers)
    visitor = Http(log, None, {})
    visitor.respond(visitor.request_head("GET", path="/interaction/p1", headers=PROGRAM), 200)
    assert rule(log, FETCHED) is PASS


def test_an_answer_that_comes_before_the_log_tells_of_the_delivery():
    log = Log()
    session = open_session(log)
    question, _ = ask(session, ELICIT, FORM, delivered=False)
    reply(session, question, {"jsonrpc": "2.0", "id": question.id, "result": {"action": "no"}})
    assert rule(log, ACTION) is FAIL


def test_a_ping_has_the_number_that_a_question_had_in_the_log_before():
    judge = Judge(catalogue(), PREDICATES)
    for method, result in ((ELICIT, {"action": "cancel"}), ("ping", {})):
        log = Log()
        answer(log, method, FORM, result)
        judge.begin(HEADER)
        for item in log.items:
            judge.take(item)
    [subject] = judge.subjects
    assert [each.tally.verdict for each in subject.predicates if each.rule.id == ACTION] == [PASS]


def test_two_sessions_of_one_label_are_told_apart():
    log = Log()
    for number in range(2):
        answer(log, ELICIT, FORM, {"action": "accept", "content": {"name": "a"}}, way="http" if number else "stdio")
    assert judged(log)["acme"].faults == {}

"""Rules `roots.*`."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from probe.judge.judge import Judge
from probe.judge.rules.all import PREDICATES
from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import Verdict
from probe.log import events

from .dialogues import CAPABILITIES, WAYS, ask, asked, open_session, reply
from .logs import HEADER, HttpSession, Log, Pipe, judged

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
INCONCLUSIVE, NOT_OBSERVED = Verdict.INCONCLUSIVE, Verdict.NOT_OBSERVED
LIST = "roots/list"
URI, TOLD, SERVED = "roots.file-uri", "roots.change-told", "roots.declared-served"


def roots(*uris: Any) -> dict[str, Any]:
    return {"roots": [{"uri": uri} for uri in uris]}


def listed(*uris: Any, **options: Any) -> Any:
    return judged(asked(LIST, {}, roots(*uris), **options))["acme"]


@pytest.mark.parametrize("way", WAYS)
def test_a_good_answer_on_every_way(way: str):
    found = listed("file:///home/a%20b", "FILE:///c:/work", way=way)
    assert (found.faults, found[URI], found[SERVED]) == ({}, PASS, PASS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("uri", ["/home/a", "vscode-remote://ssh/home/a", "", "C:\\work"])
def test_what_is_no_file_uri_fails(way: str, uri: str):
    assert listed("file:///home", uri, way=way).faults == {URI: FAIL}


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_at_every_revision(revision: str):
    assert listed("/home/a", revision=revision).faults == {URI: FAIL}


@pytest.mark.parametrize("uri", ["file:///home/a b", "file://C:\\work", "file://C:/work"])
def test_a_path_behind_the_scheme_is_a_warning(uri: str):
    assert listed(uri).faults == {URI: WARN}


def test_no_folder_is_an_empty_list_and_hidden_ones_are_not_judged():
    found = listed()
    assert (found.faults, found[URI], found[SERVED]) == ({}, NOT_OBSERVED, PASS)
    assert listed("[redacted]", hidden=(("/roots/0/uri", "string"),))[URI] is NOT_OBSERVED


def _list(session: HttpSession | Pipe, result: Any, **options: Any) -> None:
    question, call = ask(session, LIST, {})
    session.log.after(options.get("wait", 1))
    body = {"result": result} if "code" not in options else {"error": {"code": options["code"], "message": "no"}}
    reply(session, question, {"jsonrpc": "2.0", "id": question.id, **body})
    session.answer(call, {"content": []})


def _change(first: Any, second: Any, told: str = "", **options: Any) -> Any:
    """Two answers of a session; `told`: when the notification comes."""
    log = Log()
    log.now = options.get("begins", log.now)
    capabilities = CAPABILITIES if options.get("declared", True) else {**CAPABILITIES, "roots": {}}
    way, revision = options.get("way", "http"), options.get("revision", "2025-11-25")
    session = open_session(log, way, revision, capabilities=capabilities)
    if told == "just before":
        question, call = ask(session, LIST, {})
        session.notify("notifications/roots/list_changed")
        reply(session, question, {"jsonrpc": "2.0", "id": question.id, "result": first})
        session.answer(call, {"content": []})
    else:
        _list(session, first)
    log.after(60)
    if options.get("gap"):
        log.gap()
    if told == "between":
        session.notify("notifications/roots/list_changed")
    if told == "elsewhere":
        open_session(log, way, revision).notify("notifications/roots/list_changed")
    if told == "limited":
        log.add(events.LimitReached("requests_per_second", 1), structs.replace(session.context, label="acme"))
    if options.get("restart"):
        session = open_session(log, way, revision)
    _list(session, second)
    if told == "closed":
        session.close()
    if told == "after":
        log.after(4)
        session.notify("notifications/roots/list_changed")
    log.idle(10)
    return judged(log)["acme"]


A, AB, BA = roots("file:///a"), roots("file:///a", "file:///b"), roots("file:///b", "file:///a")


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_a_change_is_told(revision: str, way: str):
    assert _change(A, AB, revision=revision, way=way).faults == {TOLD: FAIL}
    found = _change(A, AB, "between", revision=revision, way=way)
    assert (found[TOLD], found.faults) == (PASS, {})


@pytest.mark.parametrize(
    ("first", "second", "options", "verdict"),
    [
        (A, AB, {"told": "after"}, PASS),
        (A, AB, {"told": "just before"}, PASS),
        (AB, BA, {}, NOT_OBSERVED),
        (A, A, {}, NOT_OBSERVED),
        (roots("file:///c%3A/Work/"), roots("file:///C:/work"), {}, NOT_OBSERVED),
        (A, AB, {"told": "elsewhere"}, INCONCLUSIVE),
        (A, AB, {"told": "limited"}, INCONCLUSIVE),
        (A, AB, {"told": "closed"}, INCONCLUSIVE),
        (A, AB, {"declared": False}, NOT_OBSERVED),
        (A, AB, {"gap": True}, NOT_OBSERVED),
        (A, AB, {"restart": True}, NOT_OBSERVED),
        (A, {"roots": [{"uri": "file:///a", "name": "A"}]}, {}, INCONCLUSIVE),
    ],
)
def test_what_is_no_untold_change(first: Any, second: Any, options: Any, verdict: Verdict):
    found = _change(first, second, **options)
    assert (found[TOLD], found.faults) == (verdict, {})


def test_two_logs_of_one_label_have_sessions_of_the_same_name():
    judge = Judge(catalogue(), PREDICATES)
    for result in (A, AB):
        log = Log()
        _list(open_session(log), result)
        log.idle(10)
        judge.begin(HEADER)
        for item in log.items:
            judge.take(item)
    [subject] = judge.subjects
    assert {each.tally.verdict for each in subject.predicates if each.rule.id == TOLD} == {NOT_OBSERVED}


def test_a_monotonic_clock_near_zero_hides_no_change():
    """It may count from the start of the machine, and a notification that never came is not one of time 0."""
    assert _change(A, AB, way="stdio", begins=0.0).faults == {TOLD: FAIL}


def test_a_notification_that_was_not_declared_is_a_warning():
    assert _change(A, AB, "between", declared=False).faults == {TOLD: WARN}


def _asked_often(answers: list[int | None], wait: float = 1) -> Any:
    log = Log()
    session = open_session(log)
    for code in answers:
        _list(session, A, wait=wait, **({} if code is None else {"code": code}))
    return judged(log)["acme"]


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([-32601, -32601], WARN),
        ([-32601], INCONCLUSIVE),
        ([None, -32601, -32601], INCONCLUSIVE),
        ([-32603, -32603], INCONCLUSIVE),
    ],
)
def test_declared_roots_are_served(answers: Any, verdict: Verdict):
    found = _asked_often(answers)
    assert found[SERVED] is verdict
    assert set(found.faults) <= {SERVED}


def _silence(times: int, *, alive: bool = True, withdrawn: bool = False, gap: bool = False) -> Any:
    log = Log()
    session = open_session(log)
    stream = session.get()
    for _ in range(times):
        question, _ = ask(session, LIST, {})
        if gap:
            log.gap()
        log.after(10)
        if withdrawn:
            stream.tell("notifications/cancelled", {"requestId": question.id})
        log.after(19)
        if alive:
            session.request("tools/list")
        log.idle(2)
    return judged(log)["acme"]


def test_silence_counts_while_the_question_stands():
    assert _silence(2).faults == {SERVED: WARN}
    assert _silence(1)[SERVED] is INCONCLUSIVE
    assert _silence(2, withdrawn=True)[SERVED] is INCONCLUSIVE
    assert _silence(1, alive=False)[SERVED] is NOT_OBSERVED
    assert _silence(2, gap=True)[SERVED] is INCONCLUSIVE


def test_silent():
    log = Log()
    open_session(log).request("tools/list")
    found = judged(log)["acme"]
    assert {found[id] for id in (URI, TOLD, SERVED)} == {NOT_OBSERVED}


def test_a_wrapped_answer_is_left_to_the_rule_about_its_form():
    found = judged(asked("roots/list", {}, {"result": {"roots": []}}, way="round"))["acme"]
    assert found.faults == {"mrtr.answer-shape": Verdict.FAIL}
    assert found["roots.declared-served"] is Verdict.NOT_OBSERVED

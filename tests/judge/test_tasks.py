"""Rules `tasks.*`: tasks of 2025-11-25."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from probe.judge.verdicts import Verdict

from .dialogues import FORM, LegacyTask, ModernTask, ask, open_session, reply
from .logs import HttpSession, Log, Pipe, judged

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
INCONCLUSIVE, NOT_OBSERVED = Verdict.INCONCLUSIVE, Verdict.NOT_OBSERVED
POLL, END, FETCHED, INPUT = "tasks.poll-interval", "tasks.polls-to-end", "tasks.result-fetched", "tasks.input-required"
RELATED, PLAIN, STOPS, GONE = (
    "tasks.related-task",
    "tasks.no-related-task",
    "tasks.stops-when-terminal",
    "tasks.unknown-left-alone",
)
ALL = (POLL, END, FETCHED, INPUT, RELATED, PLAIN, STOPS, GONE)
KEY = "io.modelcontextprotocol/related-task"
WAYS = ("http", "websocket", "stdio")


def found(log: Log, label: str = "acme") -> Any:
    return judged(log)[label]


def start(way: str = "http", **options: Any) -> tuple[Log, HttpSession | Pipe, LegacyTask]:
    log = Log()
    session = open_session(log, way)
    return log, session, LegacyTask(session, **options)


@pytest.mark.parametrize("way", WAYS)
def test_a_client_that_does_all_of_it(way: str):
    log, _, task = start(way)
    for _ in range(5):
        log.after(1)
        task.get()
    task.change("completed")
    log.after(1)
    task.get("completed")
    task.result()
    log.idle(40)
    each = found(log)
    assert each.faults == {}
    assert {each[id] for id in (POLL, END, FETCHED, PLAIN, STOPS)} == {PASS}
    measured = each.measured[POLL]["gaps between polls, shares of the interval"]
    assert 1.0 <= measured["worst"] <= measured["median"] <= 1.1


def _polled(gaps: list[float], *, between: str = "", way: str = "http") -> Any:
    log, session, task = start(way)
    task.get()
    for gap in gaps:
        log.after(gap)
        match between:
            case "status":
                stream = session.get()
                stream.tell("notifications/tasks/status", task.body("working"))
                stream.close()
            case "result":
                task.result(answered=False)
            case "gap":
                log.gap()
        task.get()
    return found(log)


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ([0.2] * 5, WARN),
        ([0.2, 0.2, 0.2, 1, 1, 0.2], WARN),
        ([0.8] * 5, WARN),
        ([0.2] * 4, NOT_OBSERVED),
        ([1.0] * 2, NOT_OBSERVED),
        ([1.0] * 3, PASS),
        ([0.92] * 9, PASS),
        ([0.2, 0.2, 1, 1, 1, 1], PASS),
        ([1, 1, 1, 0.1, 1, 0.1, 1], PASS),
    ],
)
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_a_share_of_early_polls_is_a_warning(gaps: list[float], verdict: Verdict, way: str):
    each = _polled(gaps, way=way)
    assert each[POLL] is verdict
    assert set(each.faults) <= {POLL}


@pytest.mark.parametrize("between", ["status", "result", "gap"])
def test_an_early_look_after_news_is_right(between: str):
    assert _polled([0.2] * 8, between=between)[POLL] is NOT_OBSERVED


def test_an_early_look_after_an_answer_is_right():
    log, session, task = start()
    for _ in range(8):
        log.after(0.2)
        question, _ = ask(session, "elicitation/create", {**FORM, "_meta": {KEY: {"taskId": task.id}}})
        result = {"action": "cancel", "_meta": {KEY: {"taskId": task.id}}}
        reply(session, question, {"jsonrpc": "2.0", "id": question.id, "result": result})
        task.get()
    assert found(log)[POLL] is NOT_OBSERVED


def test_two_readers_of_one_task_do_not_poll_together():
    log = Log()
    first, second = open_session(log), open_session(log)
    one = LegacyTask(first)
    other = LegacyTask(second)
    other.id = one.id
    for _ in range(8):
        for task in (one, other):
            log.after(0.5)
            task.get()
    assert found(log)[POLL] is PASS


def test_what_was_not_answered_is_no_poll():
    log, session, task = start()
    for _ in range(8):
        log.after(0.1)
        session.request("tasks/get", {"taskId": task.id})
    assert found(log)[POLL] is NOT_OBSERVED


def _ended(*acts: str, status: str = "completed", way: str = "http", poll_ms: int = 1000) -> Any:
    """A task that ends after a second; then what the client does."""
    log, session, task = start(way, poll_ms=poll_ms)

    def tell() -> None:
        if isinstance(session, Pipe):
            params = task.body(status)
            session.tell({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params})
        else:
            session.get().tell("notifications/tasks/status", task.body(status))

    known: dict[str, Callable[[], Any]] = {
        "get": lambda: task.get(status),
        "input": lambda: task.get("input_required"),
        "list": lambda: session.answer(session.request("tasks/list"), {"tasks": [task.body(status)]}),
        "told": tell,
        "result": task.result,
        "cancel": task.cancel,
        "other": lambda: session.request("resources/list"),
        "ping": lambda: session.answer(session.request("ping"), {}),
        "note": lambda: session.notify("notifications/roots/list_changed"),
        "leave": session.close,
        "gap": log.gap,
    }
    log.after(1)
    task.change(status)
    for act in acts:
        if act in known:
            known[act]()
        else:
            log.idle(float(act))
    return found(log)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("acts", "verdict"),
    [
        (["other", "40"], WARN),
        (["10", "other", "25"], WARN),
        (["get"], PASS),
        (["input"], PASS),
        (["result"], PASS),
        (["10", "other", "result"], PASS),
        (["other", "25"], INCONCLUSIVE),
        (["40"], NOT_OBSERVED),
        (["list", "40"], PASS),
        (["told", "other", "40"], NOT_OBSERVED),
        (["note", "40"], INCONCLUSIVE),
        (["ping", "40"], INCONCLUSIVE),
        (["cancel", "other", "40"], NOT_OBSERVED),
        (["other", "leave", "40"], NOT_OBSERVED),
        (["other", "gap", "40"], INCONCLUSIVE),
    ],
)
def test_a_task_is_followed_to_its_end(acts: list[str], verdict: Verdict, way: str):
    each = _ended(*acts, way=way)
    assert each[END] is verdict
    assert set(each.faults) <= {END}


def test_a_long_interval_gives_more_time():
    assert _ended("other", "290", poll_ms=30_000)[END] is INCONCLUSIVE
    assert _ended("other", "310", poll_ms=30_000)[END] is WARN


@pytest.mark.parametrize(
    ("acts", "verdict"),
    [
        (["get", "other", "40"], WARN),
        (["get", "result"], PASS),
        (["get", "20", "other", "result"], PASS),
        (["result", "get"], PASS),
        (["get", "40"], NOT_OBSERVED),
        (["get", "note", "40"], INCONCLUSIVE),
        (["get", "leave", "40"], NOT_OBSERVED),
        (["get", "gap", "other", "40"], INCONCLUSIVE),
        (["gap", "get", "other", "40"], INCONCLUSIVE),
        (["other", "40"], NOT_OBSERVED),
    ],
)
def test_the_result_of_a_finished_task_is_fetched(acts: list[str], verdict: Verdict):
    each = _ended(*acts)
    assert each[FETCHED] is verdict
    assert set(each.faults) <= {FETCHED, END}


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_the_result_of_a_failed_task_need_not_be_fetched(status: str):
    assert _ended("get", "other", "40", status=status)[FETCHED] is NOT_OBSERVED


def _wants_input(*acts: str) -> Any:
    log, session, task = start()

    def notify() -> None:
        task.change("input_required")
        session.get().tell("notifications/tasks/status", task.body("input_required"))

    def reply_to_it() -> None:
        question, _ = ask(session, "elicitation/create", {**FORM, "_meta": {KEY: {"taskId": task.id}}})
        result = {"action": "cancel", "_meta": {KEY: {"taskId": task.id}}}
        reply(session, question, {"jsonrpc": "2.0", "id": question.id, "result": result})

    known = {
        "get": lambda: task.get("input_required"),
        "notice": notify,
        "working": lambda: task.get("working"),
        "result": lambda: task.result(answered=False),
        "cancel": task.cancel,
        "answer": reply_to_it,
        "gap": log.gap,
    }
    for act in acts:
        if act in known:
            known[act]()
        else:
            log.idle(float(act))
    return found(log)


@pytest.mark.parametrize(
    ("acts", "verdict"),
    [
        (["get", "5", "get", "40"], WARN),
        (["notice", "5", "get", "40"], WARN),
        (["get", "result"], PASS),
        (["get", "9", "result"], PASS),
        (["get", "15", "result"], INCONCLUSIVE),
        (["get", "15", "get", "answer", "40"], PASS),
        (["get", "5", "working", "40"], INCONCLUSIVE),
        (["get", "40"], INCONCLUSIVE),
        (["get", "5", "get", "gap", "40"], INCONCLUSIVE),
        (["gap", "get", "5", "get", "40"], INCONCLUSIVE),
        (["get", "5", "get", "cancel", "40"], NOT_OBSERVED),
        (["result", "get", "5", "get", "40"], PASS),
        (["1", "40"], NOT_OBSERVED),
    ],
)
def test_a_task_that_wants_input_gets_tasks_result(acts: list[str], verdict: Verdict):
    each = _wants_input(*acts)
    assert each[INPUT] is verdict
    assert set(each.faults) <= {INPUT}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("related", "verdict"),
    [
        ({KEY: {"taskId": "T"}}, PASS),
        ({KEY: {"taskId": "U"}}, FAIL),
        ({KEY: {}}, FAIL),
        (None, FAIL),
        ("error", NOT_OBSERVED),
        ("hidden", NOT_OBSERVED),
    ],
)
def test_an_answer_names_its_task(way: str, related: Any, verdict: Verdict):
    log = Log()
    session = open_session(log, way)
    question, _ = ask(session, "elicitation/create", {**FORM, "_meta": {KEY: {"taskId": "T"}}})
    value: dict[str, Any] = {"jsonrpc": "2.0", "id": question.id, "result": {"action": "cancel"}}
    hidden: tuple[tuple[str, str], ...] = ()
    if related == "error":
        value = {"jsonrpc": "2.0", "id": question.id, "error": {"code": -1, "message": "no"}}
    elif related == "hidden":
        hidden = (("/result/_meta", "object"),)
    elif related is not None:
        value["result"]["_meta"] = related
    reply(session, question, value, hidden)
    each = found(log)
    assert each[RELATED] is verdict
    assert set(each.faults) <= {RELATED}
    if related is None:
        assert "common" in each.remarks[RELATED][0]


def test_an_answer_to_a_question_of_no_task_names_none():
    log = Log()
    session = open_session(log)
    question, _ = ask(session, "elicitation/create", FORM)
    reply(session, question, {"jsonrpc": "2.0", "id": question.id, "result": {"action": "cancel"}})
    assert found(log)[RELATED] is NOT_OBSERVED


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
def test_a_request_about_a_task_does_not_repeat_it(method: str):
    for meta, faults in (({KEY: {"taskId": "T"}}, {PLAIN: WARN}), ({"progressToken": 1}, {})):
        log, session, task = start()
        session.answer(session.request(method, {"taskId": task.id, "_meta": meta}), task.body("working"))
        assert found(log).faults == faults


@pytest.mark.parametrize(
    ("more", "verdict"), [(0, PASS), (2, PASS), (3, INCONCLUSIVE), (5, INCONCLUSIVE), (6, WARN), (20, WARN)]
)
@pytest.mark.parametrize("way", WAYS)
def test_polling_stops_with_the_task(more: int, verdict: Verdict, way: str):
    log, _, task = start(way)
    task.change("completed")
    for _ in range(more + 1):
        log.after(1)
        task.get("completed")
    task.result()
    log.idle(40)
    each = found(log)
    assert each[STOPS] is verdict
    assert set(each.faults) <= {STOPS}


def test_two_readers_of_a_finished_task_stop_each():
    log = Log()
    tasks = [LegacyTask(open_session(log)) for _ in range(3)]
    for task in tasks:
        task.id = tasks[0].id
        for _ in range(3):
            log.after(1)
            task.get("completed")
        task.result()
    log.idle(40)
    assert found(log)[STOPS] is PASS


@pytest.mark.parametrize(("more", "verdict"), [(0, PASS), (3, PASS), (4, INCONCLUSIVE), (10, INCONCLUSIVE), (11, WARN)])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_task_that_is_gone_is_left_alone(more: int, verdict: Verdict, era: str):
    log = Log()
    error = {"code": -32602, "message": "Task not found"}
    if era == "legacy":
        session = open_session(log)
        for _ in range(more + 1):
            log.after(2)
            session.answer(session.request("tasks/get", {"taskId": "gone"}), error=error)
    else:
        client = log.http()
        task = ModernTask(client)
        for _ in range(more + 1):
            log.after(2)
            client.answer(task.request_of("tasks/get"), error=error)
    log.idle(40)
    each = found(log)
    assert each[GONE] is verdict
    assert set(each.faults) <= {GONE}


def test_other_errors_do_not_say_that_a_task_is_gone():
    log = Log()
    session = open_session(log)
    for _ in range(20):
        error = {"code": -32603, "message": "later"}
        session.answer(session.request("tasks/get", {"taskId": "T"}), error=error)
    log.idle(40)
    assert found(log)[GONE] is NOT_OBSERVED


def test_silent():
    log = Log()
    session = open_session(log)
    session.answer(session.call("tool"), {"content": []})
    log.idle(400)
    each = found(log)
    assert {each[id] for id in ALL} == {NOT_OBSERVED}

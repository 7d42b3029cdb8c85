"""Rules `tasksx.*`: the tasks extension of 2026-07-28."""

from __future__ import annotations

from typing import Any

import pytest

from probe.judge.verdicts import Verdict

from .dialogues import CALL, FORM, MODERN_CAPABILITIES, ModernTask, open_round, retry
from .logs import Log, judged

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
INCONCLUSIVE, NOT_OBSERVED = Verdict.INCONCLUSIVE, Verdict.NOT_OBSERVED
HANDLE, POLL, END, UPDATE = (
    "tasksx.polymorphic",
    "tasksx.poll-interval",
    "tasksx.polls-to-end",
    "tasksx.update",
)
KEYS, TWICE, DECLARED, STOPS = (
    "tasksx.update-keys",
    "tasksx.no-double-answer",
    "tasksx.declared",
    "tasksx.stops-when-terminal",
)
ALL = (HANDLE, POLL, END, UPDATE, KEYS, TWICE, DECLARED, STOPS)
ASKED = {"name": {"method": "elicitation/create", "params": FORM}}
GOOD = {"name": {"action": "accept", "content": {"name": "ada"}}}


def found(log: Log, label: str = "acme") -> Any:
    return judged(log)[label]


def anonymous(log: Log) -> Any:
    [each] = judged(log).values()
    return each


def other(client: Any) -> None:
    """Another request of the client."""
    client.answer(client.modern("prompts/list", capabilities=MODERN_CAPABILITIES), {"resultType": "complete"})


@pytest.mark.parametrize("way", ["http", "websocket", "stdio"])
def test_a_client_that_does_all_of_it(way: str):
    log = Log()
    task = ModernTask({"http": log.http, "websocket": log.websocket, "stdio": log.stdio}[way]())
    for _ in range(5):
        log.after(1)
        task.get()
    task.change("input_required")
    log.after(1)
    task.get("input_required", inputRequests=ASKED)
    log.after(60)
    task.update(GOOD)
    task.change("completed")
    log.after(1)
    task.get("completed", result={"content": []})
    log.idle(40)
    each = found(log)
    assert each.faults == {}
    assert {each[id] for id in ALL} == {PASS}


def _ignored(tasks: int, *acts: str, label: str | None = "acme") -> Log:
    """Tasks whose handles were delivered, and what the client does after each."""
    log = Log()
    client = log.http(label)
    for number in range(tasks):
        task = ModernTask(client, call={"name": "tool", "arguments": {"n": number}})
        log.after(1)
        for act in acts:
            match act:
                case "other":
                    other(client)
                case "get":
                    task.get()
                case "cancel":
                    task.cancel()
                case "listen":
                    client.modern(
                        "subscriptions/listen",
                        {"notifications": {"taskIds": [task.id]}},
                        capabilities=MODERN_CAPABILITIES,
                    )
                case "again":
                    again = client.modern(
                        "tools/call", {"name": "tool", "arguments": {"n": number}}, capabilities=MODERN_CAPABILITIES
                    )
                    client.answer(again, {"resultType": "complete", "content": []})
                case "gap":
                    log.gap()
                case _:
                    log.idle(float(act))
    return log


BUSY = ["35", "other", "30", "other", "60", "other"]


@pytest.mark.parametrize(
    ("tasks", "acts", "verdict"),
    [
        (3, BUSY, FAIL),
        (3, ["again", *BUSY], FAIL),
        (3, ["35", "other", "30", "other"], WARN),
        (2, [*BUSY, *BUSY], WARN),
        (1, BUSY, WARN),
        (1, ["again", "70"], WARN),
        (1, ["other", "70"], NOT_OBSERVED),
        (1, ["70"], NOT_OBSERVED),
        (3, ["28", "get", *BUSY], PASS),
        (3, ["listen", *BUSY], PASS),
        (3, ["cancel", *BUSY], PASS),
        (1, ["other", "gap", *BUSY], INCONCLUSIVE),
    ],
)
def test_a_handle_is_understood(tasks: int, acts: list[str], verdict: Verdict):
    each = found(_ignored(tasks, *acts))
    assert each[HANDLE] is verdict
    assert set(each.faults) <= {HANDLE}


@pytest.mark.parametrize("late", [False, True])
def test_a_client_that_used_one_handle_knows_them(late: bool):
    log = Log()
    client = log.http()
    tasks = [ModernTask(client, call={"name": "tool", "arguments": {"n": number}}) for number in range(4)]
    if not late:
        tasks[0].get()
    for _ in range(9):
        log.idle(40)
        other(client)
        if late:
            tasks[0].get()
    assert found(log)[HANDLE] is WARN


def test_a_gap_may_hide_that_a_handle_was_used():
    log = Log()
    client = log.http()
    log.gap()
    client.answer(client.modern("tools/list", capabilities=MODERN_CAPABILITIES), {"resultType": "complete"})
    for number in range(4):
        ModernTask(client, call={"name": "tool", "arguments": {"n": number}})
        for _ in range(4):
            log.idle(40)
            other(client)
    assert found(log)[HANDLE] is WARN


def test_clients_that_nobody_can_tell_apart_are_not_accused():
    each = anonymous(_ignored(3, *BUSY, label=None))
    assert (each[HANDLE], each.faults) == (INCONCLUSIVE, {})


def test_a_handle_that_was_not_delivered_is_none():
    log = Log()
    client = log.http()
    ModernTask(client, delivered=False)
    for _ in range(3):
        other(client)
        log.idle(40)
    assert found(log)[HANDLE] is NOT_OBSERVED


def _polled(gaps: list[float], *, between: str = "", label: str | None = "acme") -> Log:
    log = Log()
    client = log.http(label)
    task = ModernTask(client)
    listening = None
    if between == "news":
        listening = client.stream(client.modern("subscriptions/listen", {"notifications": {"taskIds": [task.id]}}))
    task.get()
    for gap in gaps:
        log.after(gap)
        if listening is not None:
            listening.tell("notifications/tasks", task.body("working"))
        elif between == "update":
            task.update({})
        task.get()
    return log


@pytest.mark.parametrize(
    ("gaps", "verdict"), [([0.2] * 5, WARN), ([0.2] * 4, NOT_OBSERVED), ([1.0] * 3, PASS), ([0.2, 0.2, 1, 1, 1], PASS)]
)
def test_a_share_of_early_polls_is_a_warning(gaps: list[float], verdict: Verdict):
    each = found(_polled(gaps))
    assert each[POLL] is verdict
    assert set(each.faults) <= {POLL}


def test_early_polls_that_are_right():
    assert anonymous(_polled([0.2] * 8, label=None))[POLL] is INCONCLUSIVE
    for between in ("news", "update"):
        assert found(_polled([0.2] * 8, between=between))[POLL] is NOT_OBSERVED


def _ended(*acts: str, label: str | None = "acme") -> Log:
    log = Log()
    client = log.http(label)
    task = ModernTask(client)
    task.get()
    log.after(1)
    task.change("completed")
    for act in acts:
        match act:
            case "get":
                task.get("completed", result={"content": []})
            case "gone":
                client.answer(task.request_of("tasks/get"), error={"code": -32602, "message": "Task not found"})
            case "news":
                listening = client.modern(
                    "subscriptions/listen", {"notifications": {"taskIds": [task.id]}}, capabilities=MODERN_CAPABILITIES
                )
                client.stream(listening).tell("notifications/tasks", task.body("completed", result={"content": []}))
            case "cancel":
                task.cancel()
            case "other":
                other(client)
            case "gap":
                log.gap()
            case _:
                log.idle(float(act))
    return log


@pytest.mark.parametrize(
    ("acts", "verdict"),
    [
        (["other", "40"], WARN),
        (["get"], PASS),
        (["news"], PASS),
        (["cancel"], PASS),
        (["gone"], PASS),
        (["40"], NOT_OBSERVED),
        (["other", "20"], INCONCLUSIVE),
        (["other", "gap", "40"], INCONCLUSIVE),
    ],
)
def test_a_task_is_followed_to_its_end_or_cancelled(acts: list[str], verdict: Verdict):
    each = found(_ended(*acts))
    assert each[END] is verdict
    assert set(each.faults) <= {END}


def test_another_process_may_follow_a_task():
    assert anonymous(_ended("other", "40", label=None))[END] is INCONCLUSIVE


def _asked(*acts: str, before: str = "", capabilities: Any = None) -> Any:
    """A task that wants input, and what follows; `before`: what happens before it."""
    log = Log()
    client = log.http()
    if "round" in before:
        open_round(client, ASKED)
        log.after(2)
        retry(client, GOOD)
    task = ModernTask(client, capabilities=capabilities or MODERN_CAPABILITIES)
    if "gap" in before:
        log.gap()
    task.change("input_required")
    for act in ("get", *acts):
        match act:
            case "get":
                task.get("input_required", inputRequests=ASKED)
            case "update":
                task.update(GOOD)
            case "cancel":
                task.cancel()
            case "end":
                task.change("failed")
            case "gap":
                log.gap()
            case _:
                for _ in range(int(act) // 5):
                    log.after(5)
                    task.get("input_required", inputRequests=ASKED)
    return found(log)


@pytest.mark.parametrize(
    ("acts", "options", "verdict"),
    [
        (["310"], {}, WARN),
        (["30", "end"], {"before": "round"}, WARN),
        (["30", "end"], {}, INCONCLUSIVE),
        (["5", "end"], {"before": "round"}, INCONCLUSIVE),
        (["200"], {}, INCONCLUSIVE),
        (["200", "update"], {}, PASS),
        (["200", "cancel", "200"], {}, NOT_OBSERVED),
        (["20", "gap", "310"], {}, INCONCLUSIVE),
        (["310"], {"before": "gap"}, INCONCLUSIVE),
        (["30", "end"], {"before": "round, gap"}, INCONCLUSIVE),
        (["310"], {"capabilities": {"extensions": MODERN_CAPABILITIES["extensions"]}}, NOT_OBSERVED),
    ],
)
def test_a_task_that_asks_is_answered(acts: list[str], options: Any, verdict: Verdict):
    each = _asked(*acts, **options)
    assert each[UPDATE] is verdict
    assert set(each.faults) <= {UPDATE}


def test_a_client_that_does_not_poll_may_be_away():
    log = Log()
    client = log.http()
    task = ModernTask(client)
    task.get("input_required", inputRequests=ASKED)
    for _ in range(20):
        log.idle(20)
        other(client)
    assert found(log)[UPDATE] is INCONCLUSIVE


def _updated(answers: Any, *, label: str | None = "acme", gap: bool = False, known: bool = True) -> Log:
    log = Log()
    client = log.http(label)
    task = ModernTask(client)
    if gap:
        log.gap()
    task.get("input_required", inputRequests=ASKED)
    if not known:
        task.id = "handed over"
    task.update(answers)
    task.get("working")
    return log


def test_an_answer_has_the_key_of_its_question():
    assert found(_updated({**GOOD, "more": GOOD["name"]})).faults == {KEYS: FAIL}
    assert found(_updated(GOOD))[KEYS] is PASS
    assert found(_updated({}))[KEYS] is NOT_OBSERVED
    assert found(_updated({"more": GOOD["name"]}, gap=True))[KEYS] is INCONCLUSIVE
    assert found(_updated({"more": GOOD["name"]}, known=False))[KEYS] is INCONCLUSIVE
    assert anonymous(_updated({"more": GOOD["name"]}, label=None))[KEYS] is INCONCLUSIVE


def test_a_task_whose_handle_went_elsewhere_may_have_asked_more():
    log = Log()
    client = log.http()
    task = ModernTask(client, delivered=False)
    task.get("input_required", inputRequests=ASKED)
    task.update({"more": GOOD["name"]})
    assert found(log)[KEYS] is INCONCLUSIVE


def test_a_key_that_another_reader_answered_is_known():
    log = Log()
    first, second = log.http(), log.http()
    task = ModernTask(first)
    task.get("input_required", inputRequests=ASKED)
    task.update(GOOD, acknowledged=False)
    task.client = second
    task.update(GOOD, acknowledged=False)
    assert found(log)[KEYS] is PASS


def _twice(wait: float, *, acknowledged: bool = True, asked_again: bool = False, **options: Any) -> Log:
    log = Log()
    task = ModernTask(log.http(options.get("label", "acme")))
    task.get("input_required", inputRequests=ASKED)
    task.update(GOOD, acknowledged=acknowledged)
    log.after(wait)
    if options.get("gap"):
        log.gap()
    if asked_again:
        task.get("input_required", inputRequests=ASKED)
    task.update(GOOD)
    task.get("completed", result={"content": []})
    return log


def test_a_question_is_answered_once():
    assert found(_twice(2)).faults == {TWICE: WARN}
    assert found(_twice(0.5))[TWICE] is PASS
    assert found(_twice(2, acknowledged=False))[TWICE] is PASS
    assert found(_twice(2, asked_again=True))[TWICE] is PASS
    assert found(_twice(2, gap=True))[TWICE] is PASS
    assert anonymous(_twice(2, label=None))[TWICE] is INCONCLUSIVE


def test_a_refused_answer_may_come_again():
    log = Log()
    client = log.http()
    task = ModernTask(client)
    task.get("input_required", inputRequests=ASKED)
    client.answer(task.update(GOOD, acknowledged=False), error={"code": -32602, "message": "does not fit"})
    log.after(5)
    task.update(GOOD)
    each = found(log)
    assert (each[TWICE], each.faults) == (PASS, {})


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_the_extension_is_declared_with_every_request(method: str):
    for capabilities, faults in (({"elicitation": {}}, {DECLARED: WARN}), (MODERN_CAPABILITIES, {})):
        log = Log()
        client = log.http()
        task = ModernTask(client)
        params = {"inputResponses": {}} if method == "tasks/update" else {}
        client.answer(task.request_of(method, params, capabilities), {"resultType": "complete"})
        assert found(log).faults == faults


def test_hidden_capabilities_are_not_judged():
    log = Log()
    task = ModernTask(log.http())
    place = "/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions"
    task.request_of("tasks/get", capabilities={"extensions": "[redacted]"}, message={"hidden": ((place, "object"),)})
    assert found(log)[DECLARED] is NOT_OBSERVED


@pytest.mark.parametrize(("more", "verdict"), [(2, PASS), (3, INCONCLUSIVE), (5, INCONCLUSIVE), (6, WARN)])
def test_polling_stops_with_the_task(more: int, verdict: Verdict):
    log = Log()
    task = ModernTask(log.http())
    task.change("completed")
    for _ in range(more + 1):
        log.after(1)
        task.get("completed", result={"content": []})
    log.idle(40)
    each = found(log)
    assert each[STOPS] is verdict
    assert set(each.faults) <= {STOPS}


def test_silent():
    log = Log()
    client = log.http()
    client.answer(client.modern("tools/call", CALL, capabilities=MODERN_CAPABILITIES), {"content": []})
    log.idle(400)
    each = found(log)
    assert {each[id] for id in ALL} == {NOT_OBSERVED}

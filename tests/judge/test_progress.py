"""Rules `progress.*`, and `lifecycle.progress-extends-patience`."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from probe.judge.verdicts import Verdict
from probe.log import events

from .logs import Asked, HttpSession, Log, Pipe, expect, judged

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
UNIQUE = "progress.token-unique"
PATIENCE = "lifecycle.progress-extends-patience"


def call(session: HttpSession | Pipe, token: Any, **options: Any) -> Asked:
    params = {"name": "progress", "arguments": {}, "_meta": {"progressToken": token}, **options.pop("params", {})}
    return session.request("tools/call", params, **options)


def opened(transport: str = "http", revision: str = "2025-11-25") -> tuple[Log, Any]:
    log = Log()
    clients: dict[str, Any] = {"http": log.http, "stdio": log.stdio, "websocket": log.websocket}
    return log, clients[transport]().session(revision)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize(
    ("token", "verdict"),
    [
        ("a", Verdict.PASS),
        ("", Verdict.PASS),
        (0, Verdict.PASS),
        (1.0, Verdict.WARN),
        (1.5, Verdict.FAIL),
        (None, Verdict.FAIL),
        (True, Verdict.FAIL),
        ({}, Verdict.FAIL),
        ([1], Verdict.FAIL),
    ],
)
def test_types_of_tokens(revision: str, transport: str, token: Any, verdict: Verdict):
    log, session = opened(transport, revision)
    call(session, token)
    expect(log, "progress.token-type", verdict)


@pytest.mark.parametrize(
    ("token", "words"), [(True, "true"), (None, "null"), (1.5, "1.5"), ({}, "of type object"), ([1], "of type array")]
)
def test_a_wrong_token_is_named_in_the_words_of_json(token: Any, words: str):
    log, session = opened()
    call(session, token)
    (found,) = judged(log).values()
    assert found.remarks["progress.token-type"] == [f"progressToken is {words}"]


def test_without_a_token_and_with_a_hidden_one_nothing_is_judged():
    log, session = opened()
    session.call("progress")
    expect(log, "progress.token-type", Verdict.NOT_OBSERVED)
    log, session = opened()
    call(session, None, message={"hidden": (("/params/_meta", "object"),)})
    expect(log, "progress.token-type", Verdict.NOT_OBSERVED)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [("a", "b", Verdict.PASS), (1, 2, Verdict.PASS), ("a", "a", Verdict.FAIL), (1, "1", Verdict.WARN)],
)
def test_tokens_of_two_calls_at_once(revision: str, transport: str, first: Any, second: Any, verdict: Verdict):
    log, session = opened(transport, revision)
    call(session, first)
    call(session, second)
    log.idle(3)
    expect(log, UNIQUE, verdict)


def test_a_token_of_a_request_that_is_over_is_free():
    log, session = opened()
    session.answer(call(session, "a"))
    call(session, "a")
    log.idle(3)
    expect(log, UNIQUE, Verdict.NOT_OBSERVED)


def test_an_answer_that_was_read_before_the_log_says_so():
    log, session = opened("stdio")
    asked = call(session, "a")
    answer = session.emit({"jsonrpc": "2.0", "id": asked.id, "result": {}}, asked.context, asked.seq)
    call(session, "a")
    session.deliver(answer, asked.context)
    expect(log, UNIQUE, Verdict.NOT_OBSERVED)


def test_the_same_post_once_more_is_no_second_request():
    log, session = opened()
    call(session, "a", id=7)
    log.after(20)
    call(session, "a", id=7)
    log.idle(3)
    expect(log, UNIQUE, Verdict.NOT_OBSERVED)


@pytest.mark.parametrize("how", ["cancelled", "hung up"])
@pytest.mark.parametrize("first", [True, False])
def test_a_token_of_a_request_that_was_given_up_is_free(how: str, first: bool):
    log, session = opened()
    asked = call(session, "a")
    if not first:
        # What gives it up arrives on another connection, and later.
        call(session, "a")
        log.after(1)
    if how == "cancelled":
        session.notify("notifications/cancelled", {"requestId": asked.id})
    else:
        session.client.leave(asked)
    if first:
        call(session, "a")
    log.idle(3)
    assert judged(log)["acme"][UNIQUE] < Verdict.INCONCLUSIVE


def test_tokens_of_several_sessions_and_of_several_processes_may_be_equal():
    log = Log()
    client = log.http()
    call(client.session(), 1)
    call(client.session(), 1)
    log.idle(3)
    expect(log, UNIQUE, Verdict.NOT_OBSERVED)
    log = Log()
    client = log.http(None)
    for _ in range(2):
        client.modern("tools/call", {"name": "progress", "arguments": {}}, more_meta={"progressToken": 1})
    log.idle(3)
    expect(log, UNIQUE, Verdict.INCONCLUSIVE, "m1")


def test_two_instances_under_one_label_accuse_nobody():
    log = Log()
    client = log.http()
    for _ in range(2):
        client.modern("tools/call", {"name": "progress", "arguments": {}}, more_meta={"progressToken": 1})
    log.idle(3)
    # Each came on a connection of its own, so two instances of a client may have sent them.
    expect(log, UNIQUE, Verdict.INCONCLUSIVE)


def test_a_gap_leaves_tokens_open():
    log, session = opened()
    call(session, "a")
    call(session, "a")
    log.gap()
    log.idle(3)
    expect(log, UNIQUE, Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(("ends", "verdict"), [(True, Verdict.NOT_OBSERVED), (False, Verdict.FAIL)])
def test_a_token_is_that_of_the_task_until_it_ends(ends: bool, verdict: Verdict):
    log, session = opened("stdio")
    asked = call(session, "a", params={"task": {}})
    session.answer(asked, {"task": {"taskId": "t1", "status": "working"}})
    if ends:
        log.add(
            events.TaskChanged("progress", "completed", None, 1), structs.replace(asked.context, task="t1"), asked.seq
        )
    call(session, "a")
    expect(log, UNIQUE, verdict)


def test_the_rounds_of_one_call_may_have_one_token():
    log = Log()
    client = log.http()
    params = {"name": "ask", "arguments": {}}
    asked = client.modern("tools/call", params, more_meta={"progressToken": 1})
    client.answer(asked, {"resultType": "input_required", "requestState": "s", "inputRequests": {}})
    client.modern("tools/call", {**params, "requestState": "s"}, more_meta={"progressToken": 1})
    log.idle(3)
    expect(log, UNIQUE, Verdict.NOT_OBSERVED)


def test_whether_it_asks_for_progress_is_measured():
    log, session = opened()
    session.call("progress")
    found = expect(log, "progress.asked-for", Verdict.NOT_OBSERVED)
    assert found.measured["progress.asked-for"] == {"asks for progress": "no"}
    call(session, 1)
    session.call("progress")
    found = expect(log, "progress.asked-for", Verdict.PASS)
    assert found.measured["progress.asked-for"] == {"asks for progress": "yes"}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("token", "verdict"), [("mine", Verdict.PASS), ("other", Verdict.FAIL)])
def test_progress_of_the_client(revision: str, token: str, verdict: Verdict):
    log, session = opened("http", revision)
    session.get().ask("roots/list", {"_meta": {"progressToken": "mine"}})
    session.notify("notifications/progress", {"progressToken": token, "progress": 1})
    log.idle(3)
    expect(log, "progress.only-for-server-tokens", verdict)


def test_progress_for_a_token_before_a_gap_decides_nothing():
    log, session = opened()
    log.gap()
    session.notify("notifications/progress", {"progressToken": "x", "progress": 1})
    log.idle(3)
    expect(log, "progress.only-for-server-tokens", Verdict.INCONCLUSIVE)
    log, session = opened()
    session.call("progress")
    expect(log, "progress.only-for-server-tokens", Verdict.NOT_OBSERVED)


def patience(silent_s: float | None, progressed_s: float, *, answered: bool) -> Log:
    """A silent call that was given up, and one with progress."""
    log, session = opened()
    if silent_s is not None:
        asked = call(session, 1)
        log.after(silent_s)
        session.notify("notifications/cancelled", {"requestId": asked.id})
    asked = call(session, 2)
    stream = session.client.stream(asked)
    stream.tell("notifications/progress", {"progressToken": 2, "progress": 1})
    log.after(progressed_s)
    if answered:
        stream.answer({"content": []})
    else:
        session.notify("notifications/cancelled", {"requestId": asked.id})
    log.idle(40)
    return log


@pytest.mark.parametrize(
    ("log", "verdict", "measured"),
    [
        (patience(30, 50, answered=True), Verdict.PASS, "waited with progress"),
        (patience(30, 50, answered=False), Verdict.PASS, "waited with progress"),
        (patience(30, 30, answered=False), Verdict.NOT_OBSERVED, "gave up in spite of progress after"),
        (patience(30, 5, answered=True), Verdict.NOT_OBSERVED, "gave up a silent call after"),
        (patience(None, 50, answered=True), Verdict.NOT_OBSERVED, None),
    ],
)
def test_patience_is_measured(log: Log, verdict: Verdict, measured: str | None):
    found = judged(log)["acme"]
    assert found[PATIENCE] is verdict
    assert measured in found.measured[PATIENCE] or (measured is None and not found.measured[PATIENCE])


def test_an_answer_that_waits_for_its_reader_does_not_end_a_request():
    log, session = opened("stdio")
    asked = call(session, "a")
    session.answer(asked, delivered=False)
    log.after(5)
    call(session, "a")
    expect(log, UNIQUE, Verdict.FAIL)


def test_a_question_may_be_read_before_the_log_says_so():
    log, session = opened("stdio")
    question = session.ask("roots/list", {"_meta": {"progressToken": "mine"}}, delivered=False)
    session.notify("notifications/progress", {"progressToken": "mine", "progress": 1})
    session.deliver(question.seq, session.context)
    log.idle(3)
    expect(log, "progress.only-for-server-tokens", Verdict.PASS)


@pytest.mark.parametrize(("by", "verdict"), [("write timeout", Verdict.NOT_OBSERVED), ("hang-up", Verdict.FAIL)])
def test_a_token_whose_stream_the_server_gave_up_is_free(by: str, verdict: Verdict):
    log, session = opened()
    session.client.stream(call(session, "a")).close(by)
    call(session, "a")
    log.idle(3)
    expect(log, UNIQUE, verdict)

"""Rules `http.*` about what a client does with an answer."""

from __future__ import annotations

import pytest

from probe.judge.verdicts import Verdict

from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check
from .logs import Http, HttpSession, Log

FORMS = "http.both-answer-forms"
EMPTY = "http.sse-empty-data"
COMMENTS = "http.sse-comments"
# A late cancellation is also the business of rules about cancellation.
ANSWERS = {FORMS, EMPTY, COMMENTS}
ALL = ["2025-03-26", "2025-06-18", "2025-11-25"]


def streamed(session: HttpSession, *, primed: bool = False, answer: bool = True, tool: str = "progress") -> int:
    """A call that is answered on an event stream; gives its id."""
    asked = session.call(tool)
    stream = session.client.stream(asked)
    if primed:
        stream.control("priming", "1-0", 500)
    if answer:
        stream.answer({"content": []})
    else:
        stream.answer(error={"code": -32603, "message": "no"})
    return int(asked.id)


def cancel(session: HttpSession, id: int) -> None:
    session.notify("notifications/cancelled", {"requestId": id})


@pytest.mark.parametrize("revision", ALL)
def test_both_forms_are_understood(revision: str) -> None:
    log = Log()
    session = log.http().session(revision)
    check(log, FORMS, SILENT)
    streamed(session)
    check(log, FORMS, SILENT)
    session.answer(session.request("tools/list"), {"tools": []})
    check(log, FORMS, PASS)


def test_modern_forms() -> None:
    log = Log()
    client = log.http()
    client.answer(client.modern("tools/list"), {"tools": [], "resultType": "complete"})
    client.stream(client.modern("tools/call", {"name": "progress"})).answer({"resultType": "complete"})
    client.modern("tools/list")
    check(log, FORMS, PASS, only=ANSWERS)


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(("calls", "verdict"), [(1, SILENT), (2, FAIL), (3, FAIL)])
def test_who_cancels_all_that_was_answered_on_a_stream(revision: str, calls: int, verdict: Verdict) -> None:
    log = Log()
    session = log.http().session(revision)
    for _ in range(calls):
        id = streamed(session)
        log.after(30)
        cancel(session, id)
    check(log, FORMS, verdict, only=ANSWERS)


def test_a_cancellation_may_cross_the_answer() -> None:
    log = Log()
    session = log.http().session()
    for _ in range(4):
        id = streamed(session)
        log.after(1.5)
        cancel(session, id)
    check(log, FORMS, SILENT, only=ANSWERS)


def test_who_left_one_answer_alone_understands_the_form() -> None:
    log = Log()
    session = log.http().session()
    streamed(session)
    for _ in range(3):
        id = streamed(session)
        log.after(30)
        cancel(session, id)
    check(log, FORMS, SILENT, only=ANSWERS)


def test_people_repeat_calls() -> None:
    log = Log()
    session = log.http().session()
    for _ in range(6):
        streamed(session)
        log.after(4)
    session.request("ping")
    check(log, FORMS, PASS)


def test_an_answer_that_was_an_error_says_nothing() -> None:
    log = Log()
    session = log.http().session()
    for _ in range(3):
        id = streamed(session, answer=False)
        log.after(30)
        cancel(session, id)
    check(log, FORMS, SILENT, only=ANSWERS)


def test_an_event_without_data() -> None:
    log = Log()
    session = log.http().session()
    streamed(session)
    session.request("ping")
    check(log, EMPTY, SILENT)
    streamed(session, primed=True)
    session.request("ping")
    check(log, EMPTY, PASS)


def test_a_client_that_ends_after_it_went_on() -> None:
    log = Log()
    session = log.http().session()
    streamed(session, primed=True)
    session.delete()
    check(log, EMPTY, PASS)


@pytest.mark.parametrize(("calls", "verdict"), [(1, UNCLEAR), (2, WARN)])
def test_who_cancels_after_streams_with_an_empty_event(calls: int, verdict: Verdict) -> None:
    log = Log()
    session = log.http().session()
    for _ in range(calls):
        id = streamed(session, primed=True)
        log.after(30)
        cancel(session, id)
    check(log, EMPTY, verdict, only={EMPTY})


def begin(client: Http, connection: str) -> HttpSession:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client.info}
    value = {"jsonrpc": "2.0", "id": client.new_id(), "method": "initialize", "params": params}
    return client.opened(client.post(value, connection=connection), "2025-11-25")


@pytest.mark.parametrize(("same", "verdict"), [(True, WARN), (False, SILENT)])
def test_who_begins_anew_on_the_same_connection(same: bool, verdict: Verdict) -> None:
    """A program that runs again and again has a connection of its own each time."""
    log = Log()
    client = log.http()
    for number in range(4):
        session = begin(client, "tcp1" if same else f"tcp{number}")
        asked = session.request("tools/call", {"name": "x"}, connection="tcp1" if same else f"tcp{number}")
        stream = client.stream(asked)
        stream.control("priming", "1-0", 500)
        stream.answer({"content": []})
        log.after(1)
    check(log, EMPTY, verdict)


def comments(
    log: Log, delays: list[float], *, end_after: float = 0.05, answer: bool = False, modern: bool = True
) -> None:
    """Calls whose stream says something, is silent for `keep_alive_s`, and ends after the comment."""
    client = log.http()
    session = None if modern else client.session()
    for delay in delays:
        asked = client.modern("tools/call", {"name": "x"}) if session is None else session.call("x")
        stream = client.stream(asked)
        log.after(delay)
        stream.tell("notifications/message", {"level": "info", "data": "x"})
        log.after(KEEP_ALIVE)
        stream.control("comment")
        log.after(end_after)
        if answer:
            stream.answer({"content": [], "resultType": "complete"})
        else:
            stream.close("client")


KEEP_ALIVE = 1.0
SETTINGS = {"keep_alive_s": KEEP_ALIVE}


@pytest.mark.parametrize(("modern", "verdict"), [(True, FAIL), (False, WARN)])
def test_who_ends_streams_at_the_first_comment(modern: bool, verdict: Verdict) -> None:
    log = Log()
    comments(log, [1, 2, 2.5], modern=modern)
    check(log, COMMENTS, verdict, only={COMMENTS}, settings=SETTINGS)


def test_a_client_that_ignores_comments() -> None:
    log = Log()
    comments(log, [1, 2], answer=True)
    check(log, COMMENTS, PASS, only={COMMENTS}, settings=SETTINGS)
    comments(log, [1, 2, 2.5])
    check(log, COMMENTS, PASS, only={COMMENTS}, settings=SETTINGS)


@pytest.mark.parametrize(
    ("delays", "keep_alive", "end_after", "verdict"),
    [
        ([1, 2], KEEP_ALIVE, 0.05, UNCLEAR),  # two are no pattern
        ([1, 1, 1, 1], KEEP_ALIVE, 0.05, UNCLEAR),  # a timer of two seconds
        ([1, 2, 2.5], KEEP_ALIVE, 0.5, SILENT),  # too late
        ([4, 9, 14], KEEP_ALIVE, 0.05, SILENT),  # timers of 5, 10 and 15 s since the request
        ([1, 2, 2.5], 15, 0.05, SILENT),  # the comment only asked whether the client still reads
        ([1, 2, 2.5], None, 0.05, SILENT),  # nobody knows
    ],
)
def test_timers_and_departures_look_alike(
    delays: list[float], keep_alive: float | None, end_after: float, verdict: Verdict
) -> None:
    log = Log()
    comments(log, delays, end_after=end_after)
    check(log, COMMENTS, verdict, only={COMMENTS}, settings={"keep_alive_s": keep_alive})


def test_a_timer_that_begins_anew_with_each_message() -> None:
    """A silence of 15 s ends in a comment and in the client's timer."""
    log = Log()
    client = log.http()
    for delay in (1, 2, 3, 4):
        stream = client.stream(client.modern("tools/call", {"name": "x"}))
        log.after(delay)
        stream.tell("notifications/message", {"level": "info", "data": "x"})
        log.after(15)
        stream.control("comment")
        stream.close("client")
    check(log, COMMENTS, SILENT, only={COMMENTS}, settings={"keep_alive_s": 15})

"""Rules `http.*` about what a client does with an answer."""

from __future__ import annotations

from typing import Any, Final

from probe.judge.verdicts import Verdict

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check, play
from .logs import Http, HttpSession, Log

FORMS, EMPTY, COMMENTS = "http.both-answer-forms", "http.sse-empty-data", "http.sse-comments"
# A late cancellation is also the business of rules about cancellation.
ANSWERS: Final = {FORMS, EMPTY, COMMENTS}
ALL: Final = ["2025-03-26", "2025-06-18", "2025-11-25"]


class Client:
    """A session whose acts are words: `sse` calls and is answered on an event stream, `json` as an object."""

    def __init__(self, revision: str = "2025-11-25") -> None:
        self.log = Log()
        self.session: HttpSession = self.log.http().session(revision)
        self.id: Any = None

    def sse(self, answer: Any = None, *, primed: bool = False, **error: Any) -> None:
        asked = self.session.call("progress")
        stream = self.session.client.stream(asked)
        if primed:
            stream.control("priming", "1-0", 500)
        stream.answer(answer or {"content": []}, **error)
        self.id = asked.id

    def acts(self, words: str) -> Log:
        """Do what the words name; `cancel` is about the newest call."""
        session = self.session
        known = {
            "sse": self.sse,
            "primed": lambda: self.sse(primed=True),
            "error": lambda: self.sse(error={"code": -32603, "message": "no"}),
            "task": lambda: self.sse({"task": {"taskId": "t1", "status": "working"}}, primed=True),
            "json": lambda: session.answer(session.request("tools/list"), {"tools": []}),
            "cancel": lambda: session.notify("notifications/cancelled", {"requestId": self.id}),
            "ping": lambda: session.request("ping"),
            "delete": session.delete,
        }
        play(self.log, words, known)
        return self.log


@each("revision", ALL)
@each(
    "acts, verdict",
    [
        ("", SILENT),
        ("sse", SILENT),
        ("sse json", PASS),
        ("sse 4 sse 4 sse 4 sse ping", PASS),  # people repeat calls
        ("sse 30 cancel", SILENT),
        ("sse 30 cancel sse 30 cancel", FAIL),
        ("sse 30 cancel sse 30 cancel sse 30 cancel", FAIL),
        ("sse 1.5 cancel sse 1.5 cancel sse 1.5 cancel", SILENT),  # it may cross the answer
        ("sse sse 30 cancel sse 30 cancel sse 30 cancel", SILENT),  # one was understood
        ("error 30 cancel error 30 cancel error 30 cancel", SILENT),
        ("task 30 cancel task 30 cancel", SILENT),  # that still ran
    ],
)
def test_both_forms_are_understood(revision: str, acts: str, verdict: Verdict) -> None:
    check(Client(revision).acts(acts), FORMS, verdict, only=ANSWERS)


def test_an_answer_that_is_missing_in_the_log_may_have_been_understood() -> None:
    check(Client().acts("sse 30 cancel gap sse 30 cancel"), FORMS, UNCLEAR, only={FORMS})


def test_modern_forms() -> None:
    log = Log()
    client = log.http()
    client.answer(client.modern("tools/list"), {"tools": [], "resultType": "complete"})
    client.stream(client.modern("tools/call", {"name": "progress"})).answer({"resultType": "complete"})
    client.modern("tools/list")
    check(log, FORMS, PASS, only=ANSWERS)


@each(
    "acts, verdict",
    [
        ("sse ping", SILENT),
        ("primed ping", PASS),
        ("primed delete", PASS),
        ("primed 30 cancel", UNCLEAR),
        ("primed 30 cancel primed 30 cancel", WARN),
        ("primed ping primed 30 cancel primed 30 cancel", UNCLEAR),
        ("task 30 cancel task 30 cancel", PASS),
        ("primed 30 cancel gap primed 30 cancel", UNCLEAR),
    ],
)
def test_an_event_without_data(acts: str, verdict: Verdict) -> None:
    check(Client().acts(acts), EMPTY, verdict, only={EMPTY})


def begin(client: Http, connection: str) -> HttpSession:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client.info}
    value = {"jsonrpc": "2.0", "id": client.new_id(), "method": "initialize", "params": params}
    return client.opened(client.post(value, connection=connection), "2025-11-25")


@each("same, deletes, verdict", [(True, False, UNCLEAR), (True, True, PASS), (False, False, SILENT)])
def test_a_session_for_each_call_is_no_fault(same: bool, deletes: bool, verdict: Verdict) -> None:
    """Programs keep a connection for their sessions, and one that runs again and again has a new one each time."""
    log = Log()
    client = log.http()
    for number in range(4):
        connection = "tcp1" if same else f"tcp{number}"
        session = begin(client, connection)
        client.answer(session.request("tools/list", connection=connection), {"tools": []})
        asked = session.request("tools/call", {"name": "x"}, connection=connection)
        stream = client.stream(asked)
        stream.control("priming", "1-0", 500)
        stream.answer({"content": []})
        log.after(1)
        if deletes:
            session.delete()
    check(log, EMPTY, verdict, only={EMPTY})


def comments(log: Log, delays: list[float], *, end_after: float = 0.05, end: str = "leave", modern: bool = True) -> Log:
    """Calls whose stream says something, is silent for a second, and ends after the comment."""
    client = log.http()
    session = None if modern else client.session()
    for delay in delays:
        asked = client.modern("tools/call", {"name": "x"}) if session is None else session.call("x")
        stream = client.stream(asked)
        log.after(delay)
        stream.tell("notifications/message", {"level": "info", "data": "x"})
        log.after(1.0)
        stream.control("comment")
        log.after(end_after)
        if end == "cancel" and session is not None:
            session.notify("notifications/cancelled", {"requestId": asked.id})
        if end in ("answer", "cancel"):
            stream.answer({"content": [], "resultType": "complete"})
        else:
            stream.close("client")
    return log


@each(
    "delays, options, verdict",
    [
        ([1, 2, 2.5], {}, FAIL),
        ([1, 2, 2.5], {"modern": False}, WARN),
        ([1, 2, 2.5], {"modern": False, "end": "cancel"}, WARN),
        ([1, 2], {"end": "answer"}, PASS),
        ([1, 2], {}, UNCLEAR),  # two are no pattern
        ([1, 1, 1, 1], {}, UNCLEAR),  # a timer of two seconds
        ([1, 2, 2.5], {"end_after": 0.5}, SILENT),  # too late
        ([4, 9, 14], {}, SILENT),  # timers of 5, 10 and 15 s since the request
        ([1, 2, 2.5], {"keep_alive_s": 15}, SILENT),  # the comment only asked whether the client still reads
        ([1, 2, 2.5], {"keep_alive_s": None}, SILENT),  # nobody knows
    ],
)
def test_comments_end_no_stream(delays: list[float], options: dict[str, Any], verdict: Verdict) -> None:
    settings = {"keep_alive_s": options.get("keep_alive_s", 1.0)}
    log = comments(Log(), delays, **{name: options[name] for name in options.keys() - settings.keys()})
    check(log, COMMENTS, verdict, only={COMMENTS}, settings=settings)


def test_who_ignored_one_comment_ignores_all() -> None:
    log = comments(Log(), [1, 2], end="answer")
    check(comments(log, [1, 2, 2.5]), COMMENTS, PASS, only={COMMENTS}, settings={"keep_alive_s": 1.0})


def leaves_a_timer() -> Log:
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
    return log


def test_a_timer_that_begins_anew_with_each_message() -> None:
    check(leaves_a_timer(), COMMENTS, SILENT, only={COMMENTS}, settings={"keep_alive_s": 15})

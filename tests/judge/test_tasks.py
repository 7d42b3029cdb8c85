"""Rules `tasks.*`: tasks of 2025-11-25."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, Expected, Story, expect, play
from .dialogues import FORM, LegacyTask, ModernTask, ask, open_session, reply
from .logs import HttpSession, Log, Pipe

POLL, END, FETCHED, INPUT = "tasks.poll-interval", "tasks.polls-to-end", "tasks.result-fetched", "tasks.input-required"
RELATED, PLAIN = "tasks.related-task", "tasks.no-related-task"
STOPS, GONE = "tasks.stops-when-terminal", "tasks.unknown-left-alone"
ALL = (POLL, END, FETCHED, INPUT, RELATED, PLAIN, STOPS, GONE)
KEY = "io.modelcontextprotocol/related-task"
ELICIT = "elicitation/create"
WAYS = ("http", "websocket", "stdio")


def start(way: str = "http", **options: Any) -> tuple[Log, HttpSession | Pipe, LegacyTask]:
    log = Log()
    session = open_session(log, way)
    return log, session, LegacyTask(session, **options)


def answer_of(session: HttpSession | Pipe, task: LegacyTask) -> None:
    """A question of the task, and an answer that names it."""
    related = {KEY: {"taskId": task.id}}
    question, _ = ask(session, ELICIT, {**FORM, "_meta": related})
    result = {"action": "cancel", "_meta": related}
    reply(session, question, {"jsonrpc": "2.0", "id": question.id, "result": result})


def told(session: HttpSession | Pipe, task: LegacyTask, status: str) -> None:
    """A status notification."""
    if isinstance(session, Pipe):
        session.tell({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": task.body(status)})
    else:
        stream = session.get()
        stream.tell("notifications/tasks/status", task.body(status))
        stream.close()


def lived(script: str, *, way: str = "http", status: str = "completed", **options: Any) -> Log:
    """A task, and what happens: `end` is its end with the status at the server."""
    log, session, task = start(way, **options)

    def wants_input() -> None:
        task.change("input_required")
        told(session, task, "input_required")

    known: dict[str, Callable[[], Any]] = {
        "end": lambda: task.change(status),
        "get": task.get,
        "ended": lambda: task.get(status),
        "input": lambda: task.get("input_required"),
        "notice": wants_input,
        "list": lambda: session.answer(session.request("tasks/list"), {"tasks": [task.body(status)]}),
        "news": lambda: told(session, task, "working"),
        "told": lambda: told(session, task, status),
        "result": task.result,
        "waits": lambda: task.result(answered=False),
        "answer": lambda: answer_of(session, task),
        "cancel": task.cancel,
        "other": lambda: session.request("resources/list"),
        "ping": lambda: session.answer(session.request("ping"), {}),
        "note": lambda: session.notify("notifications/roots/list_changed"),
        "leave": session.close,
    }
    play(log, script, known)
    return log


def polled(*gaps: float, between: str = "", way: str = "http") -> Log:
    """Polls of a task with an interval of a second, with something between them."""
    return lived("get " + " ".join(f"{gap} {between} get" for gap in gaps), way=way)


def unanswered_polls() -> Log:
    log, session, task = start()
    for _ in range(8):
        log.after(0.1)
        session.request("tasks/get", {"taskId": task.id})
    return log


def two_readers() -> Log:
    log = Log()
    one, other = LegacyTask(open_session(log)), LegacyTask(open_session(log))
    other.id = one.id
    for _ in range(8):
        for task in (one, other):
            log.after(0.5)
            task.get()
    return log


ALL_OF_IT = "1 get 1 get 1 get 1 get 1 get end 1 ended result 40"
POLLS: list[tuple[Expected, Story]] = [
    *((dict.fromkeys((POLL, END, FETCHED, PLAIN, STOPS), PASS), partial(lived, ALL_OF_IT, way=way)) for way in WAYS),
    *(
        ({POLL: verdict}, partial(polled, *gaps, way=way))
        for way in ("http", "stdio")
        for gaps, verdict in (
            ([0.2] * 5, WARN),
            ([0.2, 0.2, 0.2, 1, 1, 0.2], WARN),
            ([0.8] * 5, WARN),
            ([0.2] * 4, SILENT),
            ([1.0] * 2, SILENT),
            ([1.0] * 3, PASS),
            ([0.92] * 9, PASS),
            ([0.2, 0.2, 1, 1, 1, 1], PASS),
            ([1, 1, 1, 0.1, 1, 0.1, 1], PASS),
        )
    ),
    # An early look after news, or after an answer, is right.
    *(({POLL: SILENT}, partial(polled, *[0.2] * 8, between=act)) for act in ("news", "waits", "gap", "answer")),
    ({POLL: SILENT}, unanswered_polls),
    ({POLL: PASS}, two_readers),
]

ENDS: list[tuple[Expected, Story]] = [
    *(
        ({END: verdict}, partial(lived, f"1 end {script}", way=way))
        for way in WAYS
        for script, verdict in (
            ("other 40", WARN),
            ("10 other 25", WARN),
            ("ended", PASS),
            ("input", PASS),
            ("result", PASS),
            ("10 other result", PASS),
            ("list 40", PASS),
            ("other 25", UNCLEAR),
            ("note 40", UNCLEAR),
            ("ping 40", UNCLEAR),
            ("other gap 40", UNCLEAR),
            ("40", SILENT),
            ("told other 40", SILENT),
            ("cancel other 40", SILENT),
            ("other leave 40", SILENT),
        )
    ),
    # A long interval gives more time.
    ({END: UNCLEAR}, partial(lived, "1 end other 290", poll_ms=30_000)),
    ({END: WARN}, partial(lived, "1 end other 310", poll_ms=30_000)),
    *(
        ({FETCHED: verdict}, partial(lived, f"1 end {script}"))
        for script, verdict in (
            ("ended other 40", WARN),
            ("ended result", PASS),
            ("ended 20 other result", PASS),
            ("result ended", PASS),
            ("ended note 40", UNCLEAR),
            ("ended gap other 40", UNCLEAR),
            ("gap ended other 40", UNCLEAR),
            ("ended 40", SILENT),
            ("ended leave 40", SILENT),
        )
    ),
    ({FETCHED: SILENT, END: WARN}, partial(lived, "1 end other 40")),
    *(({FETCHED: SILENT}, partial(lived, "1 end ended other 40", status=status)) for status in ("failed", "cancelled")),
    *(
        ({INPUT: verdict}, partial(lived, script))
        for script, verdict in (
            ("input 5 input 40", WARN),
            ("notice 5 input 40", WARN),
            ("input waits", PASS),
            ("input 9 waits", PASS),
            ("input 15 input answer 40", PASS),
            ("waits input 5 input 40", PASS),
            ("input 15 waits", UNCLEAR),
            ("input 5 get 40", UNCLEAR),
            ("input 40", UNCLEAR),
            ("input 5 input gap 40", UNCLEAR),
            ("gap input 5 input 40", UNCLEAR),
            ("input 5 input cancel 40", SILENT),
            ("1 40", SILENT),
        )
    ),
]


def replied(way: str, meta: Any = None, *, error: bool = False, hidden: bool = False, task: bool = True) -> Log:
    """An answer to a question of the task T, or of none."""
    log = Log()
    session = open_session(log, way)
    question, _ = ask(session, ELICIT, {**FORM, "_meta": {KEY: {"taskId": "T"}}} if task else FORM)
    result = {"action": "cancel"} if meta is None else {"action": "cancel", "_meta": meta}
    body = {"error": {"code": -1, "message": "no"}} if error else {"result": result}
    places = (("/result/_meta", "object"),) if hidden else ()
    reply(session, question, {"jsonrpc": "2.0", "id": question.id, **body}, places)
    return log


def requested(method: str, meta: Any) -> Log:
    log, session, task = start()
    session.answer(session.request(method, {"taskId": task.id, "_meta": meta}), task.body("working"))
    return log


RELATIONS: list[tuple[Expected, Story]] = [
    *(
        ({RELATED: verdict}, partial(replied, way, meta))
        for way in WAYS
        for meta, verdict in (({KEY: {"taskId": "T"}}, PASS), ({KEY: {"taskId": "U"}}, FAIL), ({KEY: {}}, FAIL))
    ),
    *(({RELATED: SILENT}, partial(replied, way, error=True)) for way in WAYS),
    *(({RELATED: SILENT}, partial(replied, way, hidden=True)) for way in WAYS),
    ({RELATED: SILENT}, partial(replied, "http", task=False)),
    *(
        ({PLAIN: verdict}, partial(requested, method, meta))
        for method in ("tasks/get", "tasks/result", "tasks/cancel")
        for meta, verdict in (({KEY: {"taskId": "T"}}, WARN), ({"progressToken": 1}, PASS))
    ),
]


def three_readers() -> Log:
    log = Log()
    tasks = [LegacyTask(open_session(log)) for _ in range(3)]
    for task in tasks:
        task.id = tasks[0].id
        play(log, "1 ended 1 ended 1 ended result", {"ended": partial(task.get, "completed"), "result": task.result})
    log.idle(40)
    return log


def unknown(times: int, *, modern: bool = False, code: int = -32602) -> Log:
    """`tasks/get` every two seconds, which is answered by an error."""
    log = Log()
    client: Any = log.http() if modern else open_session(log)
    task = ModernTask(client) if modern else None
    for _ in range(times):
        log.after(2)
        asked = client.request("tasks/get", {"taskId": "gone"}) if task is None else task.request_of("tasks/get")
        client.answer(asked, error={"code": code, "message": "Task not found"})
    log.idle(40)
    return log


def no_task() -> Log:
    log = Log()
    session = open_session(log)
    session.answer(session.call("tool"), {"content": []})
    log.idle(400)
    return log


STOPPING: list[tuple[Expected, Story]] = [
    *(
        ({STOPS: verdict}, partial(lived, "end" + " 1 ended" * (more + 1) + " result 40", way=way))
        for way in WAYS
        for more, verdict in ((0, PASS), (2, PASS), (3, UNCLEAR), (5, UNCLEAR), (6, WARN), (20, WARN))
    ),
    ({STOPS: PASS}, three_readers),
    *(
        ({GONE: verdict}, partial(unknown, more + 1, modern=modern))
        for modern in (False, True)
        for more, verdict in ((0, PASS), (3, PASS), (4, UNCLEAR), (10, UNCLEAR), (11, WARN))
    ),
    ({GONE: SILENT}, partial(unknown, 20, code=-32603)),
    (dict.fromkeys(ALL, SILENT), no_task),
]


@each("expected, story", [*POLLS, *ENDS, *RELATIONS, *STOPPING])
def test_stories(expected: Expected, story: Story):
    expect(story, expected)


@each("way", WAYS)
def test_an_answer_without_its_task_is_common(way: str):
    found = expect(partial(replied, way), {RELATED: FAIL})
    assert "common" in found.remarks[RELATED][0]


def test_the_gaps_between_polls_are_measured():
    found = expect(partial(lived, ALL_OF_IT), {POLL: PASS})
    measured = found.measured[POLL]["gaps between polls, shares of the interval"]
    assert 1.0 <= measured["worst"] <= measured["median"] <= 1.1

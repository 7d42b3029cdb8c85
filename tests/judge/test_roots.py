"""Rules `roots.*`."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import structs

from probe.judge.judge import Judge
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue
from probe.log import events

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, Expected, Story, expect
from .dialogues import CAPABILITIES, WAYS, ask, asked, listed_tools, open_session, refused, reply, unanswered
from .logs import HEADER, HttpSession, Log, Pipe

LIST = "roots/list"
URI, TOLD, SERVED = "roots.file-uri", "roots.change-told", "roots.declared-served"
LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")


def roots(*uris: Any) -> dict[str, Any]:
    return {"roots": [{"uri": uri} for uri in uris]}


def listed(*uris: Any, **options: Any) -> Story:
    return partial(asked, LIST, {}, roots(*uris), **options)


A, AB, BA = roots("file:///a"), roots("file:///a", "file:///b"), roots("file:///b", "file:///a")
NAMED = {"roots": [{"uri": "file:///a", "name": "A"}]}

ANSWERS: list[tuple[Expected, Story]] = [
    *(({URI: PASS, SERVED: PASS}, listed("file:///home/a%20b", "FILE:///c:/work", way=way)) for way in WAYS),
    *(
        ({URI: FAIL}, listed("file:///home", uri, way=way))
        for way in WAYS
        for uri in ("/home/a", "vscode-remote://ssh/home/a", "", "C:\\work")
    ),
    *(({URI: FAIL}, listed("/home/a", revision=revision)) for revision in LEGACY),
    *(({URI: WARN}, listed(uri)) for uri in ("file:///home/a b", "file://C:\\work", "file://C:/work")),
    ({URI: SILENT, SERVED: PASS}, listed()),
    ({URI: SILENT}, listed("-", hidden=(("/roots/0/uri", "string"),))),
    # The form of an answer is another rule's.
    ({"mrtr.answer-shape": FAIL, SERVED: SILENT}, partial(asked, LIST, {}, {"result": {"roots": []}}, way="round")),
]


def _list(session: HttpSession | Pipe, result: Any, told: str = "", **options: Any) -> None:
    question, call = ask(session, LIST, {})
    session.log.after(1)
    if told in ("early", "just before"):
        session.notify("notifications/roots/list_changed")
    if told == "early":
        session.log.after(20)
    reply(session, question, {"jsonrpc": "2.0", "id": question.id, "result": result}, **options)
    session.answer(call, {"content": []})


def changed_back(waits: float) -> Log:
    """Roots that change and change back, and one notification so many seconds after the last answer."""
    log = Log()
    session = open_session(log)
    for result in (A, AB, A):
        _list(session, result)
    log.after(waits)
    session.notify("notifications/roots/list_changed")
    log.idle(10)
    return log


def changed(first: Any, second: Any, told: str = "", **options: Any) -> Log:
    """Two answers of a session; `told`: when the notification comes, or what else happens."""
    log = Log()
    log.now = options.get("begins", log.now)
    capabilities = CAPABILITIES if options.get("declared", True) else {**CAPABILITIES, "roots": {}}
    way, revision = options.get("way", "http"), options.get("revision", "2025-11-25")
    session = open_session(log, way, revision, capabilities=capabilities)
    hides = {"hidden": (("/result/roots", "array"),)}
    _list(session, first, told, **(hides if told == "first hidden" else {}))
    log.after(60)
    if told == "gap":
        log.gap()
    elif told == "between":
        session.notify("notifications/roots/list_changed")
    elif told == "elsewhere":
        open_session(log, way, revision).notify("notifications/roots/list_changed")
    elif told == "limited":
        log.add(events.LimitReached("requests_per_second", 1), structs.replace(session.context, label="acme"))
    elif told == "restart":
        session = open_session(log, way, revision)
    _list(session, second, **(hides if told == "second hidden" else {}))
    if told == "closed":
        session.close()
    elif told == "after":
        log.after(4)
        session.notify("notifications/roots/list_changed")
    log.idle(10)
    return log


CHANGES: list[tuple[Expected, Story]] = [
    *(
        ({TOLD: FAIL if told == "" else PASS}, partial(changed, A, AB, told, revision=revision, way=way))
        for told in ("", "between")
        for revision in LEGACY
        for way in ("http", "stdio")
    ),
    # The monotonic clock may count from the start of the machine.
    ({TOLD: FAIL}, partial(changed, A, AB, way="stdio", begins=0.0)),
    *(({TOLD: PASS}, partial(changed, A, AB, told)) for told in ("after", "just before", "early")),
    # The specification sets no time for it, and one may be about several changes.
    *(({TOLD: verdict}, partial(changed_back, waits)) for waits, verdict in ((3, PASS), (6, FAIL))),
    *(({TOLD: UNCLEAR}, partial(changed, A, AB, told)) for told in ("elsewhere", "limited", "closed")),
    *(({TOLD: SILENT}, partial(changed, A, AB, told)) for told in ("gap", "restart", "first hidden", "second hidden")),
    ({TOLD: SILENT}, partial(changed, A, AB, declared=False)),
    ({TOLD: WARN}, partial(changed, A, AB, "between", declared=False)),
    ({TOLD: SILENT}, partial(changed, AB, BA)),
    ({TOLD: SILENT}, partial(changed, A, A)),
    ({TOLD: SILENT}, partial(changed, roots("file:///c%3A/Work/"), roots("file:///C:/work"))),
    ({TOLD: UNCLEAR}, partial(changed, A, NAMED)),
]


refuses, waits = partial(refused, LIST, {}, result=A), partial(unanswered, LIST, {}, 29)
SERVING: list[tuple[Expected, Story]] = [
    ({SERVED: WARN}, partial(refuses, -32601, -32601)),
    ({SERVED: UNCLEAR}, partial(refuses, -32601)),
    ({SERVED: UNCLEAR}, partial(refuses, None, -32601, -32601)),
    ({SERVED: UNCLEAR}, partial(refuses, -32603, -32603)),
    ({SERVED: WARN}, partial(waits, times=2)),
    ({SERVED: UNCLEAR}, waits),
    ({SERVED: UNCLEAR}, partial(waits, times=2, withdrawn=10)),
    ({SERVED: UNCLEAR}, partial(waits, times=2, gap=True)),
    ({SERVED: SILENT}, partial(waits, silent=True)),
    # A refusal counts with an earlier silence, and not where roots were not declared.
    ({SERVED: WARN}, lambda: refuses(-32601, log=waits())),
    ({SERVED: UNCLEAR}, lambda: waits(log=refuses(-32601, capabilities={}))),
    ({SERVED: SILENT}, partial(waits, times=2, capabilities={})),
    (dict.fromkeys((URI, TOLD, SERVED), SILENT), listed_tools),
]


@each("expected, story", [*ANSWERS, *CHANGES, *SERVING])
def test_stories(expected: Expected, story: Story):
    expect(story, expected)


def test_two_logs_of_one_label_have_sessions_of_the_same_name():
    judge = Judge(catalogue(), FUNCTIONS)
    for result in (A, AB):
        log = Log()
        _list(open_session(log), result)
        log.idle(10)
        judge.begin(HEADER)
        for item in log.items:
            judge.take(item)
    judge.settle()
    [subject] = judge.subjects
    assert subject.tallies[TOLD].verdict is SILENT

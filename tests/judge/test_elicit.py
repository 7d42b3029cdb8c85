"""Rules `elicit.*`."""

from __future__ import annotations

from functools import partial
from typing import Any

from probe.judge.clients.questions import RELATED_TASK
from probe.judge.judge import Judge
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, Expected, Story, expect
from .dialogues import (
    FORM,
    PAGE,
    STATE,
    WAYS,
    answer,
    ask,
    asked,
    listed_tools,
    open_round,
    open_session,
    refused,
    reply,
    retry,
    unanswered,
)
from .finality import AT_END, check_final
from .logs import HEADER, Http, Log

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
UNFIT: dict[str, list[Any]] = {
    "name": ["a", "abcdef", "ABC"],
    "count": [101],
    "email": ["nobody"],
    "site": ["www.example.com"],
    "day": ["2026-02-30", "28.7.2026"],
    "moment": ["2026-07-28T12:00"],
    "colour": ["blue"],
    "size": ["Small"],
    "days": [["mon"]],
}
FIT: dict[str, list[Any]] = {
    "count": [5.0],
    "moment": ["2026-07-28T12:00:60.5+02:00", "2026-07-28t12:00:00z"],
    "email": ["Ada <ada@example.com>"],
    "site": ["urn:isbn:1"],
    "odd": ["anything"],
    "days": [["sat"]],
}
OTHER_TYPE: dict[str, list[Any]] = {"count": ["5", 5.5], "ratio": ["0.5", True], "ok": ["true", 1], "days": ["sat"]}
GOOD = {"name": "ada", "count": 5, "ok": True}
EMPTY = {"name": "", "count": None, "ratio": 0.25}
HIDDEN = (("/content/name", "string"), ("/content/count", "integer"))
NO_FORM = {**dict.fromkeys(ALL, SILENT), SERVED: UNCLEAR}


def form(names: str, required: str = "") -> dict[str, Any]:
    fields = {name: FIELDS[name] for name in names.split()}
    return {"message": "?", "requestedSchema": {"type": "object", "properties": fields, "required": required.split()}}


def answered(params: Any, result: Any, **options: Any) -> Story:
    return partial(asked, ELICIT, params, result, **options)


def filled(names: str, content: Any, required: str = "", **options: Any) -> Story:
    """A form that is accepted with some content."""
    return answered(form(names, required), {"action": "accept", "content": content}, **options)


def ends(params: Any, action: str, content: Any, way: str) -> Story:
    return answered(
        params, {"action": action} if content == "none" else {"action": action, "content": content}, way=way
    )


ANSWERS: list[tuple[Expected, Story]] = [
    *(
        (dict.fromkeys((ACTION, FITS, TYPES, DEFAULTS, SERVED), PASS), filled("name count ok", GOOD, "name", way=way))
        for way in WAYS
    ),
    *(
        ({ACTION: FAIL, SERVED: PASS}, answered(FORM, result, way=way))
        for way in WAYS
        for result in ({"action": "ok"}, {"action": "Accept", "content": {}}, {"content": {"name": "a"}})
    ),
    *(
        ({ACTION: PASS}, answered(FORM, {"action": action}, revision=revision))
        for revision in ("2025-06-18", "2025-11-25")
        for action in ("accept", "decline", "cancel")
    ),
    ({ACTION: SILENT}, answered(FORM, {"action": "-"}, hidden=(("/action", "string"),))),
    # The form of an answer in a round is another rule's.
    ({ACTION: SILENT, "mrtr.answer-shape": FAIL}, answered(FORM, {"result": {"action": "no"}}, way="round")),
    *((NO_FORM, answered(form("name"), None, error={"code": code, "message": "no"})) for code in (-1, -32603)),
    *(
        ({FITS: WARN}, filled(name, {name: value}, way=way))
        for way in ("http", "round")
        for name, values in UNFIT.items()
        for value in values
    ),
    *(({FITS: WARN}, filled("name", content, "name")) for content in ({}, {"name": None})),
    *(({FITS: PASS}, filled(name, {name: value})) for name, values in FIT.items() for value in values),
    *(({FITS: PASS}, filled("name count ratio", content)) for content in (EMPTY, {"name": "ada", "more": 1})),
    # The field beside it has no default.
    *(
        ({TYPES: WARN, FITS: SILENT}, filled(f"{name} count", {name: value}))
        for name in OTHER_TYPE
        for value in OTHER_TYPE[name]
    ),
    # A form without numbers and ticks is no opportunity of the other rule, nor is a field that was left empty.
    *(({FITS: WARN, TYPES: SILENT}, filled(name, {name: value})) for name, value in (("days", "sat"), ("name", 5))),
    ({FITS: WARN, TYPES: SILENT}, filled("count", {"count": ""}, "count")),
    # No content has such a value, which the general rule about rounds finds.
    *(
        ({FITS: WARN if way != "round" else SILENT} | ({"mrtr.answer-shape": FAIL} if way == "round" else {}), story)
        for way in ("http", "round", "task")
        for value in ({"a": 1}, [1])
        for story in [filled("name", {"name": value}, way=way)]
    ),
    (
        {FITS: UNCLEAR, TYPES: SILENT},
        filled("name count", {"name": "[redacted]", "count": "[redacted]"}, hidden=HIDDEN),
    ),
    ({FITS: SILENT}, filled("name", "-", hidden=(("/content", "object"),))),
    # Libraries with fixed fields send an empty content with decline and cancel.
    *(
        ({ONLY: verdict}, ends(FORM, action, content, way))
        for way in ("http", "round", "task")
        for action in ("decline", "cancel")
        for content, verdict in (({"name": "a"}, WARN), ({}, PASS), ("none", PASS))
    ),
    ({ONLY: PASS}, ends(FORM, "decline", None, "http")),
    *(
        ({URL: verdict, ONLY: SILENT, FITS: SILENT}, ends(PAGE, action, content, way))
        for way in ("http", "round")
        for action in ("accept", "decline")
        for content, verdict in (({"name": "a"}, WARN), ({}, PASS), ("none", PASS))
    ),
    ({DEFAULTS: PASS}, filled("ok count", {"ok": False})),
    ({DEFAULTS: WARN}, filled("ok count", {"count": 1})),
    ({DEFAULTS: SILENT}, filled("ok count", {"count": 1, "ok": True}, "ok")),
    ({DEFAULTS: SILENT}, filled("count", {"count": 1})),
    # The revision has no defaults but those of booleans, and no sentence about them.
    ({DEFAULTS: SILENT}, filled("ok count", {"count": 1}, revision="2025-06-18")),
]


def round_without_retry() -> Log:
    log = Log()
    client = log.http()
    open_round(client, {"k": {"method": ELICIT, "params": FORM}})
    log.after(299)
    client.modern("tools/list")
    log.idle(10)
    return log


refuses = partial(refused, ELICIT, FORM, result={"action": "cancel"})
waits = partial(unanswered, ELICIT, FORM)


def task_waits(seconds: float) -> Log:
    """A task whose question is not answered for some seconds, with another message at the end."""
    log = Log()
    session = open_session(log, "stdio")
    call = session.call("tool", task={"ttl": 600_000})
    session.answer(call, {"task": {"taskId": "t1", "status": "working"}})
    log.after(1)
    related = {RELATED_TASK: {"taskId": "t1"}}
    session.ask(ELICIT, {**FORM, "_meta": related}, asked=call)
    log.idle(seconds)
    session.request("tools/list")
    log.idle(10)
    return log


SERVING: list[tuple[Expected, Story]] = [
    ({SERVED: PASS}, partial(refuses, None, None)),
    ({SERVED: FAIL}, partial(refuses, -32601, -32601)),
    ({SERVED: UNCLEAR}, partial(refuses, -32601)),
    ({SERVED: UNCLEAR}, partial(refuses, None, -32601, -32601)),
    ({SERVED: UNCLEAR}, partial(refuses, -32603, -32601, -32601)),
    ({SERVED: UNCLEAR}, partial(refuses, -32601, -32601, gap=True)),
    # What was not declared need not be served.
    ({SERVED: FAIL}, partial(refuses, -32601, -32601, capabilities={"elicitation": {}})),
    ({SERVED: SILENT}, partial(refuses, -32601, -32601, capabilities={"elicitation": {"url": {}}})),
    ({SERVED: SILENT}, partial(refuses, -32601, -32601, capabilities={})),
    ({SERVED: FAIL}, lambda: refuses(-32601, -32601, log=refuses(None, capabilities={}))),
    # Silence counts after five minutes.
    ({SERVED: WARN}, partial(waits, 299)),
    ({SERVED: WARN}, partial(waits, 299, withdrawn=290)),
    ({SERVED: UNCLEAR}, partial(waits, 299, withdrawn=60)),
    # The call in which it was asked is over.
    ({SERVED: UNCLEAR}, partial(waits, 299, answered=60)),
    ({SERVED: WARN}, partial(waits, 299, answered=290)),
    # The answer of the call is the task that asks.
    ({SERVED: WARN}, partial(task_waits, 299)),
    ({SERVED: UNCLEAR}, partial(waits, 200)),
    ({SERVED: UNCLEAR}, partial(waits, 299, gap=True)),
    ({SERVED: SILENT}, partial(waits, 299, silent=True)),
    ({SERVED: SILENT}, partial(waits, 299, closed=60)),
    ({SERVED: SILENT}, partial(waits, 299, capabilities={})),
    ({SERVED: PASS}, partial(refuses, None, stays=310)),
    ({SERVED: SILENT}, round_without_retry),
    (dict.fromkeys(ALL, SILENT), listed_tools),
]


def test_a_session_that_ends_behind_a_question_that_was_given_up_takes_no_finding_back() -> None:
    log = Log()
    session = open_session(log)
    _, call = ask(session, ELICIT, FORM)
    log.after(60)
    session.answer(call, {"content": []})
    log.after(10)
    session.close()
    log.idle(300)
    check_final(log.items, range(1, len(log.items)), AT_END)


BROWSER = {"sec-fetch-mode": "navigate", "sec-fetch-user": "?1", "user-agent": "Mozilla/5.0"}
BARE_BROWSER = {"user-agent": "Mozilla/5.0 (no TLS, so no Sec-Fetch)"}
PROGRAM = {"user-agent": "python-httpx/1"}


def visit(log: Log, path: str, headers: Any, method: str = "GET") -> None:
    visitor = Http(log, None, {})
    visitor.respond(visitor.request_head(method, path=path, headers=headers, query=""), 200, content_type="text/html")


def visits(*headers: Any, after: float = 0.2, method: str = "GET", answered: bool = False, gap: bool = False) -> Log:
    """A page for each of some headers, which a program with these asks for."""
    log = Log()
    session = open_session(log)
    if gap:
        log.gap()
    for number, those in enumerate(headers):
        question, call = ask(session, ELICIT, {**PAGE, "url": f"http://127.0.0.1/interaction/p{number}"})
        accepted = {"jsonrpc": "2.0", "id": question.id, "result": {"action": "accept"}}
        if answered:
            reply(session, question, accepted)
        log.after(after)
        visit(log, f"/interaction/p{number}", those, method)
        log.after(5)
        if not answered:
            reply(session, question, accepted)
        session.answer(call, {"content": []})
    return log


def visited_after_two_rounds() -> Log:
    log = Log()
    client, asks, given = log.http(), {"k": {"method": ELICIT, "params": PAGE}}, {"k": {"action": "accept"}}
    open_round(client, asks)
    retry(client, given)
    open_round(client, asks, state="x" + STATE, answers={"inputResponses": given, "requestState": STATE})
    visit(log, "/interaction/p1", PROGRAM)
    return log


def visited_often() -> Log:
    """The first page is asked for again and again."""
    log = Log()
    session = open_session(log)
    for number, times in enumerate((100, 1, 1)):
        question, call = ask(session, ELICIT, {**PAGE, "url": f"http://127.0.0.1/interaction/p{number}"})
        for _ in range(times):
            visit(log, f"/interaction/p{number}", PROGRAM)
        reply(session, question, {"jsonrpc": "2.0", "id": question.id, "result": {"action": "accept"}})
        session.answer(call, {"content": []})
    return log


VISITS: list[tuple[Expected, Story]] = [
    ({FETCHED: FAIL}, partial(visits, *[PROGRAM] * 3)),
    ({FETCHED: FAIL}, partial(visits, *[PROGRAM] * 3, method="HEAD")),
    ({FETCHED: PASS}, partial(visits, *[PROGRAM] * 3, method="POST")),
    ({FETCHED: PASS}, partial(visits, *[PROGRAM] * 3, answered=True)),
    ({FETCHED: UNCLEAR}, partial(visits, *[PROGRAM] * 3, after=3)),
    ({FETCHED: WARN}, partial(visits, PROGRAM)),
    ({FETCHED: WARN}, partial(visits, *[PROGRAM] * 2)),
    ({FETCHED: WARN}, partial(visits, BROWSER, *[PROGRAM] * 3)),
    ({FETCHED: WARN}, partial(visits, *[PROGRAM] * 3, gap=True)),
    ({FETCHED: WARN}, partial(visits, *[BARE_BROWSER] * 3)),
    ({FETCHED: PASS}, partial(visits, *[BROWSER] * 3)),
    ({FETCHED: PASS}, visited_after_two_rounds),
    ({FETCHED: FAIL}, visited_often),
]


def before_the_delivery() -> Log:
    log = Log()
    session = open_session(log)
    question, _ = ask(session, ELICIT, FORM, delivered=False)
    reply(session, question, {"jsonrpc": "2.0", "id": question.id, "result": {"action": "no"}})
    return log


def two_sessions() -> Log:
    log = Log()
    for way in ("stdio", "http"):
        answer(log, ELICIT, FORM, {"action": "accept", "content": {"name": "a"}}, way=way)
    return log


@each(
    "expected, story",
    [*ANSWERS, *SERVING, *VISITS, ({ACTION: FAIL}, before_the_delivery), ({ACTION: PASS}, two_sessions)],
)
def test_stories(expected: Expected, story: Story):
    expect(story, expected)


def test_a_ping_has_the_number_that_a_question_had_in_the_log_before():
    judge = Judge(catalogue(), FUNCTIONS)
    for method, result in ((ELICIT, {"action": "cancel"}), ("ping", {})):
        log = Log()
        answer(log, method, FORM, result)
        judge.begin(HEADER)
        for item in log.items:
            judge.take(item)
    judge.settle()
    [subject] = judge.subjects
    assert subject.tallies[ACTION].counts == {PASS: 1}

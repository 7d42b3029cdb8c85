"""Rules `progress.*`, and `lifecycle.progress-extends-patience`."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import structs

from probe.judge.verdicts import Verdict
from probe.log import events

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, WAYS, Expected, Story, Way, expect, opened, play
from .logs import Asked, HttpSession, Log, Pipe, judged

TYPE, UNIQUE, ASKED = "progress.token-type", "progress.token-unique", "progress.asked-for"
SERVERS, PATIENCE = "progress.only-for-server-tokens", "lifecycle.progress-extends-patience"
INCREASES, STOPS = "progress.increases", "progress.stops"
HTTP, STDIO, WEBSOCKET = WAYS
CANCELLED = "notifications/cancelled"


def call(session: HttpSession | Pipe, token: Any, **options: Any) -> Asked:
    params = {"name": "progress", "arguments": {}, "_meta": {"progressToken": token}, **options.pop("params", {})}
    return session.request("tools/call", params, **options)


def calls(*tokens: Any, way: Way = HTTP, **options: Any) -> Log:
    """Calls with tokens, side by side."""
    log = Log()
    session = opened(log, way)
    for token in tokens:
        call(session, token, **options)
    log.idle(3)
    return log


def lived(script: str, way: Way = HTTP) -> Log:
    """Calls with the token `a`, and what becomes of the first of them, whose id is 50."""
    log = Log()
    session: Any = opened(log, way)
    made: dict[str, Any] = {}

    def first(**params: Any) -> None:
        made["call"] = call(session, "a", id=50, params=params)

    def opens() -> None:
        first()
        made["stream"] = session.client.stream(made["call"])

    def emits() -> None:
        asked = made["call"]
        made["answer"] = session.emit({"jsonrpc": "2.0", "id": 50, "result": {}}, asked.context, asked.seq)

    def ends_task() -> None:
        context = structs.replace(made["call"].context, task="t1")
        log.add(events.TaskChanged("progress", "completed", None, 1), context, made["call"].seq)

    def asks(**options: Any) -> None:
        place = session if isinstance(session, Pipe) else session.get()
        made["question"] = place.ask("roots/list", {"_meta": {"progressToken": "mine"}}, **options)

    def reports(progress: Any, hidden: Any = (), **more: Any) -> None:
        params = _progress(progress, **more)["params"]
        session.notify("notifications/progress", params, **({"message": {"hidden": hidden}} if hidden else {}))

    words = {
        "first": first,
        "second": lambda: call(session, "a"),
        "silent": lambda: session.call("progress"),
        "answer": lambda: session.answer(made["call"]),
        "emit": emits,
        "deliver": lambda: session.deliver(made["answer"], made["call"].context),
        "cancel": lambda: session.notify(CANCELLED, {"requestId": 50}),
        "leave": lambda: session.client.leave(made["call"]),
        "stream": opens,
        "give-up": lambda: made["stream"].close("write timeout"),
        "lose": lambda: made["stream"].close("hang-up"),
        "task": partial(first, task={}),
        "handle": lambda: session.answer(made["call"], {"task": {"taskId": "t1", "status": "working"}}),
        "task-ends": ends_task,
        "ask": asks,
        "ask-late": partial(asks, delivered=False),
        "asked": lambda: session.deliver(made["question"].seq, session.context),
        "mine": partial(reports, 1),
        "mine-here": lambda: session.notify("notifications/progress", _progress(1)["params"], connection="tcp900"),
        "mine-lost": lambda: session.post(_progress(1)),
        "mine-again": partial(reports, 1.0, message="still"),
        "more": partial(reports, 2.5),
        "no-number": partial(reports, "2"),
        "hidden": partial(reports, 0, hidden=(("/params/progress", "number"),)),
        "reply": lambda: session.reply(made["question"], {"roots": []}),
        "refuse": lambda: session.reply(made["question"], value=_refusal(made["question"].id)),
        "other": lambda: session.notify("notifications/progress", {"progressToken": "x", "progress": 1}),
    }
    play(log, script, words)
    return log


def _progress(progress: Any, **more: Any) -> Any:
    params = {"progressToken": "mine", "progress": progress, **more}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def _refusal(id: Any) -> Any:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}


def modern(label: str | None = "acme", rounds: bool = False) -> Log:
    """Two calls of 2026-07-28 with one token, each on a connection of its own; with `rounds` they are one call."""
    log = Log()
    client = log.http(label)
    params = {"name": "progress", "arguments": {}}
    asked = client.modern("tools/call", params, more_meta={"progressToken": 1})
    if rounds:
        client.answer(asked, {"resultType": "input_required", "requestState": "s", "inputRequests": {}})
        params["requestState"] = "s"
    client.modern("tools/call", params, more_meta={"progressToken": 1})
    log.idle(3)
    return log


def two_sessions() -> Log:
    log = Log()
    client = log.http()
    for _ in range(2):
        call(client.session(), 1)
    log.idle(3)
    return log


STORIES: list[tuple[str, Verdict, str, tuple[Way, ...]]] = [
    (TYPE, SILENT, "silent", (HTTP,)),
    # A request that is over leaves its token: answered (the client may have read that before the log says so), given
    # up, also if that arrives later on another connection, or left by the server.
    (UNIQUE, SILENT, "first answer second 3", (HTTP,)),
    (UNIQUE, SILENT, "first emit second deliver", (STDIO,)),
    (UNIQUE, FAIL, "first emit 5 second", (STDIO,)),
    (UNIQUE, SILENT, "first cancel second 3", (HTTP,)),
    (UNIQUE, SILENT, "first second 1 cancel 3", (HTTP,)),
    (UNIQUE, SILENT, "first leave second 3", (HTTP,)),
    (UNIQUE, SILENT, "first second 1 leave 3", (HTTP,)),
    (UNIQUE, SILENT, "stream give-up second 3", (HTTP,)),
    (UNIQUE, FAIL, "stream lose second 3", (HTTP,)),
    # The same POST once more is no second request.
    (UNIQUE, SILENT, "first 20 first 3", (HTTP,)),
    (UNIQUE, UNCLEAR, "first second gap 3", (HTTP,)),
    (UNIQUE, SILENT, "task handle task-ends second", (STDIO,)),
    (UNIQUE, FAIL, "task handle second", (STDIO,)),
    *((SERVERS, PASS, "ask mine 3", (("http", revision),)) for _, revision in WAYS),
    *((SERVERS, FAIL, "ask other 3", (("http", revision),)) for _, revision in WAYS),
    (SERVERS, PASS, "ask-late mine asked 3", (STDIO,)),
    (SERVERS, UNCLEAR, "gap other 3", (HTTP,)),
    *((INCREASES, PASS, "ask mine more reply 3", ((way, revision),)) for way, _ in WAYS for _, revision in WAYS),
    (INCREASES, FAIL, "ask mine mine-again reply 3", WAYS),
    # Over HTTP two messages can change places, and a POST can be sent once more.
    (INCREASES, FAIL, "ask more mine reply 3", (STDIO, WEBSOCKET)),
    (INCREASES, UNCLEAR, "ask more mine reply 3", (HTTP,)),
    (INCREASES, FAIL, "ask more 3 mine reply 3", (HTTP,)),
    (INCREASES, FAIL, "ask mine mine reply 3", (STDIO,)),
    (INCREASES, UNCLEAR, "ask mine mine reply 3", (HTTP,)),
    (INCREASES, FAIL, "ask mine-here mine-here reply 3", (HTTP,)),
    (INCREASES, SILENT, "ask mine-lost mine reply 3", (HTTP,)),
    (INCREASES, SILENT, "ask more reply 3", (HTTP,)),
    (INCREASES, SILENT, "ask more hidden reply 3", (HTTP,)),
    (INCREASES, SILENT, "gap more mine 3", (STDIO,)),
    *((STOPS, PASS, "ask mine reply 3", ((way, revision),)) for way, _ in WAYS for _, revision in WAYS),
    (STOPS, FAIL, "ask mine reply more 3", (STDIO, WEBSOCKET)),
    (STOPS, FAIL, "ask refuse mine 3", (STDIO,)),
    (STOPS, UNCLEAR, "ask mine reply more 3", (HTTP,)),
    (STOPS, FAIL, "ask mine reply 3 more 3", (HTTP,)),
    (STOPS, SILENT, "ask reply 3", (HTTP,)),
    (STOPS, SILENT, "gap mine 3", (STDIO,)),
    (SERVERS, SILENT, "silent", (HTTP,)),
]


@each(
    "expected, story",
    [
        *(({rule: verdict}, partial(lived, script, way)) for rule, verdict, script, ways in STORIES for way in ways),
        *(
            ({TYPE: verdict}, partial(calls, token, way=way))
            for way in WAYS
            for verdict, tokens in ((PASS, ("a", "", 0)), (WARN, (1.0,)), (FAIL, (1.5, None, True, {}, [1])))
            for token in tokens
        ),
        ({TYPE: SILENT}, partial(calls, None, message={"hidden": (("/params/_meta", "object"),)})),
        *(
            ({UNIQUE: verdict}, partial(calls, *tokens, way=way))
            for way in WAYS
            for tokens, verdict in ((("a", "b"), PASS), ((1, 2), PASS), (("a", "a"), FAIL), ((1, "1"), WARN))
        ),
        ({UNIQUE: SILENT}, two_sessions),
        # Each came on a connection of its own, so two instances of a client may have sent them.
        ({UNIQUE: UNCLEAR}, modern),
        ({UNIQUE: UNCLEAR}, partial(modern, None)),
        ({UNIQUE: SILENT}, partial(modern, rounds=True)),
        ({INCREASES: SILENT, "jsonrpc.wire-schema": FAIL}, partial(lived, "ask mine no-number reply 3", HTTP)),
    ],
)
def test_stories(expected: Expected, story: Story):
    expect(story, expected)


@each("token, words", [(True, "true"), (None, "null"), (1.5, "1.5"), ({}, "of type object"), ([1], "of type array")])
def test_a_wrong_token_is_named_in_the_words_of_json(token: Any, words: str):
    assert judged(calls(token))["acme"].remarks[TYPE] == [f"progressToken is {words}"]


@each("script, verdict, measured", [("silent", SILENT, "no"), ("silent first silent", PASS, "yes")])
def test_whether_it_asks_for_progress_is_measured(script: str, verdict: Verdict, measured: str):
    found = expect(partial(lived, script), {ASKED: verdict})
    assert found.measured[ASKED] == {"asks for progress": measured}


def patience(silent_s: float | None, progressed_s: float, *, answered: bool) -> Log:
    """A silent call that was given up, and one with progress."""
    log = Log()
    session = opened(log)
    if silent_s is not None:
        asked = call(session, 1)
        log.after(silent_s)
        session.notify(CANCELLED, {"requestId": asked.id})
    asked = call(session, 2)
    stream = session.client.stream(asked)
    stream.tell("notifications/progress", {"progressToken": 2, "progress": 1})
    log.after(progressed_s)
    if answered:
        stream.answer({"content": []})
    else:
        session.notify(CANCELLED, {"requestId": asked.id})
    log.idle(40)
    return log


@each(
    "log, verdict, measured",
    [
        (patience(30, 50, answered=True), PASS, "waited with progress"),
        (patience(30, 50, answered=False), PASS, "waited with progress"),
        (patience(30, 30, answered=False), SILENT, "gave up in spite of progress after"),
        (patience(30, 5, answered=True), SILENT, "gave up a silent call after"),
        (patience(None, 50, answered=True), SILENT, None),
    ],
)
def test_patience_is_measured(log: Log, verdict: Verdict, measured: str | None):
    found = judged(log)["acme"]
    assert found[PATIENCE] is verdict
    assert measured in found.measured[PATIENCE] or (measured is None and not found.measured[PATIENCE])

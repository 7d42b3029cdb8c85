"""Rules `ping.*`."""

from __future__ import annotations

from functools import partial
from typing import Any

from probe.log import events

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, WAYS, Expected, Story, Way, expect, opened, play
from .logs import Log, judged

ANSWERED, EMPTY, PROMPT, EXCESSIVE = "ping.answered", "ping.empty", "ping.prompt", "ping.not-excessive"
HTTP, STDIO, WEBSOCKET = WAYS
SHAPE = "jsonrpc.response-shape"


def lived(script: str, way: Way = HTTP, result: Any = None) -> Log:
    """Pings of the server, and what the client says to them: the answer to the newest is `.`."""
    log = Log()
    session: Any = opened(log, way)
    made: dict[str, Any] = {"place": session.get() if way is HTTP else session}

    def ping() -> None:
        made["ping"] = made["place"].ask("ping")

    def answers(body: Any, *, matched: bool = True) -> None:
        value = {"jsonrpc": "2.0", "id": made["ping"].id, **body}
        session.reply(made["ping"], value=value, matched=matched)

    def leave() -> None:
        made["place"].close()

    words = {
        "ping": ping,
        ".": lambda: session.reply(made["ping"], result),
        "bad": lambda: answers({"result": None}, matched=False),
        "error": lambda: answers({"error": {"code": -32601, "message": "no"}}),
        "other": lambda: session.request("tools/list"),
        "limit": lambda: log.add(events.LimitReached("max_in_flight", 1), session.context),
        "get": lambda: made.update(place=session.get()),
        "leave": leave,
    }
    play(log, script, words)
    return log


def cut_off(transport: str, end: str) -> Log:
    """Twice a ping that is not answered, another message, and an end before an answer was due."""
    log = Log()
    session = log.http().session() if transport == "http" else None
    for _ in range(2):
        pipe = session or getattr(log, transport)().session()
        stream = session.get() if session is not None else pipe
        stream.ask("ping")
        log.after(0.1)
        pipe.request("tools/list")
        log.after(1)
        if end == "session":
            session.delete()
            session = log.http().session()
        else:
            stream.close(*([] if end == "client" else [end]))
        log.after(10)
        (session.request("tools/list") if session is not None else log.idle(1))
    log.idle(11)
    return log


def pings(count: int, every: float, revision: str) -> Log:
    log = Log()
    session = log.websocket().session(revision)
    for _ in range(count):
        session.answer(session.request("ping"))
        log.after(every)
    return log


def two_sessions() -> Log:
    log = Log()
    acme = log.http()
    sessions = [acme.session(), acme.session()]
    for _ in range(40):
        for session in sessions:
            session.answer(session.request("ping"))
        log.after(1)
    return log


YES, NO = "ping 1 . 11 ", "ping 1 other 11 "
STORIES: list[tuple[Expected, str, tuple[Way, ...]]] = [
    # One ping without an answer may be held back on its way: it takes two, and none with an answer between them.
    ({ANSWERED: PASS}, YES * 2, WAYS),
    ({ANSWERED: WARN}, NO + YES + NO, WAYS),
    ({ANSWERED: FAIL}, YES + NO + NO, WAYS),
    ({ANSWERED: WARN}, (NO + YES) * 2 + NO, WAYS),
    ({ANSWERED: SILENT}, "", WAYS),
    ({ANSWERED: WARN}, NO, (HTTP,)),
    ({ANSWERED: UNCLEAR}, "ping gap 20", (HTTP,)),
    # An answer that the server refused is one, and so is one of a client that ends at once.
    ({ANSWERED: PASS, SHAPE: FAIL}, "ping 1 bad 11 " * 2, (HTTP,)),
    ({ANSWERED: PASS}, "ping . leave", (WEBSOCKET,)),
    # Nothing shows that a client that sleeps has read it; once it speaks, it has time for its answer anew.
    ({ANSWERED: WARN}, "ping 11 " * 5, WAYS),
    ({ANSWERED: PASS}, "ping 11.5 other 0.1 . 60", (STDIO,)),
    ({ANSWERED: WARN}, "ping 11.5 other 60", (STDIO,)),
    ({ANSWERED: PASS}, "ping 29 other 2 . 60", (STDIO,)),
    ({ANSWERED: WARN}, "ping 29 other 60", (STDIO,)),
    ({ANSWERED: PASS}, "ping 25 . 60", (STDIO,)),
    ({ANSWERED: UNCLEAR}, "ping leave 11 get ping leave 11", (HTTP,)),
    ({EMPTY: FAIL, ANSWERED: PASS}, "ping error 11", (HTTP,)),
    # The median of three answers counts.
    ({PROMPT: PASS}, "ping 0.1 . ping 0.1 . ping 9 .", (STDIO,)),
    ({PROMPT: WARN}, "ping 6 . ping 6 . ping 0.1 .", (STDIO,)),
    ({PROMPT: UNCLEAR}, "ping 2 . ping 2 . ping 2 .", (STDIO,)),
    ({PROMPT: SILENT}, "ping 9 . ping 9 .", (STDIO,)),
    ({PROMPT: SILENT}, "ping 6 limit . " * 3, (STDIO,)),
]


@each(
    "expected, story",
    [
        *((expected, partial(lived, script, way)) for expected, script, ways in STORIES for way in ways),
        *(({EMPTY: PASS}, partial(lived, YES, HTTP, result)) for result in ({}, {"_meta": {}})),
        ({EMPTY: WARN}, partial(lived, YES, HTTP, {"status": "ok"})),
        *(
            ({ANSWERED: UNCLEAR}, partial(cut_off, transport, end))
            for transport, end in (
                *(("http", "client"), ("http", "dead peer"), ("http", "session")),
                *(("stdio", "client"),),
            )
        ),
        ({ANSWERED: UNCLEAR, "websocket.answers-pings": WARN}, partial(cut_off, "websocket", "dead peer")),
        ({ANSWERED: FAIL}, partial(cut_off, "http", "end of stream")),
        *(
            ({EXCESSIVE: verdict}, partial(pings, count, every, revision))
            for _, revision in WAYS
            for count, every, verdict in (
                *((70, 0.5, WARN), (70, 1.1, PASS), (30, 0.1, SILENT), (0, 1, SILENT), (8, 15, PASS)),
            )
        ),
        ({EXCESSIVE: SILENT}, two_sessions),
    ],
)
def test_stories(expected: Expected, story: Story):
    expect(story, expected)


@each("count", [2, 3])
def test_the_median_is_measured_from_three_answers_on(count: int):
    measured = judged(lived("ping 1 . " * count, STDIO))["acme"].measured[PROMPT]
    assert ("median_s" in measured) is (count == 3)

"""Rules `listen.*`."""

from __future__ import annotations

from typing import Any, Final

from probe.judge.verdicts import Verdict

from ..support.rows import each
from .checks import PASS, SILENT, UNCLEAR, WARN, WAYS, Way, check, opened, play
from .logs import Log, Pipe, Streamed, judged

CHANGED: Final = "notifications/tools/list_changed"


def tell(session: Any) -> None:
    """The server says that the list of tools has changed."""
    if isinstance(session, Pipe):
        session.tell({"jsonrpc": "2.0", "method": CHANGED})
    else:
        session.get().tell(CHANGED)


def ask(session: Any) -> None:
    session.answer(session.request("tools/list"), {"tools": [{"name": "t"}]})


def work(log: Log, session: Any) -> None:
    """Five minutes in which the client uses no tool."""
    for _ in range(16):
        log.after(20)
        session.request("logging/setLevel", {"level": "info"})


@each("way", WAYS)
@each(
    "acts, verdict",
    [
        ("list told list", PASS),
        ("list told 100 list call", PASS),
        ("list told 100 call", WARN),
        # A call that crosses the notification, and one before a list that comes in time.
        ("list told call 100", UNCLEAR),
        ("list told 8 call 8 list 100", PASS),
        ("list told 8 call 100", WARN),
        ("list told traffic", WARN),
        ("list told 400", SILENT),
        # Who did not ask for the list need not ask again.
        ("told 100 call", SILENT),
        ("told list", SILENT),
        # What comes after another change is judged by that.
        ("list told 8 call 8 told 20 list 100", PASS),
        # A gap may hide the list.
        ("list told gap 100 call", UNCLEAR),
        ("list told gap list", PASS),
    ],
)
def test_after_a_change(way: Way, acts: str, verdict: Verdict) -> None:
    log = Log()
    session = opened(log, way)
    words = {
        "list": lambda: ask(session),
        "call": lambda: session.call("t"),
        "told": lambda: tell(session),
        "traffic": lambda: work(log, session),
    }
    play(log, acts, words)
    check(log, "listen.relists", verdict)


@each("acts", ["list told other 100 call", "list told tell list"])
def test_a_client_with_two_sessions_asks_in_one_of_them(acts: str) -> None:
    log = Log()
    session, other = opened(log), opened(log)
    words = {
        "list": lambda: ask(session),
        "other": lambda: ask(other),
        "told": lambda: tell(session),
        "tell": lambda: tell(other),
        "call": lambda: session.call("t"),
    }
    play(log, acts, words)
    check(log, "listen.relists", PASS)


def subscribe(client: Any, wanted: Any, granted: Any = None, **options: Any) -> Streamed:
    stream: Streamed = client.stream(client.modern("subscriptions/listen", {"notifications": wanted}, **options))
    client.started(stream.asked)
    stream.tell("notifications/subscriptions/acknowledged", {"notifications": wanted if granted is None else granted})
    return stream


@each("label, verdict", [("acme", WARN), (None, UNCLEAR)])
@each("method, after", [("tools/call", 40), ("prompts/list", 40)])
def test_a_change_on_a_subscription(label: str | None, method: str, after: float, verdict: Verdict) -> None:
    log = Log()
    client = log.http(label)
    client.answer(client.modern("tools/list"), {"tools": [{"name": "t"}], "ttlMs": 60000})
    subscribe(client, {"toolsListChanged": True}).tell(CHANGED)
    log.idle(after)
    client.modern(method, {"name": "t"})
    log.idle(300)
    check(log, "listen.relists", verdict, label or "m1")


def test_a_change_is_one_finding_however_often_the_list_is_used() -> None:
    log = Log()
    session = opened(log)
    words = {"list": lambda: ask(session), "told": lambda: tell(session), "call": lambda: session.call("t")}
    play(log, "list told 40 call 40 call 300", words)
    assert len(judged(log)["acme"].evidence["listen.relists"]) == 1


def test_without_a_change_nothing_is_asked_for_again_while_it_is_kept() -> None:
    log = Log()
    client = log.http()
    client.answer(client.modern("tools/list"), {"tools": [{"name": "t"}], "ttlMs": 24 * 3600_000})
    for _ in range(24):
        log.idle(3600)
        client.answer(client.modern("tools/call", {"name": "t"}), {"content": []})
    check(log, "listen.relists", SILENT)


@each(
    "wanted, extensions, verdict",
    [
        ({}, {}, PASS),
        ({"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["a:b"]}, {}, PASS),
        ({"taskIds": ["t"], "vendor.example/alarm": 5}, {}, PASS),
        ({"toolsListChanged": "yes"}, {}, WARN),
        ({"resourceSubscriptions": True}, {}, WARN),
        ({"resourceSubscriptions": [1]}, {}, WARN),
        ({"resourcesUpdated": ["a:b"]}, {}, WARN),
        ({"tools_list_changed": True}, {}, WARN),
        # Members of extensions are free.
        ({"resourceAlarms": True}, {"vendor.example/alarms": {}}, PASS),
        (None, {}, SILENT),
    ],
)
def test_filters(wanted: Any, extensions: Any, verdict: Verdict) -> None:
    log = Log()
    if wanted is None:
        log.http().modern("tools/list")
    else:
        subscribe(log.http(), wanted, capabilities={"extensions": extensions})
    check(log, "listen.filter-known", verdict)


WANTED: Final = {"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["no:such"]}


@each(
    "repeats, granted, by, gap, verdict",
    [
        (0, {"toolsListChanged": True}, "client", False, PASS),
        (3, {"toolsListChanged": True}, "client", False, PASS),
        (4, {"toolsListChanged": True}, "client", False, WARN),
        (4, {"toolsListChanged": True}, "", False, WARN),
        # Others end the stream, and the client comes back.
        (9, {"toolsListChanged": True}, "end of stream", False, PASS),
        (0, {"toolsListChanged": True}, "client", True, UNCLEAR),
        (4, {"resourceSubscriptions": ["no:such"]}, "client", False, WARN),
        # What is false or empty asks for nothing.
        (6, {"toolsListChanged": True, "resourceSubscriptions": ["no:such"]}, "client", False, SILENT),
    ],
)
def test_a_subscription_that_was_granted_in_part(
    repeats: int, granted: Any, by: str, gap: bool, verdict: Verdict
) -> None:
    log = Log()
    client = log.http()
    for _ in range(repeats + 1):
        stream = subscribe(client, WANTED, granted)
        if by:
            stream.close(by)
        log.after(1)
    if gap:
        log.gap()
    client.modern("tools/call", {"name": "t"})
    log.idle(70)
    check(log, "listen.partly-granted", verdict)

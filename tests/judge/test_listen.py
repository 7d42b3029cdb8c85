"""Rules `listen.*`."""

from __future__ import annotations

from typing import Any

import pytest

from probe.judge.verdicts import Verdict

from .logs import HttpSession, Log, Pipe, Streamed, expect

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
CHANGED = "notifications/tools/list_changed"
RELISTS = "listen.relists"


def told(transport: str = "http", revision: str = "2025-11-25", *, lists: bool = True) -> tuple[Log, Any]:
    """A session that has the tools, and is told that they have changed."""
    log = Log()
    clients: dict[str, Any] = {"http": log.http, "stdio": log.stdio, "websocket": log.websocket}
    session = clients[transport]().session(revision)
    if lists:
        session.answer(session.request("tools/list"), {"tools": [{"name": "t"}]})
    if isinstance(session, Pipe):
        session.tell({"jsonrpc": "2.0", "method": CHANGED})
    else:
        session.get().tell(CHANGED)
    return log, session


def traffic(log: Log, session: HttpSession | Pipe, seconds: float) -> None:
    for _ in range(int(seconds / 20)):
        log.after(20)
        session.request("logging/setLevel", {"level": "info"})


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize(
    ("acts", "verdict"),
    [
        (("list",), Verdict.PASS),
        (("wait", "list", "call"), Verdict.PASS),
        (("wait", "call"), Verdict.WARN),
        # A call that crosses the notification, and one before a list that comes in time.
        (("call", "wait"), Verdict.INCONCLUSIVE),
        (("short", "call", "short", "list", "wait"), Verdict.PASS),
        (("short", "call", "wait"), Verdict.WARN),
        (("traffic",), Verdict.WARN),
        (("silence",), Verdict.NOT_OBSERVED),
    ],
)
def test_after_a_change(revision: str, transport: str, acts: tuple[str, ...], verdict: Verdict):
    log, session = told(transport, revision)
    for act in acts:
        if act == "list":
            session.request("tools/list")
        elif act == "call":
            session.call("t")
        elif act == "traffic":
            traffic(log, session, 320)
        else:
            log.idle({"short": 8, "wait": 100, "silence": 400}[act])
    expect(log, RELISTS, verdict)


def test_who_did_not_ask_for_the_list_need_not_ask_again():
    log, session = told(lists=False)
    log.after(100)
    session.call("t")
    expect(log, RELISTS, Verdict.NOT_OBSERVED)


def test_a_client_with_two_sessions_asks_in_one_of_them():
    log, session = told()
    other = log.http().session()
    log.after(1)
    other.request("tools/list")
    log.after(100)
    session.call("t")
    expect(log, RELISTS, Verdict.PASS)


def test_a_gap_may_hide_the_list():
    log, session = told()
    log.gap()
    log.after(100)
    session.call("t")
    expect(log, RELISTS, Verdict.INCONCLUSIVE)


def subscribe(client: Any, wanted: Any, granted: Any = None, **options: Any) -> Streamed:
    stream: Streamed = client.stream(client.modern("subscriptions/listen", {"notifications": wanted}, **options))
    client.started(stream.asked)
    stream.tell("notifications/subscriptions/acknowledged", {"notifications": wanted if granted is None else granted})
    return stream


@pytest.mark.parametrize(("label", "verdict"), [("acme", Verdict.WARN), (None, Verdict.INCONCLUSIVE)])
def test_a_change_on_a_subscription(label: str | None, verdict: Verdict):
    log = Log()
    client = log.http(label)
    client.answer(client.modern("tools/list"), {"tools": [{"name": "t"}], "ttlMs": 60000})
    subscribe(client, {"toolsListChanged": True}).tell(CHANGED)
    log.idle(40)
    client.modern("tools/call", {"name": "t"})
    expect(log, RELISTS, verdict, label or "m1")


@pytest.mark.parametrize(
    ("wanted", "verdict"),
    [
        ({}, Verdict.PASS),
        ({"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["a:b"]}, Verdict.PASS),
        ({"taskIds": ["t"], "vendor.example/alarm": 5}, Verdict.PASS),
        ({"toolsListChanged": "yes"}, Verdict.WARN),
        ({"resourceSubscriptions": True}, Verdict.WARN),
        ({"resourceSubscriptions": [1]}, Verdict.WARN),
        ({"resourcesUpdated": ["a:b"]}, Verdict.WARN),
        ({"tools_list_changed": True}, Verdict.WARN),
    ],
)
def test_filters(wanted: Any, verdict: Verdict):
    log = Log()
    subscribe(log.http(), wanted)
    expect(log, "listen.filter-known", verdict)


def test_members_of_declared_extensions_are_free():
    log = Log()
    subscribe(log.http(), {"resourceAlarms": True}, capabilities={"extensions": {"vendor.example/alarms": {}}})
    expect(log, "listen.filter-known", Verdict.PASS)
    log = Log()
    log.http().modern("tools/list")
    expect(log, "listen.filter-known", Verdict.NOT_OBSERVED)


WANTED = {"toolsListChanged": True, "resourceSubscriptions": ["no:such"]}
PART = {"toolsListChanged": True}


@pytest.mark.parametrize(
    ("repeats", "by", "gap", "verdict"),
    [
        (0, "client", False, Verdict.PASS),
        (3, "client", False, Verdict.PASS),
        (4, "client", False, Verdict.WARN),
        # Others end the stream, and the client comes back.
        (9, "end of stream", False, Verdict.PASS),
        (0, "client", True, Verdict.INCONCLUSIVE),
    ],
)
def test_a_subscription_that_was_granted_in_part(repeats: int, by: str, gap: bool, verdict: Verdict):
    log = Log()
    client = log.http()
    for _ in range(repeats + 1):
        subscribe(client, WANTED, PART).close(by)
        log.after(1)
    if gap:
        log.gap()
    client.modern("tools/call", {"name": "t"})
    log.idle(70)
    expect(log, "listen.partly-granted", verdict)


def test_a_subscription_that_was_granted_whole_may_be_repeated():
    log = Log()
    client = log.http()
    for _ in range(6):
        subscribe(client, {**PART, "promptsListChanged": False, "resourceSubscriptions": []}, PART).close()
    log.idle(70)
    expect(log, "listen.partly-granted", Verdict.NOT_OBSERVED)

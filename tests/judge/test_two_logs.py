"""Facts about the messages of two logs: each once present and once absent, and none about equal logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from probe.judge.reports.terminal import messages
from probe.judge.two_logs import traffic as reading
from probe.judge.two_logs.facts import MessageFacts, message_facts
from probe.judge.two_logs.traffic import Traffic
from probe.log import events
from probe.log.header import End

from .logs import Asked, HttpSession, Log

PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
WHOLE = End(9)
TRACED = {"traceparent": "00-1-1-01"}


def read(log: Log, end: End | None = WHOLE) -> Traffic:
    found = Traffic()
    found.begin()
    for item in log.items:
        found.take(item)
    found.end(end)
    return found


def compared(here: Log, there: Log) -> MessageFacts:
    return message_facts(read(here), read(there))


def begun(session: HttpSession, at: int, **options: Any) -> Asked:
    """A call whose arguments no other has; its work has begun."""
    params = {"name": "echo", "arguments": {"at": at}}
    meta = {name: options.pop(name) for name in ("_meta",) if name in options}
    asked = session.request("tools/call", params | meta, **{"id": 100 + at, **options})
    session.client.started(asked)
    return asked


def settled(
    session: HttpSession, asked: Asked, *, ran_ms: float = 5.0, coalesced: int = 0, answered: bool = True
) -> None:
    fact = events.CallSettled(
        asked.id, "completed", answered, ran_ms, None, None, None, None, None, 0, coalesced, b"null"
    )
    session.log.add(fact, asked.context)
    if answered:
        session.answer(asked, {"content": []})


def calls(count: int = 4, wait: float = 0.0, **options: Any) -> Log:
    """Calls one after the other in one session."""
    log = Log()
    session = log.http().session()
    for at in range(count):
        log.after(wait)
        settled(session, begun(session, at, **options))
    return log


def numbered(make: Callable[[int], Any], what: str = "id", count: int = 3) -> Log:
    log = Log()
    session = log.http().session()
    for at in range(1, count + 1):
        given = {"id": make(at)} if what == "id" else {"_meta": {"progressToken": make(at)}}
        settled(session, begun(session, at, **given))
    return log


def in_sessions(places: Sequence[int], asked: Sequence[int] = range(9)) -> Log:
    """A call in each of these sessions; `asked` are their arguments."""
    log = Log()
    client = log.http()
    sessions = {place: client.session() for place in sorted(set(places))}
    for at, place in zip(asked, places, strict=False):
        settled(sessions[place], begun(sessions[place], at))
    return log


def in_order(places: Sequence[int], *, overlap: bool = False) -> Log:
    log = Log()
    session = log.http().session()
    asked = []
    for at in places:
        asked.append(begun(session, at))
        if not overlap:
            settled(session, asked.pop())
    for each in asked:
        settled(session, each)
    return log


def with_ping(place: int) -> Log:
    """Three calls, with a ping before one of them."""
    log = Log()
    session = log.http().session()
    for at in range(3):
        if at == place:
            session.answer(session.request("ping", id=50))
        settled(session, begun(session, at))
    return log


def reporting(*, coalesced: int = 0, dropped: int = 0) -> Log:
    log = Log()
    session = log.http().session()
    asked = begun(session, 1, _meta={"progressToken": 1})
    session.client.emit(PROGRESS, asked.context, asked.seq, 1)
    for _ in range(dropped):
        fact = events.MessageDropped("overflow", "notification", "notifications/progress", None, b"{}")
        log.add(fact, asked.context, asked.seq)
    settled(session, asked, coalesced=coalesced)
    return log


def stopping(*, ran_ms: float, cancelled: bool, effect: bool = True) -> Log:
    log = Log()
    session = log.http().session()
    asked = begun(session, 1)
    if cancelled:
        log.add(events.CallCancelled(asked.id, "notification", None, effect), asked.context)
    settled(session, asked, ran_ms=ran_ms, answered=not (cancelled and effect))
    return log


def listing(pages: int, *, more: bool = True) -> Log:
    log = Log()
    session = log.http().session()
    for page in range(pages):
        asked = session.request("tools/list", {"cursor": f"{page}"} if page else {})
        result: dict[str, Any] = {"tools": []} | ({"nextCursor": f"{page + 1}"} if more else {})
        session.answer(asked, result)
    return log


def with_meta(*keys: str) -> Log:
    return calls(3, _meta=dict.fromkeys(keys, 1))


FACTS: Mapping[str, tuple[Log, Log, list[str]]] = {
    "header lost": (calls(headers={}), calls(headers=TRACED), ["4 of 4 requests lost the header `traceparent`"]),
    "header of the way": (calls(headers={"user-agent": "gateway", "host": "x"}), calls(), []),
    "header added": (calls(headers={"via": "1.1 x"}), calls(), ["4 of 5 requests got the header `via`"]),
    "meta lost": (with_meta("a"), with_meta("a", "b"), ["3 of 3 requests lost the key of `_meta` `b`"]),
    "id of another type": (
        numbered(str),
        numbered(int),
        ["the id of 3 of 4 requests is a string, an integer there"],
    ),
    "other ids": (numbered(lambda at: at + 7), numbered(int), ["3 of 4 requests have another id"]),
    "ids behind a request that did not come": (numbered(lambda at: at + 7, count=2), numbered(int), []),
    "ids by chance": (numbered(lambda at: f"{at}" * 20), numbered(lambda at: f"a{at}" * 20), []),
    "token of another type": (
        numbered(str, "token"),
        numbered(int, "token"),
        ["the progress token of 3 of 3 requests is a string, an integer there"],
    ),
    "other tokens": (
        numbered(lambda at: at + 7, "token"),
        numbered(int, "token"),
        ["3 of 3 requests have another progress token"],
    ),
    "token lost": (calls(2), numbered(int, "token"), ["1 of 1 request lost the progress token"]),
    "sessions merged": (in_sessions([1, 1, 1]), in_sessions([1, 2, 3]), ["requests of 3 sessions came in one, s1"]),
    "sessions multiplied": (
        in_sessions([1, 2, 3]),
        in_sessions([1, 1, 1]),
        ["requests of one session, s1, came in 3"],
    ),
    "sessions with other names": (in_sessions([2, 1, 2]), in_sessions([1, 2, 1]), []),
    "equal calls of two sessions": (
        in_sessions([2, 1, 1, 2], [9, 9, 1, 2]),
        in_sessions([1, 2, 1, 2], [9, 9, 1, 2]),
        [],
    ),
    "order of a ping": (with_ping(0), with_ping(2), []),
    "order": (in_order([2, 1, 3]), in_order([1, 2, 3]), ["1 of 4 requests came before one that they followed there"]),
    "order of what overlaps": (in_order([2, 1, 3]), in_order([1, 2, 3], overlap=True), []),
    "delay": (
        calls(8, wait=0.3),
        calls(8, wait=0.01),
        ["after an answer the next request came in 304 ms, in 14 ms there (medians of 8)"],
    ),
    "a small delay": (calls(8, wait=0.08), calls(8, wait=0.0), []),
    "coalesced": (
        reporting(coalesced=3),
        reporting(),
        ["1 of 1 call lost 3 progress reports: coalesced or not sent"],
    ),
    "dropped": (
        reporting(dropped=1),
        reporting(),
        ["1 of 1 call lost 1 progress report: coalesced or not sent"],
    ),
    "coalesced in both": (reporting(coalesced=3), reporting(coalesced=1), []),
    "cancellation lost": (
        stopping(ran_ms=3000, cancelled=False),
        stopping(ran_ms=200, cancelled=True),
        ["1 of 1 cancelled call ran to the end without a cancellation"],
    ),
    "cancellation too late": (
        stopping(ran_ms=3000, cancelled=True, effect=False),
        stopping(ran_ms=200, cancelled=True),
        [],
    ),
    "over before the cancellation": (stopping(ran_ms=300, cancelled=False), stopping(ran_ms=200, cancelled=True), []),
    "pages merged": (
        listing(3),
        listing(1),
        ["further pages of `tools/list`: asked for by 2 requests, by none there"],
    ),
    "pages cut": (listing(1), listing(3), ["further pages of `tools/list`: asked for by none, by 2 requests there"]),
    "one page only": (listing(1, more=False), listing(3), []),
}


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_is_said_with_its_count(name: str) -> None:
    here, there, said = FACTS[name]
    assert list(compared(here, there).facts) == said


@pytest.mark.parametrize("name", FACTS)
def test_a_log_beside_itself_says_nothing(name: str) -> None:
    for log in FACTS[name][:2]:
        found = compared(log, log)
        assert (found.facts, found.doubts) == ([], [])
        assert found.paired > 0


def test_gateways_that_write_numbers_and_members_anew_do_not_hide_which_call_it_is() -> None:
    made = []
    for arguments in ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}):
        log = Log()
        session = log.http().session()
        session.answer(session.call("echo", arguments), {"content": []})
        made.append(log)
    assert compared(*made).paired == 2


def twice(*, overlap: bool = False, times: int = 2, programs: int = 1, headers: Any = None) -> Log:
    """The same call again and again."""
    log = Log()
    session = log.http().session()
    for at in range(1, programs):
        log.http(name=f"program {at}").session()
    asked = [] if not overlap else [session.call("echo", {"x": 1}) for _ in range(times)]
    for at in range(times):
        each = (
            asked[at]
            if overlap
            else session.request("tools/call", {"name": "echo", "arguments": {"x": 1}}, headers=headers or {})
        )
        session.answer(each, {"content": []})
    return log


@pytest.mark.parametrize(
    ("here", "there", "paired"),
    [
        (twice(), twice(), 3),
        (twice(times=3), twice(), 1),
        (twice(overlap=True), twice(), 1),
        (twice(), twice(overlap=True), 1),
        # initialize comes twice in one of them
        (twice(programs=2), twice(), 0),
    ],
)
def test_equal_calls_are_paired_where_their_order_is_certain(here: Log, there: Log, paired: int) -> None:
    assert compared(here, there).paired == paired


def test_clients_are_compared_by_their_labels() -> None:
    def two(traced: str) -> Log:
        log = Log()
        for name in ("a", "b"):
            session = log.http(name).session()
            settled(session, begun(session, 1, headers=TRACED if name == traced else {}))
        return log

    assert list(compared(two("a"), two("b")).facts) == [
        "1 of 1 request lost the header `traceparent`",
        "1 of 4 requests got the header `traceparent`",
    ]
    other = Log()
    for name in ("c", "d"):
        other.http(name).session()
    found = compared(two("a"), other)
    assert (found.paired, found.doubts) == (0, ["the clients of the two logs have different labels"])


@pytest.mark.parametrize("end", [None, End(9, "filtered")])
def test_a_log_that_is_not_whole_says_nothing(end: End | None) -> None:
    here, there = calls(headers={}), calls(headers=TRACED)
    found = message_facts(read(here, end), read(there))
    assert (found.facts, found.doubts) == ((), ["--log is not whole"])
    there.gap()
    assert compared(here, there).doubts == ["--against is not whole"]


def test_of_a_long_log_the_first_requests_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST", 3)
    found = compared(calls(5, headers={}), calls(5, headers=TRACED))
    assert list(found.facts) == ["2 of 2 requests lost the header `traceparent`"]
    assert (found.here, found.paired, len(found.doubts)) == (3, 3, 1)


def test_a_report_says_how_much_was_compared() -> None:
    log = calls()
    assert list(messages(compared(log, log)))[1:] == [
        "Messages: 5 of 5 requests are paired with one of the 5 there.",
        "    Nothing that a gateway should keep differs in these.",
    ]
    assert "    4 of 4 requests lost the header `traceparent`" in messages(compared(log, calls(headers=TRACED)))

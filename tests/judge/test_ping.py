"""Rules `ping.*`."""

from __future__ import annotations

import pytest

from probe.judge.verdicts import Verdict
from probe.log import events

from .logs import Log, judged

NONE = Verdict.NOT_OBSERVED


def _pings(answers: int, of: int, wait: float = 11) -> Log:
    log = Log()
    session = log.http().session()
    stream = session.get()
    for number in range(of):
        ping = stream.ask("ping")
        log.after(1)
        if number < answers:
            session.reply(ping)
        else:
            session.request("tools/list")
        log.idle(wait)
    return log


def test_two_pings_without_an_answer_fail():
    assert judged(_pings(2, 2))["acme"]["ping.answered"] is Verdict.PASS
    assert judged(_pings(0, 1))["acme"]["ping.answered"] is Verdict.WARN
    assert judged(_pings(0, 2))["acme"]["ping.answered"] is Verdict.FAIL
    assert judged(_pings(0, 0))["acme"]["ping.answered"] is Verdict.NOT_OBSERVED


def test_a_gap_leaves_a_ping_open():
    log = Log()
    session = log.http().session()
    session.get().ask("ping")
    log.gap()
    log.idle(20)
    assert judged(log)["acme"]["ping.answered"] is Verdict.INCONCLUSIVE


def _story(pattern: str, transport: str = "http", value: object = None) -> Log:
    """Pings of which some are answered: `.` is, `-` is not; the client says something after each."""
    log = Log()
    session = getattr(log, transport)().session()
    stream = session.get() if transport == "http" else session
    for answered in pattern:
        ping = stream.ask("ping")
        log.after(1)
        if answered == ".":
            session.reply(ping, value)
        elif answered == "?":
            session.reply(ping, value={"jsonrpc": "2.0", "id": ping.id, "result": None}, matched=False)
        else:
            session.request("tools/list")
        log.idle(11)
    return log


@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize(
    ("pattern", "verdict"),
    [("..", Verdict.PASS), ("-.-", Verdict.WARN), (".--", Verdict.FAIL), ("-.-.-", Verdict.WARN), ("", NONE)],
)
def test_an_answer_between_two_missing_ones_excuses(pattern: str, verdict: Verdict, transport: str):
    found = judged(_story(pattern, transport))["acme"]
    assert found["ping.answered"] is verdict
    assert found.faults == ({"ping.answered": verdict} if verdict > Verdict.INCONCLUSIVE else {})


def test_an_answer_that_the_server_refused_is_an_answer():
    found = judged(_story("??"))["acme"]
    assert found["ping.answered"] is Verdict.PASS
    assert found.faults == {"jsonrpc.response-shape": Verdict.FAIL}


@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
def test_a_client_that_sleeps_is_not_known_to_hear(transport: str):
    log = Log()
    session = getattr(log, transport)().session()
    stream = session.get() if transport == "http" else session
    for _ in range(5):
        stream.ask("ping")
        log.idle(11)
    assert judged(log)["acme"].faults == {"ping.answered": Verdict.WARN}


@pytest.mark.parametrize(
    ("spoken", "answered", "verdict"),
    [
        (11.5, 11.6, Verdict.PASS),
        (11.5, None, Verdict.WARN),
        # It wakes just before the second look, and its answer is on its way.
        (29, 31, Verdict.PASS),
        (29, None, Verdict.WARN),
        (None, 25, Verdict.PASS),
    ],
)
def test_a_client_that_wakes_has_time_for_its_answer(spoken: float | None, answered: float | None, verdict: Verdict):
    log = Log()
    session = log.stdio().session()
    asked, ping = log.now, session.ask("ping")
    for at, act in (
        (spoken, lambda: session.notify("notifications/cancelled", {})),
        (answered, lambda: session.reply(ping)),
    ):
        if at is not None:
            log.idle(asked + at - log.now)
            act()
    log.idle(60)
    assert judged(log)["acme"]["ping.answered"] is verdict


def test_a_client_that_has_gone_owes_nothing():
    log = Log()
    session = log.http().session()
    for _ in range(2):
        stream = session.get()
        stream.ask("ping")
        stream.close()
        log.idle(11)
    assert judged(log)["acme"].faults == {}


def _cut_off(transport: str, end: str) -> Log:
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


@pytest.mark.parametrize(
    ("transport", "end", "verdict"),
    [
        ("http", "client", Verdict.INCONCLUSIVE),
        ("http", "dead peer", Verdict.INCONCLUSIVE),
        ("http", "session", Verdict.INCONCLUSIVE),
        ("stdio", "client", Verdict.INCONCLUSIVE),
        ("websocket", "dead peer", Verdict.INCONCLUSIVE),
        ("http", "end of stream", Verdict.FAIL),
    ],
)
def test_a_ping_that_was_cut_off_may_be_lost(transport: str, end: str, verdict: Verdict):
    assert judged(_cut_off(transport, end))["acme"]["ping.answered"] is verdict


@pytest.mark.parametrize(
    ("result", "verdict"),
    [({}, Verdict.PASS), ({"_meta": {}}, Verdict.PASS), ({"status": "ok"}, Verdict.WARN)],
)
def test_the_result_is_empty(result: object, verdict: Verdict):
    found = judged(_story(".", value=result))["acme"]
    assert found["ping.empty"] is verdict
    assert found.faults.keys() == ({"ping.empty"} if verdict is Verdict.WARN else set())


def test_an_error_is_not_empty():
    log = Log()
    session = log.http().session()
    ping = session.get().ask("ping")
    session.reply(ping, value={"jsonrpc": "2.0", "id": ping.id, "error": {"code": -32601, "message": "no"}})
    log.idle(11)
    found = judged(log)["acme"]
    assert found["ping.answered"] is Verdict.PASS
    assert found.faults == {"ping.empty": Verdict.FAIL}


@pytest.mark.parametrize(
    ("delays", "verdict"),
    [
        ([0.1, 0.1, 9], Verdict.PASS),
        ([6, 6, 0.1], Verdict.WARN),
        ([2, 2, 2], Verdict.INCONCLUSIVE),
        ([9, 9], NONE),
    ],
)
def test_the_median_says_how_prompt_a_client_is(delays: list[float], verdict: Verdict):
    log = Log()
    session = log.stdio().session()
    for delay in delays:
        ping = session.ask("ping")
        log.after(delay)
        session.reply(ping)
    found = judged(log)["acme"]
    assert found["ping.prompt"] is verdict
    assert found.faults.keys() == ({"ping.prompt"} if verdict is Verdict.WARN else set())
    assert ("median_s" in found.measured["ping.prompt"]) == (len(delays) > 2)


def test_a_limit_of_the_server_makes_answers_late():
    log = Log()
    session = log.stdio().session()
    for _ in range(3):
        ping = session.ask("ping")
        log.after(6)
        log.add(events.LimitReached("max_in_flight", 1), session.context)
        session.reply(ping)
    assert judged(log)["acme"]["ping.prompt"] is NONE


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(
    ("count", "every", "verdict"),
    [(70, 0.5, Verdict.WARN), (70, 1.1, Verdict.PASS), (30, 0.1, NONE), (0, 1, NONE), (8, 15, Verdict.PASS)],
)
def test_pings_of_the_client(count: int, every: float, verdict: Verdict, revision: str):
    log = Log()
    session = log.websocket().session(revision)
    for _ in range(count):
        session.answer(session.request("ping"))
        log.after(every)
    found = judged(log)["acme"]
    assert found["ping.not-excessive"] is verdict
    assert found.faults.keys() == ({"ping.not-excessive"} if verdict is Verdict.WARN else set())


def test_two_sessions_have_their_own_minute():
    log = Log()
    acme = log.http()
    sessions = [acme.session(), acme.session()]
    for _ in range(40):
        for session in sessions:
            session.answer(session.request("ping"))
        log.after(1)
    assert judged(log)["acme"].faults == {}


def test_an_answer_counts_at_once() -> None:
    """A client whose run is over within ten seconds has answered all the same."""
    log = Log()
    session = log.websocket().session()
    session.reply(session.ask("ping"))
    session.close()
    assert judged(log)["acme"]["ping.answered"] is Verdict.PASS

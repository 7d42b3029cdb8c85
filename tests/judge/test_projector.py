"""What the projector remembers of a client is bounded, whatever the client sends."""

from __future__ import annotations

import pytest

from probe.judge.judge import Judge, judge_all
from probe.judge.projection import known
from probe.judge.rules.all import PREDICATES
from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import Verdict

from .logs import HEADER, Log, judged


def _judge(log: Log) -> Judge:
    judge = Judge(catalogue(), PREDICATES)
    judge.begin(HEADER)
    judge_all(judge, log.items)
    return judge


def test_the_names_that_a_client_chooses_are_bounded():
    log = Log()
    for number in range(150):
        log.http(version=f"{number}").session(capabilities={f"x{number}": {}}, initialized=False)
    (subject,) = _judge(log).subjects
    assert len(subject.life.names) == len(subject.life.capabilities) == 100
    assert subject.life.names["acme", "0"] == 1


def test_the_requests_of_many_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(known, "_MOST_NAMED", 50)
    log = Log()
    session = log.stdio().session()
    first = session.answer(session.call("echo"))
    for _ in range(60):
        session.answer(session.call("echo"))
    session.notify("notifications/cancelled", {"requestId": first.id})
    (subject,) = _judge(log).subjects
    (of_session,) = subject.life.sessions.values()
    assert len(of_session.scope.requests) <= 50
    # The request is not known any more, so nobody can say that there was none.
    assert judged(log, functions=False)["acme"]["cancel.own-request"] is Verdict.INCONCLUSIVE

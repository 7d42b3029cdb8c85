"""What the judge reads itself may have made room for newer messages: that is as if entries were missing.

The content of messages is kept up to a number of bytes (`Retention.content_bytes`), which these tests make small.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import pytest

from probe.judge.judge import Judge
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import Verdict
from probe.views.retention import Retention

from .checks import UNCLEAR, play
from .finality import with_gap
from .logs import HEADER, Http, Log, judge_all, judged
from .test_cancel import of_the_modern_era_beside_a_session
from .test_elicit import waits
from .test_ends import no_session_id
from .test_http_answers import Client as Answered
from .test_resume import Story as Lost
from .test_tools import Client as Caller

LITTLE = Retention(content_bytes=20_000)
INPUT = {"k": {"method": "roots/list", "params": {}}}
ASKED = {"resultType": "input_required", "requestState": "state of a round", "inputRequests": INPUT}


def _fill(client: Http) -> None:
    for _ in range(3):
        asked = client.modern("tools/call", {"name": "echo", "arguments": {"text": "x" * 9_000}})
        client.answer(asked, {"content": [], "resultType": "complete"})


def _round_of_a_forgotten_request(log: Log) -> None:
    client = log.http()
    asked = client.modern("tools/call", {"name": "ask", "arguments": {}})
    _fill(client)
    client.answer(asked, ASKED)


def _retry_of_a_forgotten_request(log: Log) -> None:
    client = log.http()
    client.answer(client.modern("tools/call", {"name": "ask", "arguments": {}}), ASKED)
    _fill(client)
    again = {"name": "ask", "arguments": {}, "requestState": "changed", "inputResponses": {"k": {"roots": []}}}
    client.answer(client.modern("tools/call", again), {"content": [], "resultType": "complete"})


def _task_of_a_forgotten_call(log: Log) -> None:
    client = log.http()
    session = client.session()
    asked = session.call("slow", task={})
    _fill(client)
    session.answer(asked, {"task": {"taskId": "t1", "status": "working", "ttl": None}})


def _list_that_is_delivered_late(log: Log) -> None:
    client = log.http()
    session = client.session()
    asked = session.request("tools/list")
    result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    emitted = client.emit({"jsonrpc": "2.0", "id": asked.id, "result": result}, asked.context, asked.seq)
    _fill(client)
    client.respond(asked)
    client.deliver(emitted, asked.context)


@pytest.mark.parametrize(
    "story",
    [
        _round_of_a_forgotten_request,
        _retry_of_a_forgotten_request,
        _task_of_a_forgotten_call,
        _list_that_is_delivered_late,
    ],
)
def test_what_has_made_room_ends_no_judge_and_accuses_nobody(story: Callable[[Log], None]) -> None:
    log = Log()
    story(log)
    assert judged(log, retention=LITTLE)["acme"].faults == {}


def test_what_waits_is_not_decided_when_a_message_has_made_room() -> None:
    log = Log()
    client = log.http()
    session = client.session()
    stream = session.get()
    session.answer(session.request("ping"))
    stream.ask("ping")
    _round_of_a_forgotten_request(log)
    log.idle(20)
    found = judged(log, retention=LITTLE)["acme"]
    assert found["ping.answered"] is Verdict.INCONCLUSIVE
    assert "entries of the log are missing" in found.remarks["ping.answered"]


def test_a_message_is_read_again_and_not_kept_parsed() -> None:
    """Parsed JSON takes many times the room of its text, so only that of the newest messages is kept."""
    log = Log()
    session = log.http().session()
    for _ in range(200):
        session.answer(session.call("echo", {"parts": [[] for _ in range(3_000)]}), {"content": []})
    judge = Judge(catalogue(), FUNCTIONS)
    judge.begin(HEADER)
    tracemalloc.start()
    try:
        judge_all(judge, log.items)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert judge.subjects
    # The text belongs to the log; parsed it is 35 MB.
    assert kept < 10_000_000


def test_a_session_that_made_room_before_its_request_was_judged() -> None:
    log = Log()
    client = log.http()
    for _ in range(6):
        client.session().call("echo")
    assert judged(log, retention=Retention(sessions=4), batch_s=60)["acme"].faults == {}


def _opens_after_large() -> Log:
    log = Log()
    play(log, "good open good good large 3 open 301", Caller(log, "http").words())
    return log


def _lists_beside_initialize() -> Log:
    """The answer to `initialize` is missing, and the server refuses the list for its session."""
    log = Log()
    no_session_id(log)
    log.items = with_gap(log.items, 5, 6)[:22]
    return log


WITNESSES: list[tuple[str, Callable[[], Log]]] = [
    ("cancel.own-request", of_the_modern_era_beside_a_session),
    ("elicit.declared-served", partial(waits, 299, answered=60)),
    ("http.both-answer-forms", lambda: Answered().acts("json ping sse ping sse 30 cancel sse 30 cancel")),
    ("http.sse-empty-data", lambda: Answered().acts("primed ping primed 30 cancel primed 30 cancel")),
    ("lifecycle.waits-for-initialize", _lists_beside_initialize),
    ("resume.comes-back", lambda: Lost().acts("cancel 1 ping 10 ping 10 ping")),
    ("tools.large-result", _opens_after_large),
]


@pytest.mark.parametrize(("rule", "story"), WITNESSES)
def test_a_witness_that_has_made_room_leaves_a_doubt(rule: str, story: Callable[[], Log]) -> None:
    large = judged(story(), over=None)["acme"]
    smalls = [judged(story(), over=None, retention=Retention(messages=few))["acme"] for few in range(4, 9)]
    for small in smalls:
        assert small.faults.items() <= large.faults.items(), small.faults
    assert UNCLEAR in [small[rule] for small in smalls]

"""What the judge reads itself may have made room for newer messages: that is as if entries were missing.

The content of messages is kept up to a number of bytes (`contents._MOST_CONTENT`), which these tests make small.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from probe.judge.judge import Judge, judge_all
from probe.judge.projection import contents
from probe.judge.rules.all import PREDICATES
from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import Verdict

from .logs import HEADER, Http, Log, judged

INPUT = {"k": {"method": "roots/list", "params": {}}}
ASKED = {"resultType": "input_required", "requestState": "state of a round", "inputRequests": INPUT}


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_MOST_CONTENT", 20_000)


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
    assert judged(log, functions=False)["acme"].faults == {}


def test_what_waits_is_not_decided_when_a_message_has_made_room() -> None:
    log = Log()
    client = log.http()
    session = client.session()
    stream = session.get()
    session.answer(session.request("ping"))
    stream.ask("ping")
    _round_of_a_forgotten_request(log)
    log.idle(20)
    found = judged(log, functions=False)["acme"]
    assert found["ping.answered"] is Verdict.INCONCLUSIVE
    assert "a message that is needed has made room for newer ones" in found.remarks["ping.answered"]


def test_a_message_is_read_again_and_not_kept_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsed JSON takes many times the room of its text, so only that of the newest messages is kept."""
    monkeypatch.undo()
    log = Log()
    session = log.http().session()
    for _ in range(200):
        session.answer(session.call("echo", {"parts": [[] for _ in range(3_000)]}), {"content": []})
    judge = Judge(catalogue(), PREDICATES)
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

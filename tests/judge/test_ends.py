"""What a client did in its last seconds: its end decides what may have been on its way, and excuses what had time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from probe.log import events
from probe.log.context import Context
from probe.log.ndjson import End, dump

from ..support.logs import load
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN
from .logs import HEADER, HttpSession, Log, judged, recorded

Story: TypeAlias = Callable[[Log], None]


def _begun(log: Log) -> HttpSession:
    log.process("started")
    session = log.http().session()
    session.client.answer(session.request("tools/list"), {"tools": []})
    log.after(30)
    return session


def no_session_id(log: Log) -> None:
    client = _begun(log).client
    asked = client.post({"jsonrpc": "2.0", "id": 50, "method": "tools/list"})
    client.refuse(asked, 400, "MISSING_SESSION")


def another_process(log: Log) -> None:
    no_session_id(log)
    log.http().session()


def _two_calls(log: Log) -> HttpSession:
    session = _begun(log)
    for _ in range(2):
        session.call("slow", _meta={"progressToken": "t"})
        log.after(0.1)
    return session


def one_token_twice(log: Log) -> None:
    _two_calls(log)


def cancelled_behind(log: Log) -> None:
    session = _begun(log)
    first = session.call("slow", _meta={"progressToken": "t"})
    session.call("slow", _meta={"progressToken": "t"})
    session.notify("notifications/cancelled", {"requestId": first.id})


def progress_for_nothing(log: Log) -> None:
    _begun(log).notify("notifications/progress", {"progressToken": "x", "progress": 1})


def progress_without_a_token(log: Log) -> None:
    _begun(log).notify("notifications/progress", {"progress": 1})


def progress_for_a_question(log: Log) -> None:
    session = _begun(log)
    session.notify("notifications/progress", {"progressToken": "x", "progress": 1})
    call = session.client.stream(session.call("ask"))
    call.ask("sampling/createMessage", {"maxTokens": 5, "_meta": {"progressToken": "x"}})


def cancelled_as_text(log: Log) -> None:
    session = _begun(log)
    session.request("tools/call", {"name": "slow"}, id=7)
    session.notify("notifications/cancelled", {"requestId": "7"})


def cancelled_before_it_came(log: Log) -> None:
    session = _begun(log)
    session.notify("notifications/cancelled", {"requestId": "late"})
    session.request("tools/call", {"name": "slow"}, id="late")


def _cut_call(log: Log, retry_ms: int) -> HttpSession:
    session = _begun(log)
    stream = session.client.stream(session.call("slow"), event_ids=True)
    stream.control("priming", "1-0", retry_ms)
    stream.close("hang-up")
    return session


def called_again(log: Log) -> None:
    session = _cut_call(log, 500)
    log.after(0.6)
    session.client.answer(session.call("slow"), {})


def called_beside(log: Log) -> None:
    session = _cut_call(log, 20_000)
    log.after(0.6)
    session.client.answer(session.call("slow"), {})


CROSSING = [
    ("http.session-header", no_session_id, FAIL),
    ("http.session-header", another_process, UNCLEAR),
    ("progress.token-unique", one_token_twice, FAIL),
    ("progress.token-unique", cancelled_behind, SILENT),
    ("progress.only-for-server-tokens", progress_for_nothing, FAIL),
    ("progress.only-for-server-tokens", progress_for_a_question, PASS),
    ("progress.only-for-server-tokens", progress_without_a_token, SILENT),
    ("cancel.own-request", cancelled_as_text, FAIL),
    ("cancel.own-request", cancelled_before_it_came, PASS),
    ("resume.no-second-call", called_again, WARN),
    ("resume.no-second-call", called_beside, UNCLEAR),
]


@pytest.mark.parametrize(("rule", "story", "verdict"), CROSSING)
def test_what_is_on_its_way_is_decided_at_the_end_of_the_client(rule: str, story: Story, verdict: Any):
    log = Log()
    story(log)
    log.after(0.3)
    log.process("exited", 0)
    found = judged(log, over=None)["acme"]
    assert found[rule] is verdict, found.remarks[rule]
    assert len(found.faults.keys() - {"session.deleted"}) <= 1
    saved = load(dump(HEADER, log.items, End(log.seq)))
    assert judged(recorded(saved.items), over=None)["acme"] == found


@pytest.mark.parametrize(("rule", "story", "verdict"), CROSSING)
def test_what_was_decided_at_the_end_is_what_waiting_decides(rule: str, story: Story, verdict: Any):
    """A client that lives on for a minute gets no worse verdict than one that ends."""
    log = Log()
    story(log)
    log.idle(60)
    lives = judged(log)["acme"]
    assert lives[rule] is verdict or verdict is UNCLEAR


@pytest.mark.parametrize(
    # nothing that may yet come excuses a second call
    ("rule", "story", "verdict"),
    [each for each in CROSSING if each[2] >= WARN and each[1] is not called_again],
)
def test_a_log_that_was_cut_off_decides_nothing(rule: str, story: Story, verdict: Any):
    log = Log()
    story(log)
    log.after(0.3)
    assert judged(log, end=False)["acme"][rule] <= PASS
    assert judged(log, over=None)["acme"][rule] <= PASS


@pytest.mark.parametrize(("rule", "story", "verdict"), [each for each in CROSSING if each[2] >= WARN])
def test_a_client_that_was_killed_may_have_had_more_to_send(rule: str, story: Story, verdict: Any):
    log = Log()
    story(log)
    log.process("killed", signal="SIGTERM")
    log.process("exited", None, signal="SIGTERM")
    found = judged(log, over=None)["acme"]
    assert found[rule] <= UNCLEAR or rule == "resume.no-second-call"
    assert found.faults.keys() <= {"resume.no-second-call"}


@pytest.mark.parametrize("by", ["client", "server"])
def test_the_end_of_the_input_is_that_of_a_client_on_standard_streams(by: str):
    log = Log()
    pipe = log.stdio().session()
    pipe.notify("notifications/progress", {"progressToken": "x", "progress": 1})
    if by == "client":
        pipe.process("end_of_input")
        pipe.close("client")
    else:
        pipe.process("SIGTERM")
        log.add(events.ServerState("stopping"))
    pipe.process("exit", 0)
    found = judged(log, over=None)["acme"]
    assert found["progress.only-for-server-tokens"] is (FAIL if by == "client" else UNCLEAR)


@pytest.mark.parametrize("held", [False, True])
def test_the_end_of_the_server_decides_where_no_connection_is_open(held: bool):
    log = Log()
    socket = Context("tcp900")
    log.add(events.SocketOpened("127.0.0.1:5000"), socket)
    progress_for_nothing(log)
    if not held:
        log.add(events.SocketClosed("client", 1), socket)
    log.after(0.5)
    log.add(events.ServerState("stopping"))
    log.add(events.ServerState("stopped"))
    found = judged(log, over=None)["acme"]
    assert found["progress.only-for-server-tokens"] is (UNCLEAR if held else FAIL)


def _pinged(log: Log) -> HttpSession:
    session = _begun(log)
    session.get().ask("ping")
    return session


def test_time_that_a_client_was_given_is_cut_by_its_end():
    log = Log()
    _pinged(log)
    log.after(1.2)
    log.process("exited", 0)
    found = judged(log, over=None)["acme"]
    assert (found["ping.answered"], found.remarks["ping.answered"]) == (UNCLEAR, ["the client ended 1.2 s after it"])
    # The server goes on for longer than an answer may take: the client had ended all the same.
    log.idle(60)
    assert judged(log, over=None)["acme"]["ping.answered"] is UNCLEAR
    assert judged(log, end=False)["acme"]["ping.answered"] is UNCLEAR


def test_an_end_outweighs_no_pass():
    log = Log()
    session = _begun(log)
    stream = session.get()
    session.reply(stream.ask("ping"))
    stream.ask("ping")
    log.process("exited", 0)
    assert judged(log, over=None)["acme"]["ping.answered"] is PASS


def test_an_ordinary_client_of_two_seconds_has_nothing_that_is_not_decided():
    log = Log()
    log.process("started")
    session = log.http().session()
    session.client.answer(session.request("tools/list"), {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
    session.client.answer(session.call("t"), {"content": []})
    session.delete()
    log.process("exited", 0)
    found = judged(log, over=None)["acme"]
    assert set(found.verdicts.values()) == {PASS, SILENT}, found.faults


@pytest.mark.parametrize("name", ["MISSING_SESSION", "INVALID_META"])
@pytest.mark.parametrize("refused", [True, False])
def test_what_comes_of_a_refused_initialize_is_no_second_finding(refused: bool, name: str):
    log = Log()
    client = log.http()
    asked = client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}})
    if refused:
        client.refuse(asked, 400, "INVALID_PARAMS")
    else:
        client.opened(asked, "2025-11-25")
        log.idle(1)
    bare = client.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    client.refuse(bare, 400, name)
    found = judged(log)["acme"].faults
    assert found.keys() == {"lifecycle.initialize-complete", *([] if refused else ["http.session-header"])}

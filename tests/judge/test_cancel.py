"""Rules `cancel.*`."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from probe.judge.verdicts import Verdict
from probe.log import events

from .finality import AT_END, AT_ONCE
from .finality import judged as judged_again
from .logs import Asked, HttpSession, Log, Pipe, expect, judged

CANCELLED = "notifications/cancelled"
REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
TASK: dict[str, Any] = {"task": {"taskId": "t1", "status": "working", "ttl": 1000, "createdAt": "x"}}


def opened(transport: str = "http", revision: str = "2025-11-25") -> tuple[Log, Any]:
    log = Log()
    clients: dict[str, Any] = {"http": log.http, "stdio": log.stdio, "websocket": log.websocket}
    return log, clients[transport]().session(revision)


def cancel(session: HttpSession | Pipe, id: Any, **more: Any) -> Asked:
    return session.notify(CANCELLED, {"requestId": id, **more})


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize(
    ("id", "verdict"), [(50, Verdict.PASS), ("50", Verdict.FAIL), (99, Verdict.WARN), ("q1", Verdict.FAIL)]
)
def test_whose_request_is_cancelled(revision: str, transport: str, id: Any, verdict: Verdict):
    log, session = opened(transport, revision)
    session.request("tools/call", {"name": "silent_call", "arguments": {}}, id=50)
    (session if isinstance(session, Pipe) else session.get()).ask("roots/list", id="q1")
    cancel(session, id)
    log.idle(3)
    # Over HTTP the request may have been lost with its connection.
    lost = verdict is Verdict.WARN and transport == "http"
    found = expect(log, "cancel.own-request", Verdict.INCONCLUSIVE if lost else verdict)
    assert any("lost on the way" in each for each in found.remarks["cancel.own-request"]) is lost


def test_a_request_can_arrive_after_its_cancellation_over_http():
    log, session = opened()
    cancel(session, 50)
    log.after(1)
    session.request("tools/call", {"name": "silent_call", "arguments": {}}, id=50)
    log.idle(3)
    expect(log, "cancel.own-request", Verdict.PASS)


def test_what_is_not_in_the_log_may_have_been_a_request():
    log, session = opened("stdio")
    log.gap()
    cancel(session, "50")
    expect(log, "cancel.own-request", Verdict.INCONCLUSIVE)
    log, session = opened("stdio")
    session.unreadable('{"jsonrpc":"2.0","id":50,')
    cancel(session, 50)
    assert judged(log)["acme"]["cancel.own-request"] is Verdict.INCONCLUSIVE
    log, session = opened("stdio")
    session.request("ping")
    expect(log, "cancel.own-request", Verdict.NOT_OBSERVED)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize(
    ("answered", "wait", "verdict"), [(False, 9, Verdict.PASS), (True, 4, Verdict.PASS), (True, 9, Verdict.WARN)]
)
def test_what_is_cancelled_still_runs(revision: str, transport: str, answered: bool, wait: float, verdict: Verdict):
    log, session = opened(transport, revision)
    asked = session.request("tools/list")
    if answered:
        session.answer(asked, {"tools": []})
    log.after(wait)
    cancel(session, asked.id)
    expect(log, "cancel.in-progress", verdict)


def test_a_cancellation_that_began_early_is_not_late():
    log, session = opened()
    asked = session.request("tools/list")
    head = session.client.request_head("POST", session.context, headers=session._headers({}), named=session.label)
    session.answer(asked, {"tools": []})
    log.after(9)
    message = {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": asked.id}}
    session.client.receive(message, head.context, head.seq)
    expect(log, "cancel.in-progress", Verdict.PASS)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize(("id", "verdict"), [(1, Verdict.FAIL), (2, Verdict.PASS)])
def test_initialize_is_not_cancelled(revision: str, transport: str, id: Any, verdict: Verdict):
    log, session = opened(transport, revision)
    assert session.request("tools/list").id == 2
    log.after(9)
    cancel(session, id)
    log.idle(3)
    expect(log, "cancel.not-initialize", verdict)


def test_the_id_of_initialize_may_be_that_of_a_request_elsewhere():
    log, _ = opened()
    other = log.http().session(id=77)
    other.request("tools/list", id=1)
    cancel(other, 1)
    expect(log, "cancel.not-initialize", Verdict.PASS)


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize(("wait", "verdict"), [(0.5, Verdict.NOT_OBSERVED), (7, Verdict.FAIL)])
def test_a_task_is_not_cancelled_as_a_request(transport: str, wait: float, verdict: Verdict):
    log, session = opened(transport)
    asked = session.answer(session.call("job", task={}), TASK)
    log.after(wait)
    cancel(session, asked.id)
    expect(log, "cancel.not-task", verdict)


def test_a_task_is_cancelled_by_its_own_request():
    log, session = opened()
    session.answer(session.call("job", task={}), TASK)
    session.request("tasks/cancel", {"taskId": "t1"})
    expect(log, "cancel.not-task", Verdict.PASS)
    log, session = opened()
    asked = session.call("job", task={})
    session.answer(asked, {"content": []})
    cancel(session, asked.id)
    expect(log, "cancel.not-task", Verdict.NOT_OBSERVED)


def cancelled_task(transport: str, named: str, wait: float) -> Log:
    """A call that became a task of the extension, and its cancellation by a notification."""
    log = Log()
    client: Any = log.http() if transport == "http" else log.stdio()
    asked = client.modern("tools/call", {"name": "job"})
    client.answer(asked, {"resultType": "task", "taskId": "t1", "status": "working"})
    log.after(wait)
    params = {"requestId": asked.id if named == "call" else "t1", "_meta": client.meta()}
    value = {"jsonrpc": "2.0", "method": CANCELLED, "params": params}
    if transport == "http":
        client.modern(CANCELLED, value=value)
    else:
        client.post(value)
    return log


@pytest.mark.parametrize("named", ["call", "task"])
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_a_task_of_the_extension_is_not_cancelled_as_a_request(named: str, transport: str):
    expect(cancelled_task(transport, named, 7), "cancel.not-task-ext", Verdict.FAIL)
    early = judged(cancelled_task(transport, named, 0.5))["acme"]
    assert early["cancel.not-task-ext"] is Verdict.NOT_OBSERVED
    assert Verdict.FAIL not in early.verdicts.values()


def test_a_task_of_the_extension_is_cancelled_by_its_own_request():
    log = Log()
    client = log.http()
    tasks = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    call = client.modern("tools/call", {"name": "job"}, capabilities=tasks)
    client.answer(call, {"resultType": "task", "taskId": "t1"})
    client.modern("tasks/cancel", {"taskId": "t1"}, capabilities=tasks)
    expect(log, "cancel.not-task-ext", Verdict.PASS)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("params", "verdict"),
    [
        ({"requestId": 50}, Verdict.PASS),
        ({"requestId": 50, "reason": "x"}, Verdict.PASS),
        ({"requestId": None}, Verdict.FAIL),
        ({"requestId": True}, Verdict.FAIL),
        ({"requestId": {}}, Verdict.FAIL),
        ({"requestId": 50.0}, Verdict.WARN),
        ({"requestId": 50, "reason": None}, Verdict.FAIL),
        ({"requestId": 50, "reason": 7}, Verdict.FAIL),
        ({}, Verdict.FAIL),
    ],
)
def test_the_form_of_a_cancellation(revision: str, params: Any, verdict: Verdict):
    log, session = opened("http", revision)
    session.request("tools/call", {"name": "silent_call", "arguments": {}}, id=50)
    session.notify(CANCELLED, params)
    if not params and revision == "2025-11-25":
        verdict = Verdict.WARN
    expect(log, "cancel.shape", verdict)


def left(session: HttpSession) -> Asked:
    """A call whose stream the client leaves before the answer."""
    asked = session.call("silent_call")
    session.client.stream(asked).close("client")
    return asked


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_client_that_hangs_up_says_that_it_cancels(revision: str):
    for says, verdict in ((False, Verdict.WARN), (True, Verdict.PASS)):
        log, session = opened("http", revision)
        asked = left(session)
        if says:
            cancel(session, asked.id)
        log.after(9)
        session.request("ping")
        log.idle(31)
        expect(log, "cancel.explicit", verdict)


def test_a_client_that_cannot_have_known_better_is_not_blamed():
    log, session = opened()
    left(session)
    log.idle(31)
    expect(log, "cancel.explicit", Verdict.INCONCLUSIVE)
    log, session = opened()
    left(session)
    log.after(9)
    session.request("ping")
    log.gap()
    log.idle(31)
    expect(log, "cancel.explicit", Verdict.INCONCLUSIVE)
    log, session = opened()
    left(session)
    log.after(9)
    session.delete()
    log.idle(31)
    expect(log, "cancel.explicit", Verdict.NOT_OBSERVED)


def test_a_session_that_the_server_ends_was_not_given_up():
    log, session = opened()
    left(session)
    log.add(events.ServerState("draining"))
    session.close("shutdown")
    log.idle(31)
    expect(log, "cancel.explicit", Verdict.INCONCLUSIVE)


def test_a_stream_of_the_draft_may_be_left_and_its_call_goes_on():
    """`stream/resume` reads it further; to hang up on that gives up no call (docs/cancellation.md)."""
    log, session = opened()
    stream = session.client.stream(session.call("silent_call"), "resumable")
    stream.close("client")
    log.after(6)
    resumed = session.request("stream/resume", {"streamId": stream.context.stream})
    resumed.context = structs.replace(resumed.context, stream=stream.context.stream)
    log.add(events.StreamResumed(0, 0), resumed.context, resumed.seq)
    session.client.respond(resumed, content_type="text/event-stream")
    session.client.leave(resumed)
    log.after(9)
    session.request("ping")
    log.idle(31)
    expect(log, "cancel.explicit", Verdict.NOT_OBSERVED)


def test_a_client_that_comes_back_for_the_stream_has_not_cancelled():
    log, session = opened()
    asked = session.call("silent_call")
    stream = session.client.stream(asked, event_ids=True)
    stream.close("client")
    log.after(1)
    session.resume(stream).tell("notifications/message", {"level": "info", "data": "x"})
    log.after(9)
    session.request("ping")
    log.idle(31)
    expect(log, "cancel.explicit", Verdict.NOT_OBSERVED)


def test_a_client_that_comes_back_for_the_stream_and_then_cancels_passes_whenever_it_is_judged():
    log, session = opened()
    asked = session.call("silent_call")
    stream = session.client.stream(asked, event_ids=True)
    stream.close("client")
    log.after(1)
    session.resume(stream)
    log.after(9)
    cancel(session, asked.id)
    log.idle(31)
    for judge in (judged_again(log.items, AT_ONCE, watched=True), judged_again(log.items, AT_END)):
        assert judge.subjects[0].tally("cancel.explicit").counts == {Verdict.PASS: 1}


def test_a_stream_that_the_server_ends_or_that_had_its_answer_was_not_left():
    for by in ("end of stream", "hang-up"):
        log, session = opened()
        session.client.stream(session.call("silent_call")).close(by)
        log.after(9)
        session.request("ping")
        log.idle(31)
        expect(log, "cancel.explicit", Verdict.NOT_OBSERVED)
    log, session = opened()
    stream = session.client.stream(session.call("silent_call"))
    stream.answer({"content": []}, delivered=False)
    stream.close("client")
    log.after(9)
    session.request("ping")
    log.idle(31)
    expect(log, "cancel.explicit", Verdict.NOT_OBSERVED)


def test_the_modern_era_cancels_by_closing_the_stream():
    log = Log()
    client = log.http()
    asked = client.modern("tools/call", {"name": "silent_call"})
    client.leave(asked)
    expect(log, "cancel.modern-closes-stream", Verdict.PASS)
    log = Log()
    client = log.http()
    asked = client.modern("tools/call", {"name": "silent_call"})
    params = {"requestId": asked.id, "_meta": client.meta()}
    client.modern(CANCELLED, value={"jsonrpc": "2.0", "method": CANCELLED, "params": params})
    expect(log, "cancel.modern-closes-stream", Verdict.WARN)
    log = Log()
    client = log.http()
    client.answer(client.modern("tools/call", {"name": "x"}), {"content": []})
    expect(log, "cancel.modern-closes-stream", Verdict.NOT_OBSERVED)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize(
    ("wait", "matched", "verdict"),
    [(4, True, Verdict.PASS), (9, True, Verdict.WARN), (9, False, Verdict.WARN), (None, True, Verdict.PASS)],
)
def test_a_withdrawn_question(revision: str, transport: str, wait: float | None, matched: bool, verdict: Verdict):
    log, session = opened(transport, revision)
    place = session if isinstance(session, Pipe) else session.get()
    question = place.ask("roots/list")
    message = {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": question.id}}
    (session.tell if isinstance(session, Pipe) else place.send)(message)
    if wait is not None:
        log.after(wait)
        session.reply(question, {"roots": []}, matched=matched)
    log.after(1)
    session.request("ping")
    log.idle(31)
    expect(log, "cancel.server-withdrawal", verdict)


def test_a_question_that_was_answered_in_time_and_one_whose_fate_is_missing():
    log, session = opened()
    session.reply(session.get().ask("roots/list"), {"roots": []})
    expect(log, "cancel.server-withdrawal", Verdict.NOT_OBSERVED)
    log, session = opened()
    stream = session.get()
    question = stream.ask("roots/list")
    stream.tell(CANCELLED, {"requestId": question.id})
    log.gap()
    session.request("ping")
    log.idle(31)
    expect(log, "cancel.server-withdrawal", Verdict.INCONCLUSIVE)


@pytest.mark.parametrize("transport", ["stdio", "websocket"])
@pytest.mark.parametrize(
    ("rule", "id", "verdict"),
    [
        ("cancel.own-request", 50, Verdict.PASS),
        ("cancel.own-request", "50", Verdict.FAIL),
        ("cancel.in-progress", 50, Verdict.PASS),
        ("cancel.in-progress", 1, Verdict.WARN),
        ("cancel.shape", None, Verdict.FAIL),
    ],
)
def test_cancellations_of_the_modern_era_on_pipes(transport: str, rule: str, id: Any, verdict: Verdict):
    log = Log()
    pipe = log.stdio() if transport == "stdio" else log.websocket()
    pipe.answer(pipe.modern("tools/list"), {"tools": []})
    pipe.modern("tools/call", {"name": "silent_call"}, id=50)
    log.after(9)
    pipe.notify(CANCELLED, {"requestId": id, "_meta": pipe.meta()})
    expect(log, rule, verdict)


def test_a_request_of_the_modern_era_is_cancelled_beside_a_session():
    log = Log()
    pipe = log.websocket()
    pipe.modern("tools/call", {"name": "silent_call"}, id=50)
    pipe.session()
    pipe.notify(CANCELLED, {"requestId": 50})
    expect(log, "cancel.own-request", Verdict.PASS)


@pytest.mark.parametrize(("own", "id"), [("50", "7"), (50, 2), ("50", "q9")])
def test_a_lost_request_may_have_had_the_id_of_something_else(own: Any, id: Any):
    log, session = opened("stdio")
    session.request("ping", id=own)
    session.request("ping", id=7)
    session.ask("roots/list", id=2)
    session.ask("roots/list", id="q9")
    cancel(session, id)
    expect(log, "cancel.own-request", Verdict.WARN)
    log, session = opened("stdio")
    # The question has its answer, so nobody can mean that.
    session.reply(session.ask("roots/list", id="q9"), {"roots": []})
    cancel(session, "q9")
    expect(log, "cancel.own-request", Verdict.WARN)

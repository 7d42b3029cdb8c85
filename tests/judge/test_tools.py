"""Rules `tools.*`."""

from __future__ import annotations

from typing import Any

import pytest

from probe.judge.verdicts import Verdict

from .logs import Http, HttpSession, Log, Pipe, expect, judged

TOOLS = {
    "tools": [
        {"name": "get_user", "inputSchema": {"type": "object"}},
        {"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
        {"name": "maybe", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
        {"name": "never", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "forbidden"}},
    ]
}
SERVER = {"tools": {}, "prompts": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
UNKNOWN = {"code": -32602, "message": "Unknown tool"}
GOOD: dict[str, Any] = {"content": [{"type": "text", "text": "yes"}]}
BAD: dict[str, Any] = {"content": [], "isError": True}
LARGE = {"content": [{"type": "text", "text": "x" * 1_000_001}]}


def listed(revision: str = "2025-11-25", transport: str = "http", **options: Any) -> tuple[Log, HttpSession | Pipe]:
    log = Log()
    clients: dict[str, Any] = {"http": log.http, "stdio": log.stdio, "websocket": log.websocket}
    session = clients[transport]().session(revision, **{"server": SERVER, **options})
    session.answer(session.request("tools/list"), TOOLS)
    return log, session


@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(
    ("name", "answer", "verdict"),
    [
        ("get_user", {"result": GOOD}, Verdict.PASS),
        ("hidden_tool", {"result": GOOD}, Verdict.PASS),
        ("Get-User", {"result": GOOD}, Verdict.PASS),
        ("Get-User", {"error": UNKNOWN}, Verdict.WARN),
        ("get user", {"error": UNKNOWN}, Verdict.WARN),
        ("drop_tables", {"error": UNKNOWN}, Verdict.INCONCLUSIVE),
    ],
)
def test_names(transport: str, revision: str, name: str, answer: dict[str, Any], verdict: Verdict):
    log, session = listed(revision, transport)
    session.answer(session.call(name), answer.get("result"), error=answer.get("error"))
    expect(log, "tools.listed-name", verdict)


def test_names_are_judged_only_where_all_lists_are_known():
    log, session = listed()
    log.gap()
    session.answer(session.call("GET_USER"), error=UNKNOWN)
    expect(log, "tools.listed-name", Verdict.INCONCLUSIVE)
    log = Log()
    session = log.http().session()
    session.answer(session.call("GET_USER"), error=UNKNOWN)
    expect(log, "tools.listed-name", Verdict.NOT_OBSERVED)


@pytest.mark.parametrize(
    ("method", "params", "verdict"),
    [
        ("tools/call", {"name": "get_user"}, Verdict.PASS),
        ("tools/call", {"name": "get_user", "arguments": {"a": None, "b": "[1]"}}, Verdict.PASS),
        ("tools/call", {"name": "get_user", "arguments": None}, Verdict.FAIL),
        ("tools/call", {"name": "get_user", "arguments": []}, Verdict.FAIL),
        ("tools/call", {"name": "get_user", "arguments": 1}, Verdict.FAIL),
        ("tools/call", {"name": "get_user", "arguments": '{"a":1}'}, Verdict.FAIL),
        ("prompts/list", {}, Verdict.NOT_OBSERVED),
    ],
)
def test_arguments(method: str, params: dict[str, Any], verdict: Verdict):
    log, session = listed()
    session.request(method, params)
    expect(log, "tools.arguments-object", verdict)


def test_hidden_arguments_are_judged_by_their_types():
    for kind, verdict in (("string", Verdict.PASS), ("number", Verdict.FAIL)):
        log, session = listed()
        hidden = {"hidden": (("/params/arguments/token", kind),)}
        assert isinstance(session, HttpSession)
        session.request("prompts/get", {"name": "p", "arguments": {"token": "[redacted]"}}, message=hidden)
        expect(log, "jsonrpc.wire-schema", verdict)


@pytest.mark.parametrize(("arguments", "verdict"), [({"a": "1"}, Verdict.PASS), ({"a": 1}, Verdict.FAIL)])
def test_arguments_of_a_prompt_are_a_matter_of_its_schema(arguments: dict[str, Any], verdict: Verdict):
    log, session = listed()
    session.request("prompts/get", {"name": "p", "arguments": arguments})
    found = expect(log, "jsonrpc.wire-schema", verdict)
    assert any("GetPromptRequest" in each for each in found.remarks["jsonrpc.wire-schema"]) is (verdict is Verdict.FAIL)


@pytest.mark.parametrize(
    ("rule", "name", "params", "verdict"),
    [
        ("tools.task-required", "job", {"task": {}}, Verdict.PASS),
        ("tools.task-required", "job", {}, Verdict.FAIL),
        ("tools.task-required", "maybe", {}, Verdict.NOT_OBSERVED),
        ("tools.task-forbidden", "maybe", {"task": {}}, Verdict.PASS),
        ("tools.task-forbidden", "never", {"task": {}}, Verdict.FAIL),
        ("tools.task-forbidden", "get_user", {"task": {"ttl": 5}}, Verdict.FAIL),
        ("tools.task-forbidden", "other", {"task": {}}, Verdict.INCONCLUSIVE),
        ("tools.task-forbidden", "get_user", {}, Verdict.NOT_OBSERVED),
    ],
)
def test_calls_as_tasks(rule: str, name: str, params: dict[str, Any], verdict: Verdict):
    log, session = listed()
    session.call(name, **params)
    expect(log, rule, verdict)


def test_null_in_place_of_a_task_is_a_matter_of_the_schema():
    log, session = listed()
    session.call("get_user", task=None)
    assert judged(log)["acme"].faults == {"jsonrpc.wire-schema": Verdict.FAIL}


def test_calls_as_tasks_are_judged_by_the_list_of_the_session():
    log, _ = listed()
    other = log.http().session(server=SERVER)
    other.call("job")
    expect(log, "tools.task-required", Verdict.NOT_OBSERVED)
    log, session = listed("2025-06-18")
    session.call("job")
    expect(log, "tools.task-required", Verdict.NOT_OBSERVED)
    log, session = listed(server={"tools": {}})
    session.call("job")
    expect(log, "tools.task-required", Verdict.NOT_OBSERVED)


@pytest.mark.parametrize(("wait", "verdict"), [(1, Verdict.INCONCLUSIVE), (10, Verdict.FAIL)])
def test_a_call_just_after_list_changed_may_know_another_list(wait: float, verdict: Verdict):
    log, session = listed()
    assert isinstance(session, HttpSession)
    session.get().tell("notifications/tools/list_changed")
    log.after(wait)
    session.call("never", task={})
    expect(log, "tools.task-forbidden", verdict)


def ended(log: Log, client: Http, *results: dict[str, Any], end: float = 0.5) -> None:
    """A session with some results, and its end so long after the last one."""
    session = client.session()
    for result in results:
        session.answer(session.call("get_user"), result)
        log.after(0.1)
    log.after(end)
    session.delete()


@pytest.mark.parametrize(
    ("sessions", "verdict"),
    [
        ([(GOOD, GOOD, BAD), (GOOD, GOOD, BAD)], Verdict.WARN),
        ([(GOOD, GOOD, BAD)], Verdict.INCONCLUSIVE),
        ([(BAD, GOOD)], Verdict.PASS),
        # One-shot: it ends after each call.
        ([(GOOD,), (BAD,), (BAD,)], Verdict.INCONCLUSIVE),
        ([(BAD,), (BAD,)], Verdict.INCONCLUSIVE),
        ([(GOOD, GOOD)], Verdict.NOT_OBSERVED),
    ],
)
def test_ends_after_errors(sessions: list[tuple[dict[str, Any], ...]], verdict: Verdict):
    log = Log()
    client = log.http()
    for results in sessions:
        ended(log, client, *results)
    expect(log, "tools.error-survived", verdict)


def test_a_list_after_a_good_result_to_check_it_is_no_further_call():
    log = Log()
    client = log.http()
    for result in (GOOD, GOOD, BAD, BAD):
        session = client.session()
        session.answer(session.call("get_user"), result)
        if result is GOOD:
            session.answer(session.request("tools/list"), {"tools": []})
        log.after(0.5)
        session.delete()
    expect(log, "tools.error-survived", Verdict.INCONCLUSIVE)


def test_an_end_long_after_an_error_and_one_in_a_gap_are_no_fault():
    log = Log()
    client = log.http()
    for _ in range(3):
        ended(log, client, GOOD, GOOD, BAD, end=10)
    expect(log, "tools.error-survived", Verdict.NOT_OBSERVED)
    log = Log()
    pipe = log.stdio().session()
    pipe.answer(pipe.call("get_user"), BAD)
    log.gap()
    pipe.close()
    expect(log, "tools.error-survived", Verdict.NOT_OBSERVED)


def test_a_protocol_error_is_survived_on_a_pipe():
    log = Log()
    pipe = log.stdio().session()
    pipe.answer(pipe.call("get_user"), error={"code": -32603, "message": "no"})
    pipe.request("ping")
    expect(log, "tools.error-survived", Verdict.PASS)


def test_a_large_result_that_was_read():
    log, session = listed()
    session.answer(session.call("get_user"), LARGE)
    session.request("ping")
    expect(log, "tools.large-result", Verdict.PASS)
    log, session = listed()
    session.answer(session.call("get_user"), GOOD)
    session.request("ping")
    expect(log, "tools.large-result", Verdict.NOT_OBSERVED)


@pytest.mark.parametrize("cancels", [False, True])
def test_a_large_result_that_was_cut_off(cancels: bool):
    log, session = listed()
    assert isinstance(session, HttpSession)
    asked = session.call("get_user")
    stream = session.client.stream(asked)
    stream.answer(LARGE, delivered=False)
    stream.close("client")
    if cancels:
        session.notify("notifications/cancelled", {"requestId": asked.id})
    log.idle(31)
    expect(log, "tools.large-result", Verdict.INCONCLUSIVE if cancels else Verdict.WARN)


def test_a_large_result_that_was_read_later_and_one_that_a_gap_follows():
    log, session = listed()
    assert isinstance(session, HttpSession)
    stream = session.client.stream(session.call("get_user"), event_ids=True)
    sent = stream.answer(LARGE, delivered=False)
    stream.close("client")
    log.after(1)
    stream.deliver(sent.seq, 1)
    log.idle(31)
    expect(log, "tools.large-result", Verdict.NOT_OBSERVED)
    log, session = listed(transport="stdio")
    session.answer(session.call("get_user"), LARGE, delivered=False)  # type: ignore[call-arg]
    session.close()
    log.gap()
    log.idle(31)
    expect(log, "tools.large-result", Verdict.INCONCLUSIVE)


def test_closing_is_how_the_modern_era_cancels():
    log = Log()
    client = log.http()
    stream = client.stream(client.modern("tools/call", {"name": "get_user"}))
    stream.answer(LARGE, delivered=False)
    stream.close("client")
    log.idle(31)
    expect(log, "tools.large-result", Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("before", "verdict"), [((GOOD, GOOD), Verdict.WARN), ((), Verdict.INCONCLUSIVE), (None, Verdict.INCONCLUSIVE)]
)
def test_a_client_that_begins_anew_after_a_large_result(before: Any, verdict: Verdict):
    log = Log()
    client = log.http()
    if before is None:
        # It begins a session for each call, whatever came of the last.
        session = client.session()
        session.answer(session.call("get_user"), GOOD)
    session = client.session()
    for result in before or ():
        session.answer(session.call("get_user"), result)
    session.answer(session.call("get_user"), LARGE)
    log.after(3)
    client.session()
    log.idle(301)
    expect(log, "tools.large-result", verdict)


def test_a_second_window_is_no_new_beginning():
    log = Log()
    client = log.http()
    session = client.session()
    session.answer(session.call("get_user"), GOOD)
    session.answer(session.call("get_user"), LARGE)
    client.session()
    log.after(200)
    session.request("ping")
    log.idle(301)
    expect(log, "tools.large-result", Verdict.PASS)

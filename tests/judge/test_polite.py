"""Rules `polite.*`."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from probe.judge.verdicts import Verdict
from probe.log import events

from .logs import Log, Pipe, expect, judged

REFUSED = "polite.refused-not-hammered"
RECONNECTS = "polite.reconnect-rate"
LISTS = "polite.no-list-polling"
DEBOUNCED = "polite.completion-debounced"
RATE = "polite.call-rate"
REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]


def refused(times: int, every: float, status: int = 404, *, same: bool = True, name: str = "UNKNOWN_SESSION") -> Log:
    log = Log()
    session = log.http().session()
    for number in range(times):
        asked = session.call("t", {} if same else {"n": number})
        session.client.refuse(asked, status, name)
        log.after(every)
    log.idle(61)
    return log


@pytest.mark.parametrize("status", [400, 404, 405, 406, 413, 415])
@pytest.mark.parametrize(
    ("times", "every", "same", "verdict"),
    [
        (1, 0, True, Verdict.PASS),
        (5, 2, True, Verdict.PASS),
        (15, 2, True, Verdict.INCONCLUSIVE),
        (21, 2, True, Verdict.WARN),
        (21, 20, True, Verdict.PASS),
        (40, 1, False, Verdict.PASS),
    ],
)
def test_what_was_refused_for_good(status: int, times: int, every: float, same: bool, verdict: Verdict):
    expect(refused(times, every, status, same=same), REFUSED, verdict)


def test_what_was_refused_for_a_while_and_what_was_not():
    expect(refused(40, 1, 503, name="BUSY"), REFUSED, Verdict.NOT_OBSERVED)
    expect(refused(40, 1, 429, name="TOO_MANY_REQUESTS"), REFUSED, Verdict.NOT_OBSERVED)
    expect(refused(0, 1), REFUSED, Verdict.NOT_OBSERVED)


def test_hidden_requests_may_differ_and_a_gap_leaves_refusals_open():
    log = Log()
    session = log.http().session()
    for _ in range(30):
        hidden = {"hidden": (("/params/arguments/token", "string"),)}
        asked = session.request("tools/call", {"name": "t", "arguments": {"token": "[redacted]"}}, message=hidden)
        session.client.refuse(asked, 400, "INVALID_REQUEST")
    assert judged(log)["acme"][REFUSED] is Verdict.NOT_OBSERVED
    log = Log()
    session = log.http().session()
    session.client.refuse(session.call("t"), 404, "UNKNOWN_SESSION")
    log.gap()
    log.idle(61)
    expect(log, REFUSED, Verdict.INCONCLUSIVE)


def reconnects(gaps: list[float], status: int = 502, label: str | None = "acme", *, retry: bool = False) -> Log:
    """GETs that fail, or streams that are closed after a `retry`, so long after one another."""
    log = Log()
    session = log.http(label).session()
    for gap in gaps:
        if retry:
            stream = session.get()
            stream.control("retry", "1-0", 500)
            stream.close("hang-up")
        else:
            head = session.client.request_head(
                "GET", session.context, headers=session._headers({}), named=session.label
            )
            session.client.respond(head, status)
        log.after(gap)
    return log


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        (reconnects([0.1] * 35), Verdict.WARN),
        (reconnects([2.0] * 35), Verdict.PASS),
        (reconnects([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4]), Verdict.PASS),
        (reconnects([0.1] * 4), Verdict.NOT_OBSERVED),
        # The server has said when to come back.
        (reconnects([0.5] * 70, retry=True), Verdict.NOT_OBSERVED),
        (reconnects([0.1] * 35, 503), Verdict.NOT_OBSERVED),
        (reconnects([0.1] * 35, 429), Verdict.NOT_OBSERVED),
    ],
)
def test_reconnects(log: Log, verdict: Verdict):
    expect(log, RECONNECTS, verdict)


def test_several_clients_may_reconnect_together():
    log = reconnects([0.1] * 20)
    log.http(name="other").session()
    session = log.http().session()
    for _ in range(40):
        head = session.client.request_head("GET", session.context, headers=session._headers({}), named=session.label)
        session.client.respond(head, 502)
    expect(log, RECONNECTS, Verdict.INCONCLUSIVE)


def test_new_connections_that_work_are_no_failures():
    log = Log()
    for _ in range(40):
        pipe = log.websocket().session()
        pipe.close()
    expect(log, RECONNECTS, Verdict.NOT_OBSERVED)
    log = Log()
    for _ in range(40):
        Pipe.close(log.websocket())
    expect(log, RECONNECTS, Verdict.WARN)
    log = Log()
    for number in range(40):
        Pipe.close(log.websocket())
        if number == 20:
            log.gap()
    expect(log, RECONNECTS, Verdict.NOT_OBSERVED)


def lists(times: int, every: float, between: str = "", revision: str = "2025-11-25", transport: str = "http") -> Log:
    log = Log()
    clients: dict[str, Any] = {"http": log.http, "stdio": log.stdio, "websocket": log.websocket}
    session = clients[transport]().session(revision)
    for number in range(times):
        if between == "call":
            session.call("t")
        elif between == "change":
            session.get().tell("notifications/tools/list_changed")
        elif between == "session":
            session = log.http().session()
        elif between == "gap":
            log.gap()
        session.request("tools/list", {"cursor": f"c{number}"} if between == "pages" else {})
        log.after(every)
    log.idle(61)
    return log


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize(
    ("times", "every", "verdict"),
    [
        (2, 1, Verdict.NOT_OBSERVED),
        (5, 10, Verdict.PASS),
        (20, 2, Verdict.INCONCLUSIVE),
        (31, 1, Verdict.WARN),
    ],
)
def test_lists(revision: str, transport: str, times: int, every: float, verdict: Verdict):
    expect(lists(times, every, "", revision, transport), LISTS, verdict)


@pytest.mark.parametrize("between", ["call", "change", "session", "gap"])
def test_reasons_to_list_again(between: str):
    expect(lists(40, 1, between), LISTS, Verdict.NOT_OBSERVED)


def test_pages_are_no_repeats():
    from .logs import judged

    assert judged(lists(40, 1, "pages"))["acme"][LISTS] is Verdict.NOT_OBSERVED


def typed(keys: int, every: float, *, revision: str = "2025-11-25", grows: bool = True, gap: bool = False) -> Log:
    log = Log()
    session = log.http().session(revision)
    for number in range(keys):
        if gap and number == keys // 2:
            log.gap()
        value = "1234567890123456789012345"[: number + 1] if grows else str(number % 3)
        argument = {"name": "year", "value": value}
        session.request("completion/complete", {"ref": {"type": "ref/prompt", "name": "h"}, "argument": argument})
        log.after(every)
    return log


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("keys", "every", "grows", "verdict"),
    [
        (12, 0.02, True, Verdict.WARN),
        (12, 0.2, True, Verdict.PASS),
        (4, 0.02, True, Verdict.NOT_OBSERVED),
        (8, 0.02, True, Verdict.NOT_OBSERVED),
        (12, 0.02, False, Verdict.PASS),
    ],
)
def test_completions(revision: str, keys: int, every: float, grows: bool, verdict: Verdict):
    expect(typed(keys, every, revision=revision, grows=grows), DEBOUNCED, verdict)


def requests(count: int, seconds: float) -> Log:
    log = Log()
    session = log.http().session()
    pipe_like = session.context
    for _ in range(count):
        params = {"name": "simple_tool", "arguments": {}}
        message = {"jsonrpc": "2.0", "id": session.client.new_id(), "method": "tools/call", "params": params}
        session.client.receive(message, structs.replace(pipe_like, label="acme"), 1)
        log.now += seconds / count - 0.001
    log.after(11)
    session.request("ping")
    return log


@pytest.mark.parametrize(
    ("count", "seconds", "verdict"),
    [
        (5, 1, Verdict.NOT_OBSERVED),
        (100, 10, Verdict.PASS),
        (900, 9, Verdict.INCONCLUSIVE),
        (5_100, 9, Verdict.WARN),
    ],
)
def test_rates(count: int, seconds: float, verdict: Verdict):
    expect(requests(count, seconds), RATE, verdict)


def test_a_limit_of_the_server_suspends_what_is_measured():
    log = Log()
    session = log.http().session()
    for _ in range(4):
        session.request("tools/list")
    log.add(events.LimitReached("session_requests", 1), structs.replace(session.context, label="acme"))
    log.idle(61)
    expect(log, LISTS, Verdict.NOT_OBSERVED)

"""Rules `polite.*`."""

from __future__ import annotations

from typing import Any, Final

from msgspec import structs

from probe.judge.verdicts import Verdict
from probe.log import events

from ..support.rows import each
from .checks import PASS, SILENT, UNCLEAR, WARN, WAYS, Way, check, opened
from .logs import Log, judged

REFUSED: Final = "polite.refused-not-hammered"
RECONNECTS: Final = "polite.reconnect-rate"
LISTS: Final = "polite.no-list-polling"
FOR_GOOD: Final = (400, 404, 405, 406, 413, 415)


def refused(log: Log, times: int, every: float, status: int = 404, **options: Any) -> None:
    """Calls that are refused, so many seconds after one another. Options: `same`, `hidden`."""
    session = log.http().session()
    message = {"hidden": (("/params/arguments/n", "number"),)} if options.get("hidden") else {}
    for number in range(times):
        arguments = {} if options.get("same", True) else {"n": number}
        asked = session.request("tools/call", {"name": "t", "arguments": arguments}, message=message)
        session.client.refuse(asked, status, "UNKNOWN_SESSION" if status < 429 else "BUSY")
        log.after(every)


@each("status", FOR_GOOD)
@each(
    "times, every, same, verdict",
    [
        (1, 0, True, PASS),
        (5, 2, True, PASS),
        (6, 2, True, UNCLEAR),
        (15, 2, True, UNCLEAR),
        (21, 2, True, WARN),
        (21, 20, True, PASS),
        (40, 1, False, PASS),
    ],
)
def test_what_was_refused_for_good(status: int, times: int, every: float, same: bool, verdict: Verdict) -> None:
    log = Log()
    refused(log, times, every, status, same=same)
    log.idle(61)
    check(log, REFUSED, verdict)


@each(
    "times, status, gap, hidden, verdict",
    [
        (0, 404, False, False, SILENT),
        (40, 503, False, False, SILENT),
        (40, 429, False, False, SILENT),
        # What is hidden may differ.
        (30, 400, False, True, SILENT),
        (1, 404, True, False, UNCLEAR),
    ],
)
def test_what_was_not_and_what_is_not_known(times: int, status: int, gap: bool, hidden: bool, verdict: Verdict) -> None:
    log = Log()
    refused(log, times, 1, status, hidden=hidden)
    if gap:
        log.gap()
    log.idle(61)
    check(log, REFUSED, verdict)


def reconnects(log: Log, gaps: list[float], status: int | str = 502, name: str = "acme") -> None:
    """GETs that fail with a status, so long after one another; or streams that are closed after a control event."""
    session = log.http(name=name).session()
    for gap in gaps:
        if isinstance(status, str):
            stream = session.get()
            stream.control(status, "1-0", 500 if status == "retry" else None)
            stream.close("hang-up")
        else:
            headers = session._headers({})
            head = session.client.request_head("GET", session.context, headers=headers, named=session.label)
            session.client.respond(head, status)
        log.after(gap)


@each(
    "gaps, status, verdict",
    [
        ([0.1] * 35, 502, WARN),
        ([2.0] * 35, 502, PASS),
        ([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4], 502, PASS),
        ([0.1] * 4, 502, SILENT),
        # The server has said when to come back, or why not to come.
        ([0.5] * 70, "retry", SILENT),
        ([0.1] * 35, "priming", WARN),
        ([2.0] * 20, 405, SILENT),
        ([0.1] * 35, 503, SILENT),
        ([0.1] * 35, 429, SILENT),
    ],
)
def test_reconnects(gaps: list[float], status: int | str, verdict: Verdict) -> None:
    log = Log()
    reconnects(log, gaps, status)
    check(log, RECONNECTS, verdict)


def test_several_clients_may_reconnect_together() -> None:
    log = Log()
    reconnects(log, [0.1] * 20)
    reconnects(log, [0.1] * 40, name="other")
    check(log, RECONNECTS, UNCLEAR)


def test_an_attempt_beside_another_is_no_success() -> None:
    log = Log()
    session = log.http().session()
    for _ in range(6):
        first, second = (
            session.client.request_head("GET", session.context, headers=session._headers({}), named=session.label)
            for _ in range(2)
        )
        for head in (first, second):
            session.client.respond(head, 502)
        log.after(2)
    check(log, RECONNECTS, PASS)


@each("works, gap, verdict", [(True, False, SILENT), (False, False, WARN), (False, True, SILENT)])
def test_new_connections(works: bool, gap: bool, verdict: Verdict) -> None:
    log = Log()
    for number in range(40):
        pipe = log.websocket()
        if works:
            pipe.session()
        pipe.close()
        if gap and number == 20:
            log.gap()
    check(log, RECONNECTS, verdict)


def lists(log: Log, times: int, every: float, between: str = "", way: Way = WAYS[0]) -> None:
    """Requests for a list, so long after one another, with something between them."""
    session = opened(log, way)
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


@each("way", WAYS)
@each(
    "times, every, verdict",
    [(2, 1, SILENT), (3, 1, PASS), (6, 9, PASS), (7, 8, UNCLEAR), (30, 1, UNCLEAR), (31, 1, WARN)],
)
def test_lists(way: Way, times: int, every: float, verdict: Verdict) -> None:
    log = Log()
    lists(log, times, every, way=way)
    log.idle(61)
    check(log, LISTS, verdict)


@each("between", ["call", "change", "session", "gap"])
@each("kept", [None, 20])
def test_reasons_to_list_again(between: str, kept: int | None) -> None:
    log = Log()
    lists(log, 100, 1, between)
    log.idle(61)
    check(log, LISTS, SILENT, kept=kept)


def test_in_the_modern_era_the_answers_say_how_long_they_may_be_kept() -> None:
    log = Log()
    client = log.stdio()
    for _ in range(40):
        client.answer(client.modern("tools/list"), {"tools": [], "ttlMs": 0})
        log.after(0.5)
    log.idle(61)
    assert judged(log)["acme"][LISTS] is SILENT


def test_a_minute_that_was_not_seen_whole_is_no_opportunity() -> None:
    log = Log()
    lists(log, 4, 1)
    check(log, LISTS, SILENT)
    log.add(events.LimitReached("session_requests", 1), structs.replace(log.items[-1].context, label="acme"))  # type: ignore[union-attr]
    log.idle(61)
    check(log, LISTS, SILENT)


@each(
    "keys, every, grows, verdict",
    [
        (12, 0.02, True, WARN),
        (10, 0.02, True, WARN),
        (9, 0.02, True, SILENT),
        (5, 0.2, True, PASS),
        (4, 0.02, True, SILENT),
        (12, 0.02, False, PASS),
    ],
)
@each("way", WAYS)
def test_completions(way: Way, keys: int, every: float, grows: bool, verdict: Verdict) -> None:
    log = Log()
    session = opened(log, way)
    for number in range(keys):
        value = "1234567890123"[: number + 1] if grows else str(number % 3)
        argument = {"name": "year", "value": value}
        session.request("completion/complete", {"ref": {"type": "ref/prompt", "name": "h"}, "argument": argument})
        log.after(every)
    check(log, "polite.completion-debounced", verdict)


@each(
    "count, seconds, verdict",
    [(7, 1, SILENT), (8, 1, PASS), (499, 9, PASS), (500, 9, UNCLEAR), (4_999, 9, UNCLEAR), (5_000, 9, WARN)],
)
def test_rates(count: int, seconds: float, verdict: Verdict) -> None:
    log = Log()
    session = log.http().session()
    context = structs.replace(session.context, label="acme")
    for _ in range(count):
        params = {"name": "simple_tool", "arguments": {}}
        message = {"jsonrpc": "2.0", "id": session.client.new_id(), "method": "tools/call", "params": params}
        session.client.receive(message, context, 1)
        log.now += seconds / count - 0.001
    log.after(11)
    session.request("ping")
    check(log, "polite.call-rate", verdict)

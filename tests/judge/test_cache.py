"""Rules `cache.*`."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from probe.judge.verdicts import Verdict

from .logs import Asked, Http, Log, Pipe, expect

KEPT = "cache.fresh-kept"
POLLS = "cache.no-ttl-polling"
JITTER = "cache.jitter"


def fetch(client: Any, method: str = "tools/list", ttl_ms: int = 60_000, **params: Any) -> None:
    asked = client.modern(method, params)
    client.answer(asked, {"tools": [], "ttlMs": ttl_ms, "cacheScope": "public", "resultType": "complete"})


def same_connection(client: Http) -> Http:
    """A client whose requests use one connection."""

    def head(method: str, *given: Any, **options: Any) -> Asked:
        asked = Http.request_head(client, method, *given, **options)
        entry = client.log.items[-1]
        client.log.items[-1] = structs.replace(entry, context=structs.replace(entry.context, connection="tcp1"))  # type: ignore[union-attr]
        asked.context = structs.replace(asked.context, connection="tcp1")
        return asked

    client.request_head = head  # type: ignore[method-assign]
    return client


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize(
    ("repeats", "ttl_ms", "verdict"),
    [
        (0, 60_000, Verdict.NOT_OBSERVED),
        (2, 60_000, Verdict.PASS),
        (5, 60_000, Verdict.INCONCLUSIVE),
        (6, 60_000, Verdict.WARN),
        (9, 5_000, Verdict.NOT_OBSERVED),
        (9, 0, Verdict.NOT_OBSERVED),
    ],
)
def test_a_fresh_list(transport: str, repeats: int, ttl_ms: int, verdict: Verdict):
    log = Log()
    client: Any = same_connection(log.http()) if transport == "http" else log.stdio()
    for number in range(repeats + 1):
        fetch(client, ttl_ms=ttl_ms)
        log.after(1 + number / 4)
    log.idle(70)
    expect(log, KEPT, verdict)


@pytest.mark.parametrize(
    "between", ["list_changed", "error", "process", "discover", "connection", "params", "ttl", "label", "gap"]
)
def test_reasons_to_ask_again(between: str):
    log = Log()
    client: Any = log.stdio(None if between == "label" else "acme")
    if between in ("connection", "label"):
        client = log.http(None if between == "label" else "acme")
        client = same_connection(client) if between == "label" else client
    for number in range(9):
        if between == "list_changed":
            client.tell({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        elif between == "error":
            client.answer(client.modern("tools/call", {"name": "t"}), error={"code": -32602, "message": "no"})
        elif between == "process":
            client.close()
            client = log.stdio()
        elif between == "discover":
            fetch(client, "server/discover", 0)
        elif between == "gap":
            log.gap()
        fetch(client, **({"cursor": f"c{number}"} if between == "params" else {}))
        log.after(61 if between == "ttl" else 2 + number / 4)
    log.idle(70)
    found = expect_kept(log, "m1" if between == "label" else "acme")
    assert found <= (Verdict.INCONCLUSIVE if between == "label" else Verdict.NOT_OBSERVED)


def expect_kept(log: Log, label: str) -> Verdict:
    from .logs import judged

    return judged(log)[label][KEPT]


def poll(gaps: list[float], between: bool = False, ttl_ms: int = 60_000) -> Log:
    log = Log()
    client: Pipe = log.stdio()
    for gap in gaps:
        fetch(client, ttl_ms=ttl_ms)
        log.after(gap)
        if between:
            client.modern("tools/call", {"name": "t"})
    fetch(client, ttl_ms=ttl_ms)
    return log


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        (poll([60.2, 61.8, 60.4, 61.5, 60.1]), Verdict.WARN),
        (poll([60.2, 61.8, 60.4, 61.5]), Verdict.NOT_OBSERVED),
        (poll([60.2, 61.8, 60.4, 61.5, 90, 60.1]), Verdict.PASS),
        (poll([60.2, 61.8, 60.4, 61.5, 60.1, 61], between=True), Verdict.PASS),
        (poll([60.2, 61.8, 60.4, 61.5, 60.1], ttl_ms=0), Verdict.NOT_OBSERVED),
        (poll([5]), Verdict.NOT_OBSERVED),
    ],
)
def test_fetches_at_the_end_of_each_ttl(log: Log, verdict: Verdict):
    expect(log, POLLS, verdict)


def test_a_gap_breaks_the_row():
    log = poll([60.2, 61.8, 60.4])
    log.gap()
    log.after(61)
    client = log.stdio()
    for gap in (60.3, 61.2, 60.9):
        fetch(client)
        log.after(gap)
    expect(log, POLLS, Verdict.NOT_OBSERVED)


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        (poll([90.0] * 10), Verdict.WARN),
        (poll([90.0] * 9), Verdict.NOT_OBSERVED),
        (poll([90.0, 99.0] * 5), Verdict.PASS),
        (poll([90.0, 92.0] * 5), Verdict.INCONCLUSIVE),
        (poll([90.0] * 10, between=True), Verdict.NOT_OBSERVED),
    ],
)
def test_polls_without_jitter(log: Log, verdict: Verdict):
    expect(log, JITTER, verdict)


def test_a_gap_ends_the_series():
    log = poll([90.0] * 8)
    log.gap()
    client = log.stdio()
    for _ in range(8):
        fetch(client)
        log.after(90)
    expect(log, JITTER, Verdict.NOT_OBSERVED)

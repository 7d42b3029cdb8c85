"""Rules `cache.*`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from probe.judge.verdicts import Verdict
from probe.log.context import Context
from probe.log.events import LimitReached

from ..support.rows import each
from .checks import PASS, SILENT, UNCLEAR, WARN, check
from .logs import Asked, Log, Pipe, judged

DAY_S: Final = 24 * 3600


def fetch(client: Any, method: str = "tools/list", ttl_s: float = 60, **options: Any) -> Asked:
    """A request for a list, and its answer."""
    asked: Asked = client.modern(method, options.pop("params", {}), **options)
    client.answer(asked, {"tools": [], "ttlMs": int(ttl_s * 1000), "cacheScope": "public", "resultType": "complete"})
    return asked


@each("transport", ["http", "stdio", "websocket"])
@each(
    "repeats, ttl_s, verdict",
    [
        (0, 60, SILENT),
        (2, 60, PASS),
        (3, 60, UNCLEAR),
        (5, 60, UNCLEAR),
        (6, 60, WARN),
        (6, 10, WARN),
        # What may be kept for so short a time is no reason to keep anything.
        (9, 9.9, SILENT),
        (9, 0, SILENT),
    ],
)
def test_a_fresh_list(transport: str, repeats: int, ttl_s: float, verdict: Verdict) -> None:
    log = Log()
    client = getattr(log, transport)()
    options = {"connection": "tcp1"} if transport == "http" else {}
    for number in range(repeats + 1):
        fetch(client, ttl_s=ttl_s, **options)
        log.after(1 + number / 4)
    log.idle(70)
    check(log, "cache.fresh-kept", verdict)


def changes(client: Any) -> None:
    client.tell({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


def fails(client: Any) -> None:
    client.answer(client.modern("tools/call", {"name": "t"}), error={"code": -32602, "message": "no"})


REASONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "a list changed": changes,
    "an error": fails,
    "a new discovery": lambda client: fetch(client, "server/discover", 0),
    "a new session": lambda client: client.log.http().session(),
    "a new connection": lambda client: client.log.websocket(),
    "a gap": lambda client: client.log.gap(),
    "a limit": lambda client: client.log.add(LimitReached("x", 1), Context(label="acme")),
    "another page": lambda client: None,
    "the end of the ttl": lambda client: client.log.after(62),
    "another process": lambda client: None,
    "nothing": lambda client: None,
}


@each("reason, happens", REASONS.items())
@each("transport", ["http", "websocket"])
def test_reasons_to_ask_again(reason: str, happens: Callable[[Any], Any], transport: str) -> None:
    log = Log()
    client = getattr(log, transport)()
    for number in range(9):
        if transport == "http" and reason == "a list changed":
            return  # it is told on a stream, as `test_listen.py` has it
        if transport == "websocket" and reason == "another process":
            client.close(code=1000)
            client = log.websocket()
        connection = f"tcp{number}" if reason == "another process" else "tcp1"
        options = {"connection": connection} if transport == "http" else {}
        happens(client)
        fetch(client, params={"cursor": f"c{number}"} if reason == "another page" else {}, **options)
        log.after(1 + number / 4)
    found = judged(log)["acme"]
    assert found["cache.fresh-kept"] is (WARN if reason == "nothing" else SILENT), found.remarks["cache.fresh-kept"]


def test_where_nothing_says_that_it_is_one_client_it_may_be_many() -> None:
    log = Log()
    client = log.http(None)
    for number in range(9):
        fetch(client, connection="tcp1")
        log.after(1 + number / 4)
    check(log, "cache.fresh-kept", UNCLEAR, "m1")


def test_nothing_is_kept_for_longer_than_a_day() -> None:
    """SDKs cap a lifetime at 24 hours: until then they need not ask, and after that they may."""
    log = Log()
    client = log.stdio()
    for _ in range(8):
        fetch(client, ttl_s=30 * DAY_S)
        for _ in range(3):
            client.answer(client.modern("tools/call", {"name": "t"}), {"content": []})
            log.idle(DAY_S / 3 + 1)
    check(log, "cache.fresh-kept", SILENT)


def poll(gaps: list[float], between: str = "", ttl_s: float = 60) -> Log:
    """Fetches with so many seconds between them; with a call or a gap of the log between two of them."""
    log = Log()
    client: Pipe = log.stdio()
    for number, gap in enumerate(gaps):
        fetch(client, "prompts/list" if between == "alternate" and number % 2 else "tools/list", ttl_s=ttl_s)
        log.after(gap)
        if between == "call":
            client.modern("tools/call", {"name": "t"})
        elif between == "other":
            fetch(client, "prompts/list")
        elif between == "gap" and number == len(gaps) // 2:
            log.gap()
    fetch(client, ttl_s=ttl_s)
    return log


@each(
    "gaps, between, ttl_s, verdict",
    [
        ([60.2, 61.8, 60.4, 61.5, 60.1], "", 60, WARN),
        ([60.2, 61.8, 60.4, 61.5], "", 60, SILENT),
        ([60.2, 61.8, 60.4, 61.5, 90, 60.1], "", 60, PASS),
        ([60.2, 61.8, 60.4, 61.5, 60.1, 61], "call", 60, PASS),
        ([60.2, 61.8, 60.4, 61.5, 60.1, 61], "other", 60, PASS),
        ([60.2, 61.8, 60.4, 61.5, 60.1, 61], "alternate", 60, PASS),
        ([1, 1, 1, 1, 1, 1], "", 0, SILENT),
        ([60.2, 61.8, 60.4, 61.5, 60.1, 61], "gap", 60, SILENT),
        ([5], "", 60, SILENT),
    ],
)
def test_fetches_at_the_end_of_each_ttl(gaps: list[float], between: str, ttl_s: float, verdict: Verdict) -> None:
    check(poll(gaps, between, ttl_s), "cache.no-ttl-polling", verdict)


@each(
    "gaps, between, verdict",
    [
        ([90.0] * 10, "", WARN),
        ([90.0] * 9, "", SILENT),
        ([90.0, 99.0] * 5, "", PASS),
        ([90.0, 92.0] * 5, "", UNCLEAR),
        ([90.0] * 10, "call", SILENT),
        ([90.0] * 16, "gap", SILENT),
    ],
)
def test_polls_without_jitter(gaps: list[float], between: str, verdict: Verdict) -> None:
    check(poll(gaps, between), "cache.jitter", verdict)

"""Rules `cache.*`."""

from __future__ import annotations

from typing import Any, Final

from probe.judge.verdicts import Verdict
from probe.log.events import LimitReached

from ..support.rows import each
from .checks import PASS, SILENT, UNCLEAR, WARN, check
from .logs import Asked, Log, Pipe

DAY_S: Final = 24 * 3600


def fetch(client: Any, method: str = "tools/list", ttl_s: float = 60, **options: Any) -> Asked:
    """A request for a list, and its answer."""
    asked: Asked = client.modern(method, options.pop("params", {}), **options)
    client.answer(asked, {"tools": [], "ttlMs": int(ttl_s * 1000), "cacheScope": "public", "resultType": "complete"})
    return asked


@each("transport", ["http", "stdio", "websocket"])
@each(
    "repeats, ttl_s, verdict",
    [(0, 60, SILENT), (2, 60, PASS), (5, 60, UNCLEAR), (6, 60, WARN), (9, 5, SILENT), (9, 0, SILENT)],
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


@each(
    "between", ["list_changed", "error", "process", "discover", "connection", "params", "ttl", "label", "gap", "limit"]
)
def test_reasons_to_ask_again(between: str) -> None:
    log = Log()
    label = None if between == "label" else "acme"
    client: Any = log.http(label) if between in ("connection", "label") else log.stdio()
    for number in range(9):
        options: dict[str, Any] = {"connection": "tcp1"} if between == "label" else {}
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
        elif between == "limit":
            log.add(LimitReached("session_requests", 1), client.context)
        elif between == "params":
            options["params"] = {"cursor": f"c{number}"}
        fetch(client, **options)
        log.after(63 if between == "ttl" else 2 + number / 4)
    log.idle(70)
    # Where nothing says that it is one client, it may be many.
    check(log, "cache.fresh-kept", UNCLEAR if between == "label" else SILENT, label or "m1")


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
        fetch(client, ttl_s=ttl_s)
        log.after(gap)
        if between == "call":
            client.modern("tools/call", {"name": "t"})
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
        ([60.2, 61.8, 60.4, 61.5, 60.1], "", 0, SILENT),
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

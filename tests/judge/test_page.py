"""Rules `page.*`."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any, Final

from probe.judge.verdicts import Verdict

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, WAYS, Way, check, opened, play
from .logs import HttpSession, Log, Pipe, judged


def own(text: str) -> str:
    """A cursor as this server makes them."""
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


NEXT: Final = own("resources:50")
FIRST: Final[dict[str, Any]] = {"resources": [], "nextCursor": NEXT}
LAST: Final[dict[str, Any]] = {"resources": []}


def read(session: HttpSession | Pipe, cursor: Any = None, method: str = "resources/list", **result: Any) -> None:
    """A page: the first one without a cursor, else the last."""
    asked = session.request(method, {} if cursor is None else {"cursor": cursor})
    session.answer(asked, result or (FIRST if cursor is None else LAST))


def leave(session: HttpSession | Pipe) -> None:
    """The client ends its session."""
    session.delete() if isinstance(session, HttpSession) else session.close(code=1000)


@each("way", WAYS)
@each(
    "acts, verdict",
    [
        ("first next", PASS),
        ("only", SILENT),
        ("first middle", SILENT),
        ("first first 61 use", WARN),
        ("first 61 use", UNCLEAR),
        ("first first 5 use", UNCLEAR),
        ("first first 61 ping", UNCLEAR),
        ("first first gap 61 use", UNCLEAR),
        # Who has followed one list knows how.
        ("first next first 61 use", PASS),
        # A client that has left will not ask for more, where it has done something, and was not told to end.
        ("started first first use bye exited", WARN),
        ("started first first bye exited", UNCLEAR),
        ("started first use bye exited", UNCLEAR),
        ("started first first use bye failed", UNCLEAR),
        ("started first first use bye 31 killed", UNCLEAR),
        ("started first first use bye 31 killed exited", UNCLEAR),
        ("started first first use bye 31 timed_out killed exited", UNCLEAR),
    ],
)
def test_pages_are_followed(way: Way, acts: str, verdict: Verdict) -> None:
    log = Log()
    session = opened(log, way)
    words = {
        "first": lambda: read(session),
        "next": lambda: read(session, NEXT),
        "only": lambda: read(session, **LAST),
        "middle": lambda: read(session, NEXT, resources=[], nextCursor=own("resources:100")),
        "use": lambda: session.call("progress"),
        "ping": lambda: session.request("ping"),
        "bye": lambda: leave(session),
        "exited": lambda: log.process("exited", 0),
        "failed": lambda: log.process("exited", 1),
        **{what: lambda what=what: log.process(what) for what in ("started", "killed", "timed_out")},
    }
    play(log, acts, words)
    check(log, "page.followed", verdict)


@each("way", WAYS)
@each(
    "cursor, given, verdict",
    [
        (NEXT, True, PASS),
        (50, True, FAIL),
        (["x"], True, FAIL),
        (False, True, FAIL),
        ("resources:50", True, FAIL),
        ("50", True, FAIL),
        (NEXT.lower(), True, FAIL),
        (NEXT + "=", True, FAIL),
        (own("tools:5"), True, FAIL),
        ("", True, WARN),
        # A person may have typed it, or it is of another run.
        (own("resources:20"), True, UNCLEAR),
        ("page-two", True, UNCLEAR),
        ("5", True, UNCLEAR),
        # Where none was given.
        (None, False, FAIL),
        ("", False, WARN),
        ("resources:50", False, UNCLEAR),
    ],
)
def test_cursors(way: Way, cursor: Any, given: bool, verdict: Verdict) -> None:
    log = Log()
    session = opened(log, way)
    if given:
        read(session)
        read(session, method="tools/list", tools=[], nextCursor=own("tools:5"))
    session.request("resources/list", {"cursor": cursor})
    check(log, "page.cursor-opaque", verdict)


@each("cursor, verdict", [(NEXT, PASS), ("50", FAIL)])
def test_cursors_of_the_modern_era(cursor: str, verdict: Verdict) -> None:
    log = Log()
    client = log.http()
    client.answer(client.modern("resources/list"), {**FIRST, "ttlMs": 0})
    client.modern("resources/list", {"cursor": cursor})
    check(log, "page.cursor-opaque", verdict)


@each("acts, verdict", [("first", SILENT), ("gap next", UNCLEAR)])
def test_a_cursor_is_compared_with_those_that_the_log_has(acts: str, verdict: Verdict) -> None:
    log = Log()
    session = opened(log)
    play(log, acts, {"first": lambda: read(session), "next": lambda: session.request("tools/list", {"cursor": NEXT})})
    check(log, "page.cursor-opaque", verdict)


@each("way", WAYS)
@each(
    "acts, verdict",
    [
        ("first next 6", PASS),
        ("first next 0.2 next 6", UNCLEAR),
        ("first next next next next 6", UNCLEAR),
        ("first next next next next next 6", WARN),
        # It may be read again later.
        ("first next 7 next 7 next 7 next 7 next 7", PASS),
        ("first next gap 7", UNCLEAR),
        ("first 7", SILENT),
    ],
)
def test_the_end_of_a_list(way: Way, acts: str, verdict: Verdict) -> None:
    log = Log()
    session = opened(log, way)
    play(log, acts, {"first": lambda: read(session), "next": lambda: read(session, NEXT)})
    check(log, "page.stops", verdict)


@each("way", [WAYS[0], WAYS[2]])
@each("again, verdict", [(0, PASS), (1, UNCLEAR)])
def test_nothing_more_comes_of_a_list_where_its_session_or_the_client_has_ended(
    way: Way, again: int, verdict: Verdict
) -> None:
    log = Log()
    session = opened(log, way)
    read(session)
    for _ in range(again + 1):
        read(session, NEXT)
    check(log, "page.stops", verdict)
    check(log, "page.stops", SILENT, end=False)
    leave(session)
    found = judged(log, end=False)["acme"]
    assert found["page.stops"] is verdict
    log.idle(6)
    assert judged(log)["acme"].evidence["page.stops"] == found.evidence["page.stops"]


def test_nothing_more_comes_of_a_list_of_the_modern_era_where_its_connection_has_ended() -> None:
    log = Log()
    pipe = log.websocket()
    pipe.answer(pipe.modern("resources/list"), {**FIRST, "ttlMs": 0})
    pipe.answer(pipe.modern("resources/list", {"cursor": NEXT}), {**LAST, "ttlMs": 0})
    pipe.close()
    check(log, "page.stops", PASS, end=False)


@each("way", WAYS)
@each("first, verdict", [("read", PASS), ("asked", PASS), ("", FAIL)])
def test_cursors_stay_in_their_session(way: Way, first: str, verdict: Verdict) -> None:
    log = Log()
    session = opened(log, way)
    read(session)
    if isinstance(session, Pipe):
        session.close()
    other = opened(log, way)
    if first == "read":
        read(other)
    elif first == "asked":
        other.request("resources/list")
    read(other, NEXT)
    log.idle(6)
    check(log, "page.not-across-sessions", verdict)


@each(
    "other, gap, verdict",
    [("acme", True, UNCLEAR), ("another program under the same name", False, UNCLEAR), ("", False, SILENT)],
)
def test_a_cursor_from_elsewhere_is_judged_only_of_one_whole_client(other: str, gap: bool, verdict: Verdict) -> None:
    log = Log()
    session = log.http().session()
    if other:
        read(session)
    if gap:
        log.gap()
    read(log.http(name=other).session() if other else session, NEXT if other else None)
    log.idle(6)
    check(log, "page.not-across-sessions", verdict)

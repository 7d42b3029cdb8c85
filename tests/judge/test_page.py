"""Rules `page.*`."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

import pytest

from probe.judge.verdicts import Verdict

from .logs import HttpSession, Log, Pipe, expect, judged

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]


def own(text: str) -> str:
    """A cursor as this server makes them."""
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


NEXT = own("resources:50")
FIRST: dict[str, Any] = {"resources": [], "nextCursor": NEXT}
LAST: dict[str, Any] = {"resources": []}


def opened(transport: str = "http", revision: str = "2025-11-25") -> tuple[Log, Any]:
    log = Log()
    clients: dict[str, Any] = {"http": log.http, "stdio": log.stdio, "websocket": log.websocket}
    return log, clients[transport]().session(revision)


def read(session: HttpSession | Pipe, cursor: Any = None, method: str = "resources/list", **result: Any) -> None:
    asked = session.request(method, {} if cursor is None else {"cursor": cursor})
    session.answer(asked, result or (FIRST if cursor is None else LAST))


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
def test_pages_are_followed(revision: str, transport: str):
    log, session = opened(transport, revision)
    read(session)
    read(session, NEXT)
    expect(log, "page.followed", Verdict.PASS)
    log, session = opened(transport, revision)
    read(session)
    read(session)
    log.after(61)
    session.call("progress")
    expect(log, "page.followed", Verdict.WARN)


@pytest.mark.parametrize(
    ("lists", "wait", "gap", "uses", "verdict"),
    [
        (2, 61, False, True, Verdict.WARN),
        (1, 61, False, True, Verdict.INCONCLUSIVE),
        (2, 5, False, True, Verdict.INCONCLUSIVE),
        (2, 61, False, False, Verdict.INCONCLUSIVE),
        (2, 61, True, True, Verdict.INCONCLUSIVE),
    ],
)
def test_only_first_pages(lists: int, wait: float, gap: bool, uses: bool, verdict: Verdict):
    log, session = opened()
    for _ in range(lists):
        read(session)
    if gap:
        log.gap()
    log.after(wait)
    session.call("progress") if uses else session.request("ping")
    expect(log, "page.followed", verdict)


@pytest.mark.parametrize(
    ("uses", "what", "status", "verdict"),
    [
        (True, "exited", 0, Verdict.WARN),
        (False, "exited", 0, Verdict.INCONCLUSIVE),
        (True, "exited", 1, Verdict.INCONCLUSIVE),
        (True, "killed", None, Verdict.INCONCLUSIVE),
    ],
)
def test_a_client_that_has_left_will_not_ask_for_more(uses: bool, what: str, status: int | None, verdict: Verdict):
    log = Log()
    log.process("started")
    session = log.http().session()
    for _ in range(2):
        read(session)
    if uses:
        session.call("progress")
    session.delete()
    log.process(what, status)
    expect(log, "page.followed", verdict)


@pytest.mark.parametrize("told", [("timed_out", "killed"), ("killed",)])
def test_a_client_that_was_told_to_end_may_have_wanted_more(told: Sequence[str]):
    log = Log()
    log.process("started")
    session = log.http().session()
    for _ in range(2):
        read(session)
    session.call("progress")
    for what in told:
        log.process(what)
    log.process("exited", 0)
    expect(log, "page.followed", Verdict.INCONCLUSIVE)


def test_a_list_that_is_followed_in_one_session_is_followed():
    log = Log()
    client = log.http()
    one, two = client.session(), client.session()
    read(one)
    read(one, NEXT)
    read(two)
    log.after(61)
    two.call("progress")
    expect(log, "page.followed", Verdict.PASS)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize(
    ("cursor", "verdict"),
    [
        (NEXT, Verdict.PASS),
        (50, Verdict.FAIL),
        (["x"], Verdict.FAIL),
        (False, Verdict.FAIL),
        ("resources:50", Verdict.FAIL),
        ("50", Verdict.FAIL),
        (NEXT.lower(), Verdict.FAIL),
        (NEXT + "=", Verdict.FAIL),
        (own("tools:5"), Verdict.FAIL),
        ("", Verdict.WARN),
        # A person may have typed it, or it is of another run.
        (own("resources:20"), Verdict.INCONCLUSIVE),
        ("page-two", Verdict.INCONCLUSIVE),
    ],
)
def test_cursors(revision: str, transport: str, cursor: Any, verdict: Verdict):
    log, session = opened(transport, revision)
    read(session)
    read(session, method="tools/list", tools=[], nextCursor=own("tools:5"))
    session.request("resources/list", {"cursor": cursor})
    expect(log, "page.cursor-opaque", verdict)


def test_cursors_that_were_never_given():
    for cursor, verdict in ((None, Verdict.FAIL), ("", Verdict.WARN), ("resources:50", Verdict.INCONCLUSIVE)):
        log, session = opened()
        session.request("resources/list", {"cursor": cursor})
        expect(log, "page.cursor-opaque", verdict)
    log, session = opened()
    log.gap()
    session.request("resources/list", {"cursor": NEXT})
    expect(log, "page.cursor-opaque", Verdict.INCONCLUSIVE)
    log, session = opened()
    read(session)
    expect(log, "page.cursor-opaque", Verdict.NOT_OBSERVED)


def test_cursors_of_the_modern_era():
    for cursor, verdict in ((NEXT, Verdict.PASS), ("50", Verdict.FAIL)):
        log = Log()
        client = log.http()
        client.answer(client.modern("resources/list"), {**FIRST, "ttlMs": 0})
        client.modern("resources/list", {"cursor": cursor})
        expect(log, "page.cursor-opaque", verdict)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
@pytest.mark.parametrize(
    ("again", "verdict"), [(0, Verdict.PASS), (1, Verdict.INCONCLUSIVE), (3, Verdict.INCONCLUSIVE), (4, Verdict.WARN)]
)
def test_the_end_of_a_list(revision: str, transport: str, again: int, verdict: Verdict):
    log, session = opened(transport, revision)
    read(session)
    for _ in range(again + 1):
        read(session, NEXT)
        log.after(0.2)
    log.idle(6)
    expect(log, "page.stops", verdict)


def test_the_last_page_may_be_read_again_later_and_a_gap_hides_whether_it_was():
    log, session = opened()
    read(session)
    for _ in range(6):
        read(session, NEXT)
        log.idle(7)
    expect(log, "page.stops", Verdict.PASS)
    log, session = opened()
    read(session)
    read(session, NEXT)
    log.gap()
    log.idle(7)
    expect(log, "page.stops", Verdict.INCONCLUSIVE)
    log, session = opened()
    read(session)
    log.idle(7)
    expect(log, "page.stops", Verdict.NOT_OBSERVED)


@pytest.mark.parametrize("again", [0, 1])
def test_nothing_more_comes_of_a_list_where_its_session_or_the_client_has_ended(again: int):
    verdict = Verdict.INCONCLUSIVE if again else Verdict.PASS
    for transport in ("http", "websocket"):
        log, session = opened(transport)
        read(session)
        for _ in range(again + 1):
            read(session, NEXT)
        assert judged(log)["acme"]["page.stops"] is verdict
        assert judged(log, end=False)["acme"]["page.stops"] is Verdict.NOT_OBSERVED
        session.delete() if isinstance(session, HttpSession) else session.close()
        found = judged(log, end=False)["acme"]
        assert found["page.stops"] is verdict
        log.idle(6)
        assert judged(log)["acme"].evidence["page.stops"] == found.evidence["page.stops"]
    log = Log()
    pipe = log.websocket()
    first, last = ({**page, "ttlMs": 0} for page in (FIRST, LAST))
    pipe.answer(pipe.modern("resources/list"), first)
    pipe.answer(pipe.modern("resources/list", {"cursor": NEXT}), last)
    pipe.close()
    assert judged(log, end=False)["acme"]["page.stops"] is Verdict.PASS


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio", "websocket"])
def test_cursors_stay_in_their_session(revision: str, transport: str):
    for first, verdict in ((None, Verdict.PASS), (NEXT, Verdict.FAIL)):
        log, session = opened(transport, revision)
        read(session)
        if isinstance(session, Pipe):
            session.close()
        clients: dict[str, Any] = {"http": log.http, "stdio": log.stdio, "websocket": log.websocket}
        other = clients[transport]().session(revision)
        if first is None:
            read(other)
        read(other, NEXT)
        log.idle(6)
        expect(log, "page.not-across-sessions", verdict)


def test_a_cursor_from_elsewhere_is_judged_only_of_one_whole_client():
    log = Log()
    read(log.http().session())
    # Another program under the same name.
    read(log.http(name="other").session(), NEXT)
    log.idle(6)
    expect(log, "page.not-across-sessions", Verdict.INCONCLUSIVE)
    log, session = opened()
    read(session)
    log.gap()
    read(log.http().session(), NEXT)
    log.idle(6)
    expect(log, "page.not-across-sessions", Verdict.INCONCLUSIVE)
    log, session = opened()
    read(session, NEXT)
    log.idle(6)
    expect(log, "page.not-across-sessions", Verdict.NOT_OBSERVED)

"""Rules `session.*`."""

from __future__ import annotations

from typing import Any, Final

from probe.judge.judge import Judge
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import Verdict
from probe.log import events
from probe.log.context import Context

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check, play
from .logs import HEADER, Http, HttpSession, Log, judge_all, judged

LEGACY: Final = ["2025-03-26", "2025-06-18", "2025-11-25"]
REINITIALIZE, DEAD, AS_GIVEN = "session.reinitialize-without-id", "session.dead-id-abandoned", "session.id-as-given"
DELETED, AFTER, CHURNED = "session.deleted", "session.nothing-after-delete", "session.not-churned"


def initialize(client: Http, header: str | None, named: str | None = None) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client.info}
    value = {"jsonrpc": "2.0", "id": client.new_id(), "method": "initialize", "params": params}
    client.refuse(client.post(value, headers={"mcp-session-id": header}, named=named), 404, "UNKNOWN_SESSION")


def refused(session: HttpSession, method: str = "tools/list") -> None:
    """A request of a session that the server has ended."""
    session.client.refuse(session.request(method), 404, "UNKNOWN_SESSION")


@each("revision", LEGACY)
def test_initialize_has_no_session_id(revision: str) -> None:
    log = Log()
    client = log.http()
    session = client.session(revision)
    check(log, REINITIALIZE, PASS, only={REINITIALIZE})
    session.close()
    refused(session)
    initialize(client, "abcdefgh…", session.label)
    check(log, REINITIALIZE, FAIL)


@each(
    "headers, verdict",
    [(["abcdefgh…"], WARN), (["abcdefgh…", None], WARN), (["abcdefgh…", None, "abcdefgh…"], FAIL), ([None], PASS)],
)
def test_an_id_of_an_earlier_run_is_no_breach_until_it_was_refused(headers: list[str | None], verdict: Verdict) -> None:
    log = Log()
    client = log.http()
    for header in headers:
        initialize(client, header)
    check(log, REINITIALIZE, verdict)


def old_and_new(acts: str, *, other: str = "acme") -> Log:
    """A session that was answered 404 and the one that follows it, and what the client does then."""
    log = Log()
    old = log.http().session()
    old.close()
    refused(old)
    new = log.http(name=other).session()
    words = {"old": lambda: refused(old, "ping"), "new": lambda: new.request("ping"), "delete": lambda: old.delete(404)}
    play(log, acts, words)
    return log


@each(
    "acts, verdict",
    [
        ("40", SILENT),  # the client may have stopped
        ("4 old 10 new 40", PASS),  # another worker of it
        ("6 old 10 new 40", WARN),
        ("10 delete new 40", PASS),
        ("gap", UNCLEAR),
    ],
)
def test_a_dead_id_is_left_alone(acts: str, verdict: Verdict) -> None:
    log = old_and_new(acts)
    check(log, DEAD, verdict)
    check(log, REINITIALIZE, PASS, only={REINITIALIZE})


def test_of_two_clients_nobody_knows_who_holds_the_dead_id() -> None:
    check(old_and_new("10 old", other="other"), DEAD, UNCLEAR)


@each("value, verdict", [("", WARN), ("undefined", WARN), ("null", WARN), ("None", WARN), ("zzzzzzzz…", PASS)])
def test_an_id_that_is_none_and_one_of_an_earlier_run(value: str, verdict: Verdict) -> None:
    log = Log()
    client = log.http()
    asked = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers={"mcp-session-id": value})
    client.refuse(asked, 404, "UNKNOWN_SESSION")
    check(log, AS_GIVEN, verdict)


@each("value", ["", "undefined"])
def test_initialize_with_an_id_that_is_none_is_one_fault(value: str) -> None:
    log = Log()
    client = log.http()
    initialize(client, value)
    initialize(client, value)
    check(log, AS_GIVEN, WARN)
    check(log, REINITIALIZE, SILENT, only={REINITIALIZE})


def test_an_id_of_the_server_and_none() -> None:
    log = Log()
    log.http().request_head("GET")
    check(log, AS_GIVEN, SILENT)
    log.http().session().request("ping")
    check(log, AS_GIVEN, PASS)


def lives(acts: str, revision: str = "2025-11-25", sessions: int = 1) -> Log:
    """A client's process with sessions, from its start."""
    log = Log()
    log.process("started", signal=None, asked="client")
    opened = [log.http().session(revision) for _ in range(sessions)]
    words: dict[str, Any] = {
        "delete": opened[0].delete,
        "refused": lambda: opened[0].delete(405),
        "idle": opened[0].close,
        "shutdown": lambda: opened[0].close("shutdown"),
        "timed-out": lambda: log.process("timed_out"),
        "killed": lambda: log.process("killed", signal="SIGTERM"),
        "exited": lambda: log.process("exited", 0),
        "crashed": lambda: log.process("exited", 3),
        "signalled": lambda: log.process("exited", None, signal="SIGSEGV"),
        "pipe": lambda: log.websocket().session().close(),
    }
    play(log, acts, words)
    return log


@each("revision", LEGACY)
@each(
    "acts, verdict",
    [
        ("delete exited 3", PASS),
        ("exited 3", WARN),
        ("exited 1 delete 30", PASS),  # it may arrive after the end of its process
        ("refused exited 30", SILENT),
        ("timed-out killed exited 30", UNCLEAR),
        ("killed exited 30", UNCLEAR),
        ("gap exited 30", UNCLEAR),
        ("crashed 30", UNCLEAR),
        ("signalled 30", UNCLEAR),
        ("5000", SILENT),  # it is still there
        ("5000 idle", UNCLEAR),
        ("shutdown", SILENT),
        ("delete pipe exited 30", PASS),  # which has none to send
    ],
)
def test_a_client_that_leaves_deletes_its_session(revision: str, acts: str, verdict: Verdict) -> None:
    check(lives(acts, revision), DELETED, verdict, only={DELETED})


def test_a_session_without_delete_is_one_fault() -> None:
    check(lives("exited 3"), DELETED, WARN)


def test_the_finding_names_the_sessions_and_what_to_send() -> None:
    [remark] = judged(lives("exited 3", sessions=2))["acme"].remarks[DELETED]
    assert "`DELETE /mcp` with the Mcp-Session-Id that the client got for s1, s2" in remark


@each(
    "acts, said",
    [
        ("killed exited", "a signal was sent to the client's process, or to one that it had started, so that it ends"),
        ("crashed", "the client's process ended with status 3; it may have crashed"),
        ("signalled", "the client's process was ended by a signal; it may have crashed"),
    ],
)
def test_a_session_that_is_left_says_how_the_process_ended(acts: str, said: str) -> None:
    found = judged(lives(acts), over=None)["acme"]
    assert (found[DELETED], found.remarks[DELETED]) == (UNCLEAR, [said])


@each("comes_back, verdict", [(False, WARN), (True, UNCLEAR)])
def test_sessions_that_are_replaced_again_and_again(comes_back: bool, verdict: Verdict) -> None:
    log = Log()
    client = log.http()
    for _ in range(4):
        session = client.session()
        session.request("ping")
        log.after(1800)
        session.close()
        log.after(1000)
        if comes_back:
            refused(session)
    check(log, DELETED, verdict)


@each(
    "acts, verdict",
    [
        ("", SILENT),
        ("delete 40", PASS),
        ("delete 0.5 use 40", UNCLEAR),
        ("delete 2 use 1", WARN),
        ("delete 3 again 40", PASS),  # a second DELETE is harmless
        ("delete gap", UNCLEAR),
    ],
)
def test_a_deleted_session_is_not_used(acts: str, verdict: Verdict) -> None:
    log = Log()
    session = log.http().session()
    play(log, acts, {"delete": session.delete, "again": lambda: session.delete(404), "use": lambda: refused(session)})
    check(log, AFTER, verdict)
    assert judged(log)["acme"]["refused.by-server"] is SILENT  # it has no other reason for the 404


@each(
    "connection, after, verdict",
    [
        ("its own", 0.0, WARN),
        ("another", 0.0, UNCLEAR),
        ("another", 0.3, UNCLEAR),
        ("another", 1.0, WARN),
    ],
)
def test_what_is_sent_behind_the_answer_to_the_delete_was_not_under_way(
    connection: str, after: float, verdict: Verdict
) -> None:
    """The log has another connection from its first request on, whenever it was opened."""
    log = Log()
    session = log.http().session()
    deleted = session.delete()
    log.after(after)
    name = "tcp99" if connection == "another" else deleted.context.connection
    if connection == "another":
        log.add(events.SocketOpened("127.0.0.1:5000"), Context("tcp99"))
    session.client.refuse(session.request("ping", connection=name), 404, "UNKNOWN_SESSION")
    check(log, AFTER, verdict)


@each("own, verdict", [("acme", WARN), (None, WARN), ("other", SILENT)])
def test_who_has_not_sent_the_delete_may_use_the_session(own: str | None, verdict: Verdict) -> None:
    log = Log()
    session = log.http().session()
    headers = {"mcp-session-id": "abcdefgh…", "mcp-protocol-version": "2025-11-25"}
    head = log.http(own).request_head("DELETE", session.context, headers=headers, named=session.label)
    log.add(events.SessionClosed("deleted"), head.context, head.seq)
    session.client.respond(head, 204)
    log.after(3)
    refused(session)
    check(log, AFTER, verdict)


def opens(log: Log, client: Http, sessions: int, *, used: bool, every: float = 20) -> Log:
    for _ in range(sessions):
        session = client.session()
        session.get().close()
        if used:
            session.request("ping")
        session.delete()
        log.idle(every)
    return log


@each(
    "sessions, used, every, verdict",
    [(4, False, 20, SILENT), (5, False, 20, WARN), (5, True, 20, PASS), (5, True, 1, PASS), (5, False, 200, SILENT)],
)
def test_sessions_are_opened_to_be_used(sessions: int, used: bool, every: float, verdict: Verdict) -> None:
    log = Log()
    check(opens(log, log.http(), sessions, used=used, every=every), CHURNED, verdict, only={CHURNED})


def uses_sessions_late() -> Log:
    log = Log()
    client = log.http()
    for _ in range(3):
        windows = [client.session() for _ in range(4)]
        log.idle(30)
        for window in windows:
            window.request("ping")
    return log


def test_a_session_that_is_used_late_is_used() -> None:
    check(uses_sessions_late(), CHURNED, PASS)


def test_health_checks_have_no_label_and_two_clients_are_none() -> None:
    log = Log()
    opens(log, log.http(None), 10, used=False)
    for number in range(10):
        check(log, CHURNED, SILENT, f"s{number + 1}")
    log = Log()
    log.http(name="other").session()
    check(opens(log, log.http(), 10, used=False), CHURNED, UNCLEAR)


def test_the_judge_of_a_room_knows_the_newest_ended_sessions_and_accuses_nobody_of_older_ones() -> None:
    """It lets go of what its log has not any more, but for `Retention.ended_sessions`."""
    log = Log()
    client = log.http()
    sessions = list[HttpSession]()
    for _ in range(130):
        sessions.append(client.session())
        sessions[-1].answer(sessions[-1].request("tools/list"), {"tools": []})
        sessions[-1].delete()
        log.idle(60)
    named: dict[str, list[int]] = {"old": [], "new": []}
    for name, session in (("old", sessions[0]), ("new", sessions[-1])):
        before = log.seq
        refused(session)
        named[name] = list(range(before + 1, log.seq + 1))
    judge = Judge(catalogue(), FUNCTIONS)
    judge.begin(HEADER)
    judge_all(judge, log.items, kept=50)
    judge.settle(everything=True)
    (subject,) = judge.subjects
    (evidence,) = (each for each in subject.tallies[AFTER].evidence if each.verdict is WARN)
    assert set(evidence.seqs) & set(named["new"])
    assert not set(evidence.seqs) & set(named["old"])
    assert {rule for rule, tally in subject.tallies.items() if tally.verdict > UNCLEAR} == {AFTER}

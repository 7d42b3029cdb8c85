"""Rules `session.*`."""

from __future__ import annotations

import pytest

from probe.judge.verdicts import Verdict

from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check
from .logs import Http, HttpSession, Log, judged

LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]
REINITIALIZE = "session.reinitialize-without-id"
DEAD = "session.dead-id-abandoned"
AS_GIVEN = "session.id-as-given"
DELETED = "session.deleted"
AFTER = "session.nothing-after-delete"
CHURNED = "session.not-churned"


def initialize(client: Http, header: str | None, named: str | None = None) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client.info}
    value = {"jsonrpc": "2.0", "id": client.new_id(), "method": "initialize", "params": params}
    client.refuse(client.post(value, headers={"mcp-session-id": header}, named=named), 404, "UNKNOWN_SESSION")


def refused(session: HttpSession, method: str = "tools/list") -> None:
    """A request of a session that the server has ended."""
    session.client.refuse(session.request(method), 404, "UNKNOWN_SESSION")


@pytest.mark.parametrize("revision", LEGACY)
def test_initialize_has_no_session_id(revision: str) -> None:
    log = Log()
    client = log.http()
    session = client.session(revision)
    check(log, REINITIALIZE, PASS)
    session.close()
    refused(session)
    initialize(client, "abcdefgh…", session.label)
    check(log, REINITIALIZE, FAIL)


def test_an_id_of_an_earlier_run_is_no_breach_until_it_was_refused() -> None:
    log = Log()
    client = log.http()
    initialize(client, "abcdefgh…")
    check(log, REINITIALIZE, WARN)
    initialize(client, None)
    check(log, REINITIALIZE, WARN)
    initialize(client, "abcdefgh…")
    check(log, REINITIALIZE, FAIL)


def test_a_stopped_session_that_begins_anew() -> None:
    log = Log()
    client = log.http()
    session = client.session()
    session.close()
    refused(session)
    client.session()
    check(log, REINITIALIZE, PASS)
    log.idle(40)
    check(log, DEAD, SILENT)


@pytest.mark.parametrize(("after", "verdict"), [(4, PASS), (6, WARN)])
def test_a_dead_id_is_left_alone(after: float, verdict: Verdict) -> None:
    log = Log()
    client = log.http()
    old = client.session()
    old.close()
    refused(old)
    new = client.session()
    log.after(after)
    refused(old, "ping")
    log.after(10)
    new.request("ping")
    log.idle(40)
    check(log, DEAD, verdict)


def test_a_dead_id_in_a_delete_does_no_harm() -> None:
    log = Log()
    client = log.http()
    old = client.session()
    old.close()
    refused(old)
    new = client.session()
    log.after(10)
    old.delete(404)
    new.request("ping")
    log.idle(40)
    check(log, DEAD, PASS)


def test_of_two_clients_nobody_knows_who_holds_the_dead_id() -> None:
    log = Log()
    old = log.http().session()
    old.close()
    refused(old)
    log.http(name="other").session()
    log.after(10)
    refused(old)
    check(log, DEAD, UNCLEAR)


def test_a_gap_leaves_a_dead_id_open() -> None:
    log = Log()
    client = log.http()
    old = client.session()
    old.close()
    refused(old)
    client.session()
    log.gap()
    check(log, DEAD, UNCLEAR)


@pytest.mark.parametrize("value", ["", "undefined", "null", "None"])
def test_an_id_that_is_none(value: str) -> None:
    log = Log()
    client = log.http()
    asked = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers={"mcp-session-id": value})
    client.refuse(asked, 404, "UNKNOWN_SESSION")
    check(log, AS_GIVEN, WARN)


@pytest.mark.parametrize("value", ["", "undefined"])
def test_initialize_with_an_id_that_is_none_is_one_fault(value: str) -> None:
    log = Log()
    client = log.http()
    initialize(client, value)
    initialize(client, value)
    check(log, AS_GIVEN, WARN)
    check(log, REINITIALIZE, SILENT, only={REINITIALIZE})


def test_an_id_of_the_server_or_of_an_earlier_run() -> None:
    log = Log()
    client = log.http()
    client.session().request("ping")
    check(log, AS_GIVEN, PASS)
    log = Log()
    client = log.http()
    asked = client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers={"mcp-session-id": "zzzzzzzz…"})
    client.refuse(asked, 404, "UNKNOWN_SESSION")
    check(log, AS_GIVEN, PASS)
    log = Log()
    log.http().request_head("GET")
    check(log, AS_GIVEN, SILENT)


@pytest.mark.parametrize("revision", LEGACY)
def test_a_client_that_leaves_deletes_its_session(revision: str) -> None:
    for deletes, verdict in ((True, PASS), (False, WARN)):
        log = Log()
        log.process("started", signal=None, asked="client")
        session = log.http().session(revision)
        if deletes:
            session.delete()
        log.process("exited", 0)
        log.idle(3)
        check(log, DELETED, verdict)


def test_the_finding_names_the_sessions_and_what_to_send() -> None:
    log = Log()
    log.process("started", signal=None, asked="client")
    labels = [log.http().session().label for _ in range(2)]
    log.process("exited", 0)
    log.idle(3)
    [remark] = judged(log)["acme"].remarks[DELETED]
    assert f"`DELETE /mcp` with the Mcp-Session-Id that the client got for {', '.join(labels)}" in remark


def ends(log: Log, how: str) -> None:
    """How a client's process ends that leaves its session open."""
    if how == "timed out":
        log.process("timed_out")
    if how in ("timed out", "killed"):
        log.process("killed", signal="SIGTERM")
        log.process("exited", 0)
    elif how == "perhaps killed":
        log.gap(1)
        log.process("exited", 0)
    elif how == "crashed":
        log.process("exited", 1)
    elif how == "signalled":
        log.process("exited", None, signal="SIGSEGV")


@pytest.mark.parametrize("how", ["timed out", "killed", "perhaps killed", "crashed", "signalled"])
def test_a_client_that_does_not_choose_to_leave(how: str) -> None:
    log = Log()
    log.process("started")
    log.http().session()
    ends(log, how)
    log.idle(30)
    check(log, DELETED, UNCLEAR)


def test_a_delete_that_is_refused_was_sent() -> None:
    log = Log()
    session = log.http().session()
    session.delete(405)
    log.process("exited", 0)
    log.idle(30)
    check(log, DELETED, SILENT)


def test_a_delete_may_arrive_after_the_end_of_its_process() -> None:
    log = Log()
    session = log.http().session()
    log.process("exited", 0)
    log.after(1)
    session.delete()
    log.idle(30)
    check(log, DELETED, PASS)


def test_a_session_whose_client_is_still_there() -> None:
    log = Log()
    session = log.http().session()
    log.idle(5000)
    check(log, DELETED, SILENT)
    session.close()
    check(log, DELETED, UNCLEAR)


def test_a_log_that_ends_with_its_server() -> None:
    log = Log()
    log.http().session().close("shutdown")
    check(log, DELETED, SILENT)


@pytest.mark.parametrize(("comes_back", "verdict"), [(False, WARN), (True, UNCLEAR)])
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


def test_a_session_on_a_pipe_has_no_delete() -> None:
    log = Log()
    log.websocket().session().close()
    log.process("exited", 0)
    log.idle(30)
    check(log, DELETED, SILENT, only={DELETED})


@pytest.mark.parametrize(("after", "method", "verdict"), [(0.5, "ping", PASS), (2, "ping", WARN)])
def test_a_deleted_session_is_not_used(after: float, method: str, verdict: Verdict) -> None:
    log = Log()
    session = log.http().session()
    session.delete()
    log.after(after)
    refused(session, method)
    log.idle(1)
    check(log, AFTER, verdict)


def test_a_second_delete_is_harmless() -> None:
    log = Log()
    session = log.http().session()
    check(log, AFTER, SILENT)
    session.delete()
    log.after(3)
    session.delete(404)
    log.idle(40)
    check(log, AFTER, PASS)


def test_a_gap_after_a_delete() -> None:
    log = Log()
    log.http().session().delete()
    log.gap()
    check(log, AFTER, UNCLEAR)


def opens(log: Log, client: Http, sessions: int, *, used: bool, every: float = 20) -> None:
    for _ in range(sessions):
        session = client.session()
        session.get().close()
        if used:
            session.request("ping")
        session.delete()
        log.idle(every)


@pytest.mark.parametrize(
    ("sessions", "used", "every", "verdict"),
    [(4, False, 20, SILENT), (5, False, 20, WARN), (5, True, 20, PASS), (5, False, 200, SILENT)],
)
def test_sessions_are_opened_to_be_used(sessions: int, used: bool, every: float, verdict: Verdict) -> None:
    log = Log()
    opens(log, log.http(), sessions, used=used, every=every)
    check(log, CHURNED, verdict)


def test_a_session_that_is_used_late_is_used() -> None:
    log = Log()
    client = log.http()
    for _ in range(3):
        windows = [client.session() for _ in range(4)]
        log.idle(30)
        for each in windows:
            each.request("ping")
    check(log, CHURNED, PASS)


def test_health_checks_have_no_label_and_two_clients_are_none() -> None:
    log = Log()
    opens(log, log.http(None), 10, used=False)
    for number in range(10):
        check(log, CHURNED, SILENT, f"s{number + 1}")
    log = Log()
    log.http(name="other").session()
    opens(log, log.http(), 10, used=False)
    check(log, CHURNED, UNCLEAR)


@pytest.mark.parametrize(
    ("killed", "status", "said"),
    [
        (True, 0, "a signal was sent to the client's process, or to one that it had started, so that it ends"),
        (False, 3, "the client's process ended with status 3; it may have crashed"),
        (False, None, "the client's process was ended by a signal; it may have crashed"),
    ],
)
def test_a_session_that_is_left_says_how_the_process_ended(killed: bool, status: int | None, said: str) -> None:
    log = Log()
    log.process("started")
    log.http().session()
    if killed:
        log.process("killed", signal="SIGTERM")
    log.process("exited", status)
    found = judged(log, over=None)["acme"]
    assert (found[DELETED], found.remarks[DELETED]) == (UNCLEAR, [said])

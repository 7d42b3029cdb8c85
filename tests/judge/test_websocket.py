"""Rules `websocket.*`."""

from __future__ import annotations

import pytest

from probe.judge.verdicts import Verdict

from .checks import PASS, SILENT, UNCLEAR, WARN, check
from .logs import Log

FRAMES = "websocket.text-frames"
PINGS = "websocket.answers-pings"
ORDER = "websocket.closes-in-order"
REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("by", "code", "verdict"),
    [
        ("client", 1000, PASS),
        ("client", 1002, PASS),
        ("a binary frame; messages are text", 1003, WARN),
        ("text is not UTF-8", 1007, WARN),
        ("a frame without a mask", 1002, WARN),
        ("the client reads too slowly", 1008, PASS),
        ("a message too large", 1009, PASS),
        ("the server is shutting down", 1001, PASS),
    ],
)
def test_messages_are_text_frames(revision: str, by: str, code: int, verdict: Verdict) -> None:
    log = Log()
    pipe = log.websocket().session(revision)
    check(log, FRAMES, SILENT)
    pipe.close(by, code)
    check(log, FRAMES, verdict)


def test_standard_streams_have_no_frames() -> None:
    log = Log()
    pipe = log.stdio().session()
    pipe.close("dead peer", 1003)
    for rule in (FRAMES, PINGS, ORDER):
        check(log, rule, SILENT)


def test_a_ping_is_answered() -> None:
    log = Log()
    pipe = log.websocket().session()
    pipe.frame("sent", "ping")
    check(log, PINGS, SILENT)
    pipe.frame("received", "pong")
    check(log, PINGS, PASS)


@pytest.mark.parametrize(("times", "verdict"), [(1, UNCLEAR), (2, WARN)])
def test_connections_that_fall_silent(times: int, verdict: Verdict) -> None:
    log = Log()
    for _ in range(times):
        pipe = log.websocket().session()
        pipe.frame("sent", "ping")
        log.after(20)
        pipe.close("dead peer", 1006)
    check(log, PINGS, verdict)


def test_a_ping_on_one_connection_is_not_answered_on_another() -> None:
    log = Log()
    first, second = log.websocket(), log.websocket()
    first.frame("sent", "ping")
    second.frame("received", "pong")
    check(log, PINGS, SILENT)
    first.close("the client reads too slowly", 1008)
    check(log, PINGS, SILENT)


@pytest.mark.parametrize("how", ["code", "empty frame"])
def test_a_close_frame(how: str) -> None:
    log = Log()
    pipe = log.websocket().session()
    if how == "empty frame":
        pipe.frame("received", "close")
    pipe.close("client", 1000 if how == "code" else None)
    check(log, ORDER, PASS)


def test_the_server_closed() -> None:
    log = Log()
    log.websocket().session().close("the server is shutting down", 1001)
    check(log, ORDER, SILENT)


def test_a_broken_connection_has_many_causes() -> None:
    log = Log()
    log.websocket().session().close("client")
    check(log, ORDER, UNCLEAR)


@pytest.mark.parametrize("before", [True, False])
def test_a_client_that_leaves_without_a_close_frame(before: bool) -> None:
    log = Log()
    log.process("started")
    pipe = log.websocket().session()
    if before:
        log.process("exited", 0)
        pipe.close("client")
    else:
        pipe.close("client")
        log.process("exited", 0)
    check(log, ORDER, WARN)


@pytest.mark.parametrize("how", ["killed", "told", "perhaps told", "crashed", "long before", "never"])
@pytest.mark.parametrize("before", [True, False])
def test_a_client_that_does_not_choose_to_leave(how: str, before: bool) -> None:
    log = Log()
    log.process("started")
    pipe = log.websocket().session()
    if before:
        pipe.close("client")
    if how == "killed":
        log.process("killed", signal="SIGKILL")
        log.process("exited", None, signal="SIGKILL")
    elif how in ("told", "perhaps told"):
        log.process("killed", signal="SIGTERM") if how == "told" else log.gap(1)
        log.process("exited", 0)
    elif how == "crashed":
        log.process("exited", 1)
    elif how == "long before":
        log.idle(10)
        log.process("exited", 0)
        log.idle(10)
    if not before:
        pipe.close("client")
    check(log, ORDER, UNCLEAR)


def test_a_gap_says_nothing_about_the_process() -> None:
    log = Log()
    log.process("started")
    log.websocket().session().close("client")
    log.gap()
    log.idle(20)
    check(log, ORDER, UNCLEAR)

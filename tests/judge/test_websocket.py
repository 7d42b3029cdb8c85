"""Rules `websocket.*`."""

from __future__ import annotations

from probe.judge.verdicts import Verdict

from ..support.rows import each
from .checks import PASS, SILENT, UNCLEAR, WARN, check, play
from .logs import Log, Pipe

FRAMES, PINGS, ORDER = "websocket.text-frames", "websocket.answers-pings", "websocket.closes-in-order"


@each("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
@each(
    "by, code, verdict",
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


@each("rule", [FRAMES, PINGS, ORDER])
def test_standard_streams_have_no_frames(rule: str) -> None:
    log = Log()
    log.stdio().session().close("dead peer", 1003)
    check(log, rule, SILENT)


@each(
    "acts, verdict",
    [
        ("ping", SILENT),
        ("ping pong", PASS),
        ("ping elsewhere", SILENT),  # on one connection, and the answer on another
        ("ping elsewhere slow", SILENT),
        ("ping 20 dead", UNCLEAR),  # a machine that sleeps is silent, too
        ("ping 20 dead open ping 20 dead", WARN),
        ("ping 20 dead open ping pong ping 20 dead", WARN),
    ],
)
def test_a_ping_is_answered(acts: str, verdict: Verdict) -> None:
    log = Log()
    pipes: list[Pipe] = [log.websocket().session()]
    words = {
        "ping": lambda: pipes[-1].frame("sent", "ping"),
        "pong": lambda: pipes[-1].frame("received", "pong"),
        "elsewhere": lambda: log.websocket().frame("received", "pong"),
        "slow": lambda: pipes[-1].close("the client reads too slowly", 1008),
        "dead": lambda: pipes[-1].close("dead peer", 1006),
        "open": lambda: pipes.append(log.websocket().session()),
    }
    play(log, acts, words)
    check(log, PINGS, verdict)


@each(
    "acts, verdict",
    [
        ("coded", PASS),
        ("frame leave", PASS),  # an empty one has no code
        ("server", SILENT),
        ("leave", UNCLEAR),
        ("started exited leave", WARN),
        ("started leave exited", WARN),
        ("started leave 1 exited", WARN),
        ("started leave 10 exited", UNCLEAR),
        ("started 10 exited 10 leave", UNCLEAR),
        ("started killed exited leave", UNCLEAR),
        ("started leave killed exited", UNCLEAR),
        ("started gap exited leave", UNCLEAR),  # it was perhaps told to end
        ("started leave gap exited", UNCLEAR),
        ("started crashed leave", UNCLEAR),
        ("started leave crashed", UNCLEAR),
        ("started leave gap 20", UNCLEAR),
    ],
)
def test_a_connection_ends_with_a_close_frame(acts: str, verdict: Verdict) -> None:
    log = Log()
    pipe = log.websocket().session()
    words = {
        "coded": lambda: pipe.close("client", 1000),
        "frame": lambda: pipe.frame("received", "close"),
        "leave": lambda: pipe.close("client"),
        "server": lambda: pipe.close("the server is shutting down", 1001),
        "started": lambda: log.process("started"),
        "killed": lambda: log.process("killed", signal="SIGTERM"),
        "exited": lambda: log.process("exited", 0),
        "crashed": lambda: log.process("exited", 1),
    }
    play(log, acts, words)
    check(log, ORDER, verdict)

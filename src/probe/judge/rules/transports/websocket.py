"""Rules `websocket.*`: the WebSocket of this server."""

from __future__ import annotations

from typing import Final

from ....views.clients import Connection
from ...clients.moments import Frame
from ...clients.series import NEVER
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, Finding
from ...trace.opportunities import FRAME, PIPE_END, PROCESS
from ...trace.rules import rule
from ...trace.trace import Trace
from .processes import why_ended

# RFC 6455 section 7.4.1: a protocol error, data that cannot be taken, text that is not UTF-8.
_BROKEN: Final = frozenset({1002, 1003, 1007})
# The reason of this server for the end of a silent connection without an answer to a ping.
_SILENT: Final = "dead peer"
_UNKNOWN: Final = "ended without a close frame; nothing says why"


def _code_of(pipe: Connection) -> int | None:
    return None if pipe.closed is None else getattr(pipe.closed.fact, "code", None)


@rule("websocket.text-frames", each=PIPE_END)
def sends_text(pipe: Connection, trace: Trace) -> Finding | None:
    """Size and slowness have other codes, and are limits of this server."""
    if pipe.transport != "websocket":
        return None
    code = _code_of(pipe)
    is_broken = pipe.ended_by != "client" and code in _BROKEN
    return FAIL(f"the server closed with {code}: {pipe.ended_by}") if is_broken else PASSED


@rule("websocket.answers-pings", each=FRAME)
def answers_ping(frame: Frame, trace: Trace) -> Finding | None:
    pings = trace.seen.newest(FRAME, "sent ping") if frame.fact.opcode == "pong" else ()
    ping = next((each for each in pings if each.pipe is frame.pipe), None)
    return None if ping is None else PASS(ping)


@rule("websocket.answers-pings", each=PIPE_END)
def answers_no_ping(pipe: Connection, trace: Trace) -> Finding | None:
    """A sleeping machine or a lost network is silent, too: it takes two connections."""
    if pipe.transport != "websocket" or pipe.ended_by != _SILENT:
        return None
    count = trace.nth()
    if count == 1:
        return UNCLEAR("cut off for its silence after a ping, once")
    before = [each for each in trace.seen.newest(PIPE_END) if each.ended_by == _SILENT and each is not pipe]
    return FAIL(f"{count} connections were cut off for their silence after a ping", *before)


@rule("websocket.closes-in-order", each=PIPE_END)
def closes(pipe: Connection, trace: Trace) -> Finding | None:
    """A crash, a kill and a lost network break a connection as well.

    The client is to blame only if its process ended by itself just then.
    """
    at, near = trace.at, trace.allowances.end_after_s
    if pipe.transport != "websocket" or pipe.ended_by != "client":
        return None
    frames = trace.seen.newest(FRAME, "received close")
    if _code_of(pipe) is not None or any(each.pipe is pipe for each in frames):
        return PASSED
    changes = [each for each in trace.seen.all(PROCESS, since=at - near, until=at + near) if each.fact.what == "exited"]
    if changes:
        blamed = why_ended(changes[0], trace) is None and not trace.gap_in(NEVER, max(at, changes[0].at))
        remark = "ended without a close frame, and the client's process ended by itself"
        return FAIL(remark, changes[0]) if blamed else UNCLEAR(_UNKNOWN, changes[0])
    last = trace.seen.last(PROCESS, until=at)
    if last is not None and last.fact.what == "started":
        trace.sure.crossed(at, near)
    return UNCLEAR(_UNKNOWN)

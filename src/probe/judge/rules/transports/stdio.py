"""Rules `stdio.*`: standard streams."""

from __future__ import annotations

import re
from typing import Final

from pydantic_core import from_json

from ....views.clients import Connection, Session
from ....views.retention import members
from ....views.values import Message
from ...clients.lines import Line, Run
from ...clients.moments import ProcessChange, Unreadable
from ...clients.series import NEVER
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, WARN, Finding, TooEarly, Undecided
from ...trace.opportunities import MESSAGE, PIPE, PROCESS, REQUEST, SESSION, UNREADABLE
from ...trace.rules import rule
from ...trace.trace import MISSING_ENTRIES, Trace
from .processes import was_killed

# Bytes of lines in a trial to read them as one message.
_MOST_BYTES: Final = 100_000
_ESCAPED: Final = re.compile(r"\\x([0-9a-f]{2})", re.IGNORECASE)
_SIGNALS: Final = frozenset({"SIGTERM", "SIGINT", "SIGHUP"})


@rule("stdio.only-messages", each=MESSAGE, general=True)
def sends_messages(message: Message, trace: Trace) -> Finding | None:
    return only_messages(message, "JSON that is no message", trace) if message.rpc == "invalid" else PASSED


@rule("stdio.only-messages", each=UNREADABLE, general=True)
def sends_json(unreadable: Unreadable, trace: Trace) -> Finding | None:
    """A longer line than `max_body_bytes` meets a limit of this server."""
    if unreadable.pipe is None or unreadable.pipe.transport != "stdio" or unreadable.fault == "size":
        return None
    if unreadable.fault not in ("syntax", "encoding"):
        return UNCLEAR(f"a line that this server does not read: {unreadable.fact.problem}")
    return only_messages(unreadable, "a line that is no JSON", trace)


def only_messages(line: Line, remark: str, trace: Trace) -> Finding | None:
    """A FAIL, unless another rule found a fault in the line or could not decide, or it is a part of one message."""
    run = trace.subject.lines.run_of(line)
    if run is None or is_one_message(_whole(run, line, trace)):
        return None
    return None if trace.found_by_others() is not None or trace.doubted_by_others() else FAIL(remark)


def _whole(run: Run, line: Line, trace: Trace) -> Run:
    """The run once no more lines belong to it. Raises `Undecided` where a part of the line may be missing."""
    end = trace.now if trace.subject.end is not None else None
    over = end if run.over is None else run.over
    if over is None:
        raise TooEarly(None, run.pipe)
    if run.is_cut:
        raise Undecided("the last line has no end, and may be cut off")
    trace.at = max(trace.at, over)
    if trace.gap_in(run.before[run.lines.index(line)], over):
        raise Undecided("entries are missing around the line, which may be a part of a message")
    return run


@rule("stdio.one-line-each", each=MESSAGE)
def one_line(message: Message, trace: Trace) -> Finding | None:
    return None if message.rpc == "invalid" else PASSED


@rule("stdio.one-line-each", each=UNREADABLE)
def several_lines(unreadable: Unreadable, trace: Trace) -> Finding | None:
    run = trace.subject.lines.run_of(unreadable)
    if run is None or run.lines[0] is not unreadable or not is_one_message(_whole(run, unreadable, trace)):
        return None
    return FAIL(f"one message on {len(run.lines)} lines", *run.lines)


@rule("stdio.one-line-each", each=PROCESS)
def line_ends(change: ProcessChange, trace: Trace) -> Finding | None:
    """A carriage return before the line end is white space in JSON, and changes no message."""
    return Finding("nothing", measured={"line_ends": "CRLF"}) if change.fact.what == "crlf" else None


def is_one_message(run: Run) -> bool:
    """True if several lines are one message together. The log may have only the beginning of one."""
    texts = []
    for line in run.lines if len(run.lines) > 1 else ():
        if isinstance(line, Message):
            texts.append(line.raw)
        elif line.fault == "syntax" and line.fact.size <= len(line.fact.head):
            texts.append(_ESCAPED.sub(lambda found: chr(int(found[1], 16)), line.fact.head).encode("latin-1"))
        else:
            return False
    try:
        value = from_json(b"\n".join(texts)[:_MOST_BYTES])
    except ValueError:
        return False
    return bool({"method", "result", "error"} & members(value).keys())


@rule("stdio.closes-input-first", each=PROCESS)
def closes_input(change: ProcessChange, trace: Trace) -> Finding | None:
    pipe = change.pipe
    if change.fact.what != "end_of_input" or pipe is None:
        return None
    if was_killed(change.at, trace):
        return UNCLEAR("the client was killed, which closes its end as well")
    signal = next((each for each in pipe.changes if getattr(each.fact, "what", "") in _SIGNALS), None)
    if signal is None or signal.seq > change.seq:
        return PASSED
    return UNCLEAR(f"{getattr(signal.fact, 'what', '')} came just before the end of input", signal)


@rule("stdio.closes-input-first", each=PROCESS)
def sends_signal(change: ProcessChange, trace: Trace) -> Finding | None:
    """A signal came while the input was open.

    A terminal, a supervisor or a wrapper may send the signal in place of the client, and at the kill of a client
    everything closes at once. If both come at the same time, their order is unknown.
    """
    pipe, what = change.pipe, change.fact.what
    if pipe is None or what not in _SIGNALS:
        return None
    if any(each.seq < change.seq and getattr(each.fact, "what", "") in _SIGNALS for each in pipe.changes):
        return None
    ended = trace.sure.ended(pipe)
    if pipe.input_ended is not None:
        return None
    if what == "SIGTERM" and not was_killed(ended, trace):
        trace.sure.whole(f"{MISSING_ENTRIES}; the end of the input may be among them, or a signal to the client")
        return FAIL("SIGTERM came while standard input was open (client, supervisor or wrapper)")
    return UNCLEAR(f"{what} came while standard input was open, perhaps to a whole group")


@rule("stdio.no-responses", each=MESSAGE)
def answers_nothing(message: Message, trace: Trace) -> Finding | None:
    """Inside a session on the same pipe answers are legal. The rules of a WebSocket are this server's own choice."""
    pipe = message.pipe
    session = None if pipe is None else pipe.session
    if pipe is None or message.rpc == "invalid" or (session is not None and session.opened.mono < message.at):
        return None
    if message.rpc not in ("response", "error"):
        return PASSED
    trace.sure.whole("a session may have been opened where entries are missing")
    if pipe.transport == "stdio":
        return FAIL("a response was written, and no session is open")
    return WARN("a response was sent, and no session is open")


@rule("stdio.probes-with-discover", each=REQUEST)
def modern_request(request: Message, trace: Trace) -> Finding | None:
    return _probes(request.at, request.pipe, trace)


@rule("stdio.probes-with-discover", each=SESSION)
def legacy_session(session: Session, trace: Trace) -> Finding | None:
    return _probes(session.opened.mono, session.connection, trace)


def _probes(at: float, place: Connection | None, trace: Trace) -> Finding | None:
    """Only a process with both eras is certainly of a client with both, and only the first process is judged.

    The configuration of another one may name its era. A later process may know the era from an earlier one, such as a
    short one with `server/discover` alone.
    """
    if len([since for since in trace.subject.eras.values() if since <= at]) < 2 or trace.nth() > 1:
        return None
    pipe = next((each for each in trace.seen.all(PIPE, until=at) if each.transport == "stdio"), None)
    first = None if pipe is None else pipe.first
    if pipe is None or first is None or pipe.opened is None or trace.gap_in(NEVER, first.at):
        return None
    if first.method == "server/discover":
        return PASS(at=first)
    in_session = pipe.session is not None and pipe.session.opened.mono < at
    if place is pipe and (in_session or first.era == "modern"):
        return FAIL(f"speaks both eras, and its first message is {first.method}", at=first)
    return UNCLEAR(f"spoke both eras in several processes; its first message was {first.method}", at=first)

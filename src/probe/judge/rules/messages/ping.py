"""Rules `ping.*`: answers to the server's pings, and the pings of the client."""

from __future__ import annotations

from statistics import median
from typing import Final, Literal, TypeAlias

from ....views.retention import members
from ....views.values import Message
from ...clients.series import NEVER
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, WARN, Finding, Undecided
from ...trace.opportunities import ANSWER, ASKED, REQUEST
from ...trace.rules import rule
from ...trace.trace import MISSING_ENTRIES, Trace

# Answers that `ping.prompt` looks at: fewer are an accident, more than the newest hundred are another day.
_FEWEST: Final = 3
_NEWEST: Final = 100
_PROMPT_S: Final = 1.0
_SLOW_S: Final = 5.0
_MINUTE_S: Final = 60.0
_MOST_A_MINUTE: Final = 60
_CUT_OFF: Final = "no answer, and what carried the ping ended before one was due"

Fate: TypeAlias = Literal["answered", "asleep", "silent"]


@rule("ping.answered", each=ASKED, methods={"ping"})
def answers_ping(ping: Message, trace: Trace) -> Finding | None:
    """A proxy may have held back one ping, so it takes two, and none that was answered between them."""
    had, fate = trace.at, fate_of(ping, trace)
    silence = f"no answer within {trace.at - had:.0f} s"
    if fate == "answered":
        return PASS(*trace.seen.answers(ping)[:1])
    if fate == "asleep":
        return WARN(f"{silence}, and nothing else either") if is_held(ping, trace.at) else None
    for other, before in trace.fates(ASKED, fate_of, "ping", before=ping):
        if before == "answered":
            break
        if before == "silent":
            if trace.gap_in(other.at, ping.at):
                break  # one between them may have been answered
            return FAIL(f"two pings, {silence} (client or gateway)", other)
    return WARN(silence)


def fate_of(ping: Message, trace: Trace) -> Fate:
    """The end of a ping.

    A laptop that sleeps and a client in a debugger hold their connections and send nothing at all: a client is known to
    be awake by another message after the ping. So a silent one has more time, and at its next message the time for an
    answer anew. An answer that the server refused is an answer. Where the session, the connection or the stream of the
    ping ended before an answer was due, the ping may have been lost, or the client has gone.
    """
    had, answer_s, alive_s = _had_at(ping), trace.allowances.answer_s, trace.allowances.alive_s
    place = ping.pipe or ping.in_session
    due = had + answer_s
    for wait in (answer_s, alive_s, alive_s + answer_s):
        due = had + wait
        if trace.seen.answers(ping, due):
            return "answered"
        trace.sure.had_time(had, wait)
        if trace.gap_in(ping.at, had):
            raise Undecided(f"{MISSING_ENTRIES}; the answer may be among them")
        acted = trace.seen.acted(place, had, due)
        if wait == answer_s and acted:
            break
        if wait == alive_s and not (acted and trace.seen.acted(place, due - answer_s, due)):
            break
    if not trace.seen.acted(place, had, due):
        return "asleep"
    if is_cut_off(ping, due):
        raise Undecided(_CUT_OFF)
    if not _has_carrier(ping) and trace.gap_in(NEVER, had):
        raise Undecided(f"{MISSING_ENTRIES}; they would say which response carried the ping, and when it ended")
    return "silent"


def _has_carrier(ping: Message) -> bool:
    """True if the log shows what carried the ping: a pipe, or a response that was open."""
    if ping.pipe is not None:
        return True
    had = _had_at(ping)
    reader = None if ping.stream is None else ping.stream.reader_by(had)
    return reader is not None and not reader.closed_by(had)


def _had_at(ping: Message) -> float:
    return ping.at if ping.had is None else ping.had


def is_held(ping: Message, at: float) -> bool:
    if ping.pipe is not None:
        return not ping.pipe.closed_by(at)
    reader = None if ping.stream is None else ping.stream.reader_by(at)
    return reader is not None and not reader.closed_by(at)


def is_cut_off(ping: Message, at: float) -> bool:
    """True if the session or the pipe of a ping had ended, or a response that carried it, by no intention."""
    if any(place is not None and place.closed_by(at) for place in (ping.in_session, ping.pipe)):
        return True
    readings = () if ping.stream is None else ping.stream.readings
    ends = [each.exchange for each in readings if each.exchange is not None and each.exchange.closed_by(at)]
    return any(end.ended_by != "end of stream" and not end.closed_by(_had_at(ping)) for end in ends)


@rule("ping.empty", each=ANSWER)
def empty(message: Message, trace: Trace) -> Finding | None:
    """A result that is no object is left to `jsonrpc.response-shape`."""
    ping = message.question
    if ping is None or ping.method != "ping":
        return None
    extra = members(message.result).keys() - {"_meta"}
    if isinstance(message.error, dict):
        return FAIL(f"the answer is the error {message.error.get('code')}", ping)
    if not isinstance(message.result, dict):
        return None
    return WARN(f"the result has {', '.join(sorted(extra))}", ping) if extra else PASS(ping)


@rule("ping.prompt", each=ANSWER)
def prompt(message: Message, trace: Trace) -> Finding | None:
    """No revision defines promptly, so the median is reported."""
    ping = message.question
    if ping is None or delay_of(message, trace) is None:
        return None
    answers = [each for other in trace.seen.newest(ASKED, "ping", _NEWEST) for each in trace.seen.replies(other)[:1]]
    found = [delay_of(each, trace) for each in answers if each.seq <= message.seq]
    delays = [each for each in found if each is not None]
    if len(delays) < _FEWEST:
        return None
    middle = median(delays)
    measured = {"median_s": round(middle, 3)}
    if middle < _PROMPT_S:
        return PASS(ping, measured=measured)
    remark = f"the median of {len(delays)} answers is {middle:.1f} s"
    return (FAIL if middle > _SLOW_S else UNCLEAR)(remark, ping, measured=measured)


def delay_of(message: Message, trace: Trace) -> float | None:
    """The time that an answer took; None where it is not known."""
    ping = message.question
    if ping is None or ping.method != "ping" or not ping.had_by(message.at) or (ping.replies or ())[:1] != [message]:
        return None
    had = _had_at(ping)
    is_disturbed = trace.gap_in(had, message.at) or trace.disturbance(had, message.at) is not None
    return None if is_disturbed else max(0.0, message.at - had)


@rule("ping.not-excessive", each=REQUEST, methods={"ping"})
def not_excessive(message: Message, trace: Trace) -> Finding | None:
    """At most one ping a second on average."""
    session = message.in_session
    if session is None:
        return None
    pings = trace.seen.newest(REQUEST, "ping", _MOST_A_MINUTE + 1, lambda each: each.in_session is session)
    spent = message.at - pings[-1].at
    if len(pings) > _MOST_A_MINUTE and spent <= _MINUTE_S:
        return FAIL(f"{len(pings)} pings in {spent:.0f} s")
    return PASSED if spent >= _MINUTE_S else None

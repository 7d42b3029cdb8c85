"""The machine of one draft stream: every input in every state, both sides of each time, and what no longer fits."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from probe.core import draft_stream as module
from probe.core.draft_stream import (
    DraftStatus,
    DraftStream,
    Interval,
    Lost,
    LostError,
    MessageKind,
    Poll,
    TooEarlyError,
)
from probe.core.replay import EvictedError, LogClosedError

from ..support.rows import each
from .tables import documented

MIN, MAX, KEEP = 5.0, 3600.0, 120.0
START = 1000.0
NEVER = 1e12
FEW = 3

INPUTS = "emit overflow end taken connect disconnect resume poll lose expire"
TABLE = {
    "AWAY": "AWAY LOST LEFT AWAY HELD AWAY AWAY AWAY LOST LOST",
    "HELD": "HELD LOST TAIL HELD HELD AWAY HELD HELD LOST HELD",
    "LEFT": "- - LEFT DONE TAIL LEFT LEFT LEFT LOST LOST",
    "TAIL": "- - TAIL DONE TAIL LEFT TAIL TAIL LOST TAIL",
    "DONE": "- - DONE DONE DONE DONE DONE DONE LOST GONE",
    "GONE": "- - GONE GONE GONE GONE GONE GONE GONE GONE",
    "LOST": "- - LOST LOST LOST LOST - - LOST LOST",
}
STATES = list(TABLE)
ROWS = {(state, name): to for state, row in TABLE.items() for name, to in zip(INPUTS.split(), row.split(), strict=True)}


def fresh(*, max_messages: int = FEW, max_bytes: int = 100, now: float = START) -> DraftStream:
    return DraftStream(Interval(MIN, MAX), KEEP, max_messages=max_messages, max_bytes=max_bytes, now=now)


def filled(*messages: bytes, taken: int = 0, **options: Any) -> DraftStream:
    """A stream of these messages, of which the first so many were taken at once."""
    stream = fresh(**options)
    for message in messages:
        position = stream.emit(message, MessageKind.OTHER, START)
        stream.taken(min(position, taken), START)
    return stream


def reach(state: str) -> DraftStream:
    """A stream in a state, where it came at START, of two messages of which one was taken, or both."""
    stream = filled(b"one", b"two", taken=2 if state in ("DONE", "GONE") else 1)
    if state in ("HELD", "TAIL"):
        stream.connect(START)
    if state in ("LEFT", "TAIL", "DONE", "GONE"):
        stream.end(START)
    if state == "GONE":
        assert stream.expire(START + KEEP)
    if state == "LOST":
        stream.lose(Lost.SERVER_FULL)
    assert name_of(stream) == state
    return stream


def name_of(stream: DraftStream) -> str:
    """The state, from what can be seen from outside."""
    if stream.lost is not None or stream.forgotten:
        return "GONE" if stream.forgotten else "LOST"
    if stream.status is DraftStatus.LIVE:
        return "HELD" if stream.connected else "AWAY"
    if not stream.untaken:
        return "DONE"
    return "TAIL" if stream.connected else "LEFT"


def facts(stream: DraftStream) -> dict[str, Any]:
    """Everything there is, to compare."""
    log = stream.log
    inside = {name: value for name, value in vars(stream).items() if name not in ("log", "_kinds")}
    return {
        **inside,
        "kinds": list(stream._kinds),
        "log": [*log.after(log.first - 1)],
        "at": log.first,
        "c": log.closed,
    }


def overflow(stream: DraftStream, now: float) -> None:
    """More than it can keep; of these, nothing is taken."""
    for _ in range(FEW + 1):
        stream.emit(b"more", MessageKind.OTHER, now)


def tell(stream: DraftStream, name: str, now: float) -> None:
    """One input of the table."""
    inputs: dict[str, Callable[[], object]] = {
        "emit": lambda: stream.emit(b"new", MessageKind.OTHER, now),
        "overflow": lambda: overflow(stream, now),
        "end": lambda: stream.end(now),
        "taken": lambda: stream.taken(stream.log.last, now),
        "connect": lambda: stream.connect(now),
        "disconnect": lambda: stream.disconnect(now),
        "resume": lambda: stream.resume(None, now),
        "poll": lambda: stream.poll(None, now),
        "lose": lambda: stream.lose(Lost.SESSION_ENDED),
        "expire": lambda: stream.expire(NEVER if stream.deadline is None else stream.deadline),
    }
    inputs[name]()


# The table.


def test_the_docstring_has_this_table() -> None:
    assert documented(module, INPUTS) == ROWS


@pytest.mark.parametrize(("state", "name"), [row for row, to in ROWS.items() if to != "-" and row[1] != "overflow"])
def test_a_row_of_the_table(state: str, name: str) -> None:
    stream = reach(state)
    tell(stream, name, START + 10)
    assert name_of(stream) == ROWS[state, name]


@pytest.mark.parametrize("state", ["AWAY", "HELD"])
def test_an_overflow_says_that_the_stream_is_lost(state: str) -> None:
    stream = reach(state)
    with pytest.raises(LostError) as caught:
        overflow(stream, START)
    assert caught.value.lost is stream.lost is Lost.OVERFLOW
    assert name_of(stream) == ROWS[state, "overflow"]


@pytest.mark.parametrize(("state", "name"), [row for row, to in ROWS.items() if to == "-"])
def test_a_missing_row_raises_and_changes_nothing(state: str, name: str) -> None:
    stream = reach(state)
    before = facts(stream)
    with pytest.raises(LostError if state == "LOST" else LogClosedError):
        tell(stream, name, START + 10)
    assert facts(stream) == before


@pytest.mark.parametrize(("state", "to"), [("AWAY", "DONE"), ("HELD", "DONE")])
def test_to_end_with_nothing_left_to_take_is_to_be_done(state: str, to: str) -> None:
    stream = reach(state)
    stream.taken(2, START)
    stream.end(START)
    assert name_of(stream) == to


@pytest.mark.parametrize("state", ["LEFT", "TAIL"])
def test_to_take_some_of_the_rest_is_not_to_be_done(state: str) -> None:
    stream = filled(b"one", b"two", b"three")
    if state == "TAIL":
        stream.connect(START)
    stream.end(START)
    stream.taken(2, START)
    assert (name_of(stream), stream.untaken) == (state, 1)


@pytest.mark.parametrize("name", ["end", "taken", "connect", "disconnect", "lose", "expire"])
def test_the_first_loss_stays_and_nothing_is_waited_for(name: str) -> None:
    stream = reach("LOST")
    tell(stream, name, START + 10)
    assert (stream.lost, stream.deadline, stream.connected, stream.status) == (Lost.SERVER_FULL, None, False, "live")


@pytest.mark.parametrize("name", ["end", "disconnect", "lose", "expire"])
def test_a_repetition_changes_nothing(name: str) -> None:
    stream = reach("HELD")
    tell(stream, name, START + 10)
    before = facts(stream)
    tell(stream, name, START + 20)
    assert facts(stream) == before


@pytest.mark.parametrize("why", Lost)
@pytest.mark.parametrize("state", [state for state in STATES if state not in ("GONE", "LOST")])
def test_what_is_lost_frees_its_memory_and_says_why(state: str, why: Lost) -> None:
    stream = reach(state)
    untaken = stream.untaken
    stream.lose(why)
    assert (len(stream.log), stream.log.bytes, len(stream._kinds), stream.log.closed) == (0, 0, 0, True)
    assert (stream.lost, stream.untaken, stream.log.last) == (why, untaken, 2)
    for name in ("emit", "resume", "poll"):
        with pytest.raises(LostError, match=f"^the stream is lost: {why}$") as caught:
            tell(stream, name, START + 10)
        assert caught.value.lost is why


def test_the_words_are_those_of_the_wire() -> None:
    assert [*DraftStatus] == ["live", "completed"]
    assert [*Lost] == ["abandoned", "overflow", "session_ended", "server_full"]


# What comes back, and what is told of it.


def test_positions_count_from_one_and_the_log_has_the_messages() -> None:
    stream = fresh()
    assert [stream.emit(b"a", MessageKind.OTHER, START), stream.emit(b"b", MessageKind.OTHER, START)] == [1, 2]
    assert (list(stream.log.after(0)), stream.untaken) == ([b"a", b"b"], 2)


@pytest.mark.parametrize(("received", "cursor"), [(None, 2), (0, 0), (1, 1), (2, 2), (3, 3)])
def test_a_resume_reads_on_after_what_the_client_has_else_after_what_was_taken(
    received: int | None, cursor: int
) -> None:
    stream = filled(b"a", b"b", b"c", taken=2)
    assert stream.resume(received, START + MIN) == cursor


@pytest.mark.parametrize("ask", [DraftStream.resume, DraftStream.poll])
@pytest.mark.parametrize(("received", "untaken"), [(None, 2), (0, 2), (1, 2), (2, 1), (3, 0)])
def test_what_the_client_has_counts_as_taken_and_what_it_lacks_not_as_untaken(
    ask: Callable[..., object], received: int | None, untaken: int
) -> None:
    stream = filled(b"a", b"b", b"c", taken=1)
    ask(stream, received, START + MIN)
    assert stream.untaken == untaken


@pytest.mark.parametrize("ask", [DraftStream.resume, DraftStream.poll])
def test_an_ended_stream_is_done_when_the_client_says_that_it_has_everything(ask: Callable[..., object]) -> None:
    stream = reach("LEFT")
    ask(stream, 2, START + MIN)
    assert (name_of(stream), stream.deadline) == ("DONE", START + MIN + KEEP)


@pytest.mark.parametrize("state", [state for state in STATES if state not in ("GONE", "LOST")])
@pytest.mark.parametrize("ask", [DraftStream.resume, DraftStream.poll])
@pytest.mark.parametrize("received", [-1, 3, 10**12])
def test_what_was_never_emitted_was_never_received(state: str, ask: Callable[..., object], received: int) -> None:
    stream = reach(state)
    before = facts(stream)
    with pytest.raises(IndexError, match=f"cursor {received} is not within 0 to 2"):
        ask(stream, received, START + 10)
    assert facts(stream) == before


@pytest.mark.parametrize("ask", [DraftStream.resume, DraftStream.poll])
def test_who_lacks_what_had_to_go_is_told_so(ask: Callable[..., object]) -> None:
    stream = filled(b"a", b"b", b"c", taken=3)
    stream.emit(b"d", MessageKind.OTHER, START)
    before = facts(stream)
    with pytest.raises(EvictedError) as caught:
        ask(stream, 0, START + 10)
    assert (caught.value.first, facts(stream)) == (2, before)
    ask(stream, 1, START + 10)


@pytest.mark.parametrize(("received", "error"), [(3, IndexError), (0, EvictedError), (1, TooEarlyError)])
def test_what_waiting_does_not_help_is_said_first(received: int, error: type[Exception]) -> None:
    stream = filled(b"a", b"b", taken=2, max_messages=1)
    with pytest.raises(error):
        stream.resume(received, START)


def test_to_resume_or_poll_is_not_to_read() -> None:
    stream = reach("AWAY")
    stream.resume(None, START + MIN)
    stream.poll(None, START + MIN)
    assert not stream.connected


def test_what_is_taken_is_taken_once_and_for_all() -> None:
    stream = filled(b"a", b"b", b"c", taken=2)
    stream.taken(1, START)
    stream.taken(0, START)
    assert stream.untaken == 1


@pytest.mark.parametrize("state", STATES)
def test_nothing_is_taken_that_was_never_emitted(state: str) -> None:
    stream = reach(state)
    before = facts(stream)
    with pytest.raises(IndexError, match="position 3 is beyond 2"):
        stream.taken(3, START)
    assert facts(stream) == before


@each("kinds", list(product(MessageKind, repeat=3)))
@each("received", [None, 0, 1, 2, 3])
@each("ended", [False, True])
def test_a_poll_tells_what_waits(kinds: tuple[MessageKind, ...], received: int | None, *, ended: bool) -> None:
    stream = fresh()
    for kind in kinds:
        stream.emit(b"m", kind, START)
    stream.taken(1, START)
    if ended:
        stream.end(START)
    waiting = kinds[1 if received is None else received :]
    status = DraftStatus.COMPLETED if ended else DraftStatus.LIVE
    told = Poll(status, waiting != (), MessageKind.REQUEST in waiting, MessageKind.ERROR in waiting)
    assert stream.poll(received, START) == told


@pytest.mark.parametrize("kinds", list(product(MessageKind, repeat=2)))
def test_what_was_evicted_is_not_told_of(kinds: tuple[MessageKind, ...]) -> None:
    """The flags stay beside their messages, however many have gone before."""
    stream = fresh(max_messages=2)
    for kind in (MessageKind.OTHER, MessageKind.OTHER, MessageKind.REQUEST, MessageKind.ERROR, *kinds):
        stream.taken(stream.emit(b"d", kind, START), START)
    assert stream.log.first == 5
    assert stream.poll(4, START) == Poll(
        DraftStatus.LIVE, True, MessageKind.REQUEST in kinds, MessageKind.ERROR in kinds
    )
    assert stream.poll(5, START) == Poll(
        DraftStatus.LIVE, True, kinds[1] is MessageKind.REQUEST, kinds[1] is MessageKind.ERROR
    )


def test_the_flags_stay_beside_their_messages_when_one_pushes_out_several() -> None:
    stream = fresh(max_bytes=6)
    for kind in (MessageKind.REQUEST, MessageKind.ERROR):
        stream.taken(stream.emit(b"abc", kind, START), START)
    stream.emit(b"abcdef", MessageKind.OTHER, START)
    assert stream.poll(2, START) == Poll(DraftStatus.LIVE, True, False, False)


def test_of_what_is_gone_nothing_waits_and_all_of_it_is_evicted() -> None:
    stream = reach("GONE")
    assert (len(stream.log), stream.log.bytes, len(stream._kinds), stream.lost) == (0, 0, 0, None)
    assert stream.poll(None, START) == Poll(DraftStatus.COMPLETED, False, False, False)
    with pytest.raises(EvictedError):
        stream.poll(1, START)


# What no longer fits.


def test_as_many_as_the_bounds_say_wait_and_one_more_is_the_loss() -> None:
    stream = filled(b"a", b"b", b"c")
    assert stream.untaken == 3
    with pytest.raises(LostError):
        stream.emit(b"d", MessageKind.OTHER, START)
    assert (len(stream.log), stream.untaken, stream.deadline) == (0, 4, None)


def test_as_many_bytes_as_the_bounds_say_wait_and_one_more_is_the_loss() -> None:
    stream = filled(b"1234", b"56", max_bytes=6)
    assert stream.untaken == 2
    with pytest.raises(LostError):
        stream.emit(b"7", MessageKind.OTHER, START)
    assert (stream.lost, len(stream.log), stream.log.bytes) == (Lost.OVERFLOW, 0, 0)


@pytest.mark.parametrize("bounds", [{"max_messages": 3}, {"max_messages": 9, "max_bytes": 3}])
def test_what_was_taken_makes_room(bounds: dict[str, int]) -> None:
    stream = filled(b"a", b"b", b"c", taken=3, **bounds)
    assert [stream.emit(message, MessageKind.OTHER, START) for message in (b"d", b"e")] == [4, 5]
    assert (list(stream.log.after(2)), stream.log.first, stream.lost) == ([b"c", b"d", b"e"], 3, None)


@pytest.mark.parametrize("bounds", [{"max_messages": 3}, {"max_messages": 9, "max_bytes": 3}])
def test_one_that_was_not_taken_is_enough_for_the_loss(bounds: dict[str, int]) -> None:
    stream = filled(b"a", b"b", b"c", taken=2, **bounds)
    stream.emit(b"d", MessageKind.OTHER, START)
    stream.emit(b"e", MessageKind.OTHER, START)
    with pytest.raises(LostError):
        stream.emit(b"f", MessageKind.OTHER, START)
    assert stream.lost is Lost.OVERFLOW


def test_a_large_message_pushes_out_everything_taken_but_nothing_else() -> None:
    huge = b"x" * 7
    well = filled(b"a", b"b", taken=2, max_bytes=6)
    assert well.emit(huge, MessageKind.OTHER, START) == 3
    assert list(well.log.after(2)) == [huge]
    ill = filled(b"a", b"b", taken=1, max_bytes=6)
    with pytest.raises(LostError):
        ill.emit(huge, MessageKind.OTHER, START)
    assert len(ill.log) == 0


def test_a_first_message_beyond_the_bounds_is_kept_alone() -> None:
    stream = fresh(max_bytes=6)
    stream.emit(b"x" * 7, MessageKind.OTHER, START)
    assert (len(stream.log), stream.log.bytes) == (1, 7)
    with pytest.raises(LostError):
        stream.emit(b"", MessageKind.OTHER, START)


def test_what_the_client_says_it_has_makes_room_too() -> None:
    stream = filled(b"a", b"b", b"c")
    stream.poll(1, START)
    assert stream.emit(b"d", MessageKind.OTHER, START) == 4


# When it may be resumed.


def created(at: float) -> DraftStream:
    return fresh(now=at)


def left(at: float) -> DraftStream:
    stream = fresh(now=at - 100)
    stream.connect(at - 50)
    stream.disconnect(at)
    return stream


def attached(at: float) -> DraftStream:
    stream = left(at - 1)
    stream.connect(at)
    return stream


def taken_over(at: float) -> DraftStream:
    stream = attached(at - 10)
    stream.connect(at)
    return stream


TIMES = [0.0, START, 0.1, 1e9 + 0.3]
BEGINNINGS = [created, left, attached, taken_over]


@pytest.mark.parametrize("at", TIMES)
@pytest.mark.parametrize("begun", BEGINNINGS)
def test_it_may_be_resumed_min_after_the_last_change_of_readers(begun: Callable[..., DraftStream], at: float) -> None:
    stream = begun(at)
    before = facts(stream)
    earliest = at + MIN
    for now in (at, at + 4.5, math.nextafter(earliest, -math.inf)):
        with pytest.raises(TooEarlyError) as caught:
            stream.resume(None, now)
        assert caught.value.wait_s == earliest - now > 0
    assert facts(stream) == before, "a refused resume is none"
    assert stream.resume(None, earliest) == stream.resume(None, earliest) == 0


def test_too_early_says_how_long_to_wait() -> None:
    with pytest.raises(TooEarlyError, match=r"^too early to resume: wait 3\.5 s$"):
        created(START).resume(None, START + 1.5)


@pytest.mark.parametrize("name", ["emit", "end", "taken", "poll", "resume"])
def test_only_readers_that_come_and_go_begin_min_again(name: str) -> None:
    stream = filled(b"a")
    tell(stream, name, START + MIN)
    stream.resume(None, START + MIN)


def test_a_disconnect_without_a_reader_begins_nothing() -> None:
    stream = left(START)
    stream.disconnect(START + MIN)
    assert stream.deadline == START + MAX
    stream.resume(None, START + MIN)


def test_without_a_minimum_it_may_be_resumed_at_once() -> None:
    stream = DraftStream(Interval(0, MAX), KEEP, max_messages=1, max_bytes=1, now=START)
    assert stream.resume(None, START) == 0


# How long it is waited for.


def polled(at: float) -> DraftStream:
    stream = left(at - 7)
    stream.poll(None, at)
    return stream


def ended(at: float) -> DraftStream:
    stream = left(at)
    stream.emit(b"m", MessageKind.OTHER, at)
    stream.end(at + 1)
    return stream


def polled_while_read(at: float) -> DraftStream:
    stream = attached(at - 9)
    stream.poll(None, at - 5)
    stream.disconnect(at)
    return stream


WAITED_FOR = [created, left, polled, ended, polled_while_read]


@pytest.mark.parametrize("at", TIMES)
@pytest.mark.parametrize("begun", WAITED_FOR)
def test_it_is_abandoned_max_after_the_client_was_last_heard_of(begun: Callable[..., DraftStream], at: float) -> None:
    stream = begun(at)
    before = facts(stream)
    assert stream.deadline == at + MAX
    assert not stream.expire(at)
    assert not stream.expire(math.nextafter(at + MAX, -math.inf))
    assert facts(stream) == before
    assert stream.expire(at + MAX)
    assert (stream.lost, stream.forgotten, stream.deadline, len(stream.log)) == (Lost.ABANDONED, False, None, 0)
    assert not stream.expire(at + MAX), "it is over once"


@pytest.mark.parametrize("at", TIMES)
@pytest.mark.parametrize("ask", [DraftStream.resume, DraftStream.poll])
def test_until_the_last_moment_it_can_be_asked_for(ask: Callable[..., object], at: float) -> None:
    ask(created(at), None, math.nextafter(at + MAX, -math.inf))
    with pytest.raises(LostError) as caught:
        ask(created(at), None, at + MAX)
    assert caught.value.lost is Lost.ABANDONED


@pytest.mark.parametrize("name", ["emit", "end", "taken", "disconnect", "resume"])
def test_what_does_not_come_from_the_client_or_does_not_bring_a_reader_prolongs_nothing(name: str) -> None:
    stream = filled(b"a", b"b", taken=1)
    if name == "taken":
        stream.emit(b"c", MessageKind.OTHER, START)
    tell(stream, name, START + 100)
    assert stream.deadline == START + MAX


@pytest.mark.parametrize("received", [9, 0])
def test_a_refused_poll_prolongs_nothing(received: int) -> None:
    stream = filled(b"a", b"b", taken=2, max_messages=1)
    with pytest.raises((IndexError, EvictedError)):
        stream.poll(received, START + 100)
    assert stream.deadline == START + MAX


@pytest.mark.parametrize("state", ["HELD", "TAIL"])
def test_while_somebody_reads_nobody_is_waited_for(state: str) -> None:
    stream = reach(state)
    assert stream.deadline is None
    assert not stream.expire(NEVER)
    stream.poll(None, NEVER)
    assert (stream.deadline, name_of(stream)) == (None, state)


@pytest.mark.parametrize("state", ["AWAY", "LEFT"])
@pytest.mark.parametrize("name", ["emit", "resume", "poll"])
def test_what_comes_after_the_deadline_is_refused_though_nobody_looked(state: str, name: str) -> None:
    stream = reach(state)
    before = facts(stream)
    with pytest.raises(LostError) as caught:
        tell(stream, name, START + MAX)
    assert (caught.value.lost, facts(stream)) == (Lost.ABANDONED, before)


@pytest.mark.parametrize("state", ["AWAY", "LEFT"])
@pytest.mark.parametrize("name", ["end", "taken", "connect", "disconnect"])
def test_nothing_saves_a_stream_whose_deadline_has_passed(state: str, name: str) -> None:
    stream = reach(state)
    before = facts(stream)
    tell(stream, name, START + MAX)
    assert facts(stream) == before
    assert stream.expire(START + MAX)
    assert stream.lost is Lost.ABANDONED


@pytest.mark.parametrize("late", [False, True])
def test_a_reader_whose_stream_was_lost_leaves_like_any_other(*, late: bool) -> None:
    stream = reach("HELD")
    stream.lose(Lost.SESSION_ENDED)
    assert stream.connected
    stream.disconnect(NEVER if late else START)
    assert (stream.connected, stream.deadline, stream.lost) == (False, None, Lost.SESSION_ENDED)


# How long what was taken is kept.


def taken_then_ended(at: float) -> DraftStream:
    stream = filled(b"a", taken=1, now=at - 10)
    stream.end(at)
    return stream


def ended_then_taken(at: float) -> DraftStream:
    stream = fresh(now=at - 10)
    stream.emit(b"a", MessageKind.OTHER, at - 10)
    stream.end(at - 5)
    stream.taken(1, at)
    return stream


def empty(at: float) -> DraftStream:
    stream = fresh(now=at - 10)
    stream.end(at)
    return stream


@pytest.mark.parametrize("at", TIMES)
@pytest.mark.parametrize("begun", [taken_then_ended, ended_then_taken, empty])
@pytest.mark.parametrize("read", [False, True])
def test_what_was_ended_and_taken_is_kept_for_a_while_and_is_no_loss(
    begun: Callable[..., DraftStream], at: float, *, read: bool
) -> None:
    stream = begun(at)
    if read:
        stream.connect(at)
    assert stream.deadline == at + KEEP
    assert not stream.expire(math.nextafter(at + KEEP, -math.inf))
    assert not stream.forgotten
    assert stream.expire(at + KEEP)
    assert (stream.lost, stream.forgotten, stream.deadline, len(stream.log)) == (None, True, None, 0)
    assert not stream.expire(NEVER), "it is over once"


@pytest.mark.parametrize("name", ["end", "taken", "connect", "disconnect", "resume", "poll"])
def test_nothing_prolongs_what_is_done(name: str) -> None:
    stream = reach("DONE")
    tell(stream, name, START + 100)
    assert stream.deadline == START + KEEP


def test_what_is_done_is_read_until_it_is_forgotten() -> None:
    stream = reach("DONE")
    assert stream.resume(0, START + KEEP + 1) == 0
    assert list(stream.log.after(0)) == [b"one", b"two"]


def test_what_is_gone_is_not_lost_afterwards() -> None:
    stream = reach("GONE")
    stream.lose(Lost.SESSION_ENDED)
    assert (stream.lost, stream.forgotten) == (None, True)

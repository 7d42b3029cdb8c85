"""A draft stream against a plain list: any mix of work, readers that come and go, polls, time, ends and losses."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

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

from . import steps

END_OF_TIME = 1e9
COUNTING, TRUSTING = "counting", "trusting"
# What a client says it has: what it has; nothing at all; or any number.
claims = st.one_of(st.just(COUNTING), st.just(COUNTING), st.just(TRUSTING), st.integers(-2, 40))
messages = st.lists(st.tuples(st.binary(max_size=20), st.sampled_from(MessageKind)), min_size=1, max_size=3)
emits = st.tuples(st.just("emit"), messages)
takes = st.tuples(st.just("take"), st.sampled_from([1, 99, 99]), st.sampled_from([True, True, False]))
resumes = st.tuples(st.just("resume"), claims, st.sampled_from([True, True, False]))
# One rule for all of them: a choice among rules leaves some of them out of each history, and then not much happens.
happenings = st.one_of(
    emits,
    emits,
    takes,
    takes,
    resumes,
    resumes,
    st.tuples(st.just("connect")),
    st.tuples(st.just("disconnect")),
    st.tuples(st.just("poll"), claims),
    st.tuples(st.just("say_taken"), st.integers(0, 40)),
    st.tuples(st.just("wait"), st.floats(0, 10)),
    st.tuples(st.just("wait_for_min"), st.booleans()),
    st.tuples(st.just("wait_for_deadline"), st.booleans()),
    st.tuples(st.just("wait_for_deadline"), st.booleans()),
    st.tuples(st.just("expire")),
    st.tuples(st.just("expire")),
    st.tuples(st.just("end")),
    st.tuples(st.just("lose"), st.sampled_from(Lost)),
)
# What may become of a stream; without a bound on that, few would live to see much.
fates = st.sampled_from([{"end"}, {"end"}, {"end", "deadline"}, {"deadline"}, {"overflow"}, {"lose"}, {"lose", "end"}])


class DraftStreams(RuleBasedStateMachine):
    """The model: every message ever emitted, in a list, and a history of what happened when.

    `got` is what the client has, `at` how far its present connection was sent, of which it may not have everything.
    """

    @initialize(
        min_s=st.sampled_from([0.0, 0.1, 5.0]),
        max_s=st.sampled_from([20.0, 60.0]),
        keep_s=st.sampled_from([0.0, 7.3, 120.0]),
        max_messages=st.sampled_from([2, 5, 9, 30]),
        max_bytes=st.sampled_from([15, 40, 90, 1000]),
        read=st.booleans(),
        fate=fates,
        life=st.integers(0, 25),
        start=st.sampled_from([0.0, 0.1, 1e6 + 0.7]),
    )
    def begins(
        self,
        min_s: float,
        max_s: float,
        keep_s: float,
        max_messages: int,
        max_bytes: int,
        read: bool,
        fate: set[str],
        life: int,
        start: float,
    ) -> None:
        """`life`: how many steps pass before its fate may overtake it."""
        self.min_s, self.max_s, self.keep_s = min_s, max_s, keep_s
        self.max_messages, self.max_bytes = max_messages, max_bytes
        self.fate, self.life = fate, life
        self.now = start
        self.stream = DraftStream(
            Interval(min_s, max_s), keep_s, max_messages=max_messages, max_bytes=max_bytes, now=start
        )
        self.history = [("created", start)]
        self.written: list[tuple[bytes, MessageKind]] = []
        self.taken = 0
        self.lost: Lost | None = None
        self.forgotten = False
        self.got: list[bytes] = []
        self.at: int | None = None
        if read:
            self.reads_from(0)

    @rule(step=happenings)
    def something_happens(self, step: tuple[Any, ...]) -> None:
        name, *arguments = step
        self.life -= 1
        getattr(self, name)(*arguments)

    def may(self, end: str) -> bool:
        return self.life < 0 and end in self.fate

    # The model.

    def when(self, *names: str) -> float | None:
        return next((at for name, at in reversed(self.history) if name in names), None)

    @property
    def ended(self) -> bool:
        return self.when("ended") is not None

    def deadline(self) -> float | None:
        done = self.when("done")
        if self.lost or self.forgotten:
            return None
        if done is not None:
            return done + self.keep_s
        last = self.when("created", "left", "polled")
        return last + self.max_s if self.at is None and last is not None else None

    def loss(self) -> Lost | None:
        """What the client would be told now."""
        deadline = self.deadline()
        passed = deadline is not None and self.when("done") is None and self.now >= deadline
        return Lost.ABANDONED if passed else self.lost

    def gone(self, messages: list[tuple[bytes, MessageKind]]) -> int:
        """How many messages the bounds push out: all but the longest end of the list within them."""
        if self.lost or self.forgotten:
            return len(messages)
        for first in range(len(messages)):
            rest = [message for message, _ in messages[first:]]
            if len(rest) == 1 or (len(rest) <= self.max_messages and sum(map(len, rest)) <= self.max_bytes):
                return first
        return 0

    def note_taken(self, position: int) -> None:
        if self.loss() is None:
            self.taken = max(self.taken, position)
            self.note_done()

    def note_done(self) -> None:
        if self.ended and self.taken == len(self.written) and self.when("done") is None:
            self.history.append(("done", self.now))

    def claimed(self, claim: str | int) -> int | None:
        """What the client sends as `received`."""
        if claim == TRUSTING:
            return None
        return len(self.got) if isinstance(claim, str) else claim

    def expect(self, received: int | None) -> type[Exception] | int:
        """The cursor of an answer, or why there is none."""
        cursor = self.taken if received is None else received
        if self.loss():
            return LostError
        if not 0 <= cursor <= len(self.written):
            return IndexError
        return EvictedError if cursor < self.gone(self.written) else cursor

    # The work.

    def emit(self, messages: list[tuple[bytes, MessageKind]]) -> None:
        for message, kind in messages:
            self.emit_one(message, kind)

    def emit_one(self, message: bytes, kind: MessageKind) -> None:
        loss, after = self.loss(), [*self.written, (message, kind)]
        overflows = self.gone(after) > self.taken
        if overflows and loss is None and not self.ended and not self.may("overflow"):
            self.say_taken(len(self.written))
            overflows = False
        try:
            position = self.stream.emit(message, kind, self.now)
        except LogClosedError:
            assert (self.ended, loss) == (True, None)
        except LostError as error:
            if loss is None:
                assert (overflows, self.ended) == (True, False), "what was taken makes room"
                self.written, self.lost = after, Lost.OVERFLOW
            assert error.lost is (loss or Lost.OVERFLOW)
        else:
            assert (overflows, self.ended, loss) == (False, False, None)
            self.written = after
            assert position == len(after)

    def end(self) -> None:
        if not self.may("end") and not self.lost:
            return
        self.stream.end(self.now)
        if self.loss() is None and not self.ended:
            self.history.append(("ended", self.now))
            self.note_done()

    def lose(self, why: Lost) -> None:
        if not self.may("lose") and not self.forgotten:
            return
        self.stream.lose(why)
        if not self.forgotten:
            self.lost = self.lost or why

    # Readers.

    def resume(self, claim: str | int, stays: bool) -> None:
        received = self.claimed(claim)
        expected, changed = self.expect(received), self.when("created", "attached", "left")
        assert changed is not None
        early = self.now < changed + self.min_s
        try:
            cursor = self.stream.resume(received, self.now)
        except TooEarlyError as error:
            assert early
            assert isinstance(expected, int), "what waiting does not help is said first"
            assert error.wait_s == changed + self.min_s - self.now > 0
        except (LostError, IndexError, EvictedError) as error:
            self.check_refusal(error, expected)
        else:
            assert (cursor, early) == (expected, False)
            self.note_taken(cursor)
            if stays:
                self.reads_from(cursor)

    def connect(self) -> None:
        """Without a resume, as the request that created the stream does, however late."""
        self.reads_from(self.taken)

    def reads_from(self, cursor: int) -> None:
        """A connection begins. A client that does not count has what the server sent, or whatever it says."""
        loss = self.loss()
        self.stream.connect(self.now)
        if loss is None:
            self.history.append(("attached", self.now))
            self.at = cursor
            if cursor != len(self.got):
                self.got = [message for message, _ in self.written[:cursor]]

    def take(self, most: int, arrives: bool) -> None:
        """Prefix + suffix: what the client has and what comes now is what was emitted, with nothing between them."""
        if self.at is None:
            return
        try:
            sent = list(self.stream.log.after(self.at))[:most]
        except EvictedError:
            assert self.at < self.gone(self.written), "a reader is told of a loss exactly when there is one"
            return
        self.at += len(sent)
        self.stream.taken(self.at, self.now)
        self.note_taken(self.at)
        if arrives and len(self.got) == self.at - len(sent):
            self.got += sent
            assert self.got == [message for message, _ in self.written[: self.at]], "no loss, no duplicates, in order"

    def say_taken(self, position: int) -> None:
        """What was said before, or of a connection that has gone, or cannot be."""
        if position > len(self.written):
            with pytest.raises(IndexError):
                self.stream.taken(position, self.now)
        else:
            self.stream.taken(position, self.now)
            self.note_taken(position)

    def disconnect(self) -> None:
        self.stream.disconnect(self.now)
        if self.at is not None:
            self.history.append(("left", self.now))
            self.at = None

    # The client from afar.

    def poll(self, claim: str | int) -> None:
        received = self.claimed(claim)
        expected = self.expect(received)
        try:
            told = self.stream.poll(received, self.now)
        except (LostError, IndexError, EvictedError) as error:
            self.check_refusal(error, expected)
        else:
            assert isinstance(expected, int)
            self.history.append(("polled", self.now))
            self.note_taken(expected)
            kinds = [kind for _, kind in self.written[expected:]]
            status = DraftStatus.COMPLETED if self.ended else DraftStatus.LIVE
            assert told == Poll(status, kinds != [], MessageKind.REQUEST in kinds, MessageKind.ERROR in kinds)

    def check_refusal(self, error: Exception, expected: type[Exception] | int) -> None:
        assert type(error) is expected
        if isinstance(error, LostError):
            assert error.lost is self.loss()
        if isinstance(error, EvictedError):
            assert error.first == self.gone(self.written) + 1

    # Time.

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def wait_for_min(self, before: bool) -> None:
        """The very moment, or the last before it."""
        changed = self.when("created", "attached", "left")
        assert changed is not None
        self.jump(changed + self.min_s, before)

    def wait_for_deadline(self, before: bool) -> None:
        deadline = self.deadline()
        if deadline is not None and (before or self.when("done") or self.may("deadline")):
            self.jump(deadline, before)

    def jump(self, to: float, before: bool) -> None:
        self.now = max(self.now, math.nextafter(to, -math.inf) if before else to)

    def expire(self) -> None:
        deadline = self.deadline()
        over = deadline is not None and self.now >= deadline
        assert self.stream.expire(self.now) == over
        if over and self.when("done") is None:
            self.lost = Lost.ABANDONED
        elif over:
            self.forgotten = True

    # What holds in every history.

    @invariant()
    def it_is_what_the_model_says(self) -> None:
        stream = self.stream
        assert (stream.lost, stream.forgotten) == (self.lost, self.forgotten), "lost is final, with its first reason"
        assert (stream.status is DraftStatus.COMPLETED) == self.ended
        assert stream.connected == (self.at is not None)
        assert stream.untaken == len(self.written) - self.taken

    @invariant()
    def it_keeps_what_the_bounds_allow_and_nothing_of_what_is_over(self) -> None:
        log, gone = self.stream.log, self.gone(self.written)
        kept = [message for message, _ in self.written[gone:]]
        assert list(log.after(gone)) == kept
        assert (len(log), log.bytes, log.first) == (len(kept), sum(map(len, kept)), gone + 1)
        assert log.closed == bool(self.ended or self.lost or self.forgotten)
        assert len(self.stream._kinds) == len(kept)
        assert gone <= self.taken or self.lost, "nothing goes untaken but with the stream"

    @invariant()
    def the_deadline_is_when_it_expires(self) -> None:
        deadline = self.deadline()
        assert self.stream.deadline == deadline
        if deadline is None:
            assert not copy.deepcopy(self.stream).expire(END_OF_TIME)
        else:
            assert not copy.deepcopy(self.stream).expire(math.nextafter(deadline, -math.inf))
            assert copy.deepcopy(self.stream).expire(deadline)


TestDraftStreams = DraftStreams.TestCase
TestDraftStreams.settings = steps(40)

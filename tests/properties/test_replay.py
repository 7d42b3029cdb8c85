"""The replay log against a plain list: any mix of writing, reading, resuming, overflowing and ending."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from probe.core.replay import EvictedError, LogClosedError, ReplayLog

from . import steps


class Replay(RuleBasedStateMachine):
    """The model: every message ever written, in a list. A cursor is how many of them a reader has."""

    cursors = Bundle("cursors")

    @initialize(max_messages=st.integers(1, 6), max_bytes=st.integers(1, 40))
    def begins(self, max_messages: int, max_bytes: int) -> None:
        self.max_messages, self.max_bytes = max_messages, max_bytes
        self.log = ReplayLog(max_messages=max_messages, max_bytes=max_bytes)
        self.written: list[bytes] = []
        self.closed = False

    @rule(message=st.binary(max_size=20))
    def a_message_is_written(self, message: bytes) -> None:
        try:
            position = self.log.append(message)
        except LogClosedError:
            assert self.closed
        else:
            assert not self.closed
            self.written.append(message)
            assert position == len(self.written)

    @rule()
    def it_ends(self) -> None:
        self.log.close()
        self.closed = True

    @rule(target=cursors)
    def a_reader_comes(self) -> int:
        return 0

    @rule(cursor=cursors, target=cursors, most=st.integers(0, 5))
    def a_reader_goes_on_from_any_cursor_it_ever_had(self, cursor: int, most: int) -> int:
        """Prefix + suffix: what it had and what it gets now are what was written, with nothing between them."""
        kept = self.kept()
        try:
            suffix = list(self.log.after(cursor))
        except EvictedError as error:
            assert cursor < len(self.written) - len(kept), "it is told of a loss exactly when there is one"
            assert error.first == len(self.written) - len(kept) + 1
            return error.first - 1
        assert self.written[:cursor] + suffix == self.written
        assert kept[len(kept) - len(suffix) :] == suffix
        return cursor + min(most, len(suffix))

    @rule(cursor=st.integers(-3, 60))
    def nobody_can_read_from_where_nobody_was(self, cursor: int) -> None:
        if not 0 <= cursor <= len(self.written):
            with pytest.raises(IndexError):
                self.log.after(cursor)

    def kept(self) -> list[bytes]:
        """The longest end of the list within both bounds, but never less than the newest message."""
        kept: list[bytes] = []
        for message in reversed(self.written):
            size = sum(map(len, kept)) + len(message)
            if kept and (len(kept) == self.max_messages or size > self.max_bytes):
                break
            kept.insert(0, message)
        return kept

    @invariant()
    def it_keeps_as_much_as_the_bounds_allow_and_says_so(self) -> None:
        kept = self.kept()
        assert (self.log.first, self.log.last) == (len(self.written) - len(kept) + 1, len(self.written))
        assert (len(self.log), self.log.bytes) == (len(kept), sum(map(len, kept)))
        assert list(self.log.after(self.log.first - 1)) == kept
        assert self.log.closed == self.closed


TestReplay = Replay.TestCase
TestReplay.settings = steps(20)

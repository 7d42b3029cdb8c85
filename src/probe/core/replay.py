"""One append-only log of a stream's messages, read by cursors.

Replay and live tail are the same loop: a reader asks for what follows its cursor, whether that was written an hour ago
or just now, so nothing can fall between the two. Positions count from 1; cursor 0 is the start, before any message.

Bounded in messages and bytes. When full, the oldest messages go. A reader whose next message has gone is told so by
`EvictedError` instead of being given the rest: silence about a loss would be worse than the loss.
"""

from __future__ import annotations

from collections.abc import Sequence


class EvictedError(LookupError):
    """Messages after this cursor were evicted: `first` is the oldest position still there."""

    def __init__(self, cursor: int, first: int) -> None:
        super().__init__(f"messages {cursor + 1} to {first - 1} are gone")
        self.first = first


class LogClosedError(RuntimeError):
    """Nothing may be appended to a log that has ended."""


class ReplayLog:
    """Messages of one stream, in order, each kept until the bounds push it out.

    `first` is the position of the oldest that is kept, `last` that of the newest; 0 when there was none yet.
    """

    def __init__(self, *, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        # A deque, even an empty one, has room for 64 items, and to read from its middle it is counted through.
        self._messages: list[bytes] = []
        self.first = 1
        self.last = 0
        self.bytes = 0
        self.closed = False

    def __len__(self) -> int:
        """The number of messages that are kept."""
        return len(self._messages)

    def append(self, message: bytes) -> int:
        """Add a message and return its position. A single message beyond the byte bound is kept, alone.

        Raises `LogClosedError` after `close`.
        """
        if self.closed:
            raise LogClosedError("the stream has ended")
        messages = self._messages
        messages.append(message)
        self.last += 1
        self.bytes += len(message)
        while (self.bytes > self._max_bytes or len(messages) > self._max_messages) and len(messages) > 1:
            self._drop(1)
        return self.last

    def _drop(self, count: int) -> None:
        self.bytes -= sum(map(len, self._messages[:count]))
        del self._messages[:count]
        self.first += count

    def close(self) -> None:
        """The stream has ended; what is there can still be read."""
        self.closed = True

    def forget(self, cursor: int) -> None:
        """Drop the messages up to a cursor, which nobody will read again."""
        count = min(cursor + 1 - self.first, len(self._messages))
        if count > 0:
            self._drop(count)

    def check(self, cursor: int) -> None:
        """Whether everything after a cursor is there.

        Raises `EvictedError` when some of it is gone and `IndexError` for a cursor that was never reached.
        """
        if not 0 <= cursor <= self.last:
            raise IndexError(f"cursor {cursor} is not within 0 to {self.last}")
        if cursor + 1 < self.first:
            raise EvictedError(cursor, self.first)

    def after(self, cursor: int, most: int | None = None) -> Sequence[bytes]:
        """The messages after a cursor, oldest first, at most so many. Raises what `check` raises."""
        self.check(cursor)
        start = cursor + 1 - self.first
        return self._messages[start : None if most is None else start + most]

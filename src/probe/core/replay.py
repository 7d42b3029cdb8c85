"""One append-only log of a stream's messages, read by cursors.

Positions count from 1; cursor 0 is before the first message.

The log is bounded in messages and bytes. When it is full, the oldest messages go. A reader whose next message has gone
gets `EvictedError`, and not the rest: a loss must not pass unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence


class EvictedError(LookupError):
    """Messages behind this cursor were evicted: `first` is the oldest position that is kept."""

    def __init__(self, cursor: int, first: int) -> None:
        super().__init__(f"messages {cursor + 1} to {first - 1} are gone")
        self.first = first


class LogClosedError(RuntimeError):
    """A message was appended to a log that has ended."""


class ReplayLog:
    """Messages of one stream, in order, each kept until the bounds evict it.

    `first` is the position of the oldest message that is kept, `last` that of the newest; 0 while there was none.
    """

    def __init__(self, *, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        # An empty deque has room for 64 items, and a read from its middle walks through it.
        self._messages: list[bytes] = []
        self.first = 1
        self.last = 0
        self.bytes = 0
        self.closed = False

    def __len__(self) -> int:
        return len(self._messages)

    def append(self, message: bytes) -> int:
        """Add a message and return its position. A message beyond the byte bound is kept alone.

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
        self.closed = True

    def forget(self, cursor: int) -> None:
        """Drop the messages up to a cursor."""
        count = min(cursor + 1 - self.first, len(self._messages))
        if count > 0:
            self._drop(count)

    def check(self, cursor: int) -> None:
        """Check that all messages behind a cursor are kept.

        Raises `EvictedError` where some are gone, and `IndexError` for a cursor beyond the newest message.
        """
        if not 0 <= cursor <= self.last:
            raise IndexError(f"cursor {cursor} is not within 0 to {self.last}")
        if cursor + 1 < self.first:
            raise EvictedError(cursor, self.first)

    def after(self, cursor: int, most: int | None = None) -> Sequence[bytes]:
        """The messages behind a cursor, oldest first. Raises as `check` does."""
        self.check(cursor)
        start = cursor + 1 - self.first
        return self._messages[start : None if most is None else start + most]

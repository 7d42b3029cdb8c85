"""The send queue of one connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import trio

MOST_DISPATCHES: Final = 100
"""How many dispatches a host runs at a time: four times what a server lets it run by default."""

# Each dispatch has at most three entries: its answer, the last report before it, and one whose sender was cancelled
# while it waited in line. The rest is for answers to pings and garbage.
_MOST_ENTRIES = 4 * MOST_DISPATCHES

Make: TypeAlias = Callable[[], bytes | None]
"""Makes a message at the moment when it can be written, so that it says the latest; None when there is nothing."""


class QueuedMessage(NamedTuple):
    """One message that waits. `written` is set once it was handed to the socket, or never will be."""

    make: Make
    written: trio.Event


class SendQueue:
    """First in, first out. A sender waits until its message is written, which bounds the queue; replies do not wait."""

    def __init__(self) -> None:
        self._entries: deque[QueuedMessage] = deque()
        self._news = trio.lowlevel.ParkingLot()
        self._closed = False

    async def send(self, *messages: Make) -> None:
        """Put messages in line and wait until the last is written, or until there is no connection for it any more.

        A sender that is cancelled while it waits leaves the messages in line.
        """
        if self._closed:
            return
        entries = [QueuedMessage(make, trio.Event()) for make in messages]
        for entry in entries:
            self._put(entry)
        await entries[-1].written.wait()

    def reply(self, message: bytes) -> bool:
        """Queue an answer without a dispatch. False, without effect, where the queue is full."""
        if self._closed or len(self._entries) >= _MOST_ENTRIES:
            return False
        self._put(QueuedMessage(lambda: message, trio.Event()))
        return True

    async def next(self) -> QueuedMessage:
        """The next entry, for the one task that writes."""
        while not self._entries:
            await self._news.park()
        return self._entries.popleft()

    def close(self) -> None:
        """The connection is gone: drop all entries, and take no more."""
        self._closed = True
        for entry in self._entries:
            entry.written.set()
        self._entries.clear()

    def _put(self, entry: QueuedMessage) -> None:
        self._entries.append(entry)
        self._news.unpark()

"""The requests of one HTTP/2 connection that wait for their turn."""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from h2 import events
from trio.lowlevel import ParkingLot

MOST_EVENTS = 256
"""The most waiting events of one connection: heads, parts of bodies, ends and resets. With as many the reader stops.

Below it, later frames such as the reset of a running request are handled at once.
"""

_MOST_OF_REST = 2
"""One frame of a body, and the end."""

StreamEvent: TypeAlias = events.RequestReceived | events.DataReceived | events.StreamEnded | events.StreamReset


class Unbegun:
    """A FIFO of requests that have not begun, each with the later frames of its stream."""

    def __init__(self) -> None:
        self._streams: dict[int, deque[StreamEvent]] = {}
        self._events = 0
        self._came = ParkingLot()
        self._went = ParkingLot()

    def keep(self, event: events.Event) -> bool:
        """Keep an event if it is a request, or belongs to one that is kept; whether it was kept."""
        if isinstance(event, events.RequestReceived):
            self._streams[event.stream_id] = deque([event])
            self._came.unpark_all()
        elif isinstance(event, StreamEvent) and event.stream_id in self._streams:
            self._streams[event.stream_id].append(event)
        else:
            return False
        self._events += 1
        return True

    async def room(self) -> None:
        """Wait until there is room for another event."""
        while self._events >= MOST_EVENTS:
            await self._went.park()

    async def first(self) -> events.RequestReceived:
        """The oldest request; waits for one."""
        while not self._streams:
            await self._came.park()
        request = next(iter(self._streams.values()))[0]
        assert isinstance(request, events.RequestReceived)
        return request

    def is_whole(self, stream_id: int) -> bool:
        """Whether the events left of a request that has begun are at most one frame of its body, and its end."""
        rest = self._streams.get(stream_id, deque())
        return 0 < len(rest) <= _MOST_OF_REST and isinstance(rest[-1], events.StreamEnded)

    def take(self, stream_id: int) -> StreamEvent | None:
        """The next event of a stream.

        None after the last one, and then the stream no longer waits; None also after `clear`.
        """
        waiting = self._streams.get(stream_id)
        if not waiting:
            self._streams.pop(stream_id, None)
            self._went.unpark_all()
            return None
        self._events -= 1
        self._went.unpark_all()
        return waiting.popleft()

    async def begun(self) -> None:
        """Wait until all requests have begun."""
        while self._streams:
            await self._went.park()

    def clear(self) -> None:
        """Drop all requests."""
        self._streams.clear()
        self._events = 0
        self._went.unpark_all()

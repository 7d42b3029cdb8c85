"""The memory of all streams that can be resumed: bounded over all sessions, where each of these has bounds of its own.

The holder of most messages loses some: first those of streams that have ended, oldest first, then those of the
largest that goes on. So one who hoards takes nothing from others. A reader finds its next message gone, as it does
where the bounds of a stream push it out.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from ...log.events import LimitReached
from .stream import Stream


class ReplayRoom:
    """The streams of the sessions of one engine, by who holds them: a client address, or a session of this machine."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._streams: dict[str, dict[Stream, int]] = {}
        self._holders: dict[Stream, str] = {}
        self._held: Counter[str] = Counter()
        self.bytes = 0

    def add(self, stream: Stream, holder: str) -> None:
        """From now on, until `remove`, the stream counts as its holder's."""
        self._streams.setdefault(holder, {})[stream] = 0
        self._holders[stream] = holder
        stream.weighed = partial(self._weigh, stream, holder)

    def remove(self, stream: Stream) -> None:
        """The stream is kept no more by its session. Harmless when repeated."""
        holder = self._holders.pop(stream, None)
        if holder is None:
            return
        stream.weighed = None
        streams = self._streams[holder]
        self._count(holder, -streams.pop(stream))
        if not streams:
            del self._streams[holder], self._held[holder]

    def _count(self, holder: str, size: int) -> None:
        self._held[holder] += size
        self.bytes += size

    def _weigh(self, stream: Stream, holder: str) -> None:
        size, streams = stream.replay.bytes, self._streams[holder]
        self._count(holder, size - streams[stream])
        streams[stream] = size
        while self.bytes > self._most:
            self._relieve()

    def _relieve(self) -> None:
        holder = max(self._held, key=self._held.__getitem__)
        streams = self._streams[holder]
        ended = (stream for stream, size in streams.items() if size and stream.ended_at is not None)
        victim = next(ended, None) or max(streams, key=streams.__getitem__)
        victim.recorder.caused_by(None).append(LimitReached("max_replay_bytes", self._most))
        self._count(holder, -streams[victim])
        streams[victim] = 0
        victim.evict()

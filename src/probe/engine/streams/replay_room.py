"""A bound on the memory of all resumable streams of all sessions. Each session has its own bound too.

At the bound, the holder with the most bytes loses messages: first those of ended streams, oldest first, then those of
its largest stream. So a holder never takes memory from one with less. For example, with a bound of 100 MB, a holder of
80 MB and one of 20 MB: if the second grows by 1 MB, the first loses a stream's messages. A reader then finds its next
message evicted, as it does at the bound of the stream itself.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from ...log.events import LimitReached
from .stream import Stream


class ReplayRoom:
    """The streams of the sessions of one engine by their holder: a client address, or on loopback a session."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._streams: dict[str, dict[Stream, int]] = {}
        self._holders: dict[Stream, str] = {}
        self._held: Counter[str] = Counter()
        self.bytes = 0

    def add(self, stream: Stream, holder: str) -> None:
        """Count the stream for its holder, until `remove`."""
        self._streams.setdefault(holder, {})[stream] = 0
        self._holders[stream] = holder
        stream.weighed = partial(self._weigh, stream, holder)

    def remove(self, stream: Stream) -> None:
        """The session keeps the stream no longer. Harmless when repeated."""
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
            self._evict_one()

    def _evict_one(self) -> None:
        holder = max(self._held, key=self._held.__getitem__)
        streams = self._streams[holder]
        ended = (stream for stream, size in streams.items() if size and stream.ended_at is not None)
        evicted = next(ended, None) or max(streams, key=streams.__getitem__)
        evicted.recorder.caused_by(None).append(LimitReached("max_replay_bytes", self._most))
        self._count(holder, -streams[evicted])
        streams[evicted] = 0
        evicted.evict()

"""The streams that one connection, or one response, reads. Its one writer takes messages from them in turn.

Replay and live messages are one loop: a track takes the messages after its cursor, old or new. So none is lost between
them, and no stream waits for another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import trio

from ...core.replay import EvictedError
from ...log.context import Recorder
from ...log.events import Control, StreamControl
from .stream import Reader, Stream, Waker

OVERFLOW = "overflow: messages were lost before this reader got them"


@dataclass(slots=True, eq=False)
class Track:
    """One stream as a connection reads it, up to `cursor`. `ended` is the reason of the end, None before."""

    stream: Stream
    cursor: int
    reader: Reader
    ended: str | None = None
    _over: trio.lowlevel.ParkingLot | None = None

    async def wait_ended(self) -> str:
        while self.ended is None:
            self._over = self._over or trio.lowlevel.ParkingLot()
            await self._over.park()
        return self.ended

    def end(self, why: str) -> None:
        if self.ended is None:
            self.ended = why
            self.stream.detach(self.reader)
            if self._over is not None:
                self._over.unpark_all()


class Piece(NamedTuple):
    """Messages of one track that are sent together; `first` is the position of the first."""

    track: Track
    first: int
    messages: Sequence[bytes]


class Reading:
    """The streams that an exchange reads. Owned by the exchange, which closes it; read by one writer.

    `recorder` is the exchange's; on a connection that carries everything a delivery has the exchange that opened the
    stream. `latest` is the track that was added last, or ended last once none is left. `overflowed` is set when
    messages of a stream that is not resumable were lost before they were read. `on_change` is called after each change
    of a stream, `on_end` at the end of each track.
    """

    def __init__(
        self,
        recorder: Recorder,
        on_change: Callable[[], None] | None = None,
        on_end: Callable[[Track], None] | None = None,
    ) -> None:
        self.recorder = recorder
        self.latest: Track | None = None
        self.overflowed = False
        self.retry_ms = 0
        """The time after which a client that loses these streams should come back, in milliseconds."""
        self._tracks: list[Track] = []
        self._waker = Waker()
        self._on_change = on_change
        self._on_end = on_end

    def __len__(self) -> int:
        return len(self._tracks)

    @property
    def first(self) -> Track | None:
        return self._tracks[0] if self._tracks else None

    @property
    def comments(self) -> bool:
        return all(track.stream.comments for track in self._tracks)

    @property
    def unread(self) -> int:
        """The bytes that wait for the reader, on streams that are not resumable."""
        return sum(track.stream.replay.bytes for track in self._tracks if not track.stream.resumable)

    @property
    def caught_up(self) -> bool:
        return all(track.cursor >= track.stream.replay.last for track in self._tracks)

    def add(self, stream: Stream, cursor: int) -> Track:
        """Begin to read a stream after `cursor`. Another connection that reads it is displaced."""
        track = self.latest = Track(stream, cursor, stream.attach(self.recorder, self.wake))
        self._tracks.append(track)
        self.retry_ms = max(self.retry_ms, stream.retry_ms)
        self.wake()
        return track

    def drop(self, track: Track, why: str) -> None:
        if track in self._tracks:
            self._tracks.remove(track)
            self.latest = self._tracks[-1] if self._tracks else track
            track.end(why)
            if self._on_end is not None:
                self._on_end(track)
            self.wake()

    def close(self, why: str) -> None:
        for track in list(self._tracks):
            self.drop(track, why)

    def let_go(self) -> None:
        """Tell its owner of no change any more; it is closed."""
        self._on_change = self._on_end = None

    def take(self, most_bytes: int) -> Piece | None:
        """The next messages of one stream, about `most_bytes` of them; None if there are none now.

        The streams take turns. An ended stream without further messages is dropped.
        """
        if len(self._tracks) == 1:
            return self._take(self._tracks[0], most_bytes)
        for track in list(self._tracks):
            piece = self._take(track, most_bytes)
            if piece is not None:
                self._tracks.remove(track)
                self._tracks.append(track)
                return piece
        return None

    def _take(self, track: Track, most_bytes: int) -> Piece | None:
        stream = track.stream
        # A displaced reader takes no messages: the newer reader gets them.
        if stream.reader is track.reader and track.cursor < stream.replay.last:
            try:
                messages = _some(stream.replay.after(track.cursor, 1 if stream.one_by_one else None), most_bytes)
            except EvictedError:
                # The loss of a stream is not the fault of this reader.
                lost = stream.dismissed(track.reader)
                # On a resumable stream, a reader that begins with an old event also comes too late, without being slow.
                self.overflowed = self.overflowed or (lost is None and not stream.resumable)
                self.drop(track, lost or OVERFLOW)
                return None
            first, track.cursor = track.cursor + 1, track.cursor + len(messages)
            return Piece(track, first, messages)
        ended = stream.dismissed(track.reader) or ("end of stream" if stream.replay.closed else None)
        if ended is not None:
            self.drop(track, ended)
        return None

    def taken(self, piece: Piece) -> None:
        """A socket took these messages as events."""
        stream, last = piece.track.stream, piece.first + len(piece.messages) - 1
        stream.delivered(piece.first, last, self.recorder, event_ids=stream.resumable)

    def controlled(
        self, track: Track | None, what: Control, event_id: str | None = None, retry_ms: int | None = None
    ) -> None:
        recorder = self.recorder if track is None else track.stream.recorder_of_reader(self.recorder)
        recorder.append(StreamControl(what, event_id, retry_ms))

    def wake(self) -> None:
        self._waker.wake()
        if self._on_change is not None:
            self._on_change()

    def wait_changed(self) -> Awaitable[None]:
        return self._waker.wait()


def _some(messages: Sequence[bytes], most_bytes: int) -> Sequence[bytes]:
    size = 0
    for count, message in enumerate(messages, 1):
        size += len(message)
        if size >= most_bytes:
            return messages[:count]
    return messages

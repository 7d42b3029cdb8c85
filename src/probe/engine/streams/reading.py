"""The streams that one connection, or one response, reads: several at once, taken in turn by its one writer.

Replay and live tail are one loop: a track takes what follows its cursor, whenever that was written. So nothing falls
between the two, and no stream has to wait for another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import trio

from ...core.replay import EvictedError
from ...log.context import Recorder
from ...log.events import Control, StreamControl
from .bell import Bell
from .stream import Reader, Stream

OVERFLOW = "overflow: messages were lost before this reader got them"


class Track:
    """One stream as a connection reads it, up to `cursor`; `ended` says why it is read no more, once that is so."""

    def __init__(self, stream: Stream, cursor: int, reader: Reader) -> None:
        self.stream = stream
        self.cursor = cursor
        self.reader = reader
        self.ended: str | None = None
        # Made by the first task that waits for the end. For most tracks none does.
        self._over: trio.lowlevel.ParkingLot | None = None

    async def wait_ended(self) -> str:
        """Wait until this is read no more; returns why."""
        while self.ended is None:
            self._over = self._over or trio.lowlevel.ParkingLot()
            await self._over.park()
        return self.ended

    def end(self, why: str) -> None:
        """Leave the stream. Harmless when repeated."""
        if self.ended is None:
            self.ended = why
            self.stream.detach(self.reader)
            if self._over is not None:
                self._over.unpark_all()


class Piece(NamedTuple):
    """Messages of one track that go out together; `first` is the position of the first of them."""

    track: Track
    first: int
    messages: Sequence[bytes]


class Reading:
    """The streams that an exchange reads. Owned by the exchange, which closes it; read by one writer.

    `recorder` is the exchange's; that of a connection which carries everything has no exchange, so that a delivery
    keeps the exchange that its stream was opened for.

    `latest` is the track that was added last, or that ended last once none is left; `overflowed` tells that messages
    of one that keeps nothing were lost before they could be read. `on_change` hears of everything that is new in any of
    them, `on_end` of each that is read no more.
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
        self._tracks: list[Track] = []
        self._bell = Bell()
        self._on_change = on_change
        self._on_end = on_end

    def __len__(self) -> int:
        """The number of streams that are read."""
        return len(self._tracks)

    @property
    def first(self) -> Track | None:
        """Before anything was taken: the track that was added first."""
        return self._tracks[0] if self._tracks else None

    @property
    def comments(self) -> bool:
        """Whether silence is broken by comments: none of the streams forbids them."""
        return all(track.stream.comments for track in self._tracks)

    @property
    def unread(self) -> int:
        """Bytes that wait for the reader, of streams that keep nothing else."""
        return sum(track.stream.replay.bytes for track in self._tracks if not track.stream.resumable)

    @property
    def retry_ms(self) -> int:
        """How long a client that loses these streams shall wait at least before it comes back, in milliseconds."""
        return max((track.stream.retry_ms for track in self._tracks), default=0)

    @property
    def caught_up(self) -> bool:
        """Whether nothing waits for the reader."""
        return all(track.cursor >= track.stream.replay.last for track in self._tracks)

    def add(self, stream: Stream, cursor: int) -> Track:
        """Begin to read a stream after `cursor`; another connection that read it is displaced."""
        track = self.latest = Track(stream, cursor, stream.attach(self.recorder, self.ring))
        self._tracks.append(track)
        self.ring()
        return track

    def drop(self, track: Track, why: str) -> None:
        """Read a stream no more. Harmless when repeated."""
        if track in self._tracks:
            self._tracks.remove(track)
            self.latest = self._tracks[-1] if self._tracks else track
            track.end(why)
            if self._on_end is not None:
                self._on_end(track)
            self.ring()

    def close(self, why: str) -> None:
        """Read nothing more: the exchange is over."""
        for track in list(self._tracks):
            self.drop(track, why)

    def take(self, most_bytes: int) -> Piece | None:
        """The next messages of one stream, some `most_bytes` of them; None when there are none now.

        The streams take turns. One that has nothing more to give is dropped.
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
        # A reader that was displaced says nothing more: whoever took over has these messages.
        if stream.reader is track.reader and track.cursor < stream.replay.last:
            try:
                messages = _some(stream.replay.after(track.cursor, 1 if stream.one_by_one else None), most_bytes)
            except EvictedError:
                # A stream that is lost is so for everybody; that says nothing about this reader.
                lost = stream.dismissed(track.reader)
                # So far behind is also who begins far back in a stream that goes on: that is no slow reader.
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
        """A socket took these messages, as events: those of a stream that can be resumed have ids."""
        stream, last = piece.track.stream, piece.first + len(piece.messages) - 1
        stream.delivered(piece.first, last, self.recorder, event_ids=stream.resumable)

    def controlled(
        self, track: Track | None, what: Control, event_id: str | None = None, retry_ms: int | None = None
    ) -> None:
        """A socket took an event of `track`, or a comment of the response, that is no message."""
        about = None if track is None else track.stream.recorder.context
        recorder = self.recorder
        if about is not None:
            recorder = recorder.bind(stream=about.stream, call=about.call, task=about.task)
        recorder.append(StreamControl(what, event_id, retry_ms))

    def ring(self) -> None:
        """Wake the writer."""
        self._bell.ring()
        if self._on_change is not None:
            self._on_change()

    def wait_changed(self) -> Awaitable[None]:
        """Wait for anything that is new in one of the streams, or a ring. To be awaited at once, by the one writer."""
        return self._bell.wait()


def _some(messages: Sequence[bytes], most_bytes: int) -> Sequence[bytes]:
    size = 0
    for count, message in enumerate(messages, 1):
        size += len(message)
        if size >= most_bytes:
            return messages[:count]
    return messages

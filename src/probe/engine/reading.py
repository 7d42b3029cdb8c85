"""What one connection, or one response, reads: several streams at once, taken in turn by its one writer.

Replay and live tail are one loop: a source takes what follows its cursor, whenever that was written. So nothing falls
between the two, and no stream has to wait for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio

from ..core.replay import EvictedError
from .streams import Reader, Stream

OVERFLOW = "overflow: messages were lost before this reader got them"


class Source:
    """One stream as a connection reads it, up to `cursor`; `ended` says why it is read no more, once that is so."""

    def __init__(self, stream: Stream, cursor: int, reader: Reader) -> None:
        self.stream = stream
        self.cursor = cursor
        self.reader = reader
        self.ended: str | None = None
        self._over = trio.lowlevel.ParkingLot()

    async def wait_ended(self) -> str:
        """Wait until this is read no more; returns why."""
        while self.ended is None:
            await self._over.park()
        return self.ended

    def end(self, why: str) -> None:
        """Leave the stream. Harmless when repeated."""
        if self.ended is None:
            self.ended = why
            self.stream.detach(self.reader)
            self._over.unpark_all()


@dataclass(frozen=True, slots=True)
class Piece:
    """Messages of one source that go out together; `first` is the position of the first of them."""

    source: Source
    first: int
    messages: Sequence[bytes]


class Reading:
    """The streams that an exchange reads. Owned by the exchange, which closes it; read by one writer.

    `latest` is the source that was added last, or that ended last once none is left; `overflowed` tells that messages
    of one that keeps nothing were lost before they could be read. `on_change` hears of everything that is new in any of
    them, `on_end` of each that is read no more.
    """

    def __init__(
        self,
        exchange: int,
        on_change: Callable[[], None] | None = None,
        on_end: Callable[[Source], None] | None = None,
    ) -> None:
        self.exchange = exchange
        self.latest: Source | None = None
        self.overflowed = False
        self._sources: list[Source] = []
        self._bell = trio.lowlevel.ParkingLot()
        self._on_change = on_change
        self._on_end = on_end

    def __len__(self) -> int:
        """How many streams are read."""
        return len(self._sources)

    @property
    def first(self) -> Source | None:
        """Before anything was taken: the source that was added first."""
        return self._sources[0] if self._sources else None

    @property
    def unread(self) -> int:
        """Bytes that wait for the reader, of streams that keep nothing else."""
        return sum(source.stream.replay.bytes for source in self._sources if not source.stream.resumable)

    @property
    def retry_ms(self) -> int:
        """How long a client that loses these streams shall wait at least before it comes back, in milliseconds."""
        return max((source.stream.retry_ms for source in self._sources), default=0)

    @property
    def caught_up(self) -> bool:
        """Whether nothing waits for the reader."""
        return all(source.cursor >= source.stream.replay.last for source in self._sources)

    def add(self, stream: Stream, cursor: int) -> Source:
        """Begin to read a stream after `cursor`; another connection that read it is displaced."""
        source = self.latest = Source(stream, cursor, stream.attach(self.exchange, self.ring))
        self._sources.append(source)
        self.ring()
        return source

    def drop(self, source: Source, why: str) -> None:
        """Read a stream no more. Harmless when repeated."""
        if source in self._sources:
            self._sources.remove(source)
            self.latest = self._sources[-1] if self._sources else source
            source.end(why)
            if self._on_end is not None:
                self._on_end(source)
            self.ring()

    def close(self, why: str) -> None:
        """Read nothing more: the exchange is over."""
        for source in list(self._sources):
            self.drop(source, why)

    def take(self, most_bytes: int) -> Piece | None:
        """The next messages of one stream, some `most_bytes` of them; None when there are none now.

        The streams take turns. One that has nothing more to give is dropped.
        """
        for source in list(self._sources):
            piece = self._take(source, most_bytes)
            if piece is not None:
                self._sources.remove(source)
                self._sources.append(source)
                return piece
        return None

    def _take(self, source: Source, most_bytes: int) -> Piece | None:
        stream = source.stream
        # A reader that was displaced says nothing more: whoever took over has these messages.
        if stream.reader is source.reader and source.cursor < stream.replay.last:
            try:
                messages = _some(stream.replay.after(source.cursor), 0 if stream.one_by_one else most_bytes)
            except EvictedError:
                # A stream that is lost is so for everybody; that says nothing about this reader.
                lost = stream.dismissed(source.reader)
                # So far behind is also who begins far back in a stream that goes on: that is no slow reader.
                self.overflowed = self.overflowed or (lost is None and not stream.resumable)
                self.drop(source, lost or OVERFLOW)
                return None
            first, source.cursor = source.cursor + 1, source.cursor + len(messages)
            return Piece(source, first, messages)
        ended = stream.dismissed(source.reader) or ("end of stream" if stream.replay.closed else None)
        if ended is not None:
            self.drop(source, ended)
        return None

    def taken(self, piece: Piece) -> None:
        """A socket took these messages."""
        piece.source.stream.delivered(piece.first, piece.first + len(piece.messages) - 1, self.exchange)

    def ring(self) -> None:
        """Wake the writer."""
        self._bell.unpark_all()
        if self._on_change is not None:
            self._on_change()

    async def wait_changed(self) -> None:
        """Wait for anything that is new in one of the streams, or a ring."""
        await self._bell.park()


def _some(messages: Sequence[bytes], most_bytes: int) -> Sequence[bytes]:
    size = 0
    for count, message in enumerate(messages, 1):
        size += len(message)
        if size >= most_bytes:
            return messages[:count]
    return messages

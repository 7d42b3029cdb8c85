"""The one writer of a pipe: what answers in one piece, and the streams that the connection reads.

Nobody waits for it but the reader of the same connection, and that only with what it would have to answer. Bounded:
`max_pipe_bytes` for one connection, `max_unsent_bytes` for all, of which one address has a share; beyond any of them
the connection ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import trio

from ...log.context import Recorder
from ...wire.jsonrpc import error_response
from ..services import Services
from ..streams.outbox import Emitted, answer, note_delivered
from ..streams.reading import Reading, Track
from ..streams.tool_stream import ToolStream, lost_error
from .wires import Wire

# Enough to keep a socket busy; beyond it nothing is begun that has to be answered.
_UNREAD_BYTES = 64 * 1024
# A task's handle is answered before its first status is sent: few enough to be fair, enough not to turn those round.
_SAID_PER_TURN = 16


@dataclass(frozen=True, slots=True)
class _Said:
    """One message that answers in one piece, and what to do when the peer's side has taken it."""

    body: bytes
    taken: Callable[[], None]


class PipeWriter:
    """Owned by its connection, which awaits `run` in a task of its own.

    `sent` counts the messages that the peer's side has taken; `broken` is set when it takes no more. `slow` is called
    when the peer reads too slowly, with the limit that says so, and `admit` whenever there is room for more: it says
    whether that made anything to write.
    """

    def __init__(
        self,
        services: Services,
        wire: Wire,
        recorder: Recorder,
        holder: str | None,
        slow: Callable[[str | None], None],
        admit: Callable[[], bool],
    ) -> None:
        self.reading = Reading(recorder.bind(exchange=None), self._check_backlog, self._answer_lost)
        self.sent = 0
        self.broken = False
        self._piped = services.piped
        self._most = services.limits.max_pipe_bytes
        self._wire = wire
        self._connection = recorder.context.connection
        self._holder = holder
        self._slow = slow
        self._admit = admit
        self._said: deque[_Said] = deque()
        self._said_bytes = 0
        self._counted = 0
        self._writing = False
        self._taken = trio.lowlevel.ParkingLot()

    @property
    def has_room(self) -> bool:
        """Whether the peer has read enough for more to be answered."""
        return self._unread <= _UNREAD_BYTES

    @property
    def finished(self) -> bool:
        """Whether everything is written, or nothing more can be."""
        return self.broken or not (self._said or self._writing or not self.reading.caught_up)

    def say(self, messages: Sequence[Emitted]) -> None:
        """Send answers in one piece; they are delivered together."""
        for place, message in enumerate(messages, 1):
            delivered = partial(note_delivered, messages) if place == len(messages) else _nothing
            self._said.append(_Said(message.body, delivered))
            self._said_bytes += len(message.body)
        self.reading.ring()

    async def wait_progress(self) -> None:
        """Wait until something was taken, a request is over, or the wire broke."""
        await self._taken.park()

    def note_progress(self) -> None:
        """Wake who waits for progress."""
        self._taken.unpark_all()

    def close(self) -> None:
        """Nothing more is read. Harmless when repeated."""
        self.reading.close("the connection is gone")

    def release(self) -> None:
        """Stop counting the bytes that were never taken: the connection is over."""
        self._count(0)

    async def run(self) -> None:
        """Write until cancelled. Raises `OSError`, with `broken` set, when the peer's side takes no more."""
        try:
            while True:
                wrote = await self._write_said()
                wrote = await self._write_streams() or wrote
                self._check_backlog()
                # Nothing may be awaited between this look and the wait, or its ring would be missed.
                if not (self._admit() or wrote or self._said):
                    await self.reading.wait_changed()
        except OSError:
            self.broken = True
            self.close()
            self.note_progress()
            raise

    @property
    def _unread(self) -> int:
        """Bytes of messages that the peer has yet to take; draft streams have bounds of their own."""
        return self._said_bytes + self.reading.unread

    def _check_backlog(self) -> None:
        unread = self._unread
        self._count(unread)
        # One answer may be larger than all of it.
        first = len(self._said[0].body) if self._said else 0
        if unread - first > self._most:
            self._slow("max_pipe_bytes")
        elif unread > _UNREAD_BYTES and self._piped.too_many(self._holder, first):
            self._slow("max_unsent_bytes")

    def _count(self, unread: int) -> None:
        self._piped.count(self._holder, self._counted, unread)
        self._counted = unread

    def _answer_lost(self, track: Track) -> None:
        """A call whose stream is lost under its reader is answered here: nothing else would ever tell of it."""
        stream = track.stream
        if isinstance(stream, ToolStream) and stream.machine.lost is not None and not stream.told:
            body = error_response(stream.request_id, lost_error(stream.machine.lost).body())
            call = stream.recorder.context
            self.say([answer(stream.request.bind(connection=self._connection, call=call.call, task=call.task), body)])

    async def _write_said(self) -> bool:
        """Answers in one piece, so many at a time that a flood of them stops no stream."""
        wrote = bool(self._said)
        for _ in range(min(len(self._said), _SAID_PER_TURN)):
            said = self._said[0]
            await self._put(said.body)
            self._said.popleft()
            self._said_bytes -= len(said.body)
            said.taken()
        return wrote

    async def _write_streams(self) -> bool:
        piece = self.reading.take(_UNREAD_BYTES)
        if self.reading.overflowed:
            self._slow(None)
        if piece is None:
            return False
        track, self._writing = piece.track, True
        for position, message in enumerate(piece.messages, piece.first):
            # A stream that was taken over, or cancelled, meanwhile is not for this connection any more.
            if track.ended is None and track.stream.reader is track.reader:
                await self._put(message)
                track.stream.delivered(position, position, self.reading.recorder)
        self._writing = False
        self.note_progress()
        return True

    async def _put(self, message: bytes) -> None:
        await self._wire.send(message)
        self.sent += 1
        self.note_progress()


def _nothing() -> None:
    pass

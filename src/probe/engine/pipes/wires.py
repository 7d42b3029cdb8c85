"""A pipe's transport, a WebSocket or the two standard streams, and the one writer of it.

Only the reader of the same connection waits for the writer, before messages that need an answer. The unsent bytes are
bounded by `max_pipe_bytes` for one connection and `max_unsent_bytes` for all, with a share for each address. Beyond a
bound, the connection ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import trio

from ...core.callbacks import nothing
from ...core.clients import client_key
from ...log.context import Recorder
from ...wire.errors import Refusal, Rejection
from ...wire.jsonrpc import error_response
from ..services import Services
from ..streams.draft_streams import ToolStream, lost_error
from ..streams.reading import Reading, Track
from ..streams.stream import Emitted, answer, note_delivered


class WireBrokenError(Exception):
    """The peer broke the framing; `code` is the close code of RFC 6455 section 7.4."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


class TooLargeError(Rejection):
    """A message is larger than `max_bytes`. It begins with `head`; `size` bytes arrived. The connection goes on."""

    def __init__(self, head: bytes, size: int, max_bytes: int) -> None:
        super().__init__(Refusal.BODY_TOO_LARGE, f"The message is larger than {max_bytes} bytes (max_body_bytes)")
        self.head = head
        self.size = size


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection. `client` is its address with the port.

    `peer` is the address and port of a proxy in between. `request` is the recorder of the upgrade request. `origin` is
    this server's pages as the peer reaches them, such as `http://127.0.0.1:8000`, and empty if it cannot. `selection`
    are the tools in the URL.
    """

    transport: str
    address: str
    origin: str
    selection: str
    client: str = "stdio"
    peer: str | None = None
    request: Recorder | None = None
    label: str | None = None

    @property
    def holder(self) -> str | None:
        """The key of the peer's share of limits; standard streams have no share."""
        return None if self.transport == "stdio" else client_key(self.address)

    @property
    def timed(self) -> bool:
        return self.transport != "stdio"


@dataclass(frozen=True, slots=True)
class ConnectionEnd:
    """The end of a connection: the close code of RFC 6455, and `client` or the server's reason."""

    code: int
    why: str


class Closed(NamedTuple):
    """The end of a connection as it happened: its close code, None without one, and `client` or the server's reason."""

    code: int | None
    by: str


class Wire(Protocol):
    """One connection that carries whole messages both ways. Owned by the endpoint that accepted it.

    `receive` and `send` are each called by one task at a time.
    """

    @property
    def closed(self) -> Closed | None: ...

    def opened(self, recorder: Recorder) -> None:
        """Take the recorder for facts about the wire itself. Called once, before all other methods."""
        ...

    async def receive(self) -> bytes | None:
        """The next message as it came, in UTF-8; None after the last.

        Raises `TooLargeError` and `WireBrokenError`.
        """

    async def send(self, message: bytes) -> None:
        """Send one message; returns when the peer's side of the system has taken it. Raises `OSError` if it will not.

        A message is never sent in part while the connection goes on, even if this is cancelled.
        """


# Enough to keep a socket busy; above it, no message that needs an answer is begun.
_UNREAD_BYTES = 64 * 1024
# A task's handle is sent before its first status. 16 keeps this order, and streams still get their turn.
_ANSWERS_PER_TURN = 16


@dataclass(frozen=True, slots=True)
class _WholeAnswer:
    """One message in one piece, and the function to call when the peer's side has taken it."""

    body: bytes
    taken: Callable[[], None]


class PipeWriter:
    """The writer of one connection. The connection owns it and awaits `run` in a task of its own.

    `sent` counts the messages that the peer's side has taken; `broken` is set when it takes no more. `slow` is called
    with the name of the exceeded limit. `admit` is called when there is room for more answers; it returns whether it
    made any.
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
        self._answers: deque[_WholeAnswer] = deque()
        self._answer_bytes = 0
        self._counted = 0
        self._writing = False
        self._taken = trio.lowlevel.ParkingLot()

    @property
    def has_room(self) -> bool:
        return self._unread <= _UNREAD_BYTES

    @property
    def finished(self) -> bool:
        return self.broken or not (self._answers or self._writing or not self.reading.caught_up)

    def send_answers(self, messages: Sequence[Emitted]) -> None:
        for place, message in enumerate(messages, 1):
            delivered = partial(note_delivered, messages) if place == len(messages) else nothing
            self._answers.append(_WholeAnswer(message.body, delivered))
            self._answer_bytes += len(message.body)
        self.reading.wake()

    async def wait_progress(self) -> None:
        """Wait until a message was taken, a request is over, or the wire broke."""
        await self._taken.park()

    def note_progress(self) -> None:
        self._taken.unpark_all()

    def close(self) -> None:
        self.reading.close("the connection is gone")

    def release(self) -> None:
        """Count for no limit any more, and let go of the connection. Called once, at its end."""
        self._count(0)
        self.reading.let_go()
        # The connection has this object, too: a cycle would wait for the garbage collector. Only `run` asked these, and
        # it has ended.
        self._slow, self._admit = nothing, bool

    async def run(self) -> None:
        """Write until cancelled. Raises `OSError`, with `broken` set, when the peer's side takes no more."""
        try:
            while True:
                wrote = await self._write_answers()
                wrote = await self._write_streams() or wrote
                self._check_backlog()
                # No checkpoint may stand between this line and the wait: a wake-up in between would be lost.
                if not (self._admit() or wrote or self._answers):
                    await self.reading.wait_changed()
        except OSError:
            self.broken = True
            self.close()
            self.note_progress()
            raise

    @property
    def _unread(self) -> int:
        """Draft streams have bounds of their own."""
        return self._answer_bytes + self.reading.unread

    def _check_backlog(self) -> None:
        unread = self._unread
        self._count(unread)
        # One answer alone may exceed the bound.
        first = len(self._answers[0].body) if self._answers else 0
        if unread - first > self._most:
            self._slow("max_pipe_bytes")
        elif unread > _UNREAD_BYTES and self._piped.is_exceeded(self._holder, first):
            self._slow("max_unsent_bytes")

    def _count(self, unread: int) -> None:
        self._piped.take(self._holder, unread)
        self._piped.release(self._holder, self._counted)
        self._counted = unread

    def _answer_lost(self, track: Track) -> None:
        """Answer a call after the loss of its stream, since no message on the stream can do so."""
        stream = track.stream
        if isinstance(stream, ToolStream) and stream.machine.lost is not None and not stream.answer_taken:
            body = error_response(stream.request_id, lost_error(stream.machine.lost).body())
            call = stream.recorder.context
            recorder = stream.request.bind(connection=self._connection, call=call.call, task=call.task)
            self.send_answers([answer(recorder, body)])

    async def _write_answers(self) -> bool:
        wrote = bool(self._answers)
        for _ in range(min(len(self._answers), _ANSWERS_PER_TURN)):
            whole = self._answers[0]
            await self._put(whole.body)
            self._answers.popleft()
            self._answer_bytes -= len(whole.body)
            whole.taken()
        return wrote

    async def _write_streams(self) -> bool:
        piece = self.reading.take(_UNREAD_BYTES)
        if self.reading.overflowed:
            self._slow(None)
        if piece is None:
            return False
        track, self._writing = piece.track, True
        for position, message in enumerate(piece.messages, piece.first):
            # A stream that was displaced or cancelled in between no longer belongs to this connection.
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

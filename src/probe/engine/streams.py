"""A stream of messages to one client: the replay log with a bell and the count of what was delivered.

Work appends and goes on; it never waits for a socket. A reader, one at a time, follows the log with its own cursor. A
newer reader takes over from an older one, whose connection may be dead without anybody knowing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import trio

from ..core.replay import ReplayLog
from ..observe.events import MessagesDelivered, StreamEnded, StreamOpened
from ..observe.log import EventLog
from ..settings import Settings


@dataclass(frozen=True, slots=True)
class Reader:
    """A connection that reads a stream; `hung_up` counts the hang-ups that came before it."""

    exchange: int
    hung_up: int


class Stream:
    """Messages of one request, or the standalone stream of a session. Owned by its session, read by endpoints.

    One that is not `resumable` is owned by its request, and what was delivered is forgotten. `session` is the label in
    the event log, `exchange` the request whose answer is to come on it, if any. `unanswered` is set when a request of
    the stream ended in silence, because it was cancelled.
    """

    def __init__(
        self,
        id: str,
        session: str | None,
        purpose: str,
        log: EventLog,
        settings: Settings,
        *,
        exchange: int | None = None,
        resumable: bool = True,
    ) -> None:
        limits = settings.limits
        self.id = id
        self.session = session
        self.exchange = exchange
        self.resumable = resumable
        self.replay = ReplayLog(max_messages=limits.replay_messages, max_bytes=limits.replay_bytes)
        self.reader: Reader | None = None
        self.ended_at: float | None = None
        self.unanswered = False
        self._bell = trio.lowlevel.ParkingLot()
        self._hang_ups = 0
        self._on_delivery: dict[int, Callable[[], None]] = {}
        self._delivered = 0
        self._log = log
        log.append(StreamOpened(exchange, session, id, purpose))

    def append(self, message: bytes, on_delivery: Callable[[], None] | None = None) -> int:
        """Add a message, wake the reader, return the position. `on_delivery` runs once, when a socket first took it.

        Raises `core.replay.LogClosedError` after `end`.
        """
        position = self.replay.append(message)
        if on_delivery is not None:
            self._on_delivery[position] = on_delivery
            if len(self._on_delivery) > 2 * len(self.replay):
                self._forget_evicted()
        self._bell.unpark_all()
        return position

    def end(self, now: float) -> None:
        """Nothing more will come; readers finish what is there. Harmless when repeated."""
        if self.replay.closed:
            return
        self.replay.close()
        self.ended_at = now
        self._log.append(StreamEnded(self.session, self.id, self.replay.last))
        self._bell.unpark_all()

    def hang_up(self) -> None:
        """Make the present reader close its connection; the stream goes on and can be resumed."""
        self._hang_ups += 1
        self._bell.unpark_all()

    def ring(self) -> None:
        """Wake the reader although nothing has changed here."""
        self._bell.unpark_all()

    def attach(self, exchange: int) -> Reader:
        """A connection begins to read; the one before it, if any, is displaced."""
        self.reader = Reader(exchange, self._hang_ups)
        self._bell.unpark_all()
        return self.reader

    def detach(self, reader: Reader) -> None:
        """A connection has gone."""
        if self.reader is reader:
            self.reader = None

    def dismissed(self, reader: Reader) -> str | None:
        """Why a reader must leave, or None."""
        if self.reader is not reader:
            return "displaced by a newer connection"
        return "hang-up" if self._hang_ups > reader.hung_up else None

    async def wait_changed(self) -> None:
        """Wait for a message, the end, a hang-up, a displacement or a ring."""
        await self._bell.park()

    def delivered(self, first: int, last: int, exchange: int) -> None:
        """A socket took these messages."""
        self._log.append(MessagesDelivered(exchange, self.session, self.id, first, last))
        for position in range(max(first, self._delivered + 1), last + 1):
            hear = self._on_delivery.pop(position, None)
            if hear is not None:
                hear()
        self._delivered = max(self._delivered, last)
        if not self.resumable:
            self.replay.forget(last)

    def _forget_evicted(self) -> None:
        self._on_delivery = {at: hear for at, hear in self._on_delivery.items() if at >= self.replay.first}

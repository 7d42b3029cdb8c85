"""A stream of messages to one client: the replay log, who reads it, and the count of what was delivered.

Work appends and goes on; it never waits for a socket. A reader, one at a time, follows the log with its own cursor. A
newer reader takes over from an older one, whose connection may be dead without anybody knowing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import trio

from ..core.replay import ReplayLog
from ..observe.events import MessagesDelivered, Rpc, StreamEnded, StreamOpened
from ..observe.log import EventLog
from ..settings import Settings
from ..wire.jsonrpc import Json
from .client_requests import ClientRequests


class StreamLostError(Exception):
    """The stream takes no more messages, because its client can never have all of them; the message says why."""


def _nobody_waits() -> None:
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """A connection that reads a stream; `hung_up` counts the hang-ups that came before it."""

    exchange: int
    hung_up: int


class Stream:
    """Messages of one request, or the standalone stream of a session. Owned by its session, read by endpoints.

    One that is not `resumable` is owned by its request, and what was delivered is forgotten. `session` is the label in
    the event log, `exchange` the request whose answer is to come on it, if any. `unanswered` is set when a request of
    the stream ended in silence, because it was cancelled. `weighed` is called when the log has grown.
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
        replay: ReplayLog | None = None,
    ) -> None:
        limits = settings.limits
        self.id = id
        self.session = session
        self.exchange = exchange
        self.resumable = resumable
        # An empty log is false, as an empty list is.
        kept = ReplayLog(max_messages=limits.replay_messages, max_bytes=limits.replay_bytes)
        self.replay = kept if replay is None else replay
        self.reader: Reader | None = None
        self.ended_at: float | None = None
        self.unanswered = False
        self.weighed: Callable[[], None] | None = None
        self._bell = trio.lowlevel.ParkingLot()
        # Wakes the present reader's writer. Kept here and not by the reader, who outlives its reading: with that it
        # would be a cycle.
        self._ring = _nobody_waits
        self._hang_ups = 0
        self._on_delivery: dict[int, Callable[[], None]] = {}
        self._delivered = 0
        self._log = log
        log.append(StreamOpened(exchange, session, id, purpose))

    @property
    def retry_ms(self) -> int:
        """How long a client that lost the stream shall wait at least before it comes back, in milliseconds."""
        return 0

    @property
    def one_by_one(self) -> bool:
        """Whether each message leaves alone: when the connection breaks, it is known which of them it took."""
        return False

    @property
    def questions(self) -> ClientRequests | None:
        """Where requests to the client that go on this stream wait for their answers, if not in its session."""
        return None

    def marked(self, value: Json) -> Json:
        """The message as it goes on this stream."""
        return value

    def append(self, message: bytes, on_delivery: Callable[[], None] | None = None, rpc: Rpc = "notification") -> int:
        """Add a message, wake the reader, return the position. `on_delivery` runs once, when a socket first took it.

        Raises `core.replay.LogClosedError` after `end`, and `StreamLostError`.
        """
        position = self._keep(message, rpc)
        if on_delivery is not None:
            self._on_delivery[position] = on_delivery
            if len(self._on_delivery) > 2 * len(self.replay):
                self._forget_evicted()
        if self.weighed is not None:
            self.weighed()
        self._wake()
        return position

    def evict(self) -> None:
        """Let go of what is kept: a reader that has not had all of it is told, as where the bounds pushed it out."""
        self.replay.forget(self.replay.last)
        self._forget_evicted()
        self._wake()

    def _keep(self, message: bytes, rpc: Rpc) -> int:
        return self.replay.append(message)

    def end(self, now: float) -> None:
        """Nothing more will come; readers finish what is there. Harmless when repeated."""
        if self.replay.closed:
            return
        self.replay.close()
        self.ended_at = now
        self._log.append(StreamEnded(self.session, self.id, self.replay.last))
        self._wake()

    def hang_up(self) -> None:
        """Make the present reader close its connection; the stream goes on and can be resumed."""
        self._hang_ups += 1
        self._wake()

    def attach(self, exchange: int, ring: Callable[[], None] = _nobody_waits) -> Reader:
        """A connection begins to read; the one before it, if any, is displaced. `ring` is called for what changes."""
        before, self._ring = self._ring, ring
        self.reader = Reader(exchange, self._hang_ups)
        before()
        return self.reader

    def detach(self, reader: Reader) -> None:
        """A connection has gone."""
        if self.reader is reader:
            self.reader, self._ring = None, _nobody_waits

    def dismissed(self, reader: Reader) -> str | None:
        """Why a reader must leave, or None."""
        if self.reader is not reader:
            return "displaced by a newer connection"
        return "hang-up" if self._hang_ups > reader.hung_up else None

    async def wait_changed(self) -> None:
        """Wait for a message, the end, or a hang-up."""
        await self._bell.park()

    def _wake(self) -> None:
        self._bell.unpark_all()
        self._ring()

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

    def acknowledge(self, position: int) -> None:
        """The client says that it has everything up to there."""

    def _forget_evicted(self) -> None:
        self._on_delivery = {at: hear for at, hear in self._on_delivery.items() if at >= self.replay.first}

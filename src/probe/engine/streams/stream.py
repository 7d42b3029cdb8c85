"""A stream of messages to one client: the replay log, who reads it, and the count of what was delivered.

Work appends and goes on; it never waits for a socket. A reader, one at a time, follows the log with its own cursor. A
newer reader takes over from an older one, whose connection may be dead without anybody knowing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...core.replay import ReplayLog
from ...log.context import Recorder
from ...log.events import MessagesDelivered, StreamEnded, StreamOpened
from ...settings.limits import Limits
from ...wire.jsonrpc import Json, Rpc
from .bell import Bell


class StreamLostError(Exception):
    """The stream takes no more messages, because its client can never have all of them; the message says why."""


def _nobody_waits() -> None:
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """A connection that reads a stream; `hung_up` counts the hang-ups that came before it.

    The context of `recorder` has the exchange of an HTTP response, and None where one connection carries everything.
    """

    recorder: Recorder
    hung_up: int


class Stream:
    """Messages of one request, or the standalone stream of a session. Owned by its session, read by endpoints.

    One that is not `resumable` is owned by its request, and what was delivered is forgotten. `request` is the recorder
    of the message, or of the GET, that the stream was opened for; messages on a `standalone` stream belong to none.
    `unanswered` is set when a request of the stream ended in silence, because it was cancelled. `weighed` is called
    when the log has grown.

    Where one of its streams has no `comments`, a reader is sent none while nothing happens.

    The recorder of each message is kept as long as the message, so that its delivery names its call and its emission.
    """

    def __init__(
        self,
        id: str,
        purpose: str,
        request: Recorder,
        limits: Limits,
        *,
        resumable: bool = True,
        replay: ReplayLog | None = None,
    ) -> None:
        self.id = id
        self.request = request
        self.resumable = resumable
        # An empty log is false, as an empty list is.
        kept = ReplayLog(max_messages=limits.replay_messages, max_bytes=limits.replay_bytes)
        self.replay = kept if replay is None else replay
        self.reader: Reader | None = None
        self.ended_at: float | None = None
        self.unanswered = False
        self.weighed: Callable[[], None] | None = None
        self.comments = True
        self._bell = Bell()
        # Wakes the present reader's writer. Kept here and not by the reader, who outlives its reading: with that it
        # would be a cycle.
        self._ring = _nobody_waits
        self._hang_ups = 0
        self._delivered = 0
        self._recorders: dict[int, Recorder] = {}
        opened = request.bind(stream=id)
        self.recorder = opened.having(StreamOpened(purpose))
        self._messages = opened.bind(exchange=None) if purpose == "standalone" else opened

    @property
    def session(self) -> str | None:
        """The label of the session, or of the modern client, that it belongs to."""
        return self.recorder.context.session

    def belong_to(self, call: Recorder) -> None:
        """From now on the stream is known to be that of one call."""
        self.recorder = self.recorder.bind(call=call.context.call, task=call.context.task)

    def recorder_of_reader(self, reader: Recorder) -> Recorder:
        """The recorder of a response that carries this stream, with the context of the `reader` and of the stream."""
        about = self.recorder.context
        return reader.bind(stream=self.id, call=about.call, task=about.task)

    def recorder_of_message(self, recorder: Recorder) -> Recorder:
        """The recorder of a message on this stream, about the same call and with the same cause as `recorder`."""
        return self._messages.about_call_of(recorder)

    def keep_recorder(self, position: int, recorder: Recorder) -> None:
        """The recorder of the message at this position, whose cause is the `message.emitted`."""
        self._recorders[position] = recorder
        if len(self._recorders) > 2 * len(self.replay) + 1:
            self._forget_evicted()

    @property
    def retry_ms(self) -> int:
        """How long a client that lost the stream shall wait at least before it comes back, in milliseconds."""
        return 0

    @property
    def one_by_one(self) -> bool:
        """Whether each message leaves alone: when the connection breaks, it is known which of them it took."""
        return False

    def marked(self, value: Json) -> Json:
        """The message as it goes on this stream."""
        return value

    def append(self, message: bytes, rpc: Rpc = "notification") -> int:
        """Add a message, wake the reader, return the position.

        Raises `core.replay.LogClosedError` after `end`, and `StreamLostError`.
        """
        position = self._keep(message, rpc)
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
        self.recorder.append(StreamEnded(self.replay.last))
        self._wake()

    def hang_up(self) -> None:
        """Make the present reader close its connection; the stream goes on and can be resumed."""
        self._hang_ups += 1
        self._wake()

    def attach(self, recorder: Recorder, ring: Callable[[], None] = _nobody_waits) -> Reader:
        """A connection begins to read; the one before it, if any, is displaced. `ring` is called for what changes."""
        before, self._ring = self._ring, ring
        self.reader = Reader(recorder, self._hang_ups)
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
        """Wait for a message, the end, or a hang-up. One task at a time may."""
        await self._bell.wait()

    def _wake(self) -> None:
        self._bell.ring()
        self._ring()

    def delivered(self, first: int, last: int, reader: Recorder, *, event_ids: bool = False) -> None:
        """A socket took these messages, as events with ids or not: one entry for each call in turn."""
        start = first
        for position in range(first + 1, last + 1):
            if self._call_at(position) != self._call_at(start):
                self._record_delivered(start, position - 1, reader, event_ids=event_ids)
                start = position
        self._record_delivered(start, last, reader, event_ids=event_ids)
        self._delivered = max(self._delivered, last)
        if not self.resumable:
            self.replay.forget(last)
            for position in range(first, last + 1):
                self._recorders.pop(position, None)

    def _call_at(self, position: int) -> str | None:
        recorder = self._recorders.get(position)
        return None if recorder is None else recorder.context.call

    def _record_delivered(self, first: int, last: int, reader: Recorder, *, event_ids: bool) -> None:
        recorder, reads = self._recorders.get(first, self._messages), reader.context
        own = recorder.context
        exchange = own.exchange if reads.exchange is None else reads.exchange
        if (own.connection, own.exchange, own.label) != (reads.connection, exchange, reads.label):
            recorder = recorder.bind(connection=reads.connection, exchange=exchange, label=reads.label)
        recorder.append(MessagesDelivered(first, last, event_ids))

    def acknowledge(self, position: int) -> None:
        """The client says that it has everything up to there."""

    def _forget_evicted(self) -> None:
        kept = self.replay.first
        self._recorders = {at: recorder for at, recorder in self._recorders.items() if at >= kept}

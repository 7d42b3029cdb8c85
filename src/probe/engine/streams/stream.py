"""Streams of messages to clients, and the one way out: each message is encoded, recorded and appended here.

    send            message.emitted, and the message on its stream
    answer          message.emitted, and the message as a whole response
    note_delivered  message.delivered: a socket took the response
    drop            message.dropped: the message may no longer be sent, such as after a cancellation

Work appends messages and never waits for a socket. One reader at a time follows the log with its own cursor. A newer
reader displaces an older one, since the older connection may be dead without a sign.

`ReplayBudget` bounds the memory of all resumable streams. At the bound, the holder with the most bytes loses messages:
first those of ended streams, oldest first, then those of its largest stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

import trio
from msgspec import Struct

from ...core.budgets import SharedBytes
from ...core.callbacks import nothing
from ...core.replay import ReplayLog
from ...log import redaction
from ...log.context import Recorder
from ...log.events import (
    LimitReached,
    MessageDropped,
    MessageEmitted,
    MessagesDelivered,
    StreamEnded,
    StreamOpened,
    essentials,
)
from ...settings.server import Limits
from ...wire.jsonrpc import Json, Rpc, encode

NO_STREAM: Final = "the client has no stream open, which the protocol allows"
"""The reason for which a message is dropped that belongs to no request: a GET that opens a stream for it is a MAY."""


class Waker:
    """Wakes the one task that waits. Without a waiting task, `wake` has no effect."""

    __slots__ = ("_task",)

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = None

    def wake(self) -> None:
        task = self._task
        if task is not None:
            self._task = None
            trio.lowlevel.reschedule(task)

    async def wait(self) -> None:
        assert self._task is None, "another task waits for this waker"
        self._task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._leave)

    def _leave(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


class StreamLostError(Exception):
    """The stream takes no more messages: its client can never have all of them. The message has the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """A connection that reads a stream; `hung_up` is the number of hang-ups before it.

    The context of `recorder` has the exchange of an HTTP response, None where one connection carries everything.
    """

    recorder: Recorder
    hung_up: int


class Stream:
    """Messages of one request, or the standalone stream of a session. Owned by its session, read by endpoints.

    A stream that is not `resumable` is owned by its request, and forgets delivered messages. `request` is the recorder
    of the message, or of the GET, that opened the stream. `unanswered` is set when a request of the stream ended
    without an answer, because it was cancelled. `weighed` is called when the log has grown. `comments` is False if a
    response with this stream may have no keep-alive comments.

    The recorder of each message is kept as long as the message: its delivery has the same call and emission.
    """

    retry_ms = 0
    """The `retry` field of its event streams, at least."""
    one_by_one = False
    """True if each message is sent alone: after a break of the connection, it is known which messages were sent."""

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
        # `or` would replace an empty log, since that is false.
        kept = ReplayLog(max_messages=limits.replay_messages, max_bytes=limits.replay_bytes)
        self.replay = kept if replay is None else replay
        self.reader: Reader | None = None
        self.ended_at: float | None = None
        self.unanswered = False
        self.weighed: Callable[[], None] | None = None
        self.comments = True
        self._waker = Waker()
        # Wakes the writer of the present reader. Kept here, since a reader with it would be part of a cycle.
        self._wake_reader: Callable[[], None] = nothing
        self._hang_ups = 0
        self._delivered = 0
        self._recorders: dict[int, Recorder] = {}
        opened = request.bind(stream=id)
        self.recorder = opened.having(StreamOpened(purpose))
        self._messages = opened.bind(exchange=None) if purpose == "standalone" else opened

    @property
    def session(self) -> str | None:
        return self.recorder.context.session

    def belong_to(self, call: Recorder) -> None:
        """Name the call of the stream in the context of its recorder."""
        self.recorder = self.recorder.bind(call=call.context.call, task=call.context.task)

    def recorder_of_reader(self, reader: Recorder) -> Recorder:
        about = self.recorder.context
        return reader.bind(stream=self.id, call=about.call, task=about.task)

    def recorder_of_message(self, recorder: Recorder) -> Recorder:
        return self._messages.about_call_of(recorder)

    def keep_recorder(self, position: int, recorder: Recorder) -> None:
        self._recorders[position] = recorder
        if len(self._recorders) > 2 * len(self.replay) + 1:
            self._forget_evicted()

    def marked(self, value: Json) -> Json:
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
        self.replay.forget(self.replay.last)
        self._forget_evicted()
        self._wake()

    def _keep(self, message: bytes, rpc: Rpc) -> int:
        return self.replay.append(message)

    def end(self, now: float) -> None:
        """End the stream; readers take the remaining messages. Harmless when repeated."""
        if self.replay.closed:
            return
        self.replay.close()
        self.ended_at = now
        self.recorder.append(StreamEnded(self.replay.last))
        self._wake()

    def hang_up(self) -> None:
        """Make the present reader close its connection; the stream can be resumed."""
        self._hang_ups += 1
        self._wake()

    def attach(self, recorder: Recorder, wake: Callable[[], None] = nothing) -> Reader:
        """Make a connection the reader, and displace the one before it. `wake` is called after each change."""
        before, self._wake_reader = self._wake_reader, wake
        self.reader = Reader(recorder, self._hang_ups)
        before()
        return self.reader

    def detach(self, reader: Reader) -> None:
        if self.reader is reader:
            self.reader, self._wake_reader = None, nothing

    def dismissed(self, reader: Reader) -> str | None:
        if self.reader is not reader:
            return "displaced by a newer connection"
        return "hang-up" if self._hang_ups > reader.hung_up else None

    async def wait_changed(self) -> None:
        """Wait for a message, the end, or a hang-up. Only one task may wait at a time."""
        await self._waker.wait()

    def _wake(self) -> None:
        self._waker.wake()
        self._wake_reader()

    def delivered(self, first: int, last: int, reader: Recorder, *, event_ids: bool = False) -> None:
        """A socket took these messages, as events with ids or not: one entry for each run of messages of a call."""
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
        """Take the position up to which the client has everything, by its own account."""

    def _forget_evicted(self) -> None:
        kept = self.replay.first
        self._recorders = {at: recorder for at, recorder in self._recorders.items() if at >= kept}


class ReplayBudget:
    """The streams of the sessions of one engine by their holder: a client address, or on loopback a session.

    Their bytes count in `shared`, too.
    """

    def __init__(self, most_bytes: int, shared: SharedBytes | None = None) -> None:
        self._most = most_bytes
        self._shared = shared
        self._streams: dict[str, dict[Stream, int]] = {}
        self._holders: dict[Stream, str] = {}
        self._held: Counter[str] = Counter()
        self.bytes = 0

    def add(self, stream: Stream, holder: str) -> None:
        self._streams.setdefault(holder, {})[stream] = 0
        self._holders[stream] = holder
        stream.weighed = partial(self._weigh, stream, holder)

    def remove(self, stream: Stream) -> None:
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
        if self._shared is not None:
            self._shared.weigh(self._give_up, self.bytes)

    def _weigh(self, stream: Stream, holder: str) -> None:
        size, streams = stream.replay.bytes, self._streams[holder]
        self._count(holder, size - streams[stream])
        streams[stream] = size
        while self.bytes > self._most:
            self._evict_one(LimitReached("max_replay_bytes", self._most))
        if self._shared is not None:
            self._shared.make_room()

    def leave_shared(self) -> None:
        if self._shared is not None:
            self._shared.remove(self._give_up)
            self._shared = None

    def _give_up(self) -> int:
        assert self._shared is not None, "called by the shared bound"
        self._evict_one(LimitReached("all_rooms:max_replay_bytes", self._shared.most))
        return self.bytes

    def _evict_one(self, reached: LimitReached) -> None:
        holder = max(self._held, key=self._held.__getitem__)
        streams = self._streams[holder]
        ended = (stream for stream, size in streams.items() if size and stream.ended_at is not None)
        evicted = next(ended, None) or max(streams, key=streams.__getitem__)
        evicted.recorder.caused_by(None).append(reached)
        self._count(holder, -streams[evicted])
        streams[evicted] = 0
        evicted.evict()


class Emitted(Struct, frozen=True):
    """An answer in one piece: its bytes, and its recorder with the `message.emitted` as cause."""

    body: bytes
    recorder: Recorder


class Kept(NamedTuple):
    """A message for the log, and the place of each secret that was hidden in it, with its JSON type."""

    body: bytes
    hidden: tuple[tuple[str, str], ...]


def kept(value: object, body: bytes) -> Kept:
    """A message for the log: the same bytes in one line, unless they contain a secret.

    JSON has line breaks only between its tokens, and a space there has the same meaning.
    """
    if redaction.has_secret(value):
        return Kept(encode(redaction.message(value)), redaction.hidden_members(value))
    one_line = body.replace(b"\n", b" ").replace(b"\r", b" ") if b"\n" in body or b"\r" in body else body
    return Kept(one_line, ())


def stored(value: object, body: bytes) -> bytes:
    """The bytes of `kept`."""
    return kept(value, body).body


def send(recorder: Recorder, stream: Stream, value: Json) -> Recorder | None:
    """Append a message to a stream that has not ended.

    Returns the recorder of the message, with the `message.emitted` as cause; None for a lost stream.
    """
    value = stream.marked(value)
    body, essence = encode(value), essentials(value)
    entry, own = kept(value, body), stream.recorder_of_message(recorder)
    try:
        position = stream.append(body, essence[0])
    except StreamLostError as lost:
        own.append(MessageDropped(str(lost), *essence, entry.body))
        return None
    emitted = own.having(MessageEmitted(position, *essence, *entry))
    stream.keep_recorder(position, emitted)
    return emitted


def answer(recorder: Recorder, value: Json) -> Emitted:
    """A message for the body of a whole response."""
    body = encode(value)
    return Emitted(body, recorder.having(MessageEmitted(None, *essentials(value), *kept(value, body))))


def note_delivered(messages: Sequence[Emitted]) -> None:
    """Record that a socket took a whole response: one entry for each run of messages of a call."""
    if len(messages) == 1:
        messages[0].recorder.append(MessagesDelivered(1, 1))
        return
    calls = [message.recorder.context.call for message in messages]
    starts = [at for at in range(len(calls)) if at == 0 or calls[at] != calls[at - 1]]
    for start, end in pairwise([*starts, len(calls)]):
        messages[start].recorder.append(MessagesDelivered(start + 1, end))


def drop(recorder: Recorder, value: Json, why: str) -> None:
    """Record a message that is not sent."""
    recorder.append(MessageDropped(why, *essentials(value), stored(value, encode(value))))

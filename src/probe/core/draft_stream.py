"""One stream of the draft "Streams": the messages kept for an absent client, and the times at which it may resume.

    state   a reader   ended   messages that no socket has taken
    AWAY    no         no      any
    HELD    yes        no      any
    LEFT    no         yes     some
    TAIL    yes        yes     some
    DONE    any        yes     none; all messages are kept for `keep_s` more
    GONE    any        yes     none; forgotten
    LOST    any        any     forgotten

`overflow` is an emit without room. `end` has messages left to take (with none left, AWAY and HELD become DONE).
`taken` takes all messages. `expire` is at or after the deadline, if there is one:

    state  emit  overflow  end   taken  connect  disconnect  resume  poll  lose  expire
    AWAY   AWAY  LOST      LEFT  AWAY   HELD     AWAY        AWAY    AWAY  LOST  LOST
    HELD   HELD  LOST      TAIL  HELD   HELD     AWAY        HELD    HELD  LOST  HELD
    LEFT   -     -         LEFT  DONE   TAIL     LEFT        LEFT    LEFT  LOST  LOST
    TAIL   -     -         TAIL  DONE   TAIL     LEFT        TAIL    TAIL  LOST  TAIL
    DONE   -     -         DONE  DONE   DONE     DONE        DONE    DONE  LOST  GONE
    GONE   -     -         GONE  GONE   GONE     GONE        GONE    GONE  GONE  GONE
    LOST   -     -         LOST  LOST   LOST     LOST        -       -     LOST  LOST

Without a row: `LostError` in LOST, else `core.replay.LogClosedError`. A refused call changes no state, except that an
overflow loses the stream.

AWAY, LEFT, expire: "If a client fails to resume or poll a stream within the `resumeInterval.max` period, the server may
consider the stream abandoned and reclaim resources." It does, when now >= deadline: the last of creation, disconnect
and answered poll, plus max. From that moment the stream acts as in LOST, also before `expire` is called. A refused
resume does not count. There is no deadline while a reader is attached.

LOST, resume and poll: "The next time a client attempts to resume or poll the stream, the server may respond with an
error." It does, with the reason.

resume: "Minimum seconds a client should wait before resuming the stream (prevents excessive reconnections)". The
product contract, section 6, makes sooner an error. It may resume when now >= earliest: the last disconnect plus min.
For example, with min 1 s a client that left at 10.0 may resume at 11.0. The draft leaves two cases open. Beside a
reader, whose connection may be dead unnoticed, min counts from the time at which that reader attached: one take-over is
possible, and a storm of them is not. For a stream that was never read, min counts from its creation, since the request
that created it is its first reader.

resume: "Send all unsent messages for the stream to the client". Decided here: the unsent messages are those behind the
last one that the client names as received, else behind the last one that a socket took.

overflow: "Servers should limit the number of unsent messages a disconnected stream may retain". Decided here: messages
that were taken make room first. Where an untaken message would have to go, the whole stream is lost, with or without a
reader, since a stream with a hole would be worse.

DONE, expire: "servers may maintain a buffer of recently sent messages (a two minute window aligns with common TCP idle
timeout configurations)". `keep_s` is that window. It begins when the stream has ended and all messages were taken, and
is never prolonged. To forget a stream then is no loss. An ended stream with untaken messages has the deadline of a live
one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from itertools import islice

from .replay import ReplayLog


class MessageKind(Enum):
    """The kind of an unsent message in a poll."""

    OTHER = auto()
    REQUEST = auto()
    ERROR = auto()


class DraftStatus(StrEnum):
    """The two values of the draft."""

    LIVE = "live"
    COMPLETED = "completed"


class Lost(StrEnum):
    """Why a stream was forgotten with messages that its client did not have."""

    ABANDONED = "abandoned"
    OVERFLOW = "overflow"
    SESSION_ENDED = "session_ended"
    SERVER_FULL = "server_full"


@dataclass(frozen=True, slots=True)
class Interval:
    """The draft's `resumeInterval`, in seconds."""

    min_s: float
    max_s: float


@dataclass(frozen=True, slots=True)
class Poll:
    """The draft's StreamPollResult. `pending_messages`: there are unsent messages; the other flags are about these."""

    status: DraftStatus
    pending_messages: bool
    has_request: bool
    has_error: bool


class TooEarlyError(Exception):
    """A resume sooner than min. The client may try again after `wait_s` seconds, more than 0."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"too early to resume: wait {wait_s:g} s")
        self.wait_s = wait_s


class LostError(Exception):
    """The stream is lost, for the reason `lost`."""

    def __init__(self, lost: Lost) -> None:
        super().__init__(f"the stream is lost: {lost}")
        self.lost = lost


class DraftStream:
    """The machine of one stream. All times are seconds of one clock that does not go back.

    `log` has the messages. A sender reads it from a cursor of `resume` (the first reader: 0) and calls `taken`. A
    cursor before the last taken message may get `core.replay.EvictedError`, since taken messages make room.
    """

    def __init__(self, interval: Interval, keep_s: float, *, max_messages: int, max_bytes: int, now: float) -> None:
        self.log = ReplayLog(max_messages=max_messages, max_bytes=max_bytes)
        self.status = DraftStatus.LIVE
        self.lost: Lost | None = None
        self.forgotten = False
        self.connected = False
        self._interval = interval
        self._keep_s = keep_s
        self._kinds: deque[MessageKind] = deque()  # of the messages in the log, one for one
        self._taken = 0
        self._changed_at = now
        self._seen_at = now
        self._done_at: float | None = None

    @property
    def untaken(self) -> int:
        return self.log.last - self._taken

    @property
    def deadline(self) -> float | None:
        """When `expire` is due."""
        if self.lost is not None or self.forgotten:
            return None
        if self._done_at is not None:
            return self._done_at + self._keep_s
        return None if self.connected else self._seen_at + self._interval.max_s

    def emit(self, message: bytes, kind: MessageKind, now: float) -> int:
        """Add a message and return its position, from 1. A message beyond the byte bound is kept alone.

        Raises `LostError`, with OVERFLOW where an untaken message would have to make room, and
        `core.replay.LogClosedError` after `end`.
        """
        self._check_lost(now)
        position = self.log.append(message)
        self._kinds.append(kind)
        while len(self._kinds) > len(self.log):
            self._kinds.popleft()
        if self.log.first > self._taken + 1:
            self.lose(Lost.OVERFLOW)
            raise LostError(Lost.OVERFLOW)
        return position

    def end(self, now: float) -> None:
        """The stream has ended. Has no effect if repeated, or on a lost stream."""
        if self._loss(now) is None:
            self.log.close()
            self.status = DraftStatus.COMPLETED
            self._note_done(now)

    def taken(self, position: int, now: float) -> None:
        """A socket took the messages up to `position`. An earlier position than before has no effect.

        Raises `IndexError` for a position that was never emitted. Has no effect on a lost stream.
        """
        if position > self.log.last:
            raise IndexError(f"position {position} is beyond {self.log.last}")
        if self._loss(now) is None:
            self._taken = max(self._taken, position)
            self._note_done(now)

    def resume(self, received: int | None, now: float) -> int:
        """Check a resume and return the cursor to read from. The caller calls `connect` when it reads.

        `received` is the position of the last message that the client has; None: the last one taken. Raises, in this
        order, `LostError`, `IndexError` for a position that was never emitted, `core.replay.EvictedError`, and
        `TooEarlyError`: the only error that waiting helps comes last.
        """
        cursor = self._cursor(received, now)
        earliest = self._changed_at + self._interval.min_s
        if now < earliest:
            raise TooEarlyError(earliest - now)
        self.taken(cursor, now)
        return cursor

    def connect(self, now: float) -> None:
        """A reader attached: the first one, or one that takes over. Has no effect on a lost stream."""
        if self._loss(now) is None:
            self.connected = True
            self._changed_at = now

    def disconnect(self, now: float) -> None:
        """The last reader has gone."""
        if self.connected:
            self.connected = False
            self._changed_at = self._seen_at = now

    def poll(self, received: int | None, now: float) -> Poll:
        """The status, and the kinds of the messages behind `received` (as in `resume`). The deadline starts anew.

        Raises, in this order, `LostError`, `IndexError` and `core.replay.EvictedError`.
        """
        cursor = self._cursor(received, now)
        self._seen_at = now
        self.taken(cursor, now)
        waiting = set(islice(self._kinds, cursor + 1 - self.log.first, None))
        return Poll(self.status, bool(waiting), MessageKind.REQUEST in waiting, MessageKind.ERROR in waiting)

    def lose(self, why: Lost) -> None:
        """Forget all messages. The first reason stays."""
        if self.lost is None and not self.forgotten:
            self.lost = why
            self._free()

    def expire(self, now: float) -> bool:
        """Abandon or forget the stream if its deadline has passed. True if this frees its memory."""
        deadline = self.deadline
        if deadline is None or now < deadline:
            return False
        if self._done_at is None:
            self.lose(Lost.ABANDONED)
        else:
            self.forgotten = True
            self._free()
        return True

    def _loss(self, now: float) -> Lost | None:
        if self._done_at is None and self.deadline is not None and now >= self.deadline:
            return Lost.ABANDONED
        return self.lost

    def _check_lost(self, now: float) -> None:
        lost = self._loss(now)
        if lost is not None:
            raise LostError(lost)

    def _cursor(self, received: int | None, now: float) -> int:
        self._check_lost(now)
        cursor = self._taken if received is None else received
        self.log.check(cursor)
        return cursor

    def _note_done(self, now: float) -> None:
        if self._done_at is None and self.status is DraftStatus.COMPLETED and not self.untaken:
            self._done_at = now

    def _free(self) -> None:
        self.log.close()
        self.log.forget(self.log.last)
        self._kinds.clear()

"""One stream of the draft "Streams": what is kept for a client that is away, when it may come back, and until when.

    state   a reader   ended   what no socket has taken
    AWAY    no         no      any
    HELD    yes        no      any
    LEFT    no         yes     some
    TAIL    yes        yes     some
    DONE    any        yes     nothing; everything is kept for `keep_s` more
    GONE    any        yes     nothing; forgotten
    LOST    any        any     forgotten

`overflow` is an emit that finds no room; `end` with something left to take (with nothing left, AWAY and HELD become
DONE); `taken` takes all there is; `expire` comes at or after the deadline, if there is one:

    state  emit  overflow  end   taken  connect  disconnect  resume  poll  lose  expire
    AWAY   AWAY  LOST      LEFT  AWAY   HELD     AWAY        AWAY    AWAY  LOST  LOST
    HELD   HELD  LOST      TAIL  HELD   HELD     AWAY        HELD    HELD  LOST  HELD
    LEFT   -     -         LEFT  DONE   TAIL     LEFT        LEFT    LEFT  LOST  LOST
    TAIL   -     -         TAIL  DONE   TAIL     LEFT        TAIL    TAIL  LOST  TAIL
    DONE   -     -         DONE  DONE   DONE     DONE        DONE    DONE  LOST  GONE
    GONE   -     -         GONE  GONE   GONE     GONE        GONE    GONE  GONE  GONE
    LOST   -     -         LOST  LOST   LOST     LOST        -       -     LOST  LOST

Without a row: `LostError` in LOST, else `core.replay.LogClosedError`. A refused call changes nothing, except that an
overflow loses the stream.

AWAY, LEFT, expire: "If a client fails to resume or poll a stream within the `resumeInterval.max` period, the server may
consider the stream abandoned and reclaim resources." It does, when now >= deadline: the last of creation, disconnect
and answered poll, plus max. From that moment the stream is as in LOST, also before anybody calls `expire`. A refused
resume is no resume. While a reader is there, nobody is waited for.

LOST, resume and poll: "The next time a client attempts to resume or poll the stream, the server may respond with an
error." It does, with the reason.

resume: "Minimum seconds a client should wait before resuming the stream (prevents excessive reconnections)". The
product contract, section 6, makes sooner an error. It may resume when now >= earliest: the last disconnect plus min.
Left open by the draft and decided here: beside a reader, whose connection may be dead without anybody knowing, min
counts from when that reader attached, so that a take-over is possible and a storm of them is not; and for a stream that
nobody has read yet from its creation, as the request that created it is its first reader.

resume: "Send all unsent messages for the stream to the client". Decided here: unsent is what follows the last message
that a client says it has received, else the last that a socket took. The client's own word counts as a socket's.

overflow: "Servers should limit the number of unsent messages a disconnected stream may retain". Decided here: what was
taken goes first and silently; when something untaken would have to go, the whole stream is lost, with or without a
reader, as a stream with a hole would be worse.

DONE, expire: "servers may maintain a buffer of recently sent messages (a two minute window aligns with common TCP idle
timeout configurations)". `keep_s` is that window, counted from when the stream had both ended and been wholly taken;
nothing prolongs it, and to forget a stream then is no loss. An ended stream that is not wholly taken is waited for like
a live one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from itertools import islice

from .replay import ReplayLog


class Kind(Enum):
    """The kind of a message that waits, as a poll tells it."""

    OTHER = auto()
    REQUEST = auto()
    ERROR = auto()


class DraftStatus(StrEnum):
    """The draft's two words."""

    LIVE = "live"
    COMPLETED = "completed"


class Lost(StrEnum):
    """Why a stream was forgotten before its client had all of it."""

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
    """The draft's StreamPollResult: the flags tell of unsent messages, `pending_messages` whether there are any."""

    status: DraftStatus
    pending_messages: bool
    has_request: bool
    has_error: bool


class TooEarlyError(Exception):
    """A resume sooner than min; it may be tried again after `wait_s` seconds, which is more than 0."""

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

    `log` has the messages; whoever sends follows it with a cursor from `resume` (the first reader: 0) and tells what
    was `taken`. A cursor behind what was taken may meet `core.replay.EvictedError` there, as taken messages make room.
    """

    def __init__(self, interval: Interval, keep_s: float, *, max_messages: int, max_bytes: int, now: float) -> None:
        self.log = ReplayLog(max_messages=max_messages, max_bytes=max_bytes)
        self.status = DraftStatus.LIVE
        self.lost: Lost | None = None
        self.forgotten = False
        self.connected = False
        self._interval = interval
        self._keep_s = keep_s
        self._kinds: deque[Kind] = deque()  # of the messages in the log, one for one
        self._taken = 0
        self._changed_at = now
        self._seen_at = now
        self._done_at: float | None = None

    @property
    def untaken(self) -> int:
        """The number of messages that were never taken; of a lost stream, the number that was never sent."""
        return self.log.last - self._taken

    @property
    def deadline(self) -> float | None:
        """When `expire` has something to do; None while nothing is waited for."""
        if self.lost is not None or self.forgotten:
            return None
        if self._done_at is not None:
            return self._done_at + self._keep_s
        return None if self.connected else self._seen_at + self._interval.max_s

    def emit(self, message: bytes, kind: Kind, now: float) -> int:
        """Add a message and return its position, from 1. One beyond the byte bound is kept, alone.

        Raises `LostError`, with OVERFLOW when something untaken had to go for it, and `core.replay.LogClosedError`
        after `end`.
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
        """Nothing more will come. Harmless when repeated, or lost."""
        if self._loss(now) is None:
            self.log.close()
            self.status = DraftStatus.COMPLETED
            self._note_done(now)

    def taken(self, position: int, now: float) -> None:
        """A socket took the messages up to there; a position before the last one taken changes nothing.

        Raises `IndexError` for a position that was never emitted. Harmless when lost.
        """
        if position > self.log.last:
            raise IndexError(f"position {position} is beyond {self.log.last}")
        if self._loss(now) is None:
            self._taken = max(self._taken, position)
            self._note_done(now)

    def resume(self, received: int | None, now: float) -> int:
        """Judge a resume and return the cursor to read from; `connect` says that somebody does.

        `received`: the position of the last message that the client has; None: the last one taken. Raises, in this
        order, `LostError`, `IndexError` when it was never emitted, `core.replay.EvictedError` when messages after it
        are gone, and `TooEarlyError`: first what waiting does not help.
        """
        cursor = self._cursor(received, now)
        earliest = self._changed_at + self._interval.min_s
        if now < earliest:
            raise TooEarlyError(earliest - now)
        self.taken(cursor, now)
        return cursor

    def connect(self, now: float) -> None:
        """A reader attached, be it the first or one that takes over. Without effect on a lost stream."""
        if self._loss(now) is None:
            self.connected = True
            self._changed_at = now

    def disconnect(self, now: float) -> None:
        """The last reader has gone. Without effect when there was none."""
        if self.connected:
            self.connected = False
            self._changed_at = self._seen_at = now

    def poll(self, received: int | None, now: float) -> Poll:
        """The status, and what waits after `received` as in `resume`. The client is waited for from now on.

        Raises, in this order, `LostError`, `IndexError` and `core.replay.EvictedError`.
        """
        cursor = self._cursor(received, now)
        self._seen_at = now
        self.taken(cursor, now)
        waiting = set(islice(self._kinds, cursor + 1 - self.log.first, None))
        return Poll(self.status, bool(waiting), Kind.REQUEST in waiting, Kind.ERROR in waiting)

    def lose(self, why: Lost) -> None:
        """Forget everything. Harmless when it is over already: the first reason stays."""
        if self.lost is None and not self.forgotten:
            self.lost = why
            self._free()

    def expire(self, now: float) -> bool:
        """Do what the deadline is for. True, once: it is over now, abandoned or forgotten, and its memory is free."""
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
        """Why it is lost, also when the deadline has passed and nobody has called `expire` yet."""
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

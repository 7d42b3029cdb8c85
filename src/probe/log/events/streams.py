"""Streams of messages to a client, and what an event stream carries beside messages."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct


class StreamOpened(Struct, frozen=True):
    """A stream of messages exists from now on; readers come and go.

    `purpose`: `response`, `standalone`, `subscription` or `resumable` (a stream of the draft extension, of one tool
    call). Cause: the `message.received` of the request that it was opened for, or the `http.request` of a GET.
    """

    kind: ClassVar[str] = "stream.opened"
    purpose: str


class StreamEnded(Struct, frozen=True):
    """Nothing more will be sent on the stream; what was sent can be read again for a while. Cause: its opening."""

    kind: ClassVar[str] = "stream.ended"
    messages: int


class StreamResumed(Struct, frozen=True):
    """A new reader goes on with a stream of the draft extension. Cause: the `message.received` that asked for it.

    The connection and the exchange are those of the reader. It gets what follows the position `after`, `waiting`
    messages of it at once.
    """

    kind: ClassVar[str] = "stream.resumed"
    after: int
    waiting: int


class StreamLost(Struct, frozen=True):
    """A stream of the draft extension and what it kept are gone; `messages` of it were never sent. Cause: its opening.

    `why`: `abandoned` (nobody came back in time), `overflow` (more waited than may), `session_ended`, `server_full`.
    """

    kind: ClassVar[str] = "stream.lost"
    why: str
    messages: int


Control: TypeAlias = Literal["priming", "retry", "comment"]
"""The parts of an event stream beside messages."""


class StreamControl(Struct, frozen=True):
    """A socket took something of an event stream that is no message. Cause: the `http.request` of the reader.

    `what`: `priming` (the event with an id and no data), `retry` (the same before a hang-up) or `comment` (keep-alive).
    `event_id` is its id, `retry_ms` the value of its `retry` field; None where it has none.
    """

    kind: ClassVar[str] = "stream.control"
    what: Control
    event_id: str | None
    retry_ms: int | None

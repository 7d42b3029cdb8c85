"""Streams of messages to a client, and the parts of an event stream beside messages."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct


class StreamOpened(Struct, frozen=True):
    """A stream of messages exists from now on; readers come and go.

    `purpose`: `response`, `standalone`, `subscription` or `resumable` (a stream of the draft extension, of one tool
    call). Cause: the `message.received` of its request, or the `http.request` of a GET.
    """

    kind: ClassVar[str] = "stream.opened"
    purpose: str


class StreamEnded(Struct, frozen=True):
    """The stream gets no more messages. Those sent can be read again for a while. Cause: its opening."""

    kind: ClassVar[str] = "stream.ended"
    messages: int


class StreamResumed(Struct, frozen=True):
    """A new reader resumes a stream of the draft extension. Cause: the `message.received` of its request.

    The connection and the exchange are those of the reader. It gets the messages behind the position `after`, `waiting`
    of them at once.
    """

    kind: ClassVar[str] = "stream.resumed"
    after: int
    waiting: int


class StreamLost(Struct, frozen=True):
    """A stream of the draft extension was removed; `messages` of its messages were never sent. Cause: its opening.

    `why`: `abandoned` (no reader in time), `overflow` (too many messages waited), `session_ended`, `server_full`.
    """

    kind: ClassVar[str] = "stream.lost"
    why: str
    messages: int


Control: TypeAlias = Literal["priming", "retry", "comment"]
"""The parts of an event stream beside messages."""


class StreamControl(Struct, frozen=True):
    """A socket took a part of an event stream other than a message. Cause: the `http.request` of the reader.

    `what`: `priming` (the event with an id and no data), `retry` (the same before a hang-up) or `comment` (keep-alive).
    `event_id` is its id, `retry_ms` the value of its `retry` field; None without one.
    """

    kind: ClassVar[str] = "stream.control"
    what: Control
    event_id: str | None
    retry_ms: int | None

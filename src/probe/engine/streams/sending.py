"""Every message to a client is encoded, recorded and appended here, and only here. None of these functions waits.

    send            message.emitted, and the message on its stream
    answer          message.emitted, and the message as a whole response
    note_delivered  message.delivered: a socket took the response
    drop            message.dropped: the message may no longer be sent, such as after a cancellation

The recorder of a message has its call in its context. Its cause is the entry of the request, or of the event that
brought about the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from ...log import redaction
from ...log.context import Recorder
from ...log.events import MessageDropped, MessageEmitted, MessagesDelivered, essentials
from ...wire.jsonrpc import Json, encode
from .stream import Stream, StreamLostError


class Emitted(Struct, frozen=True):
    """An answer in one piece: its bytes, and its recorder with the `message.emitted` as cause."""

    body: bytes
    recorder: Recorder


class Kept(NamedTuple):
    """A message for the log, and the place of a secret that was hidden in it, with its JSON type."""

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

    Returns the recorder of the message, with the `message.emitted` as cause. Returns None for a lost stream; the
    message is then dropped.
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
    """Record that a socket took these messages, a whole response: one entry for each run of messages of a call."""
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

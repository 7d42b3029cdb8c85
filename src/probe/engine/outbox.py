"""The one way out: every message to a client is encoded, recorded and appended here.

Emitting is recorded now, delivery by the stream when a socket took the message. What may no longer be sent is recorded
as dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from ..observe import redaction
from ..observe.events import MessageDropped, MessageEmitted, essentials
from ..observe.log import EventLog
from ..wire.jsonrpc import Json, encode
from .streams import Stream, StreamLostError


def stored(value: object, body: bytes) -> bytes:
    """A message as the log keeps it: the same bytes, unless they hold a secret, and in one line.

    JSON has line breaks only between its tokens, where a space means the same.
    """
    if redaction.has_secret(value):
        return encode(redaction.message(value))
    return body.replace(b"\n", b" ").replace(b"\r", b" ") if b"\n" in body or b"\r" in body else body


class Outbox:
    """Sends the messages of one engine. Never waits."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    def send(
        self,
        stream: Stream,
        value: Json,
        *,
        call: str | None = None,
        task: str | None = None,
        on_delivery: Callable[[], None] | None = None,
    ) -> None:
        """Append a message to a stream that has not ended. It is dropped where the stream is lost."""
        value = stream.marked(value)
        body, (rpc, method, id) = encode(value), essentials(value)
        kept = stored(value, body)
        try:
            position = stream.append(body, on_delivery, rpc)
        except StreamLostError as lost:
            self._log.append(MessageDropped(stream.session, call, task, str(lost), rpc, method, id, kept))
            return
        self._log.append(
            MessageEmitted(stream.exchange, stream.session, stream.id, position, call, task, rpc, method, id, kept)
        )

    def answer(self, exchange: int, session: str | None, value: Json, *, call: str | None = None) -> bytes:
        """The bytes of a message in the body of a whole response."""
        body = encode(value)
        kept = stored(value, body)
        self._log.append(MessageEmitted(exchange, session, None, None, call, None, *essentials(value), kept))
        return body

    def drop(
        self, session: str | None, value: Json, why: str, *, call: str | None = None, task: str | None = None
    ) -> None:
        """Record a message that nobody will get."""
        kept = stored(value, encode(value))
        self._log.append(MessageDropped(session, call, task, why, *essentials(value), kept))

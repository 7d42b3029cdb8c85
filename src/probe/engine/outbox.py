"""The one way out: every message to a client is encoded, recorded and appended here.

Emitting is recorded now, delivery by the stream when a socket took the message. What may no longer be sent is recorded
as dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from ..observe import redaction
from ..observe.events import MessageDropped, MessageEmitted
from ..observe.log import EventLog
from ..wire.jsonrpc import Json, encode
from .streams import Stream


def stored(value: object, body: bytes) -> bytes:
    """A message as the log keeps it: the same bytes, unless they hold a secret."""
    return body if not redaction.has_secret(value) else encode(redaction.message(value))


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
        """Append a message to a stream that has not ended."""
        body = encode(value)
        position = stream.append(body, on_delivery)
        self._log.append(MessageEmitted(stream.session, stream.id, position, call, task, stored(value, body)))

    def answer(self, session: str | None, value: Json, *, call: str | None = None) -> bytes:
        """The bytes of a message that makes up a whole response body."""
        body = encode(value)
        self._log.append(MessageEmitted(session, None, None, call, None, stored(value, body)))
        return body

    def drop(
        self, session: str | None, value: Json, why: str, *, call: str | None = None, task: str | None = None
    ) -> None:
        """Record a message that nobody will get."""
        self._log.append(MessageDropped(session, call, task, why, stored(value, encode(value))))

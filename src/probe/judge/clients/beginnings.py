"""What a client began with on each connection, decided as it comes: later the message may have made room."""

from __future__ import annotations

from typing import Final

from ...log.bounded import Newest
from ...views.clients import Connection
from ...views.values import Message
from ..retention import BOUNDS

INITIALIZED: Final = "notifications/initialized"
_SESSION_HEADER: Final = "mcp-session-id"


class Beginnings:
    """The message that came first on each pipe, or over HTTP (None), if it may have come before `initialize`.

    A message without any word of its era may be of a modern client that forgot its `_meta`. So it is held until the
    client shows its era, or its pipe ends; only `notifications/initialized` is certain by itself.
    """

    def __init__(self) -> None:
        # None where the era has shown.
        self._held: Newest[Connection | None, Message | None] = Newest(BOUNDS.places)
        self._early: Newest[Message | Connection, Message] = Newest(BOUNDS.places)

    def add(self, message: Message) -> None:
        place, held = message.pipe, self._held
        if message.method == "initialize":
            self._decide(place, message)
        elif message.in_session is not None:
            return
        elif message.era == "modern":
            held.store(place, None)
        elif place not in held and message.method != "ping" and message.rpc != "invalid" and not names_session(message):
            held.store(place, message)
            if message.method == INITIALIZED:
                self._decide(place, message)

    def end(self, pipe: Connection) -> None:
        """A connection that ends without `initialize` is one of the legacy era."""
        self._decide(pipe, pipe)
        del self._held[pipe]

    def _decide(self, place: Connection | None, by: Message | Connection) -> None:
        early = self._held.get(place)
        self._held.store(place, None)
        if early is not None:
            self._early.store(by, early)

    def early(self, by: Message | Connection) -> Message | None:
        """The message that is too early by `initialize`, `notifications/initialized` or the end of a pipe."""
        return self._early.get(by)

    def undecided(self) -> Message | None:
        """The first message on an open pipe, or over HTTP, of a client that has not shown its era."""
        return next((each for each in self._held.values() if each is not None), None)


def names_session(message: Message) -> bool:
    """True if its HTTP request names a session, which the server need not know."""
    exchange = message.exchange
    if exchange is None or exchange.head is None:
        return False
    return _SESSION_HEADER in exchange.headers or exchange.request.session_in_query

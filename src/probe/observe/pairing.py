"""Which request a response answers: by direction, by exchange or session, and by the id with its JSON type.

request of                      is remembered by        its answer is found by
a client                        exchange, id            exchange, id
the server                      session, id             session, id
the server, on a draft stream   stream, id              the streams that the session reads, id
a tool host, or to one          who asks, host, id      the same

An answer to a client's request belongs to the response of the exchange that brought the request, on whatever stream, so
the exchange tells apart what a session alone could not: a refused request and the one whose id it used again. The
answer to a request of the server comes in an exchange of its own; to one on a stream of the draft extension perhaps in
another session, which goes on with the stream on a new connection.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from ..wire.jsonrpc import RequestId
from .events import (
    CallStarted,
    ConnectionClosed,
    ConnectionOpened,
    Event,
    HostMessage,
    MessageEmitted,
    MessageReceived,
    StreamEnded,
    StreamLost,
    StreamOpened,
    StreamResumed,
)

# An exchange is a number, a session a string and a stream both its session and its id, so requests of the two sides
# never meet; nor does 5 meet "5".
_Stream: TypeAlias = tuple[str | None, str]
_Key: TypeAlias = tuple[int | str | _Stream, RequestId]

# More requests than can be in flight by default. What is never answered, because it was cancelled, is pushed out.
_MOST_OPEN = 10_000


class Pairing:
    """Fed with every event in order."""

    def __init__(self, most_open: int = _MOST_OPEN) -> None:
        self._open: OrderedDict[_Key, int] = OrderedDict()
        self._most_open = most_open
        # The draft streams that have not ended, and the session that reads each.
        self._drafts: dict[_Stream, str | None] = {}
        self._connections: dict[int, str] = {}
        # The session that last spoke on a connection.
        self._speaks: dict[str, str | None] = {}
        self._takers: Mapping[type, Callable[[int, Any], int | None]] = {
            MessageReceived: self._received,
            MessageEmitted: self._emitted,
            CallStarted: self._started,
            ConnectionOpened: self._connected,
            ConnectionClosed: self._disconnected,
            StreamOpened: self._opened,
            StreamResumed: self._resumed,
            StreamEnded: self._over,
            StreamLost: self._over,
            HostMessage: self._of_host,
        }

    def note(self, seq: int, event: Event) -> int | None:
        """The sequence number of the request that this event answers, or by which this call began."""
        taker = self._takers.get(type(event))
        return None if taker is None else taker(seq, event)

    def _started(self, seq: int, event: CallStarted) -> int | None:
        return self._open.get((event.exchange, event.request_id))

    def _received(self, seq: int, event: MessageReceived) -> int | None:
        if event.connection is not None:
            self._speaks[event.connection] = event.session
        if event.id is None or event.rpc == "invalid":
            return None
        if event.rpc == "request":
            self._remember((event.exchange, event.id), seq)
            return None
        return next((self._open.pop(key) for key in self._asked(event.session, event.id) if key in self._open), None)

    def _asked(self, session: str | None, id: RequestId) -> Iterator[_Key]:
        """What a session may be answering."""
        if session is not None:
            yield session, id
            for stream, reader in self._drafts.items():
                if reader == session:
                    yield stream, id

    def _emitted(self, seq: int, event: MessageEmitted) -> int | None:
        if event.id is None or event.rpc == "invalid":
            return None
        if event.rpc != "request":
            return None if event.exchange is None else self._open.pop((event.exchange, event.id), None)
        stream = event.session, event.stream or ""
        if stream in self._drafts:
            self._remember((stream, event.id), seq)
        elif event.session is not None:
            self._remember((event.session, event.id), seq)
        return None

    def _of_host(self, seq: int, event: HostMessage) -> int | None:
        # The labels of tool hosts are no sessions', so these keys are no streams'.
        if event.id is None or event.rpc == "invalid":
            return None
        if event.rpc == "request":
            self._remember(((event.connection, event.direction), event.id), seq)
            return None
        other = "sent" if event.direction == "received" else "received"
        return self._open.pop(((event.connection, other), event.id), None)

    def _remember(self, key: _Key, seq: int) -> None:
        self._open[key] = seq
        self._open.move_to_end(key)
        if len(self._open) > self._most_open:
            self._open.popitem(last=False)

    def _connected(self, seq: int, event: ConnectionOpened) -> None:
        self._connections[event.exchange] = event.connection

    def _disconnected(self, seq: int, event: ConnectionClosed) -> None:
        self._speaks.pop(event.connection, None)
        self._connections = {number: label for number, label in self._connections.items() if label != event.connection}

    def _opened(self, seq: int, event: StreamOpened) -> None:
        if event.purpose == "resumable":
            self._drafts[event.session, event.stream] = event.session

    def _resumed(self, seq: int, event: StreamResumed) -> None:
        stream, connection = (event.session, event.stream), self._connections.get(event.exchange)
        if stream in self._drafts and connection is not None:
            self._drafts[stream] = self._speaks.get(connection)

    def _over(self, seq: int, event: StreamEnded | StreamLost) -> None:
        self._drafts.pop((event.session, event.stream), None)

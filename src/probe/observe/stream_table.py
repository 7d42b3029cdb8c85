"""The table of streams: how far each has come, and who reads it.

A reader is an exchange: an HTTP request whose response carries the stream, or a connection that carries everything. It
may read several streams, and takes one over from another reader, which goes later and then changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from . import events
from .log import Entry
from .rows import Purpose, StreamRow, StreamStatus
from .table import Table

# Messages of connections whose connection is known: what a stream is opened for has just come.
_MOST_CARRIED: Final = 2000

_OfStream: TypeAlias = (
    events.StreamOpened
    | events.StreamEnded
    | events.StreamResumed
    | events.StreamLost
    | events.MessageEmitted
    | events.MessagesDelivered
    | events.HttpResponse
    | events.HttpClosed
)


class StreamTable:
    """Fed with the entries of the log that `takers` has a place for."""

    def __init__(self) -> None:
        self.table: Table[StreamRow] = Table()
        # What each reader reads; a reader that reads nothing is not here.
        self._reads: dict[int, dict[str, None]] = {}
        # The connections that are open, by the number and by the label.
        self._labels: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._carried: OrderedDict[int, str] = OrderedDict()
        self._last_carrier = ""
        # The session that a connection opened last, and its number; the session's stream follows before another one's.
        self._last_session: tuple[str | None, int] = (None, 0)
        # The row and the reader of requests to resume, by the call; such a one starts right behind `stream.resumed`.
        self._resumes: dict[str, tuple[str, int]] = {}
        self._last_resumed: tuple[str, int] | None = None
        # The reader and the exchange of calls that connections brought.
        self._running: dict[str, tuple[int, int]] = {}
        self.takers: Mapping[type, Callable[[Entry, Any], None]] = {
            events.ConnectionOpened: self._connected,
            events.ConnectionClosed: self._disconnected,
            events.MessageReceived: self._received,
            events.SessionOpened: self._greeted,
            events.StreamOpened: self._opened,
            events.MessageEmitted: self._emitted,
            events.MessagesDelivered: self._delivered,
            events.HttpResponse: self._answered,
            events.HttpClosed: self._left,
            events.StreamResumed: self._resumed,
            events.CallStarted: self._started,
            events.CallSettled: self._settled,
            events.StreamEnded: self._ended,
            events.StreamLost: self._lost,
        }

    def _connected(self, entry: Entry, event: events.ConnectionOpened) -> None:
        self._labels[event.exchange], self._numbers[event.connection] = event.connection, event.exchange

    def _disconnected(self, entry: Entry, event: events.ConnectionClosed) -> None:
        number = self._numbers.pop(event.connection, None)
        if number is None:
            return
        for id in list(self._reads.get(number, ())):
            self._leave(id, event.by)
        del self._labels[number]

    def _received(self, entry: Entry, event: events.MessageReceived) -> None:
        self._last_carrier = event.connection or ""
        if event.connection is not None:
            self._carried[event.exchange] = event.connection
            if len(self._carried) > _MOST_CARRIED:
                self._carried.popitem(last=False)

    def _greeted(self, entry: Entry, event: events.SessionOpened) -> None:
        """A session begins right behind the message that asks for it."""
        if event.transport != "http" and self._last_carrier in self._numbers:
            self._last_session = event.session, self._numbers[self._last_carrier]

    def _reader(self, exchange: int) -> int:
        """Who reads for the sake of an exchange: the connection that carried its message, or itself."""
        connection = self._carried.get(exchange)
        return exchange if connection is None else self._numbers.get(connection, exchange)

    def _opened(self, entry: Entry, event: events.StreamOpened) -> None:
        row = StreamRow(
            id=f"{event.session}/{event.stream}",
            session=event.session,
            stream=event.stream,
            purpose=cast("Purpose", event.purpose),
            exchange=event.exchange,
            opened_at=entry.at,
            status="live",
            lost=None,
            messages=0,
            delivered=0,
            waiting=0,
            connected=False,
            reader=None,
            connection=None,
            resumed=0,
            ended_at=None,
            closed_by=None,
        )
        gone = self.table.add(row.id, row)
        if gone is not None:
            self._forget_reader(gone)
        session, number = self._last_session
        if event.exchange is not None and event.exchange in self._carried:
            self._read(row, self._reader(event.exchange))
        elif event.exchange is None and event.session is not None and event.session == session:
            # A connection reads the standalone stream of its session, which is opened once.
            self._read(row, number)

    def _emitted(self, entry: Entry, event: events.MessageEmitted) -> None:
        row = self._row(event)
        if row is not None:
            row.messages += 1
            row.waiting = row.messages - row.delivered if row.lost is None else 0

    def _delivered(self, entry: Entry, event: events.MessagesDelivered) -> None:
        row = self._row(event)
        if row is None:
            return
        # What was resumed is delivered again, and counts once.
        row.delivered = max(row.delivered, event.last)
        row.waiting = max(0, row.messages - row.delivered) if row.lost is None else 0
        # One that its session has on a connection; or one of several that a response carries, whose head names one.
        if not row.connected and (event.exchange in self._labels or (row.purpose == "resumable" and not row.closed_by)):
            self._read(row, event.exchange)
        self._finish(row)

    def _answered(self, entry: Entry, event: events.HttpResponse) -> None:
        row = self._row(event) if event.content_type == "text/event-stream" else None
        if row is not None:
            # Unless `stream.resumed` has told of this reader.
            row.resumed += row.reader != event.exchange and (row.connected or row.closed_by is not None)
            self._read(row, event.exchange)

    def _left(self, entry: Entry, event: events.HttpClosed) -> None:
        for id in list(self._reads.get(event.exchange, ())):
            self._leave(id, event.by)
        row = self._row(event)
        # A lone answer has no reader.
        if row is not None and not (row.connected or row.closed_by):
            row.closed_by = event.by

    def _resumed(self, entry: Entry, event: events.StreamResumed) -> None:
        row = self._row(event)
        if row is not None:
            row.resumed += 1
            reader = self._reader(event.exchange)
            self._read(row, reader)
            self._last_resumed = row.id, reader

    def _started(self, entry: Entry, event: events.CallStarted) -> None:
        if event.exchange in self._carried:
            self._running[event.call] = self._reader(event.exchange), event.exchange
        if event.method == "stream/resume" and self._last_resumed is not None:
            self._resumes[event.call] = self._last_resumed

    def _settled(self, entry: Entry, event: events.CallSettled) -> None:
        """A resume that was cancelled lets go of its stream, also where its connection goes on."""
        id, reader = self._resumes.pop(event.call, (None, None))
        row = None if id is None else self.table.rows.get(id)
        if row is not None and row.reader == reader and event.cancelled_by is not None:
            self._leave(row.id, "the resume was cancelled")
        self._silence(event)

    def _silence(self, event: events.CallSettled) -> None:
        """What waits for the answer of a call that gets none is not sent, and its connection goes on."""
        reader, exchange = self._running.pop(event.call, (0, 0))
        for id in [] if event.answered else list(self._reads.get(reader, ())):
            row = self.table.rows.get(id)
            if row is not None and row.exchange == exchange and row.purpose != "resumable":
                self._leave(id, f"cancelled by {event.cancelled_by}")

    def _ended(self, entry: Entry, event: events.StreamEnded) -> None:
        row = self._row(event)
        # What is lost is told before it ends.
        if row is not None and row.lost is None:
            _over(row, entry.at, "completed")
            self._finish(row)

    def _lost(self, entry: Entry, event: events.StreamLost) -> None:
        row = self._row(event)
        if row is not None:
            _over(row, entry.at, "lost")
            row.lost, row.waiting = event.why, 0
            self._leave(row.id, event.why)

    def _finish(self, row: StreamRow) -> None:
        """Nobody reads on a connection what has ended and was delivered; of a response, its own end tells."""
        if row.connection is not None and row.ended_at is not None and not row.waiting:
            self._leave(row.id, "end of stream")

    def _read(self, row: StreamRow, reader: int) -> None:
        self._forget_reader(row)
        self._reads.setdefault(reader, {})[row.id] = None
        row.connected, row.closed_by = True, None
        row.reader, row.connection = reader, self._labels.get(reader)

    def _leave(self, id: str, by: str) -> None:
        row = self.table.changed(id)
        if row is not None and row.connected:
            self._forget_reader(row)
            row.connected, row.closed_by = False, by
            row.reader = row.connection = None

    def _forget_reader(self, row: StreamRow) -> None:
        if row.reader is not None:
            mine = self._reads.get(row.reader, {})
            mine.pop(row.id, None)
            if not mine:
                self._reads.pop(row.reader, None)

    def _row(self, event: _OfStream) -> StreamRow | None:
        """The row, which is about to change."""
        return None if event.stream is None else self.table.changed(f"{event.session}/{event.stream}")


def _over(row: StreamRow, at: float, status: StreamStatus) -> None:
    # What has ended can still be lost: its client had not all of it.
    row.status = status
    if row.ended_at is None:
        row.ended_at = at

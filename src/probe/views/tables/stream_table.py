"""The table of streams: how far each has come, and who reads it.

A reader is an exchange: an HTTP request whose response carries the stream, or a connection that carries everything. It
may read several streams, and takes one over from another reader, which goes later and then changes nothing. A pipe
reads each stream that is opened on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from ...log import events
from ...log.bounded import Newest
from ...log.context import Context
from ...log.event_log import Entry
from .rows import Purpose, StreamRow, StreamStatus
from .table import Table

# Requests to resume that run at a time, many times over. The oldest is forgotten.
_MOST_RESUMING: Final = 2000
_NOBODY: Final = (None, None)


class StreamRows:
    """Fed with the entries of the log that `takers` has a place for."""

    def __init__(self) -> None:
        self.table: Table[StreamRow] = Table()
        # The streams of each reader; a reader without one is not here.
        self._reads: dict[int, dict[str, None]] = {}
        # The pipes that are open, by the label, with the exchange that stands for them.
        self._pipes: dict[str, int] = {}
        # The row and the reader of requests to resume, by the entry of the request, and then by the call that it is.
        self._resumes: Newest[int | str, tuple[str, int]] = Newest(_MOST_RESUMING)
        self.takers: Mapping[type, Callable[[Entry, Any], None]] = {
            events.ConnectionOpened: self._connected,
            events.ConnectionClosed: self._disconnected,
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

    def _connected(self, entry: Entry, fact: events.ConnectionOpened) -> None:
        connection, exchange = entry.context.connection, entry.context.exchange
        if connection is not None and exchange is not None:
            self._pipes[connection] = exchange

    def _disconnected(self, entry: Entry, fact: events.ConnectionClosed) -> None:
        number = self._pipes.pop(entry.context.connection or "", None)
        for id in list(self._reads.get(number or 0, ())):
            self._leave(id, fact.by, entry.at)

    def _reader(self, context: Context) -> int | None:
        """The reader of an entry: the pipe, else the exchange."""
        return context.exchange if context.pipe is None else self._pipes.get(context.pipe)

    def _opened(self, entry: Entry, fact: events.StreamOpened) -> None:
        context = entry.context
        row = StreamRow(
            id=f"{context.session}/{context.stream}",
            session=context.session,
            stream=context.stream or "",
            purpose=cast("Purpose", fact.purpose),
            exchange=None if fact.purpose == "standalone" else context.exchange,
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
            left_at=None,
        )
        gone = self.table.add(row.id, row)
        if gone is not None:
            self._forget_reader(gone)
        if context.pipe is not None:
            self._read(row, context)

    def _emitted(self, entry: Entry, fact: events.MessageEmitted) -> None:
        row = self._row(entry)
        if row is not None:
            row.messages += 1
            row.waiting = row.messages - row.delivered if row.lost is None else 0

    def _delivered(self, entry: Entry, fact: events.MessagesDelivered) -> None:
        row = self._row(entry)
        if row is None:
            return
        # A resumed message is delivered again, and counts once.
        row.delivered = max(row.delivered, fact.last)
        row.waiting = max(0, row.messages - row.delivered) if row.lost is None else 0
        # A stream that a pipe took over; or one of several that a response carries, whose head names one.
        pipe = entry.context.pipe is not None
        if not row.connected and (pipe or (row.purpose == "resumable" and not row.closed_by)):
            self._read(row, entry.context)
        self._finish(row, entry.at)

    def _answered(self, entry: Entry, fact: events.HttpResponse) -> None:
        row = self._row(entry) if fact.content_type == "text/event-stream" else None
        if row is not None:
            # Unless `stream.resumed` has named this reader.
            row.resumed += row.reader != entry.context.exchange and (row.connected or row.closed_by is not None)
            self._read(row, entry.context)

    def _left(self, entry: Entry, fact: events.HttpClosed) -> None:
        for id in list(self._reads.get(entry.context.exchange or 0, ())):
            self._leave(id, fact.by, entry.at)
        row = self._row(entry)
        # An answer in one piece has no reader.
        if row is not None and not (row.connected or row.closed_by):
            row.closed_by, row.left_at = fact.by, entry.at

    def _resumed(self, entry: Entry, fact: events.StreamResumed) -> None:
        row = self._row(entry)
        if row is not None:
            row.resumed += 1
            self._read(row, entry.context)
            if entry.cause is not None and row.reader is not None:
                self._resumes.store(entry.cause, (row.id, row.reader))

    def _started(self, entry: Entry, fact: events.CallStarted) -> None:
        resumed = self._resumes.pop(entry.cause or 0, None) if self._resumes else None
        if resumed is not None and entry.context.call is not None:
            self._resumes.store(entry.context.call, resumed)

    def _settled(self, entry: Entry, fact: events.CallSettled) -> None:
        """A resume that was cancelled releases its stream, also where its connection goes on."""
        id, reader = self._resumes.pop(entry.context.call or "", _NOBODY) if self._resumes else _NOBODY
        row = None if id is None else self.table.rows.get(id)
        if row is not None and row.reader == reader and fact.cancelled_by is not None:
            self._leave(row.id, "the resume was cancelled", entry.at)
        if not fact.answered and entry.context.pipe is not None:
            self._silence(entry, f"cancelled by {fact.cancelled_by}")

    def _silence(self, entry: Entry, why: str) -> None:
        """A message that waits for the answer of a call that gets none is not sent, and its connection goes on."""
        for id in list(self._reads.get(self._reader(entry.context) or 0, ())):
            row = self.table.rows.get(id)
            if row is not None and row.exchange == entry.context.exchange and row.purpose != "resumable":
                self._leave(id, why, entry.at)

    def _ended(self, entry: Entry, fact: events.StreamEnded) -> None:
        row = self._row(entry)
        # The loss of a stream is recorded before its end.
        if row is not None and row.lost is None:
            _over(row, entry.at, "completed")
            self._finish(row, entry.at)

    def _lost(self, entry: Entry, fact: events.StreamLost) -> None:
        row = self._row(entry)
        if row is not None:
            _over(row, entry.at, "lost")
            row.lost, row.waiting = fact.why, 0
            self._leave(row.id, fact.why, entry.at)

    def _finish(self, row: StreamRow, at: float) -> None:
        """A pipe does not read on what has ended and was delivered; the reader of a response ends with that."""
        if row.connection is not None and row.ended_at is not None and not row.waiting:
            self._leave(row.id, "end of stream", at)

    def _read(self, row: StreamRow, context: Context) -> None:
        reader = self._reader(context)
        if reader is None:
            return
        self._forget_reader(row)
        self._reads.setdefault(reader, {})[row.id] = None
        row.connected, row.closed_by, row.left_at = True, None, None
        row.reader, row.connection = reader, context.pipe

    def _leave(self, id: str, by: str, at: float) -> None:
        row = self.table.changed(id)
        if row is not None and row.connected:
            self._forget_reader(row)
            row.connected, row.closed_by, row.left_at = False, by, at
            row.reader = row.connection = None

    def _forget_reader(self, row: StreamRow) -> None:
        if row.reader is not None:
            mine = self._reads.get(row.reader, {})
            mine.pop(row.id, None)
            if not mine:
                self._reads.pop(row.reader, None)

    def _row(self, entry: Entry) -> StreamRow | None:
        """The row, which is about to change."""
        context = entry.context
        return None if context.stream is None else self.table.changed(f"{context.session}/{context.stream}")


def _over(row: StreamRow, at: float, status: StreamStatus) -> None:
    # A stream that has ended can still be lost: its client had not all of it.
    row.status = status
    if row.ended_at is None:
        row.ended_at = at

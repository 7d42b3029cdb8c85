"""What is known of each task, call, session and stream at this moment: the tables that the dashboard shows.

Fed with every entry of the event log in order. A row changes when an entry belongs to it; `changes` says for each table
which rows did, so that a reader gets each of them once however often it changed meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, get_args

from . import events
from .changes import Changes
from .evidence import Evidence
from .log import Entry
from .records import CallRecords
from .rows import Era, Purpose, SessionRow, StreamRow, TaskRow, TaskStatus

TableName: TypeAlias = Literal["tasks", "calls", "sessions", "streams"]
TABLES: Final = get_args(TableName)

# Rows of each table, over and its open ones included: as many as a page can show and a person can scroll through.
_MOST_ROWS: Final = 2000
# Different names that are counted for one client; beyond it they count as one.
_MOST_NAMES: Final = 100
_OTHERS: Final = "(others)"

_Row = TypeVar("_Row")
_OfStream: TypeAlias = (
    events.StreamOpened
    | events.StreamEnded
    | events.MessageEmitted
    | events.MessagesDelivered
    | events.HttpResponse
    | events.HttpClosed
)


@dataclass(slots=True)
class _Table(Generic[_Row]):
    """Rows by their id, the newest last; the oldest makes room."""

    rows: OrderedDict[str, _Row] = field(default_factory=OrderedDict)
    changes: Changes = field(default_factory=lambda: Changes(_MOST_ROWS))

    def add(self, id: str, row: _Row) -> None:
        self.rows[id] = row
        self.changes.note(id)
        if len(self.rows) > _MOST_ROWS:
            self.changes.forget(self.rows.popitem(last=False)[0])

    def changed(self, id: str) -> _Row | None:
        """The row, which is about to change."""
        row = self.rows.get(id)
        if row is not None:
            self.changes.note(id)
        return row


class Tables:
    """The tables of one engine. `changes` are those of each table; of calls they hold as many as there are records."""

    def __init__(self, records: CallRecords, evidence: Evidence, most_calls: int) -> None:
        self._records = records
        self._evidence = evidence
        self._tasks: _Table[TaskRow] = _Table()
        self._sessions: _Table[SessionRow] = _Table()
        self._streams: _Table[StreamRow] = _Table()
        # The exchange that reads a stream now: a connection that takes over comes before the other one goes.
        self._readers: dict[str, int] = {}
        self._call_changes = Changes(most_calls)
        self.changes: Mapping[TableName, Changes] = {
            "tasks": self._tasks.changes,
            "calls": self._call_changes,
            "sessions": self._sessions.changes,
            "streams": self._streams.changes,
        }
        self._takers: Mapping[type, Callable[[Entry, Any], None]] = {
            events.SessionOpened: self._session_opened,
            events.ClientSeen: self._client_seen,
            events.SessionClosed: self._session_closed,
            events.MessageReceived: self._received,
            events.ClientMisuse: self._misused,
            events.CallStarted: self._call_started,
            events.TaskChanged: self._task_changed,
            events.TaskRemoved: self._task_removed,
            events.StreamOpened: self._stream_opened,
            events.MessageEmitted: self._emitted,
            events.MessagesDelivered: self._delivered,
            events.HttpResponse: self._stream_read,
            events.HttpClosed: self._stream_left,
            events.StreamEnded: self._stream_ended,
        }

    def take(self, entry: Entry) -> Sequence[str]:
        """One more entry. Returns the tool calls that it belongs to."""
        calls = self._evidence.take(entry)
        taker = self._takers.get(type(entry.event))
        if taker is not None:
            taker(entry, entry.event)
        for call in calls:
            self._call_changes.note(call)
            record = self._records.get(call)
            if record is not None and record.task is not None:
                self._tasks.changed(record.task)
        return calls

    def rows(self, table: TableName, ids: Iterable[str]) -> Iterator[bytes]:
        """Rows in JSON, as they are now; what is no longer kept is left out."""
        return (row for row in (self._encoded(table, id) for id in ids) if row is not None)

    def all(self, table: TableName) -> list[str]:
        """The ids of a table, the newest last."""
        if table == "calls":
            return [record.call for record in self._records.newest_first()][::-1]
        return list(self._table(table).rows)

    def _table(self, table: TableName) -> _Table[Any]:
        tables: Mapping[str, _Table[Any]] = {"tasks": self._tasks, "sessions": self._sessions, "streams": self._streams}
        return tables[table]

    def _encoded(self, table: TableName, id: str) -> bytes | None:
        row = self._records.get(id) if table == "calls" else self._table(table).rows.get(id)
        if isinstance(row, TaskRow):
            self._fill_progress(row)
        return None if row is None else row.encoded()

    def _fill_progress(self, row: TaskRow) -> None:
        record = None if row.call is None else self._records.get(row.call)
        if record is not None:
            row.progress, row.total = record.steps_done, record.steps_total

    def _session_opened(self, entry: Entry, event: events.SessionOpened) -> None:
        row = self._open_session(entry, event.session, "legacy", event)
        # The request came before there was a session that it could belong to.
        row.requests, row.methods = 1, {"initialize": 1}

    def _client_seen(self, entry: Entry, event: events.ClientSeen) -> None:
        row = self._sessions.changed(event.session)
        if row is None:
            self._open_session(entry, event.session, "modern", event)
        else:
            row.capabilities, row.revision = event.capabilities, event.revision

    def _open_session(
        self, entry: Entry, id: str, era: Era, event: events.SessionOpened | events.ClientSeen
    ) -> SessionRow:
        row = SessionRow(
            id=id,
            era=era,
            revision=event.revision,
            client_name=event.client_name,
            client_version=event.client_version,
            opened_at=entry.at,
            last_at=entry.at,
            closed=None,
            requests=0,
            methods={},
            tools={},
            misuse=0,
            capabilities=event.capabilities,
        )
        self._sessions.add(id, row)
        return row

    def _session_closed(self, entry: Entry, event: events.SessionClosed) -> None:
        row = self._sessions.changed(event.session)
        if row is not None:
            row.closed, row.last_at = event.why, entry.at

    def _received(self, entry: Entry, event: events.MessageReceived) -> None:
        row = None if event.session is None else self._sessions.changed(event.session)
        if row is not None:
            row.last_at = entry.at
            row.requests += event.rpc == "request"
            if event.method is not None:
                _count(row.methods, event.method)

    def _misused(self, entry: Entry, event: events.ClientMisuse) -> None:
        row = None if event.session is None else self._sessions.changed(event.session)
        if row is not None:
            row.misuse += 1

    def _call_started(self, entry: Entry, event: events.CallStarted) -> None:
        row = None if event.session is None else self._sessions.changed(event.session)
        if row is not None and event.tool is not None:
            _count(row.tools, event.tool)

    def _task_changed(self, entry: Entry, event: events.TaskChanged) -> None:
        row = self._tasks.changed(event.task)
        if row is None:
            row = TaskRow(
                id=event.task,
                tool=event.tool,
                session=event.session,
                call=self._evidence.call_of_task(event.task),
                status="queued",
                message=None,
                progress=None,
                total=None,
                created_at=entry.at,
                updated_at=entry.at,
                ttl_ms=event.ttl_ms,
                removed=None,
            )
            self._tasks.add(event.task, row)
        row.status, row.message, row.updated_at = cast("TaskStatus", event.status), event.message, entry.at

    def _task_removed(self, entry: Entry, event: events.TaskRemoved) -> None:
        row = self._tasks.changed(event.task)
        if row is not None:
            row.removed, row.updated_at = event.why, entry.at

    def _stream_opened(self, entry: Entry, event: events.StreamOpened) -> None:
        id = _stream_id(event)
        row = StreamRow(
            id=id,
            session=event.session,
            stream=event.stream,
            purpose=cast("Purpose", event.purpose),
            exchange=event.exchange,
            opened_at=entry.at,
            messages=0,
            delivered=0,
            connected=False,
            ended_at=None,
            closed_by=None,
        )
        self._streams.add(id, row)

    def _emitted(self, entry: Entry, event: events.MessageEmitted) -> None:
        row = self._stream(event)
        if row is not None:
            row.messages += 1

    def _delivered(self, entry: Entry, event: events.MessagesDelivered) -> None:
        row = self._stream(event)
        if row is not None:
            # What was resumed is delivered again, and counts once.
            row.delivered = max(row.delivered, event.last)

    def _stream_read(self, entry: Entry, event: events.HttpResponse) -> None:
        row = self._stream(event) if event.content_type == "text/event-stream" else None
        if row is not None:
            row.connected, row.closed_by = True, None
            self._readers[row.id] = event.exchange

    def _stream_left(self, entry: Entry, event: events.HttpClosed) -> None:
        row, id = self._stream(event), _stream_id(event)
        reads = self._readers.get(id) == event.exchange
        if reads:
            del self._readers[id]
        # Whoever was displaced goes without a change; a lone answer has no reader.
        if row is not None and (reads or not (row.connected or row.closed_by)):
            row.connected, row.closed_by = False, event.by

    def _stream_ended(self, entry: Entry, event: events.StreamEnded) -> None:
        row = self._stream(event)
        if row is not None:
            row.ended_at = entry.at

    def _stream(self, event: _OfStream) -> StreamRow | None:
        return None if event.stream is None else self._streams.changed(_stream_id(event))


def _stream_id(event: _OfStream) -> str:
    return f"{event.session}/{event.stream}"


def _count(counts: dict[str, int], name: str) -> None:
    known = name if name in counts or len(counts) < _MOST_NAMES else _OTHERS
    counts[known] = counts.get(known, 0) + 1

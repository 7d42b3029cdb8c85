"""What is known of each task, call, session, stream and tool host at this moment: the tables that the dashboard shows.

Fed with every entry of the event log in order. A row changes when an entry belongs to it; `changes` says for each table
which rows did, so that a reader gets each of them once however often it changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from ..wire.jsonrpc import RequestId
from . import events
from .changes import Changes
from .evidence import Evidence
from .host_table import HostTable
from .log import Entry
from .log_counts import LOG, LogCounts
from .records import CallRecords
from .refusals import RefusalTable
from .rows import Era, RefusalRow, SessionRow, TaskRow, TaskStatus, Transport
from .stream_table import StreamTable
from .table import Table

TableName: TypeAlias = Literal["tasks", "calls", "sessions", "streams", "hosts", "refusals", "counts"]
TABLES: Final = get_args(TableName)

UNATTRIBUTED: Final = "unattributed"
"""The row of `sessions` for what no client is known for."""

# Different names that are counted for one client; beyond it they count as one.
_MOST_NAMES: Final = 100
_OTHERS: Final = "(others)"


class Tables:
    """The tables of one engine. `changes` are those of each table; of calls they hold as many as there are records."""

    def __init__(self, records: CallRecords, evidence: Evidence, most_calls: int) -> None:
        self._records = records
        self._evidence = evidence
        self._tasks: Table[TaskRow] = Table()
        self._sessions: Table[SessionRow] = Table(may_go=lambda row: row.id != UNATTRIBUTED)
        self._streams = StreamTable()
        self._hosts = HostTable()
        self._refusals = RefusalTable(self._has_failed, self._refused)
        self._counts = LogCounts()
        self._call_changes = Changes(most_calls)
        self.changes: Mapping[TableName, Changes] = {
            "tasks": self._tasks.changes,
            "calls": self._call_changes,
            "sessions": self._sessions.changes,
            "streams": self._streams.table.changes,
            "hosts": self._hosts.table.changes,
            "refusals": self._refusals.table.changes,
            "counts": self._counts.changes,
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
        }

    def take(self, entry: Entry) -> Sequence[str]:
        """One more entry. Returns the tool calls that it belongs to."""
        calls = self._evidence.take(entry)
        self._counts.take(entry)
        for takers in (self._takers, self._streams.takers, self._hosts.takers, self._refusals.takers):
            taker = takers.get(type(entry.event))
            if taker is not None:
                taker(entry, entry.event)
        for call in calls:
            self._call_changes.note(call)
            record = self._records.get(call)
            if record is not None and record.task is not None:
                self._tasks.changed(record.task)
        return calls

    def forget_before(self, first: int) -> None:
        """The log keeps no entry before this one: `counts` are of what it keeps."""
        self._counts.forget_before(first)

    def rows(self, table: TableName, ids: Iterable[str]) -> Iterator[bytes]:
        """Rows in JSON, as they are now; what is no longer kept is left out."""
        return (row for row in (self._encoded(table, id) for id in ids) if row is not None)

    def all(self, table: TableName) -> list[str]:
        """The ids of a table, the newest last."""
        if table == "calls":
            return [record.call for record in self._records.newest_first()][::-1]
        if table == "counts":
            return [LOG]
        return list(self._table(table).rows)

    @property
    def hosts_connected(self) -> int:
        """How many tool hosts are connected."""
        return sum(row.state != "closed" for row in self._hosts.table.rows.values())

    def _table(self, table: TableName) -> Table[Any]:
        tables: Mapping[str, Table[Any]] = {
            "tasks": self._tasks,
            "sessions": self._sessions,
            "streams": self._streams.table,
            "hosts": self._hosts.table,
            "refusals": self._refusals.table,
        }
        return tables[table]

    def _encoded(self, table: TableName, id: str) -> bytes | None:
        if table == "counts":
            row: Any = self._counts.row()
        else:
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
            transport=cast("Transport", event.transport),
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
            refused=0,
            capabilities=event.capabilities,
        )
        self._sessions.add(id, row)
        return row

    def _blamed(self, session: str | None, at: float) -> SessionRow:
        """The row of a client, or of `unattributed` where none is known or its row has made room."""
        known = None if session is None else self._sessions.changed(session)
        row = known or self._sessions.changed(UNATTRIBUTED)
        if row is None:
            row = _unattributed(at)
            self._sessions.add(UNATTRIBUTED, row)
        row.last_at = at
        return row

    def _refused(self, refusal: RefusalRow) -> None:
        self._blamed(refusal.session, refusal.at).refused += 1

    def _has_failed(self, task: RequestId | None) -> bool:
        row = self._tasks.rows.get(task) if isinstance(task, str) else None
        return row is not None and row.status == "failed" and row.removed is None

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
        self._blamed(event.session, entry.at).misuse += 1

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


def _unattributed(at: float) -> SessionRow:
    return SessionRow(
        id=UNATTRIBUTED,
        era=None,
        transport=None,
        revision="",
        client_name="",
        client_version="",
        opened_at=at,
        last_at=at,
        closed=None,
        requests=0,
        methods={},
        tools={},
        misuse=0,
        refused=0,
        capabilities=b"{}",
    )


def _count(counts: dict[str, int], name: str) -> None:
    known = name if name in counts or len(counts) < _MOST_NAMES else _OTHERS
    counts[known] = counts.get(known, 0) + 1

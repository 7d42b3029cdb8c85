"""The present state of each task, call, session, stream and tool host: the tables that the dashboard shows.

Fed with every entry of the event log in order. A row changes when an entry belongs to it; `changes` says for each table
which rows did, so that a reader gets each of them once however often it changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from pydantic_core import from_json

from ...log import events
from ...log.event_log import Entry
from ...wire.jsonrpc import RequestId, clip
from ..records import Records
from .changes import Changes
from .host_table import HostRows
from .log_counts import LOG, LogCounts
from .refusals import RefusalRows
from .rows import Era, RefusalRow, SessionRow, TaskRow, TaskStatus, Transport
from .stream_table import StreamRows
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

    def __init__(self, records: Records, most_calls: int) -> None:
        self._records = records
        self._tasks: Table[TaskRow] = Table()
        self._sessions: Table[SessionRow] = Table(may_go=lambda row: row.id != UNATTRIBUTED)
        self._streams = StreamRows()
        self._hosts = HostRows()
        self._refusals = RefusalRows(self._has_failed, self._refused)
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
        takers: Mapping[type, Callable[[Entry, Any], None]] = {
            events.SessionOpened: self._session_opened,
            events.ClientSeen: self._client_seen,
            events.SessionClosed: self._session_closed,
            events.MessageReceived: self._received,
            events.ClientMisuse: self._misused,
            events.CallStarted: self._call_started,
            events.TaskChanged: self._task_changed,
            events.TaskRemoved: self._task_removed,
        }
        parts = (takers, self._streams.takers, self._hosts.takers, self._refusals.takers)
        self._takers: Mapping[type, Sequence[Callable[[Entry, Any], None]]] = {
            kind: [part[kind] for part in parts if kind in part] for kind in get_args(events.Event)
        }

    def take(self, entry: Entry, calls: Sequence[str]) -> None:
        """One more entry, and the tool calls that it belongs to."""
        self._counts.take(entry)
        fact = entry.fact
        for taker in self._takers.get(type(fact), ()):
            taker(entry, fact)
        if calls:
            self._call_changes.note_each(calls)
            if self._tasks.rows:
                self._change_tasks(calls)

    def _change_tasks(self, calls: Iterable[str]) -> None:
        """The row of a task shows the progress of its call."""
        for call in calls:
            record = self._records.get(call)
            if record is not None and record.task is not None:
                self._tasks.changed(record.task)

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

    def client_names(self) -> Mapping[str, str]:
        """The names that clients give themselves, by the labels of their sessions."""
        return {id: row.client_name for id, row in self._sessions.rows.items() if row.client_name}

    @property
    def sessions(self) -> Collection[SessionRow]:
        """The rows of sessions and modern clients, the newest last."""
        return self._sessions.rows.values()

    @property
    def hosts_connected(self) -> int:
        """The number of connected tool hosts."""
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

    def _session_opened(self, entry: Entry, fact: events.SessionOpened) -> None:
        row = self._session(entry)
        if row is not None:
            # A process that forwards its log had lost its connection and has come again.
            row.closed, row.last_at = None, entry.at
            return
        row = self._open_session(entry, "legacy", fact)
        # The request came before there was a session that it could belong to.
        row.requests, row.methods = 1, {"initialize": 1}

    def _client_seen(self, entry: Entry, fact: events.ClientSeen) -> None:
        row = self._session(entry)
        if row is None:
            self._open_session(entry, "modern", fact)
        else:
            row.capabilities, row.revision = fact.capabilities, fact.revision

    def _session(self, entry: Entry) -> SessionRow | None:
        """The row of the entry's session, which is about to change."""
        return self._sessions.changed(entry.context.session or "")

    def _open_session(self, entry: Entry, era: Era, fact: events.SessionOpened | events.ClientSeen) -> SessionRow:
        context = entry.context
        id = context.session or ""
        row = SessionRow(
            id=id,
            era=era,
            transport=cast("Transport", fact.transport),
            revision=fact.revision,
            client_name=fact.client_name,
            client_version=fact.client_version,
            label=context.label,
            subject=context.label or context.pipe or id,
            opened_at=entry.at,
            last_at=entry.at,
            closed=None,
            requests=0,
            methods={},
            tools={},
            skills={},
            misuse=0,
            refused=0,
            capabilities=fact.capabilities,
        )
        self._sessions.add(row.id, row)
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

    def _session_closed(self, entry: Entry, fact: events.SessionClosed) -> None:
        row = self._session(entry)
        if row is not None:
            row.closed, row.last_at = fact.why, entry.at

    def _received(self, entry: Entry, fact: events.MessageReceived) -> None:
        row = self._session(entry)
        if row is not None:
            row.last_at = entry.at
            row.requests += fact.rpc == "request"
            if fact.method is not None:
                _count(row.methods, fact.method)
            if fact.method == "resources/read" and b"/SKILL.md" in fact.message:
                self._skill_read(row, fact.message)

    @staticmethod
    def _skill_read(row: SessionRow, message: bytes) -> None:
        params = from_json(message).get("params")
        uri = params.get("uri") if isinstance(params, dict) else None
        if isinstance(uri, str) and uri.endswith("/SKILL.md"):
            _count(row.skills, clip(uri))

    def _misused(self, entry: Entry, fact: events.ClientMisuse) -> None:
        self._blamed(entry.context.session, entry.at).misuse += 1

    def _call_started(self, entry: Entry, fact: events.CallStarted) -> None:
        row = self._session(entry)
        if row is not None and fact.tool is not None:
            _count(row.tools, fact.tool)

    def _task_changed(self, entry: Entry, fact: events.TaskChanged) -> None:
        row = self._tasks.changed(entry.context.task or "")
        if row is None:
            row = TaskRow(
                id=entry.context.task or "",
                tool=fact.tool,
                session=entry.context.session,
                call=entry.context.call,
                status="queued",
                message=None,
                progress=None,
                total=None,
                created_at=entry.at,
                updated_at=entry.at,
                ttl_ms=fact.ttl_ms,
                removed=None,
            )
            self._tasks.add(row.id, row)
        row.status, row.message, row.updated_at = cast("TaskStatus", fact.status), fact.message, entry.at

    def _task_removed(self, entry: Entry, fact: events.TaskRemoved) -> None:
        row = self._tasks.changed(entry.context.task or "")
        if row is not None:
            row.removed, row.updated_at = fact.why, entry.at


def _unattributed(at: float) -> SessionRow:
    return SessionRow(
        id=UNATTRIBUTED,
        era=None,
        transport=None,
        revision="",
        client_name="",
        client_version="",
        label=None,
        subject=UNATTRIBUTED,
        opened_at=at,
        last_at=at,
        closed=None,
        requests=0,
        methods={},
        tools={},
        skills={},
        misuse=0,
        refused=0,
        capabilities=b"{}",
    )


def _count(counts: dict[str, int], name: str) -> None:
    known = name if name in counts or len(counts) < _MOST_NAMES else _OTHERS
    counts[known] = counts.get(known, 0) + 1

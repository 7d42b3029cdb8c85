"""The tables of the dashboard: the present state of each task, call, session, stream and tool host.

A row is made from a view when a reader asks for it. Each view has the number of the entry that changed its row last. So
a reader with a table as of entry 100 asks for the rows changed after entry 100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final, Literal, Protocol, TypeAlias, TypeVar, get_args

from ...log.event_log import EventLog
from ..fold import Views
from ..records import CallRecord
from .log_counts import LOG, LogCounts
from .made import host_row, session_row, stream_changed, stream_id, stream_row, task_changed, task_row
from .rows import CountsRow, HostRow, RefusalRow, SessionRow, StreamRow, TaskRow

TableName: TypeAlias = Literal["tasks", "calls", "sessions", "streams", "hosts", "refusals", "counts"]
TABLES: Final = get_args(TableName)

UNATTRIBUTED: Final = "unattributed"
"""The id of the row of `sessions` without a known client."""

_Changed: TypeAlias = Iterable[tuple[str, int]]
_View = TypeVar("_View")


class _Row(Protocol):
    def encoded(self) -> bytes: ...


class Tables:
    """The tables of one log, as far as `views` have taken it; `last` is the number of their newest entry."""

    def __init__(self, views: Views, log: EventLog) -> None:
        self._views = views
        self._counts = LogCounts(log)
        self._all: Mapping[TableName, Callable[[], _Changed]] = {
            "tasks": self._tasks,
            "calls": self._calls,
            "sessions": self._sessions,
            "streams": self._streams,
            "hosts": self._hosts,
            "refusals": self._refused,
            "counts": lambda: [(LOG, views.last)],
        }
        self._row: Mapping[TableName, Callable[[str], _Row | None]] = {
            "tasks": self._task,
            "calls": self._call,
            "sessions": self._session,
            "streams": self._stream,
            "hosts": self._host,
            "refusals": self._refusal,
            "counts": self._counted,
        }

    @property
    def last(self) -> int:
        """The number of the newest entry in the views."""
        return self._views.last

    def rows(self, table: TableName, ids: Iterable[str]) -> Iterator[bytes]:
        """The present rows in JSON; without those no longer kept."""
        return (row.encoded() for row in map(self._row[table], ids) if row is not None)

    def all(self, table: TableName) -> list[str]:
        """The ids of a table, the newest last."""
        return [id for id, _ in self._all[table]()]

    def changed(self, table: TableName, after: int) -> list[tuple[str, int]]:
        """The ids of the rows that changed after an entry, each with its newest entry; the earliest change first."""
        if after >= self.last:
            return []
        return sorted((row for row in self._all[table]() if row[1] > after), key=lambda row: row[1])

    @property
    def sessions(self) -> Iterator[SessionRow]:
        """The rows of the sessions and modern clients, the newest last."""
        return (row for row in map(self._session, self.all("sessions")) if row is not None)

    @property
    def hosts_connected(self) -> int:
        """The number of connected tool hosts."""
        return sum(host.connected is not None and host.closed is None for host in self._views.hosts.values())

    def _counted(self, id: str) -> CountsRow | None:
        return self._counts.row(self.last)

    def _newest(self, views: Iterable[_View]) -> list[_View]:
        """The newest views, as many as a table shows; they come newest first."""
        return list(islice(views, self._views.retention.rows))

    def _calls(self) -> _Changed:
        return ((id, call.newest) for id, call in self._views.calls.listed.items())

    def _call(self, id: str) -> CallRecord | None:
        return self._views.calls.get(id)

    def _tasks(self) -> _Changed:
        tasks = self._newest(task for task in reversed(self._views.tasks.values()) if task.changes)
        return ((task.id, task_changed(task)) for task in sorted(tasks, key=lambda task: task.changes[0].seq))

    def _task(self, id: str) -> TaskRow | None:
        task = self._views.tasks.get(id)
        return task_row(task) if task is not None and task.changes else None

    def _sessions(self) -> _Changed:
        others = self._views.peers.unattributed
        rows = [] if others is None else [(UNATTRIBUTED, others)]
        known = ((session.label, session.acts) for session in reversed(self._views.peers.sessions.values()))
        rows = sorted(self._newest(chain(rows, known)), key=lambda row: row[1].began)
        return ((label, acts.newest) for label, acts in rows)

    def _session(self, id: str) -> SessionRow | None:
        session, others = self._views.sessions.get(id), self._views.peers.unattributed
        if session is not None:
            return session_row(id, session.acts, session)
        return session_row(id, others, None) if id == UNATTRIBUTED and others is not None else None

    def _streams(self) -> _Changed:
        both = [*self._views.past_streams.values(), *self._views.streams.values()]
        streams = self._newest(sorted(both, key=lambda stream: -stream.opened.seq))
        return ((stream_id(stream), stream_changed(stream)) for stream in reversed(streams))

    def _stream(self, id: str) -> StreamRow | None:
        session, _, name = id.partition("/")
        key = (None if session == "None" else session, name)
        stream = self._views.streams.get(key) or self._views.past_streams.get(key)
        return None if stream is None else stream_row(stream)

    def _hosts(self) -> _Changed:
        hosts = [host for host in self._views.hosts.values() if host.connected is not None]
        # A host that reconnects often must not push out the lasting ones.
        too_many = len(hosts) - self._views.retention.rows
        closed = [host.label for host in hosts if host.closed is not None] if too_many > 0 else []
        gone = set(closed[:too_many])
        return ((host.label, host.newest) for host in hosts if host.label not in gone)

    def _host(self, id: str) -> HostRow | None:
        host = self._views.hosts.get(id)
        return None if host is None or host.connected is None else host_row(host)

    def _refused(self) -> _Changed:
        return ((id, newest) for id, (_, newest) in self._views.refusals.rows.items())

    def _refusal(self, id: str) -> RefusalRow | None:
        found = self._views.refusals.rows.get(id)
        return None if found is None else found[0]

"""The tables of the dashboard: the present state of each task, call, session, stream and tool host.

A row is made from a view when a reader asks for it. Each view has the number of the entry that changed its row last. So
a reader with a table as of entry 100 asks for the rows changed after entry 100.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast, get_args

from ..log import events
from ..log.event_log import Entry, EventLog
from ..log.events import AnyEvent
from ..log.query import direction_of
from .clients import Acts, Session
from .fold import Views
from .meaning import Group, Problem, groups_of, problem_of
from .records import CallRecord
from .rows import (
    CountsRow,
    HostRow,
    Purpose,
    RefusalRow,
    SessionRow,
    StreamRow,
    StreamStatus,
    TableRow,
    TaskRow,
    TaskStatus,
    Transport,
)
from .work import Host, Reading, Stream, Task

_STOPPED: Final = ("cancelled", "disconnected")
_EXPIRED: Final = "timed_out"


def _task_row(task: Task) -> TaskRow:
    first, newest, removed = task.changes[0], task.changes[-1], task.removed
    created, changed = cast("events.TaskChanged", first.fact), cast("events.TaskChanged", newest.fact)
    last = newest if removed is None or removed.seq < newest.seq else removed
    record = None if task.call is None else task.call.record
    progress, total = task.steps if record is None else (record.steps_done, record.steps_total)
    return TaskRow(
        id=task.id,
        tool=created.tool,
        session=first.context.session,
        call=first.context.call,
        status=cast("TaskStatus", changed.status),
        message=changed.message,
        progress=progress,
        total=total,
        created_at=first.at,
        updated_at=last.at,
        ttl_ms=created.ttl_ms,
        removed=None if removed is None else cast("events.TaskRemoved", removed.fact).why,
    )


def _task_changed(task: Task) -> int:
    """The row of a task shows the progress of its call."""
    removed = 0 if task.removed is None else task.removed.seq
    return max(task.changes[-1].seq, removed, 0 if task.call is None else task.call.newest)


def _session_row(id: str, acts: Acts, session: Session | None) -> SessionRow:
    """The row of a session; without one, the row `unattributed`."""
    first: Any = None if session is None else session.fact
    newest: Any = None if session is None else session.declared[-1].fact
    context = None if session is None else session.opened.context
    closed: Any = None if session is None or session.closed is None else session.closed.fact
    return SessionRow(
        id=id,
        era=None if session is None else "legacy" if session.is_legacy else "modern",
        transport=None if first is None else cast("Transport", first.transport),
        revision="" if newest is None else newest.revision,
        client_name="" if first is None else first.client_name,
        client_version="" if first is None else first.client_version,
        label=None if context is None else context.label,
        subject=id if context is None else context.label or context.pipe or id,
        opened_at=acts.opened_at,
        last_at=acts.last_at,
        closed=None if closed is None else closed.why,
        requests=acts.requests,
        methods=acts.methods,
        tools=acts.tools,
        skills=acts.skills,
        misuse=acts.misuse,
        refused=acts.refused,
        capabilities=b"{}" if newest is None else newest.capabilities,
    )


def _stream_id(stream: Stream) -> str:
    return f"{stream.opened.context.session}/{stream.id}"


def _stream_row(stream: Stream) -> StreamRow:
    opened, lost, reading = stream.opened, stream.lost, _reading(stream)
    over = min((entry for entry in (stream.ended, lost) if entry is not None), key=lambda it: it.seq, default=None)
    status: StreamStatus = "lost" if lost is not None else "live" if over is None else "completed"
    end = stream.left if reading is None else reading.end
    reads = None if end is not None else reading
    return StreamRow(
        id=_stream_id(stream),
        session=opened.context.session,
        stream=stream.id,
        purpose=cast("Purpose", stream.purpose),
        exchange=None if stream.purpose == "standalone" else opened.context.exchange,
        opened_at=opened.at,
        status=status,
        lost=None if lost is None else cast("events.StreamLost", lost.fact).why,
        messages=stream.made,
        delivered=stream.taken,
        waiting=stream.waiting,
        connected=reads is not None,
        reader=None if reads is None else reads.number,
        connection=None if reads is None else reads.label,
        resumed=stream.resumed,
        ended_at=None if over is None else over.at,
        closed_by=None if end is None else end[0],
        left_at=None if end is None else end[1],
    )


def _stream_changed(stream: Stream) -> int:
    closed = None if stream.reading is None else stream.reading.closed
    return stream.newest if closed is None else max(stream.newest, closed.seq)


def _reading(stream: Stream) -> Reading | None:
    """Its newest reading; None for a pipe without its first entry in the log."""
    reading = stream.reading
    return None if reading is None or reading.number is None else reading


def _host_row(host: Host) -> HostRow:
    """The row of a tool host's connection; the log must have its beginning."""
    connected = cast("Any", host.connected)
    named: Any = None if host.registered is None else host.registered.fact
    closed = None if host.closed is None else cast("events.HostClosed", host.closed.fact)
    outcomes = host.outcomes
    cancelled = sum(outcomes.get(outcome, 0) for outcome in _STOPPED)
    completed, expired = outcomes.get("completed", 0), outcomes.get(_EXPIRED, 0)
    return HostRow(
        id=host.label,
        name=None if named is None else named.host,
        version=None if named is None else named.version,
        library=None if named is None else named.library,
        client=connected.fact.client,
        state="closed" if closed is not None else "connected" if named is None else "registered",
        opened_at=connected.at,
        last_at=host.last_at,
        closed=None if closed is None else closed.by,
        code=None if closed is None else closed.code,
        replaced=None if named is None else named.replaced,
        tools=[] if host.offer is None else list(cast("events.HostUpdated", host.offer.fact).tools),
        in_flight=host.in_flight,
        dispatched=host.dispatched,
        completed=completed,
        failed=sum(outcomes.values()) - completed - expired - cancelled,
        cancelled=cancelled,
        expired=expired,
        late=host.late,
        misuse=host.misuse,
    )


LOG: Final = "log"
"""The id of the only row."""

_Name: TypeAlias = Group | Literal["received", "sent"]
_WAYS: Final[dict[str, _Name]] = {"in": "received", "out": "sent"}


# Entries that are read from the log at once.
_PIECE: Final = 1000


class LogCounts:
    """The counts of one log, up to the last entry asked for."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._position = 0
        # One for each kept and counted entry; entries share the few different sets.
        self._kept: deque[tuple[int, frozenset[_Name]]] = deque()
        self._shared: dict[frozenset[_Name], frozenset[_Name]] = {}
        self._counts: Counter[_Name] = Counter()
        # The entries that are problems, with the number of their exchange; below zero for an entry without one.
        self._problems: deque[tuple[int, Problem, int]] = deque()
        self._in_exchange: Counter[tuple[Problem, int]] = Counter()
        self._exchanges: Counter[Problem] = Counter()

    def _forget_before(self, first: int) -> None:
        while self._kept and self._kept[0][0] < first:
            self._counts.subtract(self._kept.popleft()[1])
        while self._problems and self._problems[0][0] < first:
            self._forget_problem(*self._problems.popleft()[1:])

    def row(self, last: int) -> CountsRow | None:
        """The counts of the kept entries up to `last`."""
        while self._position < last:
            page = self._log.since(self._position, min(_PIECE, last - self._position))
            for entry in page.entries:
                self._count(entry)
            self._position = page.next
        self._forget_before(self._log.first)
        if not self._kept:
            return None
        counts = self._counts
        return CountsRow(
            id=LOG,
            first=self._kept[0][0],
            last=self._kept[-1][0],
            entries=len(self._kept),
            received=counts["received"],
            sent=counts["sent"],
            deliveries=counts["deliveries"],
            messages=counts["messages"],
            http=counts["http"],
            calls=counts["calls"],
            tasks=counts["tasks"],
            streams=counts["streams"],
            sessions=counts["sessions"],
            hosts=counts["hosts"],
            server=counts["server"],
            problems=counts["problems"],
            mistakes=self._exchanges["mistake"],
            asked=self._exchanges["asked"],
            lost=self._exchanges["lost"],
            limits=self._exchanges["limit"],
            others=self._exchanges["other"],
        )

    def _count(self, entry: Entry) -> None:
        names = _names(entry.fact)
        self._kept.append((entry.seq, self._shared.setdefault(names, names)))
        self._counts.update(names)
        problem = problem_of(entry.fact) if "problems" in names else None
        if problem is not None:
            exchange = entry.context.exchange
            where = -entry.seq if exchange is None else exchange
            self._problems.append((entry.seq, problem, where))
            self._in_exchange[problem, where] += 1
            self._exchanges[problem] += self._in_exchange[problem, where] == 1

    def _forget_problem(self, problem: Problem, where: int) -> None:
        self._in_exchange[problem, where] -= 1
        if not self._in_exchange[problem, where]:
            del self._in_exchange[problem, where]
            self._exchanges[problem] -= 1


def _names(event: AnyEvent) -> frozenset[_Name]:
    groups, way = groups_of(event), direction_of(event)
    return groups if way is None or "deliveries" in groups else groups | {_WAYS[way]}


TableName: TypeAlias = Literal["tasks", "calls", "sessions", "streams", "hosts", "refusals", "counts"]
TABLES: Final = get_args(TableName)

UNATTRIBUTED: Final = "unattributed"
"""The id of the row of `sessions` without a known client."""

_Changed: TypeAlias = Iterable[tuple[str, int]]
_View = TypeVar("_View")


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
        self._row: Mapping[TableName, Callable[[str], TableRow | CallRecord | None]] = {
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
        return self._views.last

    def rows(self, table: TableName, ids: Iterable[str]) -> Iterator[bytes]:
        """Without rows no longer kept."""
        return (row.encoded() for row in map(self._row[table], ids) if row is not None)

    def all(self, table: TableName) -> list[str]:
        """The newest last."""
        return [id for id, _ in self._all[table]()]

    def changed(self, table: TableName, after: int) -> list[tuple[str, int]]:
        """The rows changed after an entry, each with its newest entry; the earliest change first."""
        if after >= self.last:
            return []
        return sorted((row for row in self._all[table]() if row[1] > after), key=lambda row: row[1])

    @property
    def sessions(self) -> Iterator[SessionRow]:
        return (row for row in map(self._session, self.all("sessions")) if row is not None)

    @property
    def hosts_connected(self) -> int:
        return sum(host.connected is not None and host.closed is None for host in self._views.hosts.values())

    def _counted(self, id: str) -> CountsRow | None:
        return self._counts.row(self.last)

    def _newest(self, views: Iterable[_View]) -> list[_View]:
        """Views come newest first; as many as a table shows."""
        return list(islice(views, self._views.retention.rows))

    def _calls(self) -> _Changed:
        return ((id, call.newest) for id, call in self._views.calls.listed.items())

    def _call(self, id: str) -> CallRecord | None:
        return self._views.calls.get(id)

    def _tasks(self) -> _Changed:
        tasks = self._newest(task for task in reversed(self._views.tasks.values()) if task.changes)
        return ((task.id, _task_changed(task)) for task in sorted(tasks, key=lambda task: task.changes[0].seq))

    def _task(self, id: str) -> TaskRow | None:
        task = self._views.tasks.get(id)
        return _task_row(task) if task is not None and task.changes else None

    def _sessions(self) -> _Changed:
        others = self._views.peers.unattributed
        rows = [] if others is None else [(UNATTRIBUTED, others)]
        known = ((session.label, session.acts) for session in reversed(self._views.peers.sessions.values()))
        rows = sorted(self._newest(chain(rows, known)), key=lambda row: row[1].began)
        return ((label, acts.newest) for label, acts in rows)

    def _session(self, id: str) -> SessionRow | None:
        session, others = self._views.sessions.get(id), self._views.peers.unattributed
        if session is not None:
            return _session_row(id, session.acts, session)
        return _session_row(id, others, None) if id == UNATTRIBUTED and others is not None else None

    def _streams(self) -> _Changed:
        both = [*self._views.past_streams.values(), *self._views.streams.values()]
        streams = self._newest(sorted(both, key=lambda stream: -stream.opened.seq))
        return ((_stream_id(stream), _stream_changed(stream)) for stream in reversed(streams))

    def _stream(self, id: str) -> StreamRow | None:
        session, _, name = id.partition("/")
        key = (None if session == "None" else session, name)
        stream = self._views.streams.get(key) or self._views.past_streams.get(key)
        return None if stream is None else _stream_row(stream)

    def _hosts(self) -> _Changed:
        hosts = [host for host in self._views.hosts.values() if host.connected is not None]
        # A host that reconnects often must not push out the lasting ones.
        too_many = len(hosts) - self._views.retention.rows
        closed = [host.label for host in hosts if host.closed is not None] if too_many > 0 else []
        gone = set(closed[:too_many])
        return ((host.label, host.newest) for host in hosts if host.label not in gone)

    def _host(self, id: str) -> HostRow | None:
        host = self._views.hosts.get(id)
        return None if host is None or host.connected is None else _host_row(host)

    def _refused(self) -> _Changed:
        return ((id, newest) for id, (_, newest) in self._views.refusals.rows.items())

    def _refusal(self, id: str) -> RefusalRow | None:
        found = self._views.refusals.rows.get(id)
        return None if found is None else found[0]

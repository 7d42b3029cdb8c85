"""Rows made of views, and for each the number of its newest change."""

from __future__ import annotations

from typing import Any, Final, cast

from ...log import events
from ..clients import Acts, Session
from ..work import Host, Reading, Stream, Task
from .rows import HostRow, Purpose, SessionRow, StreamRow, StreamStatus, TaskRow, TaskStatus, Transport

_STOPPED: Final = ("cancelled", "disconnected")
_EXPIRED: Final = "timed_out"


def task_row(task: Task) -> TaskRow:
    """The row of a changed task."""
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


def task_changed(task: Task) -> int:
    """The newest entry of a task or of its call: the row shows the call's progress."""
    removed = 0 if task.removed is None else task.removed.seq
    return max(task.changes[-1].seq, removed, 0 if task.call is None else task.call.newest)


def session_row(id: str, acts: Acts, session: Session | None) -> SessionRow:
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


def stream_id(stream: Stream) -> str:
    """The id of its row."""
    return f"{stream.opened.context.session}/{stream.id}"


def stream_row(stream: Stream) -> StreamRow:
    """The row of a stream."""
    opened, lost, reading = stream.opened, stream.lost, _reading(stream)
    over = min((entry for entry in (stream.ended, lost) if entry is not None), key=lambda it: it.seq, default=None)
    status: StreamStatus = "lost" if lost is not None else "live" if over is None else "completed"
    end = stream.left if reading is None else reading.end
    reads = None if end is not None else reading
    return StreamRow(
        id=stream_id(stream),
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


def stream_changed(stream: Stream) -> int:
    """The newest entry of a stream, or the end of its reader."""
    closed = None if stream.reading is None else stream.reading.closed
    return stream.newest if closed is None else max(stream.newest, closed.seq)


def _reading(stream: Stream) -> Reading | None:
    """Its newest reading; None for a pipe without its first entry in the log."""
    reading = stream.reading
    return None if reading is None or reading.number is None else reading


def host_row(host: Host) -> HostRow:
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

"""Which facts of the event log are lines for the operator, and at which level (docs/telemetry.md has the table)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ..observe import events
from ..observe.bounded import Newest
from ..observe.log import Entry
from ..settings import LOG_LEVELS

# A limit that is reached all the time is told so often, with how often it was in between.
_QUIET_S: Final = 10.0
# Calls that run at a time by default, several times over.
_MOST_RUNNING: Final = 10_000
_NO_LINE: Final = ("debug", None)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. `kind` is that of its event; `fields` hold what others said, as they said it. `at` is since 1970."""

    at: float
    level: str
    kind: str
    text: str
    fields: Mapping[str, Any]


class Lines:
    """Makes lines of one engine's entries, from `level` on."""

    def __init__(self, level: str) -> None:
        self._calls: Newest[str, events.CallStarted] = Newest(_MOST_RUNNING)
        self._least = LOG_LEVELS.index(level)
        self._limits: dict[str, tuple[float, int]] = {}
        makers: Mapping[type, tuple[str, Callable[[Any], _Words | None]]] = {
            events.LimitReached: ("warning", _limit),
            events.AuditState: ("error", _audit),
            events.ServerState: ("info", lambda event: _said(f"the server is {event.state}")),
            events.SessionOpened: ("info", _session_opened),
            events.SessionClosed: ("info", lambda event: _said("session closed", why=event.why)),
            events.DispatchExpired: ("info", _expired),
            events.StreamLost: ("info", _stream_lost),
            events.HostRegistered: ("info", _host_registered),
            events.HostClosed: ("info", _host_closed),
            events.HostMisuse: ("debug", lambda event: _said("tool host misuse", what=event.what, detail=event.detail)),
            events.ClientMisuse: ("debug", _misuse),
            events.ClientSeen: ("debug", _client_seen),
            events.ConnectionOpened: ("debug", _connection_opened),
            events.ConnectionClosed: ("debug", _connection_closed),
            events.CallCancelled: ("debug", _cancelled),
            events.TaskChanged: ("debug", _task_changed),
            events.HttpResponse: ("debug", _refused),
        }
        self._makers = {kind: (level, make) for kind, (level, make) in makers.items() if self._tells(level)}

    def of(self, entry: Entry) -> LogLine | None:
        """The line of an entry; None for one that is not to be told."""
        level, said = self._said(entry)
        if said is None or not self._tells(said.level or level):
            return None
        line = LogLine(entry.at, said.level or level, entry.fact.kind, said.text, {**_ids(entry), **said.fields})
        return self._paced(line, entry.fact, entry.mono) if isinstance(entry.fact, events.LimitReached) else line

    def _said(self, entry: Entry) -> tuple[str, _Words | None]:
        """The level and the words of an entry."""
        call, fact = entry.context.call or "", entry.fact
        if isinstance(fact, events.CallStarted):
            self._calls.store(call, fact)
        elif isinstance(fact, events.CallSettled):
            return "info", _call(fact, self._calls.pop(call, None))
        level, make = self._makers.get(type(fact), _NO_LINE)
        return level, None if make is None else make(fact)

    def _tells(self, level: str) -> bool:
        return LOG_LEVELS.index(level) <= self._least

    def missed(self, at: float, entries: int) -> LogLine | None:
        """The line that says that so many entries were not told."""
        text = "lines are missing: the event log went on faster than they could be written"
        return LogLine(at, "warning", "log.missed", text, {"entries": entries}) if self._tells("warning") else None

    def _paced(self, line: LogLine, event: events.LimitReached, now: float) -> LogLine | None:
        last, more = self._limits.get(event.limit, (-math.inf, 0))
        if now - last < _QUIET_S:
            self._limits[event.limit] = last, more + 1
            return None
        self._limits[event.limit] = now, 0
        return replace(line, fields={**line.fields, "more": more}) if more else line


@dataclass(frozen=True, slots=True)
class _Words:
    """What an event says. `level` where it is a quieter one than its kind's."""

    text: str
    fields: Mapping[str, Any]
    level: str | None = None


def _said(text: str, **fields: Any) -> _Words:
    """Without the fields that are empty."""
    return _Words(text, {name: value for name, value in fields.items() if value not in (None, "")})


def _ids(entry: Entry) -> dict[str, Any]:
    """The context of an entry, and the id of the request, as far as they are known."""
    ids = {"request": getattr(entry.fact, "request_id", None), **entry.context._asdict()}
    return {name: id for name, id in ids.items() if id is not None}


def _call(fact: events.CallSettled, began: events.CallStarted | None) -> _Words:
    fields: dict[str, Any] = {}
    if began is not None and began.tool is not None:
        client = {"client": began.client_name, "transport": began.transport, "era": began.era}
        fields = {"tool": began.tool, **client}
    ended = {"outcome": fact.outcome, "ms": round(fact.duration_ms, 3), "cancelled_by": fact.cancelled_by}
    return _said("call", **fields, **ended)


def _limit(event: events.LimitReached) -> _Words:
    return _said("limit reached", limit=event.limit, most=event.value)


def _audit(event: events.AuditState) -> _Words:
    if event.state == "ok":
        return replace(_said("the audit file can be written again", lost=event.lost), level="warning")
    return _said("the audit file cannot be written", why=event.why, lost=event.lost)


def _session_opened(event: events.SessionOpened) -> _Words:
    client = {"client": event.client_name, "version": event.client_version}
    return _said("session opened", **client, revision=event.revision, transport=event.transport)


def _client_seen(event: events.ClientSeen) -> _Words:
    client = {"client": event.client_name, "version": event.client_version, "address": event.client}
    return _said("client seen", **client, revision=event.revision, transport=event.transport)


def _expired(event: events.DispatchExpired) -> _Words:
    return _said("deadline passed", deadline=event.deadline, after_ms=event.elapsed_ms, reports=event.reports)


def _stream_lost(event: events.StreamLost) -> _Words:
    return _said("stream lost", why=event.why, unsent=event.messages)


def _host_registered(event: events.HostRegistered) -> _Words:
    about = {"host": event.host, "version": event.version}
    return _said("tool host registered", **about, tools=len(event.tools))


def _host_closed(event: events.HostClosed) -> _Words:
    about = {"host": event.host, "code": event.code}
    return _said("tool host gone", **about, by=event.by, failed=event.failed)


def _misuse(event: events.ClientMisuse) -> _Words:
    return _said("client misuse", what=event.what, clause=event.clause, detail=event.detail)


def _connection_opened(event: events.ConnectionOpened) -> _Words:
    return _said("connection opened", transport=event.transport, address=event.client, peer=event.peer)


def _connection_closed(event: events.ConnectionClosed) -> _Words:
    return _said("connection closed", by=event.by, code=event.code)


def _cancelled(event: events.CallCancelled) -> _Words:
    return _said("cancellation", by=event.by, reason=event.reason, effect=event.effect)


def _task_changed(event: events.TaskChanged) -> _Words:
    return _said("task", tool=event.tool, status=event.status, said=event.message)


def _refused(event: events.HttpResponse) -> _Words | None:
    return None if event.problem is None else _said("request refused", status=event.status, problem=event.problem)

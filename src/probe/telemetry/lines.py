"""Facts of the event log become lines for the operator, each at its level (docs/telemetry.md has the table)."""

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
    """Makes lines of one engine's entries, from `level` on. `kinds` are those of the facts that it has to see."""

    def __init__(self, level: str) -> None:
        self._calls: Newest[str, events.CallStarted] = Newest(_MOST_RUNNING)
        self._least = LOG_LEVELS.index(level)
        self._limits: dict[str, tuple[float, int]] = {}
        self._makers = {kind: (level, make) for kind, (level, make) in _MAKERS.items() if self._tells(level)}
        calls = {events.CallStarted, events.CallSettled} if self._tells("info") else set()
        self.kinds: frozenset[type] = frozenset({*self._makers, *calls})

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
    """The line of an event. `level` where it is a quieter one than its kind's."""

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


def _with(text: str, **fields: str) -> Callable[[Any], _Words]:
    """The words of an event of which these fields are told; each has the name of the event's own."""
    return lambda event: _said(text, **{name: getattr(event, own) for name, own in fields.items()})


def _audit(event: events.AuditState) -> _Words:
    if event.state == "ok":
        return replace(_said("the audit file can be written again", lost=event.lost), level="warning")
    return _said("the audit file cannot be written", why=event.why, lost=event.lost)


def _host_registered(event: events.HostRegistered) -> _Words:
    about = {"host": event.host, "version": event.version}
    return _said("tool host registered", **about, tools=len(event.tools))


def _refused(event: events.HttpResponse) -> _Words | None:
    return None if event.problem is None else _said("request refused", status=event.status, problem=event.problem)


_CLIENT: Final = {"client": "client_name", "version": "client_version"}

_MAKERS: Final[Mapping[type, tuple[str, Callable[[Any], _Words | None]]]] = {
    events.LimitReached: ("warning", _with("limit reached", limit="limit", most="value")),
    events.AuditState: ("error", _audit),
    events.ServerState: ("info", lambda event: _said(f"the server is {event.state}")),
    events.SessionOpened: ("info", _with("session opened", **_CLIENT, revision="revision", transport="transport")),
    events.SessionClosed: ("info", _with("session closed", why="why")),
    events.DispatchExpired: (
        "info",
        _with("deadline passed", deadline="deadline", after_ms="elapsed_ms", reports="reports"),
    ),
    events.StreamLost: ("info", _with("stream lost", why="why", unsent="messages")),
    events.HostRegistered: ("info", _host_registered),
    events.HostClosed: ("info", _with("tool host gone", host="host", code="code", by="by", failed="failed")),
    events.HostMisuse: ("debug", _with("tool host misuse", what="what", detail="detail")),
    events.ClientMisuse: ("debug", _with("client misuse", what="what", clause="clause", detail="detail")),
    events.ClientSeen: (
        "debug",
        _with("client seen", **_CLIENT, address="client", revision="revision", transport="transport"),
    ),
    events.ConnectionOpened: (
        "debug",
        _with("connection opened", transport="transport", address="client", peer="peer"),
    ),
    events.ConnectionClosed: ("debug", _with("connection closed", by="by", code="code")),
    events.CallCancelled: ("debug", _with("cancellation", by="by", reason="reason", effect="effect")),
    events.TaskChanged: ("debug", _with("task", tool="tool", status="status", said="message")),
    events.HttpResponse: ("debug", _refused),
}
"""The events that are lines, each with its level. `Lines` makes the line of a call from two events."""

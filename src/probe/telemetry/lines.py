"""Facts of the event log become lines for the operator, each at its level (docs/telemetry.md has the table)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import structs

from ..log import events
from ..log.bounded import Newest
from ..log.event_log import Entry
from ..settings import LOG_LEVELS

# Seconds between lines about one limit. Each line has the number of times in between.
_QUIET_S: Final = 10.0
# Several times the calls running at a time by default.
_MOST_RUNNING: Final = 10_000


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. `kind` is its event's; `fields` have unchanged values of peers. `at` is in seconds since the epoch.

    `trace` is the traceback of a defect, as a text of several lines.
    """

    at: float
    level: str
    kind: str
    text: str
    fields: Mapping[str, Any]
    trace: str = ""


@dataclass(frozen=True, slots=True)
class _Form:
    """The level and the words for a class of facts. `fields` maps names in the line to names in the fact."""

    level: str
    text: str
    fields: Mapping[str, str]


def _form(level: str, text: str, fields: str = "") -> _Form:
    """`fields` are words: `name`, or `name=own` if the fact's own name is another."""
    return _Form(level, text, _names(fields))


def _names(fields: str) -> dict[str, str]:
    return {name: own or name for name, _, own in (word.partition("=") for word in fields.split())}


class Lines:
    """Makes lines of one engine's entries, from `level` on. `kinds` are the classes of facts it needs."""

    def __init__(self, level: str) -> None:
        self._calls: Newest[str, events.CallStarted] = Newest(_MOST_RUNNING)
        self._least = LOG_LEVELS.index(level)
        self._limits: dict[str, tuple[float, int]] = {}
        kinds = {kind for kind, form in _FORMS.items() if self._tells(form.level)}
        self.kinds: frozenset[type] = frozenset({*kinds, events.CallStarted} if events.CallSettled in kinds else kinds)

    def of(self, entry: Entry) -> LogLine | None:
        """The line of an entry; None if it has no line."""
        call, fact = entry.context.call or "", entry.fact
        if isinstance(fact, events.CallStarted):
            self._calls.store(call, fact)
        form = _form_of(fact)
        if form is None or not self._tells(form.level):
            return None
        said = _ids(entry)
        if isinstance(fact, events.CallSettled):
            said |= _fields(_BEGAN, self._calls.pop(call, None))
        line = LogLine(entry.at, form.level, fact.kind, form.text, {**said, **_fields(form.fields, fact)})
        return self._paced(line, fact, entry.mono) if isinstance(fact, events.LimitReached) else line

    def _tells(self, level: str) -> bool:
        return LOG_LEVELS.index(level) <= self._least

    def missed(self, at: float, entries: int) -> LogLine | None:
        """The line about a number of entries without lines."""
        text = "lines are missing: the event log went on faster than they could be written"
        return LogLine(at, "warning", "log.missed", text, {"entries": entries}) if self._tells("warning") else None

    def _paced(self, line: LogLine, event: events.LimitReached, now: float) -> LogLine | None:
        last, more = self._limits.get(event.limit, (-math.inf, 0))
        if now - last < _QUIET_S:
            self._limits[event.limit] = last, more + 1
            return None
        self._limits[event.limit] = now, 0
        return replace(line, fields={**line.fields, "more": more}) if more else line


def _ids(entry: Entry) -> dict[str, Any]:
    """The context of an entry and the id of the request, without unknown ones."""
    ids = {"request": getattr(entry.fact, "request_id", None), **structs.asdict(entry.context)}
    return {name: id for name, id in ids.items() if id is not None}


def _fields(names: Mapping[str, str], fact: object) -> dict[str, Any]:
    """The values of a fact, without empty ones; a tuple becomes its length, and a float has three decimal places."""
    values = {name: getattr(fact, own, None) for name, own in names.items()}
    told = {name: value for name, value in values.items() if value not in (None, "")}
    return {name: _brief(value) for name, value in told.items()}


def _brief(value: Any) -> Any:
    if isinstance(value, tuple):
        return len(value)
    return round(value, 3) if isinstance(value, float) else value


def _form_of(fact: events.AnyEvent) -> _Form | None:
    if isinstance(fact, events.AuditState) and fact.state == "ok":
        return _AUDIT_OK
    if isinstance(fact, events.HttpResponse) and fact.problem is None:
        return None
    form = _FORMS.get(type(fact))
    if form is not None and isinstance(fact, events.ServerState):
        return replace(form, text=f"{form.text} {fact.state}")
    return form


_AUDIT_OK: Final = _form("warning", "the audit file can be written again", "lost")
_BEGAN: Final = _names("tool client=client_name transport era")
_CLIENT: Final = "client=client_name version=client_version"

_FORMS: Final[Mapping[type, _Form]] = {
    events.LimitReached: _form("warning", "limit reached", "limit most=value"),
    events.AuditState: _form("error", "the audit file cannot be written", "why lost"),
    # Before the state.
    events.ServerState: _form("info", "the server is"),
    events.SessionOpened: _form("info", "session opened", f"{_CLIENT} revision transport"),
    events.SessionClosed: _form("info", "session closed", "why"),
    events.CallSettled: _form("info", "call", "outcome ms=duration_ms cancelled_by"),
    events.DispatchExpired: _form("info", "deadline passed", "deadline after_ms=elapsed_ms reports"),
    events.StreamLost: _form("info", "stream lost", "why unsent=messages"),
    events.HostRegistered: _form("info", "tool host registered", "host version tools"),
    events.HostClosed: _form("info", "tool host gone", "host code by failed"),
    events.HostMisuse: _form("debug", "tool host misuse", "what detail"),
    events.ClientMisuse: _form("debug", "client misuse", "what clause detail"),
    events.ClientSeen: _form("debug", "client seen", f"{_CLIENT} address=client revision transport"),
    events.ConnectionOpened: _form("debug", "connection opened", "transport address=client peer"),
    events.ConnectionClosed: _form("debug", "connection closed", "by code"),
    events.CallCancelled: _form("debug", "cancellation", "by reason effect"),
    events.TaskChanged: _form("debug", "task", "tool status said=message"),
    events.HttpResponse: _form("debug", "request refused", "status problem"),
}
"""The events with lines. The line of a call has values of two events; `_BEGAN` has those of the first."""

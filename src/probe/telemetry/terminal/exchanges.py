"""Turns the entries of a log into lines for people, one for each exchange: a request and what became of it.

    a client's request             when its answer is emitted, or when its call ends without one; an error that is the
                                   body of an HTTP response when the head of that is sent
    a client's notification        when it is received
    a question to the client       when its answer is received
    a GET, a DELETE, an HTTP error when the head of the response is sent; the end of an event stream once more
    a client, session or tool host when it comes and goes
    a limit that refused           each time

Lines that speak of what a client has done wrong are *findings*: `client.misuse`, errors because of what was sent
(`wire.errors.CLIENT_CODES`), and HTTP statuses that refuse. A refusal by a limit is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import from_json

from ...core.escaping import cut, shown
from ...log import events
from ...log.bounded import Newest
from ...log.event_log import Entry
from ...views.search.conditions import Conditions
from ...views.search.exchanges import ExchangeFold
from ...views.search.words import Word
from ...wire.errors import CLIENT_CODES, Refusal

Tone: TypeAlias = Literal["fine", "quiet", "warn", "bad"]

# Requests, questions, HTTP exchanges and clients that are known at a time; the oldest is forgotten.
_MOST: Final = 20_000
# Statuses that a limit of the server or its end has caused.
_LIMITS: Final = frozenset(
    refusal.status for refusal in (Refusal.REQUEST_TIMEOUT, Refusal.BODY_TOO_LARGE, Refusal.EVENTS_GONE)
) | {429}


@dataclass(frozen=True, slots=True)
class Line:
    """One line: when (seconds since the epoch), who, what was asked, and how it went. Nothing in it ends a line."""

    at: float
    who: str
    what: str
    how: str
    tone: Tone
    finding: bool = False


@dataclass(slots=True)
class _OpenRequest:
    """A request without an answer yet. `progress` counts the notifications that were emitted for it."""

    what: str
    mono: float
    progress: int = 0


@dataclass(slots=True)
class _Http:
    """An HTTP exchange.

    `told` once a message of it has a line of its own; `waiting` are lines of errors until its `head` is sent.
    """

    what: str
    told: bool = False
    streams: bool = False
    head: bool = False
    waiting: list[Line] = field(default_factory=list)


_Lines: TypeAlias = Sequence[Line]


class Exchanges:
    """Fed with the entries of one log, in their order.

    With `client`, only what concerns that one: the label of a session or of a modern client (`s1`, `m1`), the name that
    the client gives itself, or the one that it was given by `?client=`. With `findings`, only findings. With the
    `words` of a filter line, only exchanges that pass it, as far as they have come when they have their line.
    """

    def __init__(self, *, client: str | None = None, findings: bool = False, words: Sequence[Word] = ()) -> None:
        self._client = client
        # Only what a question is, and so has no entry before it here, is not known: it is its own exchange then.
        self._asked: Newest[int, Entry] = Newest(_MOST)
        self._fold = ExchangeFold(self._asked.get, {}, _MOST)
        self._conditions = Conditions(words, self._fold) if words else None
        self._found: Newest[int, set[int]] = Newest(_MOST)
        self._findings = findings
        self._names: Newest[str, str] = Newest(_MOST)
        self._requests: Newest[int, _OpenRequest] = Newest(_MOST)
        self._questions: Newest[int, _OpenRequest] = Newest(_MOST)
        self._calls: Newest[str, int] = Newest(_MOST)
        self._http: Newest[int, _Http] = Newest(_MOST)
        takers: Mapping[type, Callable[[Entry, Any], Line | _Lines | None]] = {
            events.HttpRequest: self._requested,
            events.HttpResponse: self._responded,
            events.HttpClosed: self._closed,
            events.MessageReceived: self._received,
            events.MessageEmitted: self._emitted,
            events.SessionOpened: self._came,
            events.ClientSeen: self._came,
            events.SessionClosed: lambda entry, fact: self._line(entry, "session", f"ended: {fact.why}", "quiet"),
            events.CallStarted: self._started,
            events.CallSettled: self._settled,
            events.ClientMisuse: self._misused,
            events.LimitReached: lambda entry, fact: self._line(entry, "limit", f"{fact.limit} reached", "warn"),
            events.HostRegistered: lambda entry, fact: self._line(
                entry, f"tool host {fact.host}", "connected", "quiet"
            ),
            events.HostClosed: lambda entry, fact: self._line(
                entry, f"tool host {fact.host}", f"gone: {fact.by}", "quiet"
            ),
            events.ServerState: lambda entry, fact: self._line(entry, "server", fact.state, "quiet"),
        }
        self._takers = takers

    def take(self, entry: Entry) -> Iterator[Line]:
        """The lines of an entry: none, one, or several where a response has several errors."""
        take = self._takers.get(type(entry.fact))
        lines = None if take is None else take(entry, entry.fact)
        passes = self._conditions is None or self._passes(entry, self._conditions)
        if lines is None or not passes or not self._concerns(entry):
            return
        for line in (lines,) if isinstance(lines, Line) else lines:
            if line.finding or not self._findings:
                yield line

    def _passes(self, entry: Entry, conditions: Conditions) -> bool:
        """Whether the exchange of an entry passes the filter line, as far as it has come."""
        if isinstance(entry.fact, (events.MessageReceived, events.MessageEmitted)) and entry.fact.rpc == "request":
            self._asked.store(entry.seq, entry)
        exchange, key = self._fold.add(entry), self._fold.key(entry)
        found = self._found.get(key)
        if found is None:
            found = set()
            self._found.store(key, found)
        conditions.look(entry, found)
        return conditions.passes_exchange(exchange, found)

    def _concerns(self, entry: Entry) -> bool:
        session = entry.context.session
        return self._client is None or self._client in {session, self._names.get(session or ""), entry.context.label}

    def _line(self, entry: Entry, what: str, how: str, tone: Tone, *, finding: bool = False) -> Line:
        session, label = entry.context.session or "", entry.context.label
        who = f"{session} {label or self._names.get(session, '')}".strip()
        return Line(entry.at, shown(cut(who)), shown(cut(what)), shown(cut(how)), tone, finding)

    # -- HTTP

    def _requested(self, entry: Entry, fact: events.HttpRequest) -> None:
        self._http.store(entry.context.exchange or 0, _Http(f"{fact.method} {fact.path}"))

    def _responded(self, entry: Entry, fact: events.HttpResponse) -> Line | _Lines | None:
        http = self._http.get(entry.context.exchange or 0)
        if http is None:
            return None
        http.head, http.streams = True, fact.content_type.startswith("text/event-stream")
        refused = fact.status < 500 and fact.status not in _LIMITS
        if http.told:
            waiting, http.waiting = http.waiting, []
            return [replace(line, finding=line.finding and refused) for line in waiting]
        if fact.status >= 400:
            problem = f"{fact.status} {fact.problem or fact.refusal or ''}".strip()
            return self._line(entry, http.what, problem, "bad" if refused else "warn", finding=refused)
        if http.what.startswith("POST"):
            return None
        return self._line(entry, http.what, "event stream opened" if http.streams else str(fact.status), "quiet")

    def _closed(self, entry: Entry, fact: events.HttpClosed) -> Line | _Lines | None:
        http = self._http.pop(entry.context.exchange or 0, None)
        if http is None or http.told or not http.streams:
            return None if http is None else http.waiting
        return self._line(entry, http.what, f"event stream ended by {fact.by}, {fact.messages} messages", "quiet")

    # -- messages

    def _received(self, entry: Entry, fact: events.MessageReceived) -> Line | None:
        if http := self._http.get(entry.context.exchange or 0):
            http.told = True
        if fact.rpc == "request":
            self._requests.store(entry.seq, _OpenRequest(_what(fact), entry.mono))
        elif fact.rpc == "notification":
            about = "" if fact.about is None else f" of {fact.about!r}"
            return self._line(entry, f"{fact.method}{about}", _reason(fact.message), "quiet")
        elif asked := self._questions.pop(entry.cause or 0, None):
            how, tone = _answer(fact.message)
            return self._line(entry, f"asked {asked.what}", f"{how}, {_took(entry.mono - asked.mono)}", tone)
        return None

    def _emitted(self, entry: Entry, fact: events.MessageEmitted) -> Line | None:
        if fact.rpc == "request":
            self._questions.store(entry.seq, _OpenRequest(fact.method or "", entry.mono))
        elif fact.rpc == "notification":
            if fact.method == "notifications/progress" and (asked := self._asked_by(entry.context.call)):
                asked.progress += 1
        else:
            return self._answered(entry, fact)
        return None

    def _asked_by(self, call: str | None) -> _OpenRequest | None:
        return self._requests.get(self._calls.get(call or "", 0))

    def _answered(self, entry: Entry, fact: events.MessageEmitted) -> Line | None:
        asked = self._requests.pop(entry.cause or 0, None)
        how, tone = _outcome(fact.message)
        how = how if asked is None else self._with_facts(how, asked, entry.mono)
        # The error of a failed task is its tool's, whatever its code.
        wrong = _is_refusal(fact) and not (asked is not None and asked.what.startswith("tasks/result"))
        http = self._http.get(entry.context.exchange or 0)
        unread = "message" if http is None else http.what
        line = self._line(entry, unread if asked is None else asked.what, how, tone, finding=wrong)
        if http is None:
            return line
        http.told = True
        if fact.rpc == "error" and not http.head:
            http.waiting.append(line)
            return None
        return line

    def _with_facts(self, how: str, asked: _OpenRequest, now: float) -> str:
        progress = f", {asked.progress} progress" if asked.progress else ""
        return f"{how}, {_took(now - asked.mono)}{progress}"

    # -- clients and calls

    def _came(self, entry: Entry, fact: events.SessionOpened | events.ClientSeen) -> Line:
        self._names.store(entry.context.session or "", fact.client_name)
        named = f"{fact.client_name} {fact.client_version}".strip() or "without a name"
        return self._line(entry, "new client", f"{named}, {fact.revision}, {fact.transport}", "quiet")

    def _started(self, entry: Entry, fact: events.CallStarted) -> None:
        if entry.context.call is not None and entry.cause is not None:
            self._calls.store(entry.context.call, entry.cause)

    def _settled(self, entry: Entry, fact: events.CallSettled) -> Line | None:
        request = self._calls.pop(entry.context.call or "", 0)
        asked = None if fact.answered else self._requests.pop(request, None)
        if asked is None:
            return None
        # "disconnected by disconnect" says it twice
        by = f" by {fact.cancelled_by}" if fact.cancelled_by and fact.cancelled_by not in fact.outcome else ""
        steps = "" if fact.steps_done is None else f" after {fact.steps_done:g}{_of(fact.steps_total)} steps"
        stopped = "" if fact.scope_exit_ms is None else f", stopped in {fact.scope_exit_ms:.1f} ms"
        how = f"{fact.outcome}{by}{steps}{stopped}, no response"
        return self._line(entry, asked.what, self._with_facts(how, asked, entry.mono), "warn")

    def _misused(self, entry: Entry, fact: events.ClientMisuse) -> Line:
        return self._line(entry, fact.what, f"{fact.detail} [{fact.clause}]", "bad", finding=True)


def _what(fact: events.MessageReceived) -> str:
    params = _members(_members(from_json(fact.message)).get("params"))
    named = next((params[name] for name in ("name", "uri", "taskId") if isinstance(params.get(name), str)), "")
    return f"{fact.method} {named}".strip()


def _members(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _reason(message: bytes) -> str:
    reason = _members(_members(from_json(message)).get("params")).get("reason")
    return reason if isinstance(reason, str) else ""


def _outcome(message: bytes) -> tuple[str, Tone]:
    """The server's answer in words. A log may come from a later program, so nothing is taken for granted."""
    whole = _members(from_json(message))
    if error := _members(whole.get("error")):
        return f"error {error.get('code')}: {error.get('message')}", "bad"
    result = _members(whole.get("result"))
    if result.get("isError"):
        return f"tool error: {_first_text(result.get('content'))}", "warn"
    if result.get("resultType") == "input_required":
        return f"asks for {', '.join(_members(result.get('inputRequests'))) or 'the same again'}", "fine"
    task = _members(result.get("task")) or (result if result.get("resultType") == "task" else {})
    return (f"task {str(task.get('taskId'))[:8]}…, {task.get('status')}" if task else "ok"), "fine"


def _first_text(content: Any) -> str:
    parts = [_members(part) for part in content] if isinstance(content, list) else []
    return next((str(part["text"]) for part in parts if "text" in part), "without a text")


def _answer(message: bytes) -> tuple[str, Tone]:
    """A client's answer in words; it may be anything."""
    whole = _members(from_json(message))
    if error := _members(whole.get("error")):
        return f"error {error.get('code')}: {error.get('message')}", "warn"
    action = _members(whole.get("result")).get("action")
    return (action if isinstance(action, str) else "answered"), "fine"


def _is_refusal(fact: events.MessageEmitted) -> bool:
    if fact.rpc != "error":
        return False
    code = _members(_members(from_json(fact.message)).get("error")).get("code")
    return isinstance(code, int) and code in CLIENT_CODES


def _of(total: float | None) -> str:
    return "" if total is None else f" of {total:g}"


def _took(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"

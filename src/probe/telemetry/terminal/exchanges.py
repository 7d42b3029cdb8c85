"""Turns the entries of a log into lines for people, one for each exchange: a request and what became of it.

    a client's request             when its answer is emitted, or when its call ends without one; an error that is the
                                   body of an HTTP response when the head of that is sent
    a client's notification        when it is received
    a question to the client       when its answer is received
    a GET, a DELETE, an HTTP error when the head of the response is sent; the end of an event stream once more
    a client, session or tool host when it comes and goes
    a limit that refused           each time

Lines about mistakes of a client are *findings*: `client.misuse`, errors caused by its messages
(`wire.errors.CLIENT_CODES`), and HTTP statuses of refusals such as 400. A refusal by a limit is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import from_json

from ...core.escaping import cut, shown
from ...log import events
from ...log.bounded import Newest
from ...log.event_log import Entry
from ...views.ending import duration, sentence, stopped
from ...views.fold import Views
from ...views.records import ANSWERS
from ...views.retention import members
from ...views.search.conditions import Conditions, LoggedExchanges
from ...views.search.words import Word
from ...views.values import Exchange, Message
from ...wire.errors import CLIENT_CODES, Refusal

Tone: TypeAlias = Literal["fine", "quiet", "warn", "bad"]

# The most exchanges with errors waiting for a head, or with the state of a filter line. The oldest is dropped.
_MOST: Final = 20_000
# Statuses caused by a limit of the server or by its end.
_LIMITS: Final = frozenset(
    refusal.status for refusal in (Refusal.REQUEST_TIMEOUT, Refusal.BODY_TOO_LARGE, Refusal.EVENTS_GONE)
) | {429}


@dataclass(frozen=True, slots=True)
class Line:
    """One line: the time (seconds since the epoch), the client, the request and its outcome. It has no line breaks."""

    at: float
    who: str
    what: str
    how: str
    tone: Tone
    finding: bool = False


_Lines: TypeAlias = Sequence[Line]


class Exchanges:
    """Makes the lines for the entries of one log. `views` returns views that have taken each entry before.

    With `client`, only lines about that client: the label of a session or of a modern client (`s1`, `m1`), the name in
    its `clientInfo`, or the one of `?client=`. With `words` of a filter line, only exchanges that pass it by the time
    of their line. A line depends only on entries with smaller numbers than its own: the views may be ahead.
    """

    def __init__(
        self,
        views: Callable[[], Views],
        *,
        client: str | None = None,
        findings: bool = False,
        words: Sequence[Word] = (),
    ) -> None:
        self._views = views
        self._client = client
        self._exchanges = LoggedExchanges(views, self._message_entry)
        self._conditions = Conditions(words, self._exchanges) if words else None
        self._found: Newest[int, set[int]] = Newest(_MOST)
        self._findings = findings
        # Lines of errors, until the head of the HTTP response with them is sent.
        self._waiting: Newest[int, list[Line]] = Newest(_MOST)
        takers: Mapping[type, Callable[[Entry, Any], Line | _Lines | None]] = {
            events.HttpResponse: self._responded,
            events.HttpClosed: self._closed,
            events.MessageReceived: self._received,
            events.MessageEmitted: self._emitted,
            events.SessionOpened: self._came,
            events.ClientSeen: self._came,
            events.SessionClosed: lambda entry, fact: self._line(entry, "session", f"ended: {fact.why}", "quiet"),
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
        take = self._takers.get(type(entry.fact))
        lines = None if take is None else take(entry, entry.fact)
        passes = self._conditions is None or self._passes(entry, self._conditions)
        if lines is None or not passes or not self._concerns(entry):
            return
        for line in (lines,) if isinstance(lines, Line) else lines:
            if line.finding or not self._findings:
                yield line

    def _passes(self, entry: Entry, conditions: Conditions) -> bool:
        key = self._exchanges.key(entry)
        found = self._found.get(key)
        if found is None:
            found = set()
            self._found.store(key, found)
        conditions.look(entry, found)
        return conditions.passes_exchange(key, found)

    def _message_entry(self, seq: int) -> Entry | None:
        message = self._views().messages.get(seq)
        return None if message is None else message.entry

    def _name(self, session: str | None) -> str:
        known = self._views().sessions.get(session or "")
        return "" if known is None else known.client_name

    def _concerns(self, entry: Entry) -> bool:
        session = entry.context.session
        return self._client is None or self._client in {session, self._name(session) or None, entry.context.label}

    def _line(self, entry: Entry, what: str, how: str, tone: Tone, *, finding: bool = False) -> Line:
        session, label = entry.context.session or "", entry.context.label
        who = f"{session} {label or self._name(session)}".strip()
        return Line(entry.at, shown(cut(who)), shown(cut(what)), shown(cut(how)), tone, finding)

    def _http(self, entry: Entry) -> Exchange | None:
        exchange = self._views().exchanges.get(entry.context.exchange or 0)
        if exchange is None or exchange.head is None or exchange.head.seq > entry.seq:
            return None
        return None if exchange.closed is not None and exchange.closed.seq < entry.seq else exchange

    def _responded(self, entry: Entry, fact: events.HttpResponse) -> Line | _Lines | None:
        http = self._http(entry)
        if http is None:
            return None
        refused = fact.status < 500 and fact.status not in _LIMITS
        if _has_lines(http, entry):
            waiting = self._waiting.pop(http.number, ())
            return [replace(line, finding=line.finding and refused) for line in waiting]
        if fact.status >= 400:
            problem = f"{fact.status} {fact.problem or fact.refusal or ''}".strip()
            return self._line(entry, _asked(http), problem, "bad" if refused else "warn", finding=refused)
        if http.request.method == "POST":
            return None
        return self._line(entry, _asked(http), "event stream opened" if _streams(http) else str(fact.status), "quiet")

    def _closed(self, entry: Entry, fact: events.HttpClosed) -> Line | _Lines | None:
        http = self._http(entry)
        waiting = None if http is None else self._waiting.pop(http.number, None)
        if http is None or _has_lines(http, entry) or not _streams(http):
            return waiting
        return self._line(entry, _asked(http), f"event stream ended by {fact.by}, {fact.messages} messages", "quiet")

    def _received(self, entry: Entry, fact: events.MessageReceived) -> Line | None:
        if fact.rpc == "request":
            return None
        if fact.rpc == "notification":
            about = "" if fact.about is None else f" of {fact.about!r}"
            return self._line(entry, f"{fact.method}{about}", _reason(fact.message), "quiet")
        asked = self._views().messages.get(entry.cause or 0)
        if asked is None or not asked.replies or asked.replies[0].seq != entry.seq:
            return None
        how, tone = _answer(fact.message)
        return self._line(entry, f"asked {asked.method}", f"{how}, {_took(entry.mono - asked.at)}", tone)

    def _emitted(self, entry: Entry, fact: events.MessageEmitted) -> Line | None:
        if fact.rpc not in ANSWERS:
            return None
        asked = self._views().messages.get(entry.cause or 0)
        asked = asked if asked is not None and asked.received and asked.rpc == "request" else None
        how, tone = _outcome(fact.message)
        how = how if asked is None else _with_facts(how, asked, entry)
        http = self._http(entry)
        what = _what(asked) if asked is not None else "message" if http is None else _asked(http)
        # The error of a failed task is its tool's, even with a code of `CLIENT_CODES`.
        wrong = _is_refusal(fact) and not (asked is not None and asked.method == "tasks/result")
        line = self._line(entry, what, how, tone, finding=wrong)
        if http is None or fact.rpc != "error":
            return line
        if http.response is not None and http.response.seq < entry.seq:
            return line
        self._waiting.store(http.number, [*self._waiting.get(http.number, ()), line])
        return None

    def _came(self, entry: Entry, fact: events.SessionOpened | events.ClientSeen) -> Line:
        named = f"{fact.client_name} {fact.client_version}".strip() or "without a name"
        return self._line(entry, "new client", f"{named}, {fact.revision}, {fact.transport}", "quiet")

    def _settled(self, entry: Entry, fact: events.CallSettled) -> Line | None:
        call = self._views().call(entry.context.call or "")
        asked = None if call is None or fact.answered else call.request
        if asked is None or asked.rpc != "request" or (asked.answer is not None and asked.answer.seq < entry.seq):
            return None
        how = sentence(stopped(fact, call, (), self._message_entry))
        return self._line(entry, _what(asked), _with_facts(how, asked, entry), "warn")

    def _misused(self, entry: Entry, fact: events.ClientMisuse) -> Line:
        return self._line(entry, fact.what, f"{fact.detail} [{fact.clause}]", "bad", finding=True)


def _has_lines(http: Exchange, entry: Entry) -> bool:
    """True if a message of an exchange before an entry has a line of its own: one of the client, or an answer."""
    return any(
        each.seq < entry.seq
        and (each.received or (each.rpc in ANSWERS and isinstance(each.fact, events.MessageEmitted)))
        for each in http.messages
    )


def _streams(http: Exchange) -> bool:
    fact = None if http.response is None else http.response.fact
    return isinstance(fact, events.HttpResponse) and fact.content_type.startswith("text/event-stream")


def _asked(http: Exchange) -> str:
    return f"{http.request.method} {http.request.path}"


def _what(request: Message) -> str:
    return f"{request.method} {request.target}".strip()


def _with_facts(how: str, asked: Message, entry: Entry) -> str:
    reports = 0 if asked.call is None else sum(each.seq < entry.seq for each in asked.call.progress)
    progress = f", {reports} progress" if reports else ""
    return f"{how}, {_took(entry.mono - asked.at)}{progress}"


def _reason(message: bytes) -> str:
    reason = members(members(from_json(message)).get("params")).get("reason")
    return reason if isinstance(reason, str) else ""


def _outcome(message: bytes) -> tuple[str, Tone]:
    """The server's answer in words. A log may come from a later version, so any member may be missing."""
    whole = members(from_json(message))
    if error := members(whole.get("error")):
        return f"error {error.get('code')}: {error.get('message')}", "bad"
    result = members(whole.get("result"))
    if result.get("isError"):
        return f"tool error: {_first_text(result.get('content'))}", "warn"
    if result.get("resultType") == "input_required":
        return f"asks for {', '.join(members(result.get('inputRequests'))) or 'the same again'}", "fine"
    task = members(result.get("task")) or (result if result.get("resultType") == "task" else {})
    return (f"task {str(task.get('taskId'))[:8]}…, {task.get('status')}" if task else "ok"), "fine"


def _first_text(content: Any) -> str:
    parts = [members(part) for part in content] if isinstance(content, list) else []
    return next((str(part["text"]) for part in parts if "text" in part), "without a text")


def _answer(message: bytes) -> tuple[str, Tone]:
    whole = members(from_json(message))
    if error := members(whole.get("error")):
        return f"error {error.get('code')}: {error.get('message')}", "warn"
    action = members(whole.get("result")).get("action")
    return (action if isinstance(action, str) else "answered"), "fine"


def _is_refusal(fact: events.MessageEmitted) -> bool:
    if fact.rpc != "error":
        return False
    code = members(members(from_json(fact.message)).get("error")).get("code")
    return isinstance(code, int) and code in CLIENT_CODES


def _took(seconds: float) -> str:
    return duration(seconds * 1000)

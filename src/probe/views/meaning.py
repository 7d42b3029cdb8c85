"""The meaning of one entry by itself: its group, the cause of a problem, its exchange and its method.

The dashboard sorts entries into groups. An entry is in the group of its kind; an error, a refusal, a limit, a loss or a
violation is also in `problems`. The cause of a problem separates a client's mistakes from errors that it asked for:

    mistake   the client's, or what a revision forbids
    asked     an error that a tool gave: simulated, because of its arguments, or of a task that failed
    lost      a message that no socket took
    limit     a limit, a deadline or a failure of this server
    other     a tool host's, or an allowed error answer of a client

For example, an error with the text `Simulated …` is `asked`, and the error for an unknown method is a `mistake`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from pydantic_core import from_json

from ..log import events
from ..log.event_log import Entry
from ..wire.errors import CLIENT_CODES, Code, Refusal
from .records import ANSWERS

Group: TypeAlias = Literal[
    "deliveries", "messages", "http", "calls", "tasks", "streams", "sessions", "hosts", "server", "problems"
]

_OF_KIND: Final[Mapping[str, Group]] = {
    "message.delivered": "deliveries",
    "message": "messages",
    "request": "messages",
    "http": "http",
    "socket": "http",
    "call": "calls",
    "dispatch": "calls",
    "host": "hosts",
    "task": "tasks",
    "stream": "streams",
    "connection": "streams",
    "websocket": "streams",
    "stdio": "streams",
    "session": "sessions",
    "client.seen": "sessions",
    "client.process": "sessions",
    "client.misuse": "problems",
    "forwarding": "sessions",
    "limit": "problems",
    "server": "server",
    "audit": "server",
}
_OF_CLASS: Final[Mapping[type, Group]] = {
    kind: _OF_KIND.get(kind.kind) or _OF_KIND[kind.kind.split(".", 1)[0]] for kind in get_args(events.Event)
}

# RFC 6455, section 7.4: done, or going away.
_ORDERLY: Final = frozenset({None, 1000, 1001})
# The answers of a tool host to `tool.cancel` are in docs/tool-hosts.md.
_HAS_STOPPED: Final = 2
# To close the response is how a client cancels in 2026-07-28.
_BAD_OUTCOMES: Final = frozenset({"tool_error", "protocol_error", "timed_out"})
_BAD_ENDS: Final = frozenset({"unanswered", "host_gone"})
_FIRST_BAD_STATUS: Final = 400
_NOTHING_FOLLOWS: Final = Refusal.NOTHING_FOLLOWS.name


def _always(event: object) -> bool:
    return True


def _is_bad_message(event: events.MessageReceived | events.MessageEmitted) -> bool:
    return event.rpc in ("error", "invalid")


def _is_bad_response(event: events.HttpResponse) -> bool:
    # After a cancellation an SDK takes the end of the stream for a lost connection and comes back; it gets 410.
    return (event.status >= _FIRST_BAD_STATUS or event.problem is not None) and event.refusal != _NOTHING_FOLLOWS


def _is_bad_host_message(event: events.HostMessage) -> bool:
    if event.rpc == "error":
        error = from_json(event.message).get("error")
        return not isinstance(error, dict) or error.get("code") != _HAS_STOPPED
    return event.rpc == "invalid"


_PROBLEMS: Final[Mapping[type, Callable[[Any], bool]]] = {
    events.ClientMisuse: _always,
    events.LimitReached: _always,
    events.ForwardingMissed: _always,
    events.RequestRepeated: _always,
    events.MessageUnreadable: _always,
    events.MessageRefused: _always,
    events.SocketRefused: _always,
    events.WebSocketFrame: lambda event: event.refused is not None,
    events.MessageDropped: _always,
    events.StreamLost: _always,
    events.DispatchExpired: _always,
    events.HostMisuse: _always,
    events.MessageReceived: _is_bad_message,
    events.MessageEmitted: _is_bad_message,
    events.HostMessage: _is_bad_host_message,
    events.DispatchStopped: lambda event: event.how in _BAD_ENDS,
    events.HostClosed: lambda event: event.failed > 0 or event.code not in _ORDERLY,
    events.ConnectionClosed: lambda event: event.code not in _ORDERLY,
    events.HttpResponse: _is_bad_response,
    events.CallSettled: lambda event: event.outcome in _BAD_OUTCOMES,
    events.TaskChanged: lambda event: event.status == "failed",
    events.AuditState: lambda event: event.state != "ok",
}


_WIRE: Final = (
    "http",
    "message",
    "request",
    "host.message",
    "host.misuse",
    "connection",
    "client.misuse",
    "limit",
    "stream.lost",
    "socket.refused",
)
_ON_WIRE: Final = frozenset(
    kind for kind in get_args(events.Event) if kind.kind.startswith(_WIRE) and kind is not events.MessagesDelivered
)


def is_on_wire(event: events.AnyEvent) -> bool:
    """True if an event is on the wire, or is an error there."""
    return type(event) in _ON_WIRE or (isinstance(event, events.WebSocketFrame) and event.refused is not None)


def group_of(event: events.AnyEvent) -> Group:
    """The group of its kind: `problems` only if all events of the kind are; `server` for an unknown kind."""
    return _OF_CLASS.get(type(event), "server")


def groups_of(event: events.AnyEvent) -> frozenset[Group]:
    """The groups of an entry: that of its kind, and `problems` for a problem."""
    own, is_problem = group_of(event), _PROBLEMS.get(type(event))
    return _BOTH[own] if is_problem is not None and is_problem(event) else _ALONE[own]


# Every entry of the log passes here.
_ALONE: Final[Mapping[Group, frozenset[Group]]] = {group: frozenset({group}) for group in get_args(Group)}
_BOTH: Final[Mapping[Group, frozenset[Group]]] = {group: frozenset({group, "problems"}) for group in get_args(Group)}

Problem: TypeAlias = Literal["mistake", "asked", "lost", "limit", "other"]

# Refusals of this server to all clients alike, such as beyond a limit.
_LIMITS: Final = (
    Refusal.REQUEST_TIMEOUT,
    Refusal.BODY_TOO_LARGE,
    Refusal.EVENTS_GONE,
    Refusal.TOO_MANY_REQUESTS,
    Refusal.BUSY,
)
_LIMIT_NAMES: Final = frozenset(refusal.name for refusal in _LIMITS)
_LIMIT_STATUSES: Final = frozenset(refusal.status for refusal in _LIMITS)
_LIMIT_CODES: Final = frozenset({Code.BUSY, Code.OVERLOADED, Code.STREAM_LOST})
# RFC 6455, section 7.4.1: the connection broke; the peer broke the protocol, or sent forbidden data.
_BROKEN: Final = 1006
_CLIENT_CLOSES: Final = frozenset({1002, 1003, 1007, 1008, 1010})
_FAULTS: Final[Mapping[str, Problem]] = {"syntax": "mistake", "encoding": "mistake", "incomplete": "lost"}
_OUTCOMES: Final[Mapping[str, Problem]] = {"tool_error": "asked", "timed_out": "limit"}
# The beginning of the texts of simulated errors, whatever their code.
_SIMULATED: Final = "Simulated "


def problem_of(event: events.AnyEvent) -> Problem | None:
    """The cause of a problem; None for another entry.

    An error without an id answers no request: another entry has its reason, such as `message.unreadable`.
    """
    if "problems" not in groups_of(event):
        return None
    if isinstance(event, events.MessageEmitted) and event.id is None:
        return None
    tell = _OF.get(type(event), "other")
    return tell if isinstance(tell, str) else tell(event)


def _of_error(error: Any) -> Problem:
    members = error if isinstance(error, dict) else {}
    if str(members.get("message", "")).startswith(_SIMULATED):
        return "asked"
    code = members.get("code")
    if code in _LIMIT_CODES:
        return "limit"
    return "mistake" if code in CLIENT_CODES else "asked"


def _of_message(event: events.MessageReceived | events.MessageEmitted) -> Problem:
    if isinstance(event, events.MessageReceived):
        return "mistake" if event.rpc == "invalid" else "other"
    return _of_error(from_json(event.message).get("error"))


def _of_settled(event: events.CallSettled) -> Problem:
    known = _OUTCOMES.get(event.outcome)
    # A cut result is JSON without the error.
    result = from_json(event.result) if known is None else None
    return known or _of_error(result.get("error") if isinstance(result, dict) else None)


def _of_response(event: events.HttpResponse) -> Problem:
    limit = event.refusal in _LIMIT_NAMES or event.status in _LIMIT_STATUSES or event.status >= 500
    return "limit" if limit else "mistake"


def _of_close(event: events.ConnectionClosed) -> Problem:
    if event.code == _BROKEN:
        return "lost"
    return "mistake" if event.code in _CLIENT_CLOSES else "limit"


_OF: Final[Mapping[type, Problem | Callable[[Any], Problem]]] = {
    events.ClientMisuse: "mistake",
    events.SocketRefused: "mistake",
    events.WebSocketFrame: "mistake",
    events.MessageUnreadable: lambda event: _FAULTS.get(event.fault, "limit"),
    events.MessageRefused: lambda event: "limit" if event.refusal in _LIMIT_NAMES else "mistake",
    events.MessageReceived: _of_message,
    events.MessageEmitted: _of_message,
    events.MessageDropped: "lost",
    events.StreamLost: "lost",
    events.LimitReached: "limit",
    events.ForwardingMissed: "limit",
    events.DispatchExpired: "limit",
    events.AuditState: "limit",
    events.TaskChanged: "asked",
    events.CallSettled: _of_settled,
    events.HttpResponse: _of_response,
    events.ConnectionClosed: _of_close,
}

_MESSAGES: Final = (events.MessageReceived, events.MessageEmitted, events.MessageDropped, events.HostMessage)

EntryOf: TypeAlias = Callable[[int], Entry | None]
"""Finds an entry by its number; None where the log does not have it."""


def exchange_key(entry: Entry, entry_of: EntryOf) -> int:
    """The number of an entry's exchange; without one, minus the number of the request or of the entry."""
    if entry.context.exchange is not None:
        return entry.context.exchange
    asked = question(entry, entry_of)
    return -(entry.seq if asked is None else asked.seq)


def question(entry: Entry, entry_of: EntryOf) -> Entry | None:
    """The request that an entry answers, where the log has it."""
    fact, cause = entry.fact, entry.cause
    if cause is None or not isinstance(fact, _MESSAGES) or fact.rpc not in ANSWERS:
        return None
    asked = entry_of(cause)
    return asked if asked is not None and isinstance(asked.fact, _MESSAGES) else None


def method(entry: Entry, entry_of: EntryOf) -> str | None:
    """The method of a message or a call; of an answer, the method of its request."""
    if isinstance(entry.fact, events.CallStarted):
        return entry.fact.method
    said = question(entry, entry_of) or entry
    return said.fact.method if isinstance(said.fact, _MESSAGES) else None

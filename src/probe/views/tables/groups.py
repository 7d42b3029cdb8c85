"""The groups that the dashboard sorts entries of the event log into.

An entry is in the group of its kind; an error, a refusal, a limit, a loss or a violation is also in `problems`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from pydantic_core import from_json

from ...log import events
from ...wire.errors import Refusal

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

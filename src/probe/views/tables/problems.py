"""The cause of each problem: it separates a client's mistakes from errors that it asked for.

    mistake   the client's, or what a revision forbids
    asked     an error that a tool gave: simulated, because of its arguments, or of a task that failed
    lost      a message that no socket took
    limit     a limit, a deadline or a failure of this server
    other     a tool host's, or an allowed error answer of a client

For example, an error with the text `Simulated …` is `asked`, and the error for an unknown method is a `mistake`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import from_json

from ...log import events
from ...wire.errors import CLIENT_CODES, Code, Refusal
from .groups import groups_of

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

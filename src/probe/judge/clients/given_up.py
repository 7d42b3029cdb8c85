"""Requests that a client gave up, by a cancellation or by hanging up.

They are noted as they come: later the messages may have made room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nextafter
from typing import Any, Final, cast

from ...log import events
from ...views.clients import Scope, Session
from ...views.values import Exchange, Message
from ...wire.jsonrpc import RequestId, is_id
from .series import ALWAYS, Series

CANCELLED: Final = "notifications/cancelled"

AT_ONCE_S: Final = 0.2
"""Failing on a comment, a client ends its stream within this time."""
NEAR_S: Final = 0.3
"""Two times closer than this are the same."""
# Timers of clients and proxies are set to multiples of this.
_TIMER_S: Final = 5.0
# Streams that a report names.
_MANY_ENDS: Final = 10


class GivenUp:
    """Fed with each cancellation and each end of a response, in order. `settings` are those of the server."""

    def __init__(self) -> None:
        # How long it waited for a call without progress, where that is longer than ever before.
        self._waits: Series[float] = Series()
        self._at_comments: Series[tuple[Exchange, float]] = Series()

    def cancel(self, message: Message, settings: Mapping[str, Any]) -> None:
        self._note(cancelled_call(message), message.at)
        request = cancelled_request(message)
        if request is not None and request.exchange is not None:
            self._end(request.exchange, message.at, settings)

    def leave(self, exchange: Exchange, at: float, settings: Mapping[str, Any]) -> None:
        if exchange.ended_by == "client":
            self._note(left_call(exchange, at), at)
            self._end(exchange, at, settings)

    def _note(self, call: Message | None, at: float) -> None:
        if call is not None and not call.progressed_by(at) and at - call.at > (self.silent_s(ALWAYS) or 0.0):
            self._waits.add(at, at - call.at)

    def _end(self, exchange: Exchange, at: float, settings: Mapping[str, Any]) -> None:
        comment = ended_at_comment(exchange, at, settings)
        if comment is None:
            return
        after = comment - exchange.began.mono
        if all(abs(after - other) > NEAR_S for _, other in self._at_comments.newest(ALWAYS, _MANY_ENDS)):
            self._at_comments.add(at, (exchange, after))

    def silent_s(self, at: float) -> float | None:
        """The longest time that it had waited before `at` for a call without progress; None if it gave up none."""
        return self._waits.last_before(at)

    def at_comments(self, at: float) -> Sequence[Exchange]:
        """The newest streams up to `at` that ended at their first comment.

        Those with an equal time from request to comment count once.
        """
        return [exchange for exchange, _ in self._at_comments.newest(nextafter(at, ALWAYS), _MANY_ENDS)]


def scopes_of(message: Message) -> Iterator[Scope]:
    """The scopes of ids where a message counts: on a pipe with a legacy session, those of both eras."""
    scope, pipe = message.scope, message.pipe
    if scope is not None:
        yield scope
    if pipe is not None and pipe.scope is not None and pipe.scope is not scope:
        yield pipe.scope


def request_with_id(message: Message, id: RequestId, until: float) -> Message | None:
    """The newest request with this typed id in the scopes of a message, among those before a time."""
    for scope in scopes_of(message):
        request = scope.ids.get(id)
        while request is not None and request.entry.mono >= until:
            request = request.same_id
        if request is not None:
            return request
    return None


def cancelled_request(message: Message) -> Message | None:
    """The request that a cancellation names."""
    id = message.params.get("requestId")
    return request_with_id(message, id, message.at) if is_id(id) else None


def cancelled_call(message: Message) -> Message | None:
    """The tool call that a cancellation gives up, as it has no answer yet."""
    call = cancelled_request(message)
    return call if call is not None and call.method == "tools/call" and not call.was_answered(message.at) else None


def left_call(exchange: Exchange, at: float) -> Message | None:
    """The tool call that has no answer at the end of its response."""
    calls = (each for each in exchange.messages if each.rpc == "request" and each.method == "tools/call")
    return next((each for each in calls if not each.was_answered(at)), None)


def place_of(exchange: Exchange) -> Message | Session | None:
    """The request that a finding about a response is about, else its session."""
    return next((each for each in exchange.messages if each.rpc == "request" and each.received), exchange.session)


def ended_at_comment(exchange: Exchange, at: float, settings: Mapping[str, Any]) -> float | None:
    """When the first comment came, if the stream ended at once and no timer explains that.

    A comment counts after a silence of `keep_alive_s` only, and not at a multiple of five seconds.
    """
    found = first_comment(exchange, at)
    if found is None or place_of(exchange) is None:
        return None
    comment, silence = found
    is_timer = not is_keep_alive(silence, settings) or _is_timer(comment - exchange.began.mono)
    return None if is_timer or at - comment > AT_ONCE_S else comment


def first_comment(exchange: Exchange, at: float) -> tuple[float, float] | None:
    """When the first comment before a time came on an exchange, and the silence before it in seconds."""
    stream = exchange.stream
    if stream is None:
        return None
    own = (each for each in stream.controls if each.context.exchange == exchange.number)
    comment = next((each.mono for each in own if cast("events.StreamControl", each.fact).what == "comment"), ALWAYS)
    if comment >= at:
        return None
    began = exchange.response or exchange.began
    times = [began.mono, *(each.had for each in stream.sent.values() if each.had is not None)]
    times += [each.mono for each in stream.controls]
    return comment, comment - max((each for each in times if each < comment), default=comment)


def is_keep_alive(silence: float, settings: Mapping[str, Any]) -> bool:
    """True for the silence before a keep-alive comment, unless a timer of the peer may end it, too."""
    keep_alive_s = settings.get("keep_alive_s")
    return isinstance(keep_alive_s, (int, float)) and silence >= keep_alive_s - 0.05 and not _is_timer(silence)


def _is_timer(seconds: float) -> bool:
    rest = seconds % _TIMER_S
    return min(rest, _TIMER_S - rest) <= NEAR_S

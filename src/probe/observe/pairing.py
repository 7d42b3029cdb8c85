"""Which request a response answers: by direction, by exchange or session, and by the id with its JSON type.

request of      is remembered by                  its answer is found by
a client        exchange, id                      exchange, id
the server      session, id                       session, id

An answer to a client's request belongs to the response of the exchange that brought the request, on whatever stream, so
the exchange tells apart what a session alone could not: a refused request and the one whose id it used again. The
answer to a request of the server comes in an exchange of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias, cast

from ..wire.jsonrpc import RequestId
from .events import CallStarted, Event, MessageEmitted, MessageReceived

# An exchange is a number and a session a string, so requests of the two sides never meet; nor does 5 meet "5".
_Key: TypeAlias = tuple[int | str, RequestId]

# More requests than can be in flight by default. What is never answered, because it was cancelled, is pushed out.
_MOST_OPEN = 10_000


class Pairing:
    """Fed with every event in order."""

    def __init__(self, most_open: int = _MOST_OPEN) -> None:
        self._open: OrderedDict[_Key, int] = OrderedDict()
        self._most_open = most_open

    def note(self, seq: int, event: Event) -> int | None:
        """The sequence number of the request that this event answers, or by which this call began."""
        kind = type(event)
        if kind is MessageReceived or kind is MessageEmitted:
            return self._message(seq, cast("MessageReceived | MessageEmitted", event))
        if kind is CallStarted:
            call = cast("CallStarted", event)
            return self._open.get((call.exchange, call.request_id))
        return None

    def _message(self, seq: int, event: MessageReceived | MessageEmitted) -> int | None:
        asks, came = event.rpc == "request", type(event) is MessageReceived
        if event.rpc == "invalid":
            return None
        whose = event.exchange if asks is came else event.session
        if event.id is None or whose is None:
            return None
        key = whose, event.id
        if not asks:
            return self._open.pop(key, None)
        self._remember(key, seq)
        return None

    def _remember(self, key: _Key, seq: int) -> None:
        self._open[key] = seq
        self._open.move_to_end(key)
        if len(self._open) > self._most_open:
            self._open.popitem(last=False)

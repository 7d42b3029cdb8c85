"""Requests that come twice: the same bytes with the same id, such as from a gateway after a broken connection.

Two workers of one program may send the same bytes too, so a repeat is not recorded as misuse.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ..log.bounded import Newest
from ..log.event_log import Entry, EventLog
from ..log.events import MessageReceived, RequestRepeated
from ..wire.jsonrpc import Request, RequestId, clip
from .calls.request_context import RequestContext

_Key: TypeAlias = tuple[str | None, str | None, RequestId]

# For all clients together; a repeat comes within seconds.
_MOST: Final = 4096
_SOON_S: Final = 10.0


class Repeats:
    """The latest requests of one engine over HTTP, by client, label and id, as numbers of entries."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._latest: Newest[_Key, int] = Newest(_MOST)

    def note(self, request: Request, context: RequestContext, *, in_flight: bool = False) -> bool:
        """Take one request. If it repeats an earlier one, record both exchanges and return True.

        It is not recorded as misuse, since the client may not know of it. The same bytes on the connection of the first
        request count as the client's own, unless the first is still `in_flight`.
        """
        again = context.recorder.cause
        if again is None or context.transport != "http":
            return False
        # Programs with the same name and address share a modern client's session; `?client=` distinguishes them.
        key = (context.recorder.context.session, context.recorder.context.label, request.id)
        first = self._latest.get(key)
        if not in_flight:
            # The request in flight stays the first, even if others have its id.
            self._latest.store(key, again)
        if first is None:
            return False
        before, now = (self._log.entry(seq) for seq in (first, again))
        if before is None or now is None or not (_are_same(before, now) and (in_flight or _is_other(before, now))):
            return False
        after_ms = round((now.mono - before.mono) * 1000, 3)
        repeated = RequestRepeated(clip(request.method), request.id, before.seq, before.context.exchange, after_ms)
        context.recorder.append(repeated)
        return True


def _are_same(before: Entry, now: Entry) -> bool:
    bodies = [entry.fact.message for entry in (before, now) if isinstance(entry.fact, MessageReceived)]
    return len(bodies) == 2 and bodies[0] == bodies[1]


def _is_other(before: Entry, now: Entry) -> bool:
    """True if the two came on different connections, soon after each other."""
    connections = {entry.context.connection for entry in (before, now)} - {None}
    return len(connections) == 2 and now.mono - before.mono <= _SOON_S

"""The kept calls: the beginning of a row, the listed calls, and older ones still found by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from ..log import events
from ..log.bounded import Newest
from ..log.event_log import Entry
from .call_row import CallRow
from .records import CallRecord
from .retention import Retention
from .work import Call

# Ended calls kept after they made room while running: their answers may yet be delivered.
_MOST_OVER: Final = 100


def row_of(run: str, entry: Entry, fact: events.CallStarted) -> CallRow | None:
    """The row of a tool call that starts with an entry; None for another call."""
    context = entry.context
    # Every call of this server came with an exchange.
    if fact.tool is None or context.exchange is None or context.call is None:
        return None
    record = CallRecord(
        run=run,
        call=context.call,
        exchange=context.exchange,
        tool=fact.tool,
        toolset=fact.toolset,
        arguments=fact.arguments,
        era=fact.era,
        revision=fact.revision,
        transport=fact.transport,
        session=context.session,
        client_name=fact.client_name,
        client_version=fact.client_version,
        label=context.label,
        request_id=fact.request_id,
        progress_token=fact.progress_token,
        task=context.task,
        started_at=entry.at,
        seq=entry.seq,
        steps_done=None if fact.steps_total is None else 0,
        steps_total=fact.steps_total,
    )
    return CallRow(record, entry.cause)


class Calls:
    """The kept calls. `listed` are the newest tool calls, in order of their start.

    `named` has by name the listed calls, waiting requests, and tool calls that made room while running. A call of the
    last kind is found for some time after its end: its answer may yet come.
    """

    def __init__(self, retention: Retention) -> None:
        self._most = retention.calls
        self.listed: OrderedDict[str, Call] = OrderedDict()
        self.named: dict[str, Call] = {}
        # Calls that made room while running. The limit lets go of those with a missed end.
        self._older: Newest[str, Call] = Newest(retention.calls)
        self._over: Newest[str, Call] = Newest(_MOST_OVER)
        self._others: Newest[str, Call] = Newest(retention.other_calls)

    def __len__(self) -> int:
        """The number of listed tool calls."""
        return len(self.listed)

    def get(self, call: str) -> CallRecord | None:
        """The row of a listed call; None without one."""
        known = self.listed.get(call)
        return None if known is None else known.record

    def newest_first(self) -> Iterator[CallRecord]:
        """The rows of all listed calls; to be read without an `await` in between."""
        return (call.record for call in reversed(self.listed.values()) if call.record is not None)

    def start(self, call: Call) -> Call | None:
        """Add a call. Returns the call let go for it, if any."""
        self.named[call.name] = call
        if call.record is None:
            return self._gone(self._others.store(call.name, call))
        self.listed[call.name] = call
        if len(self.listed) <= self._most:
            return None
        name, oldest = self.listed.popitem(last=False)
        return self._gone(oldest if oldest.ended is not None else self._older.store(name, oldest))

    def settle(self, call: Call) -> Call | None:
        """Note the end of a tool call. Returns the call let go for it, if any."""
        if not self._older or self._older.pop(call.name, None) is None:
            return None
        return self._gone(self._over.store(call.name, call))

    def _gone(self, call: Call | None) -> Call | None:
        if call is not None and self.named.get(call.name) is call:
            del self.named[call.name]
        return call

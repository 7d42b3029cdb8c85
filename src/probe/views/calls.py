"""The calls that are kept: how a row begins, which calls are listed, and which are still found by their names."""

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

# So many calls that made room while they ran are kept after their end: their answers may yet be delivered.
_MOST_OVER: Final = 100


def row_of(run: str, entry: Entry, fact: events.CallStarted) -> CallRow | None:
    """The row that begins with an entry; None where it is no tool call."""
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
    """The calls that are kept. `listed` are the newest tool calls, in the order in which they started.

    `named` has those and others by their names: requests that wait, and tool calls that made room while they ran. Such
    a call is found until its end and some time after, as its answer may yet come.
    """

    def __init__(self, retention: Retention) -> None:
        self._most = retention.calls
        self.listed: OrderedDict[str, Call] = OrderedDict()
        self.named: dict[str, Call] = {}
        # Calls that made room while they ran. As many as listed ones, so that those whose end was missed go in the end.
        self._older: Newest[str, Call] = Newest(retention.calls)
        self._over: Newest[str, Call] = Newest(_MOST_OVER)
        self._others: Newest[str, Call] = Newest(retention.other_calls)

    def __len__(self) -> int:
        """The number of tool calls that are listed."""
        return len(self.listed)

    def get(self, call: str) -> CallRecord | None:
        """The row of a call that is listed."""
        known = self.listed.get(call)
        return None if known is None else known.record

    def newest_first(self) -> Iterator[CallRecord]:
        """The rows of all that are listed; to be read without waiting in between."""
        return (call.record for call in reversed(self.listed.values()) if call.record is not None)

    def start(self, call: Call) -> Call | None:
        """One more. Returns the one that is let go, if any."""
        self.named[call.name] = call
        if call.record is None:
            return self._gone(self._others.store(call.name, call))
        self.listed[call.name] = call
        if len(self.listed) <= self._most:
            return None
        name, oldest = self.listed.popitem(last=False)
        return self._gone(oldest if oldest.ended is not None else self._older.store(name, oldest))

    def settle(self, call: Call) -> Call | None:
        """A tool call has ended. Returns one that is let go, if any."""
        if not self._older or self._older.pop(call.name, None) is None:
            return None
        return self._gone(self._over.store(call.name, call))

    def _gone(self, call: Call | None) -> Call | None:
        if call is not None and self.named.get(call.name) is call:
            del self.named[call.name]
        return call

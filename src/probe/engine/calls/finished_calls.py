"""The calls of one client that are over. A late message that names one is recorded as being about it."""

from __future__ import annotations

from collections import OrderedDict

from ...log.context import Recorder
from ...wire.jsonrpc import RequestId

# A client cancels one of its latest requests, even if it does so too late.
_MOST = 100


class FinishedCalls:
    """The latest finished calls, by the ids of their requests. A new one replaces the oldest."""

    def __init__(self) -> None:
        self._calls: OrderedDict[RequestId, Recorder] = OrderedDict()

    def add(self, id: RequestId, call: Recorder) -> None:
        """Add the call of this request, which is over or became a task."""
        self._calls[id] = call
        self._calls.move_to_end(id)
        if len(self._calls) > _MOST:
            self._calls.popitem(last=False)

    def find(self, id: RequestId) -> Recorder | None:
        """The recorder of the call of that request; None if it is unknown."""
        return self._calls.get(id)

"""The calls of one client that are over, so that a late message which names one can be said to be about it."""

from __future__ import annotations

from collections import OrderedDict

from ...log.context import Recorder
from ...wire.jsonrpc import RequestId

# A client that cancels too late does so for one of its latest requests.
_MOST = 100


class FinishedCalls:
    """The latest calls, by the ids of their requests; the oldest makes room."""

    def __init__(self) -> None:
        self._calls: OrderedDict[RequestId, Recorder] = OrderedDict()

    def add(self, id: RequestId, call: Recorder) -> None:
        """The call of this request is over, or became a task."""
        self._calls[id] = call
        self._calls.move_to_end(id)
        if len(self._calls) > _MOST:
            self._calls.popitem(last=False)

    def find(self, id: RequestId) -> Recorder | None:
        """The recorder of that request's call."""
        return self._calls.get(id)

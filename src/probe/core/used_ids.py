"""The request ids that a client has used in a session.

2025-11-25 basic, and the same in 2025-03-26 and 2025-06-18: "The request ID MUST NOT have been previously used by the
requestor within the same session."

The ids of a client that counts are remembered to the end of the session, as numbers in a row take one place together.
Beyond `most` places the lowest numbers are forgotten, and the strings that came first; their second use is not noticed.
No id is taken for another, so every use that is reported did happen.
"""

from __future__ import annotations

from bisect import bisect_right

from ..wire.jsonrpc import RequestId


class UsedIds:
    """The ids that one session has used: at most `most` strings and as many runs of numbers."""

    def __init__(self, most: int) -> None:
        self._most = most
        # The runs are in order and do not touch: the first number of each, and the number behind its last.
        self._firsts: list[int] = []
        self._ends: list[int] = []
        # In the order of their first use.
        self._strings: dict[str, None] = {}

    def use(self, id: RequestId) -> bool:
        """Remember an id; whether it was used before."""
        return self._use_string(id) if isinstance(id, str) else self._use_number(id)

    def _use_string(self, id: str) -> bool:
        if id in self._strings:
            return True
        self._strings[id] = None
        if len(self._strings) > self._most:
            del self._strings[next(iter(self._strings))]
        return False

    def _use_number(self, id: int) -> bool:
        if self._ends and self._ends[-1] == id:
            # Most clients count.
            self._ends[-1] += 1
            return False
        at = bisect_right(self._firsts, id)
        if at and id < self._ends[at - 1]:
            return True
        extends = at > 0 and self._ends[at - 1] == id
        meets = at < len(self._firsts) and self._firsts[at] == id + 1
        first = self._firsts[at - 1] if extends else id
        end = self._ends[at] if meets else id + 1
        replaced = slice(at - extends, at + meets)
        self._firsts[replaced], self._ends[replaced] = [first], [end]
        if len(self._firsts) > self._most:
            del self._firsts[0], self._ends[0]
        return False

"""Whether exchanges pass a filter line, for rows sent again at each change."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...log.bounded import Newest
from ...log.event_log import Entry
from .conditions import Conditions

# Exchanges changing at the same time. Beyond it, all entries of an exchange are looked at again.
_MOST: Final = 1_000


@dataclass(slots=True)
class _Looked:
    """The words found in the entries of an exchange so far."""

    found: set[int] = field(default_factory=set)
    until: int = 0


class PassingRows:
    """Judges the exchanges of one line. Each entry is looked at once."""

    def __init__(self, conditions: Conditions, entry_of: Callable[[int], Entry | None]) -> None:
        self._conditions = conditions
        self._entry_of = entry_of
        self._looked: Newest[int, _Looked] = Newest(_MOST)

    def passes(self, key: int, seqs: Sequence[int]) -> bool:
        """Whether an exchange with these entries passes."""
        looked = self._looked.get(key)
        if looked is None:
            looked = _Looked()
            self._looked.store(key, looked)
        for seq in seqs[bisect_right(seqs, looked.until) :]:
            entry = self._entry_of(seq)
            if entry is not None:
                self._conditions.look(entry, looked.found)
            looked.until = seq
        return self._conditions.passes_exchange(key, looked.found)

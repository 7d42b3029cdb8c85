"""The changes since a reader last looked: each key once, in the order of its latest change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import count, takewhile
from operator import itemgetter
from typing import Final

# Changes that are put in order together. Every call changes several times, and nobody looks in between.
_MOST_NOTED: Final = 1000


class Changes:
    """Numbers the changes of named things. At most `most` things are remembered; the one unchanged longest goes first.

    Changes are put in order together: when a reader asks, or when many are noted.
    """

    def __init__(self, most: int) -> None:
        self._versions: OrderedDict[str, int] = OrderedDict()
        self._noted: list[str] = []
        self._most = most
        self._ordered = 0
        self._lost = 0

    @property
    def version(self) -> int:
        """The number of the latest change."""
        return self._ordered + len(self._noted)

    @property
    def lost(self) -> int:
        """The version up to which something may be missing: a reader that has seen less has missed things."""
        self._order()
        return self._lost

    def note(self, name: str) -> None:
        """A thing has changed."""
        self._noted.append(name)
        if len(self._noted) >= _MOST_NOTED:
            self._order()

    def note_each(self, names: Sequence[str]) -> None:
        """These things have changed, one after the other."""
        self._noted += names
        if len(self._noted) >= _MOST_NOTED:
            self._order()

    def forget(self, name: str) -> None:
        """A thing is gone; nobody need hear of it any more."""
        self._order()
        self._versions.pop(name, None)

    def since(self, version: int) -> list[tuple[str, int]]:
        """The rows that changed after a version, the earliest change first, each with the version of its change.

        So a reader that takes only the first of them knows what it has seen.
        """
        self._order()
        newest_first = takewhile(lambda item: item[1] > version, reversed(self._versions.items()))
        return list(newest_first)[::-1]

    def _order(self) -> None:
        latest = dict(zip(self._noted, count(self._ordered + 1), strict=False))
        self._ordered += len(self._noted)
        self._noted.clear()
        versions = self._versions
        for name, version in sorted(latest.items(), key=itemgetter(1)):
            versions[name] = version
            versions.move_to_end(name)
        while len(versions) > self._most:
            self._lost = versions.popitem(last=False)[1]

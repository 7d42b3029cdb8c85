"""The changes since a reader last looked: each key once, in the order of its latest change."""

from __future__ import annotations

from collections import OrderedDict
from itertools import takewhile


class Changes:
    """Numbers the changes of named things. At most `most` things are remembered; the one unchanged longest goes first.

    `lost` is the version up to which something may be missing: a reader that has seen less has missed things.
    """

    def __init__(self, most: int) -> None:
        self._versions: OrderedDict[str, int] = OrderedDict()
        self._most = most
        self.version = 0
        self.lost = 0

    def note(self, name: str) -> None:
        """A thing has changed."""
        self.version += 1
        self._versions[name] = self.version
        self._versions.move_to_end(name)
        if len(self._versions) > self._most:
            self.lost = self._versions.popitem(last=False)[1]

    def forget(self, name: str) -> None:
        """A thing is gone; nobody need hear of it any more."""
        self._versions.pop(name, None)

    def since(self, version: int) -> list[tuple[str, int]]:
        """The rows that changed after a version, the earliest change first, each with the version of its change.

        So a reader that takes only the first of them knows what it has seen.
        """
        newest_first = takewhile(lambda item: item[1] > version, reversed(self._versions.items()))
        return list(newest_first)[::-1]

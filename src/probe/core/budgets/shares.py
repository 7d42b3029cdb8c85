"""The amounts that each client holds of what all share, and whether it may hold more.

A share is a part of a limit that holds for all clients together. The code that gives something out asks first, counts
it, and gives it back when it is over. Nothing is kept of a client that holds nothing, so the table is as bounded as the
limits are.
"""

from __future__ import annotations

from collections import Counter

from ...settings.validation import for_large

SMALL_BYTES = 64 * 1024
"""A body, message or answer of at most this size may use the last eighth of a limit in bytes."""


def has_bytes(most: int, taken: int, size: int, held: int = 0, declared: int = 0) -> bool:
    """Whether something may take `size` more bytes of a limit of which all together have `taken`.

    It has `held` of these itself, and said that it will be `declared` bytes large, if it did. The last eighth is for
    what is small: whoever fills a limit with large things, slowly and under many addresses, does not keep out those who
    send little or have little to read.
    """
    return taken + size <= (most if max(held + size, declared) <= SMALL_BYTES else for_large(most))


class Shares:
    """The amounts that are held, by kind and holder. The holder None stands for a client without a share of its own."""

    def __init__(self, part: float) -> None:
        self._part = part
        self._held: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._held)

    def most(self, total: float) -> int:
        """The share of a limit of so many: one at least."""
        return max(1, int(total * self._part))

    def held(self, kind: str, holder: str | None) -> int:
        """The amount that a holder has now."""
        return 0 if holder is None else self._held.get((kind, holder), 0)

    def has_room(self, kind: str, holder: str | None, total: float, amount: int = 1) -> bool:
        """Whether somebody may hold so much more. A holder of nothing may always have one thing, of any size."""
        held = self.held(kind, holder)
        return held == 0 or held + amount <= self.most(total)

    def take(self, kind: str, holder: str | None, amount: int = 1) -> None:
        """Count so much more for a holder."""
        if holder is not None and amount:
            self._held[kind, holder] += amount

    def give_back(self, kind: str, holder: str | None, amount: int = 1) -> None:
        """Count so much less for a holder; never more than was taken."""
        if holder is None or not amount:
            return
        left = self._held[kind, holder] - amount
        assert left >= 0, f"{holder} gives back more of {kind} than it holds"
        if left:
            self._held[kind, holder] = left
        else:
            del self._held[kind, holder]

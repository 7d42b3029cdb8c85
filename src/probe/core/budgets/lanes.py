"""The order in which lanes take turns, such that each lane gets the same share of the time.

Turns are taken in rounds, and a lane has at most one turn in a round. A short turn costs its lane one round, and a turn
of n times `SHORT_S` costs it n rounds more. So a lane whose turns are twenty times as long as another's has a twentieth
of its turns: one that wants little finds its turn at once, while one that wants much waits for itself.

* A lane that joins gets a turn in the round behind the present one, behind those that joined that round earlier. It
  cannot have one in the present round, because fresh lanes would then keep out those that have had a turn: a client
  with many addresses can make as many lanes as it likes.
* A lane keeps what it has used also while nobody waits in it. Otherwise a client that sends its next request when it
  has the answer to the last one, would come with a fresh lane each time.
* A turn costs `MOST_ROUNDS` at most: a lane must not pay long for a moment in which the machine did something else.
  This also bounds the memory, as a lane that has used much is known for that many rounds.

This is round robin by deficit (Shreedhar and Varghese, 1995), with time in place of bytes. Start-time fair queueing
measures finer, and lets a fresh lane go first.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Final

SHORT_S: Final = 0.002
"""Most turns take a quarter of it. Those that take less are equal, so that noise does not change the order."""

MOST_ROUNDS: Final = 16


class Lanes:
    """The lanes that wait for a turn. Does not know the time, nor who waits in a lane."""

    def __init__(self) -> None:
        self._round = 0
        # The round of each waiting lane, and a number that tells in which order they joined.
        self._waiting: list[tuple[int, int, Hashable]] = []
        self._numbers = count()
        # The first round in which a lane may have a turn. One before the next round says nothing.
        self._from: dict[Hashable, int] = {}
        self._swept = 0

    def __len__(self) -> int:
        """How many lanes wait."""
        return len(self._waiting)

    def join(self, lane: Hashable) -> None:
        """A lane that is not among them waits for a turn."""
        heappush(self._waiting, (max(self._round + 1, self._from.get(lane, 0)), next(self._numbers), lane))

    def take(self) -> Hashable:
        """The lane whose turn it is; it waits no more. Raises `IndexError` where none waits."""
        while True:
            at, number, lane = heappop(self._waiting)
            first = self._from.get(lane, 0)
            if first <= at:
                break
            # It has joined before the length of its last turn was known.
            heappush(self._waiting, (first, number, lane))
        self._round = at
        self._from[lane] = at + 1
        if at >= self._swept + MOST_ROUNDS:
            self._swept = at
            self._from = {known: first for known, first in self._from.items() if first > at}
        return lane

    def charge(self, lane: Hashable, seconds: float) -> None:
        """The last turn of this lane took so long."""
        rounds = min(int(seconds / SHORT_S), MOST_ROUNDS - 1)
        if rounds:
            self._from[lane] = self._round + 1 + rounds

    def forget(self) -> None:
        """Nobody has waited for a while: all lanes are equal again. Raises `ValueError` where a lane waits."""
        if self._waiting:
            raise ValueError("lanes wait")
        self._from.clear()

"""The time that a host waits before it tries again. Pure: the random number is an argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

SHORTEST_S: Final = 0.5
LONGEST_S: Final = 30.0


class Backoff:
    """Waits that double from `SHORTEST_S` to `LONGEST_S`, each shortened by chance to as little as half.

    Chance (`jitter`: 0 to 1) keeps many hosts from coming back in step when their server has been away.
    """

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._next_s = 2 * SHORTEST_S

    def wait_s(self) -> float:
        """The next wait, in seconds."""
        longest, self._next_s = self._next_s, min(LONGEST_S, 2 * self._next_s)
        return longest * (1 + self._jitter()) / 2

    def reset(self) -> None:
        """Begin with short waits again: the attempt was successful."""
        self._next_s = 2 * SHORTEST_S

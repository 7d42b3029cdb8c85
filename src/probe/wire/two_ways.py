"""The comparison of an exchange on two ways to one server: direct, and through a gateway.

The checks of a gateway ask it which headers are lost, which ids differ, and which messages are late.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

OF_THE_WAY: Final = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "user-agent"}
)
"""Headers of one connection, and headers with other values on each way, such as user-agent; lower case."""

LEAST_S: Final = 0.1
TIMES: Final = 5.0


def lost(ours: Iterable[str], theirs: Iterable[str]) -> list[str]:
    """The headers, by their names in lower case, that a request has on one way and lacks on the other."""
    return sorted(set(ours) - set(theirs) - OF_THE_WAY)


def is_same_id(one: Any, other: Any) -> bool:
    """True if two ids or progress tokens are equal and of one JSON type."""
    return type(one) is type(other) and bool(one == other)


def is_late(through: float, direct: float, least: float = LEAST_S) -> bool:
    """True if a time in seconds is too long beside the same on the direct way: max(100 ms, 5 times that)."""
    return through > max(least, TIMES * direct)


def ms(seconds: float) -> str:
    """A time as people read it."""
    return f"{seconds * 1000:.0f} ms" if abs(seconds) < 10 else f"{seconds:.1f} s"

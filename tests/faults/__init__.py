"""Connections that break anywhere, thousands of times, and what clients of draft streams must have in the end.

A story is random and known by its seed: `pytest tests/faults -k 'lines-17'` tells it again. In memory it is the same to
the byte; over sockets the system decides what it splits where.
"""

from __future__ import annotations

from hypothesis import settings

_QUICK = 60


def seeds(count: int) -> range:
    """So many stories; as many times more as the profile of tests/properties has more examples, up to ten times."""
    return range(count * min(10, max(1, settings().max_examples // _QUICK)))

"""The answers of the feed beside entries and rows, as types. Apart from those of the pages, for a faster start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FeedReader:
    """A reader of the feed: the time of its start, the entry it has reached, and the number of entries it is behind."""

    since: float
    position: int
    behind: int


@dataclass(frozen=True, slots=True)
class FeedHello:
    """First on every connection of the feed. `resumed`: it continues directly after the given id."""

    run: str
    version: str
    started_at: float
    first: int
    last: int
    resumed: bool


@dataclass(frozen=True, slots=True)
class FeedGap:
    """Entries that this reader of the feed does not get; null if their numbers are unknown."""

    reason: Literal["evicted", "skipped", "restarted"]
    first: int | None
    last: int | None

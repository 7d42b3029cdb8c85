"""The answers of the feed beside entries and rows, as types. Those of the pages would be loaded with each start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FeedReader:
    """A reader of the feed: since when, the entry it has reached, and how many it is behind the newest."""

    since: float
    position: int
    behind: int


@dataclass(frozen=True, slots=True)
class FeedHello:
    """First on every connection of the feed. `resumed`: it goes on right behind the id that was given."""

    run: str
    version: str
    started_at: float
    first: int
    last: int
    resumed: bool


@dataclass(frozen=True, slots=True)
class FeedGap:
    """Entries that this reader of the feed does not get; null where nothing is known of what came between."""

    reason: Literal["evicted", "skipped", "restarted"]
    first: int | None
    last: int | None

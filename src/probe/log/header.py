"""The first and the last line of a log that is written down: what it is of, and where it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Why: TypeAlias = Literal["complete", "filtered"]
"""Whether each number up to the end is that of an entry or in a gap, or only what was asked for was written."""


@dataclass(frozen=True, slots=True)
class Header:
    """The origin of a log. `started_at` is seconds since the epoch, `program` the version of the server.

    `settings` are those that rules about clients need (`ndjson.settings_for_rules`); `catalogue` is the version of
    these rules where the log was written for them.
    """

    run: str
    program: str
    started_at: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    catalogue: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The last line: the file tells of the numbers up to `last`."""

    last: int
    why: Why = "complete"

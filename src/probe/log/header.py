"""The first and the last line of a saved log: its origin and its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Why: TypeAlias = Literal["complete", "filtered"]
"""`complete`: each number up to the end is an entry or in a gap.

`filtered`: only the entries asked for were written.
"""


@dataclass(frozen=True, slots=True)
class Header:
    """The origin of a log. `started_at` is seconds since the epoch, `program` the version of the server.

    `settings` are those needed by the rules about clients (`ndjson.settings_for_rules`). `catalogue` is the version of
    these rules if the log was written for them.
    """

    run: str
    program: str
    started_at: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    catalogue: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The last line: the file covers the numbers up to `last`."""

    last: int
    why: Why = "complete"

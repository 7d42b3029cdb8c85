"""The interface to the kept calls: queries and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ...views.search.call_filter import CallFilter


class CursorError(ValueError):
    """The cursor is not one of this server."""


class AuditUnreadableError(Exception):
    """The file cannot be read now, or not in time; the message has the reason."""


@dataclass(frozen=True, slots=True)
class CallRows:
    """Rows in JSON, the newest first. `next` is the cursor of the next page, None at the end.

    A page may be short, even empty, if a filter passes few rows.
    """

    rows: list[bytes]
    next: str | None


@dataclass(frozen=True, slots=True)
class CallWithEvidence:
    """A row in JSON, and the log's entries of its call; not `complete` if there were more.

    `tag` differs if any of these differs.
    """

    row: bytes
    complete: bool
    events: list[bytes]
    tag: str


class CallStore(Protocol):
    """Answers queries for tool calls."""

    async def page(self, wanted: CallFilter, cursor: str | None, limit: int, max_bytes: int) -> CallRows:
        """At most `limit` rows that pass the filter, newest first, from a cursor on.

        `max_bytes` ends the page early, but never before its first row. Raises `CursorError` and
        `AuditUnreadableError`.
        """

    async def get(self, id: str, max_bytes: int) -> CallWithEvidence | None:
        """One call by its id, such as `RUN.c7`, or `c7` for this run; evidence up to `max_bytes`. None if unknown.

        Raises `AuditUnreadableError`.
        """

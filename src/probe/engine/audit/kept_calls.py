"""The calls that are kept: the questions for them and the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ...views.call_filter import CallFilter


class CursorError(ValueError):
    """A cursor is none that this server has given."""


class AuditUnreadableError(Exception):
    """The file cannot be read now, or not in time; the message says why."""


@dataclass(frozen=True, slots=True)
class CallRows:
    """Rows in JSON, the newest first. `next` is the cursor of the next page, None at the end.

    A page may be short, even empty, when a filter passes little.
    """

    rows: list[bytes]
    next: str | None


@dataclass(frozen=True, slots=True)
class CallWithEvidence:
    """A row in JSON, and the entries of the log that belong to it; not `complete` where there were more.

    `tag` is another one where anything of it is.
    """

    row: bytes
    complete: bool
    events: list[bytes]
    tag: str


class CallStore(Protocol):
    """Answers questions about tool calls."""

    async def page(self, wanted: CallFilter, cursor: str | None, limit: int, max_bytes: int) -> CallRows:
        """At most `limit` rows that pass, newest first, from a cursor on.

        `max_bytes` ends the page early, but never before its first row. Raises `CursorError` and
        `AuditUnreadableError`.
        """

    async def get(self, id: str, max_bytes: int) -> CallWithEvidence | None:
        """One call by its id, whole or without the run where it is of this one; evidence up to `max_bytes`.

        Raises `AuditUnreadableError`.
        """

"""The rows of one table of the dashboard, and which of them have changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from .changes import Changes

# Rows of each table, over and its open ones included: as many as a page can show and a person can scroll through.
_MOST_ROWS: Final = 2000

_Row = TypeVar("_Row")


@dataclass(slots=True)
class Table(Generic[_Row]):
    """Rows by their id, the newest last; the oldest makes room, of those that may go where there is one."""

    rows: OrderedDict[str, _Row] = field(default_factory=OrderedDict)
    changes: Changes = field(default_factory=lambda: Changes(_MOST_ROWS))
    may_go: Callable[[_Row], bool] = lambda row: True

    def add(self, id: str, row: _Row) -> _Row | None:
        """Take a new row. Returns the one that made room, if any."""
        self.rows[id] = row
        self.changes.note(id)
        if len(self.rows) <= _MOST_ROWS:
            return None
        oldest = next((id for id, row in self.rows.items() if self.may_go(row)), next(iter(self.rows)))
        self.changes.forget(oldest)
        return self.rows.pop(oldest)

    def changed(self, id: str) -> _Row | None:
        """The row, which is about to change."""
        row = self.rows.get(id)
        if row is not None:
            self.changes.note(id)
        return row

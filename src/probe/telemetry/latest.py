"""A dictionary of the newest things of one kind."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Latest(OrderedDict[Key, Value], Generic[Key, Value]):
    """At most `most` of them; `put` gives back the value that made room, None where there was room."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def put(self, key: Key, value: Value) -> Value | None:
        """Add one, as the newest."""
        self[key] = value
        self.move_to_end(key)
        return self.popitem(last=False)[1] if len(self) > self._most else None

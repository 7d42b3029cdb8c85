"""A mapping that keeps its newest items."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Newest(OrderedDict[_Key, _Value], Generic[_Key, _Value]):
    """At most `most` items; the one that was stored longest ago makes room for a new one."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def store(self, key: _Key, value: _Value) -> None:
        """Add or replace an item, which is the newest then."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)

"""A mapping that keeps its newest items."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

# More than a piece of 100 entries can add.
_MOST_SWEPT = 120


class Newest(OrderedDict[_Key, _Value], Generic[_Key, _Value]):
    """At most `most` items; the one that was stored longest ago makes room for a new one."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        self._most = most

    @property
    def is_full(self) -> bool:
        """Whether the next new item makes another one fall out, as some may have already."""
        return len(self) >= self._most

    def store(self, key: _Key, value: _Value) -> _Value | None:
        """Add or replace an item, which is the newest then. Returns the value that made room, if one did."""
        if key in self:
            self.move_to_end(key)
        self[key] = value
        return self.popitem(last=False)[1] if len(self) > self._most else None

    def sweep(self, is_old: Callable[[_Value], bool], is_over: Callable[[_Value], bool]) -> list[_Value]:
        """Take out those at the front that are old and over. What is old and not over goes to the end.

        At most 120 are looked at: many that last must not be looked at again and again.
        """
        gone = list[_Value]()
        for _ in range(min(len(self), _MOST_SWEPT)):
            key = next(iter(self))
            value = self[key]
            if not is_old(value):
                break
            if is_over(value):
                del self[key]
                gone.append(value)
            else:
                self.move_to_end(key)
        return gone

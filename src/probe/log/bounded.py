"""A mapping that keeps its newest items."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

SWEPT = 120
"""Items looked at in one sweep: more than a piece of 100 entries can add."""


class Newest(OrderedDict[_Key, _Value], Generic[_Key, _Value]):
    """At most `most` items; the one that was stored longest ago makes room for a new one."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        self._most = most

    @property
    def is_full(self) -> bool:
        """True if the next new item removes another one, or some have been removed already."""
        return len(self) >= self._most

    def store(self, key: _Key, value: _Value) -> _Value | None:
        """Add or replace an item; it is the newest then. Returns the value removed to make room."""
        if key in self:
            self.move_to_end(key)
        self[key] = value
        return self.popitem(last=False)[1] if len(self) > self._most else None

    def sweep(
        self, is_old: Callable[[_Value], bool], is_over: Callable[[_Value], bool], most: int | None = None
    ) -> list[_Value]:
        """Remove the old items at the front that are over; where there are more than `most`, the others, too.

        Old items that stay go to the end. Each call looks at `SWEPT` at most, so that many lasting items are not looked
        at again and again.
        """
        gone = list[_Value]()
        for _ in range(min(len(self), SWEPT)):
            key = next(iter(self))
            value = self[key]
            if not is_old(value):
                break
            if is_over(value) or (most is not None and len(self) > most):
                del self[key]
                gone.append(value)
            else:
                self.move_to_end(key)
        return gone

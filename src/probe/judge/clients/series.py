"""Views in the order of their time, found by a window of it, and the kinds of opportunity (`opportunities.py`)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from ..retention import BOUNDS

View = TypeVar("View")
Found: TypeAlias = Literal["all", "by method", "never"]

ALWAYS: Final = float("inf")
NEVER: Final = float("-inf")


class Series(Generic[View]):
    """The newest views of one kind. `forgot` is the time of the newest that made room, `NEVER` where none did.

    A window is half-open: `[since, until)`.
    """

    __slots__ = ("_firsts", "_full", "_gone", "forgot", "times", "views")

    def __init__(self) -> None:
        self.times: list[float] = []
        self.views: list[View] = []
        self.forgot = NEVER
        self._full = 2 * BOUNDS.views
        # How many have made room, and for each function how many it was asked about, and what it found when.
        self._gone = 0
        self._firsts: dict[Callable[[View], bool], tuple[int, tuple[float, View] | None]] = {}

    def add(self, at: float, view: View) -> None:
        """One more, not earlier than the one before."""
        self.times.append(at)
        self.views.append(view)
        # Half of them at once, as a list moves all that stays.
        if len(self.times) > self._full:
            self._forget(self._full // 2)

    def forget_before(self, at: float) -> None:
        """Let go of the views before a time, but not of the newest `left`."""
        spare = len(self.times) - BOUNDS.left
        if spare > 0:
            self._forget(min(spare, bisect_left(self.times, at)))

    def _forget(self, oldest: int) -> None:
        if oldest:
            self.forgot = self.times[oldest - 1]
            self._gone += oldest
            del self.times[:oldest]
            del self.views[:oldest]

    def between(self, since: float, until: float, most: int | None = None) -> Sequence[View]:
        """The views of a window, oldest first; at most so many."""
        first = 0 if since == NEVER else bisect_left(self.times, since)
        last = len(self.times) if until == ALWAYS else bisect_left(self.times, until)
        return self.views[first : last if most is None else min(last, first + most)]

    def newest(self, until: float, most: int) -> Sequence[View]:
        """At most so many views before a time, oldest first."""
        last = bisect_left(self.times, until)
        return self.views[max(0, last - most) : last]

    def last_before(self, until: float) -> View | None:
        place = bisect_left(self.times, until)
        return self.views[place - 1] if place else None

    def has(self, since: float, until: float) -> bool:
        place = bisect_left(self.times, since)
        return place < len(self.times) and self.times[place] < until

    def first(self, where: Callable[[View], bool], until: float) -> View | None:
        """The first view for which a function is true, where that is before a time. It is called once for each."""
        asked, found = self._firsts.get(where, (0, None))
        if found is None:
            start = max(0, asked - self._gone)
            new = zip(self.times[start:], self.views[start:], strict=True)
            found = next(((at, view) for at, view in new if where(view)), None)
            self._firsts[where] = self._gone + len(self.views), found
        return found[1] if found is not None and found[0] < until else None


class Kind(Generic[View]):
    """A kind of opportunity, by its name; `View` is what a rule gets.

    Each view of a kind is also one of the kind that it is `within`; the functions of that are asked first. One that is
    `remembered` narrows other functions: `@rule(..., after=CONTROL)`.

    Rules about messages (`about_messages`) are asked only at the revisions and transports that they are for. Of one
    that is `about_exchanges` the methods are those of HTTP. `found` are the views that queries of a trace find, and
    `in_scope` those that they find in one scope: most views of each log are of kinds without a query. `methods` are
    those that functions and queries may name, None for any.
    """

    __slots__ = ("about_exchanges", "about_messages", "found", "in_scope", "methods", "name", "remembered", "within")

    def __init__(
        self,
        name: str,
        *,
        about_messages: bool = False,
        about_exchanges: bool = False,
        found: Found = "all",
        in_scope: Found = "never",
        methods: Collection[str] | None = None,
        remembered: bool = False,
        within: Kind[View] | None = None,
    ) -> None:
        self.name = name
        self.found = found
        self.in_scope = in_scope
        self.methods = methods
        self.remembered = remembered
        self.within = within
        self.about_messages = about_messages
        self.about_exchanges = about_exchanges

    def __repr__(self) -> str:
        return self.name

    def is_found(self, method: str | None, found: Found) -> bool:
        """True if queries find views of a method, or all views for None, where they find `found`."""
        if method is None:
            return found == "all"
        return found != "never" and (self.methods is None or method in self.methods)

"""Rules that were too early, until their time or the end of their view comes."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count
from typing import Any, Final, TypeAlias

from msgspec import Struct

from ...log import events
from ...log.event_log import Entry
from ...views.fold import Views
from ..clients.series import ALWAYS
from ..rules.catalogue import Rule
from .finder import Opportunity
from .findings import TooEarly
from .rules import RuleFunction

ENDINGS: Final = frozenset({events.HttpClosed, events.SessionClosed, events.ConnectionClosed, events.SocketClosed})
"""The kinds of entries that end something that a rule can wait for."""

_Turn: TypeAlias = tuple[int, "Waiting"]


class Waiting(Struct, eq=False):
    """A rule that was too early about an opportunity, and is asked again when it is `due`, or one of `views` ends.

    `turn` counts how often that was said anew; an older turn is over.
    """

    function: RuleFunction
    rule: Rule
    found: Opportunity
    turn: int = 0
    due: float = ALWAYS
    views: tuple[Any, ...] = ()


class Waits:
    """All rules that wait, in the order in which they began to."""

    def __init__(self) -> None:
        self._all: dict[Waiting, None] = {}
        # By the time at which they are asked again, and by the identity of the view that they wait for.
        self._due: list[tuple[float, int, int, Waiting]] = []
        self._by_view: dict[int, tuple[Any, list[_Turn]]] = {}
        self._ended: dict[int, None] = {}
        self._numbers = count()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all)

    def add(
        self, function: RuleFunction, rule: Rule, found: Opportunity, early: TooEarly, waiting: Waiting | None
    ) -> None:
        """A rule was too early, once more where it was `waiting`."""
        if waiting is None:
            waiting = Waiting(function, rule, found)
            self._all[waiting] = None
        due = ALWAYS if early.at is None else early.at
        if waiting.turn and due == waiting.due and early.views == waiting.views:
            return  # it was asked before its time
        waiting.turn += 1
        waiting.due, waiting.views = due, early.views
        if early.at is not None:
            heapq.heappush(self._due, (early.at, next(self._numbers), waiting.turn, waiting))
        for view in early.views:
            self._by_view.setdefault(id(view), (view, []))[1].append((waiting.turn, waiting))

    def stop(self, waiting: Waiting) -> None:
        """A rule waits no more."""
        waiting.turn = 0
        del self._all[waiting]

    def _note(self, view: Any) -> None:
        if id(view) in self._by_view:
            self._ended[id(view)] = None

    def touch(self, entry: Entry, views: Views) -> None:
        """Note which of the views that rules wait for an entry of `ENDINGS` ends."""
        if self._by_view:
            context = entry.context
            self._note(views.exchanges.get(context.exchange or 0))
            self._note(views.sessions.get(context.session or ""))
            self._note(views.connections.get(context.connection or ""))

    def ready(self, now: float) -> Sequence[Waiting]:
        """Those whose time or view has come since they were last asked for."""
        ready: dict[Waiting, None] = {}
        for key in self._ended:
            for turn, waiting in self._by_view.pop(key, (None, []))[1]:
                if turn == waiting.turn:
                    ready[waiting] = None
        self._ended.clear()
        while self._due and self._due[0][0] <= now:
            _, _, turn, waiting = heapq.heappop(self._due)
            if turn == waiting.turn:
                ready[waiting] = None
        for waiting in ready:
            waiting.due, waiting.views = min(waiting.due, now), ()
        return list(ready)

    def left(self) -> Sequence[Waiting]:
        """All that still wait, the general ones last."""
        return sorted(self._all, key=lambda waiting: waiting.function.general)

    def holds(self, waiting: Waiting) -> bool:
        """True if it still waits."""
        return waiting in self._all

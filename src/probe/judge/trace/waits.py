"""Rules that were too early, until their time or the end of their view comes."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count, islice
from typing import Any, Final

from msgspec import Struct

from ...log import events
from ...log.event_log import Entry
from ...views.fold import Views
from ..clients.series import ALWAYS
from ..clients.subject import Subject
from ..retention import BOUNDS
from ..rules.catalogue import Rule
from .finder import Opportunity
from .findings import TooEarly
from .rules import RuleFunction

ENDINGS: Final = frozenset({events.HttpClosed, events.SessionClosed, events.ConnectionClosed, events.SocketClosed})
"""The kinds of entries that end something that a rule can wait for."""

GIVEN_UP: Final = f"too many decisions waited: {BOUNDS.places:,} are kept of a client, {BOUNDS.waiting:,} of all"


class Waiting(Struct, eq=False):
    """A rule that was too early about an opportunity: asked again when it is `due`, or one of `views` ends.

    `turn` counts how often it was too early; an older turn is over.
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
        self._of: dict[Subject, dict[Waiting, None]] = {}
        # By the time at which they are asked again, and by the identity of the view that they wait for.
        self._due: list[tuple[float, int, int, Waiting]] = []
        self._by_view: dict[int, tuple[Any, dict[Waiting, None]]] = {}
        self._ended: dict[int, None] = {}
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._all)

    def add(
        self, function: RuleFunction, rule: Rule, found: Opportunity, early: TooEarly, waiting: Waiting | None
    ) -> None:
        """A rule was too early, once more where it was `waiting`."""
        if waiting is None:
            waiting = Waiting(function, rule, found)
            self._all[waiting] = None
            self._of.setdefault(found[0], {})[waiting] = None
        due = ALWAYS if early.at is None else early.at
        if waiting.turn and due == waiting.due and early.views == waiting.views:
            return  # it was asked before its time
        self._leave(waiting)
        waiting.turn += 1
        waiting.due, waiting.views = due, early.views
        if early.at is not None:
            self._push(early.at, waiting)
        for view in early.views:
            self._by_view.setdefault(id(view), (view, {}))[1][waiting] = None

    def stop(self, waiting: Waiting) -> None:
        self._leave(waiting)
        waiting.turn = 0
        del self._all[waiting]
        subject = waiting.found[0]
        of_client = self._of[subject]
        del of_client[waiting]
        if not of_client:
            del self._of[subject]

    def forget(self, subject: Subject) -> None:
        for waiting in list(self._of.get(subject, ())):
            self.stop(waiting)

    def _leave(self, waiting: Waiting) -> None:
        for view in waiting.views:
            _, waits = self._by_view.get(id(view), (None, {}))
            waits.pop(waiting, None)
            if not waits:
                self._by_view.pop(id(view), None)
        waiting.views = ()

    def _push(self, at: float, waiting: Waiting) -> None:
        # Turns that are over leave the heap at their time; where they are most of it, at once.
        if len(self._due) > 2 * len(self._all) + 100:
            self._due = [each for each in self._due if each[2] == each[3].turn]
            heapq.heapify(self._due)
        heapq.heappush(self._due, (at, next(self._numbers), waiting.turn, waiting))

    def _note(self, view: Any) -> None:
        if id(view) in self._by_view:
            self._ended[id(view)] = None

    def touch(self, entry: Entry, views: Views) -> None:
        """Note which views that rules wait for are ended by an entry of `ENDINGS`."""
        if self._by_view:
            context = entry.context
            self._note(views.exchanges.get(context.exchange or 0))
            self._note(views.sessions.get(context.session or ""))
            self._note(views.connections.get(context.connection or ""))

    def ready(self, now: float) -> Sequence[Waiting]:
        """The rules that are due, or wait for a view that has ended."""
        ready: dict[Waiting, None] = {}
        for key in self._ended:
            ready.update(self._by_view.get(key, (None, {}))[1])
        self._ended.clear()
        while self._due and self._due[0][0] <= now:
            _, _, turn, waiting = heapq.heappop(self._due)
            if turn == waiting.turn:
                ready[waiting] = None
        for waiting in ready:
            self._leave(waiting)
            waiting.due = min(waiting.due, now)
        return list(ready)

    def beyond(self) -> Sequence[Waiting]:
        """The oldest of each client, where more wait than are kept of it."""
        if len(self._all) <= BOUNDS.places:
            return ()
        most = BOUNDS.places
        if len(self._all) > BOUNDS.waiting:
            most = min(most, max(1, BOUNDS.waiting // len(self._of)))
        return [each for waits in self._of.values() for each in islice(waits, max(0, len(waits) - most))]

    def left(self) -> Sequence[Waiting]:
        return sorted(self._all, key=lambda waiting: waiting.function.general)

    def holds(self, waiting: Waiting) -> bool:
        return waiting in self._all

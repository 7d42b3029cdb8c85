"""The number of kept entries in each group. They are counted when a reader asks."""

from __future__ import annotations

from collections import Counter, deque
from typing import Final, Literal, TypeAlias

from ...log.event_filter import direction_of
from ...log.event_log import Entry, EventLog
from ...log.events import AnyEvent
from .groups import Group, groups_of
from .problems import Problem, problem_of
from .rows import CountsRow

LOG: Final = "log"
"""The id of the only row."""

_Name: TypeAlias = Group | Literal["received", "sent"]
_WAYS: Final[dict[str, _Name]] = {"in": "received", "out": "sent"}


# Entries that are read from the log at once.
_PIECE: Final = 1000


class LogCounts:
    """The counts of one log, up to the last entry asked for."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._position = 0
        # One for each kept and counted entry; entries share the few different sets.
        self._kept: deque[tuple[int, frozenset[_Name]]] = deque()
        self._shared: dict[frozenset[_Name], frozenset[_Name]] = {}
        self._counts: Counter[_Name] = Counter()
        # The entries that are problems, with the number of their exchange; below zero for an entry without one.
        self._problems: deque[tuple[int, Problem, int]] = deque()
        self._in_exchange: Counter[tuple[Problem, int]] = Counter()
        self._exchanges: Counter[Problem] = Counter()

    def _forget_before(self, first: int) -> None:
        while self._kept and self._kept[0][0] < first:
            self._counts.subtract(self._kept.popleft()[1])
        while self._problems and self._problems[0][0] < first:
            self._forget_problem(*self._problems.popleft()[1:])

    def row(self, last: int) -> CountsRow | None:
        """The counts of the kept entries up to `last`; None without any."""
        while self._position < last:
            page = self._log.since(self._position, min(_PIECE, last - self._position))
            for entry in page.entries:
                self._count(entry)
            self._position = page.next
        self._forget_before(self._log.first)
        if not self._kept:
            return None
        counts = self._counts
        return CountsRow(
            id=LOG,
            first=self._kept[0][0],
            last=self._kept[-1][0],
            entries=len(self._kept),
            received=counts["received"],
            sent=counts["sent"],
            deliveries=counts["deliveries"],
            messages=counts["messages"],
            http=counts["http"],
            calls=counts["calls"],
            tasks=counts["tasks"],
            streams=counts["streams"],
            sessions=counts["sessions"],
            hosts=counts["hosts"],
            server=counts["server"],
            problems=counts["problems"],
            mistakes=self._exchanges["mistake"],
            asked=self._exchanges["asked"],
            lost=self._exchanges["lost"],
            limits=self._exchanges["limit"],
            others=self._exchanges["other"],
        )

    def _count(self, entry: Entry) -> None:
        names = _names(entry.fact)
        self._kept.append((entry.seq, self._shared.setdefault(names, names)))
        self._counts.update(names)
        problem = problem_of(entry.fact) if "problems" in names else None
        if problem is not None:
            exchange = entry.context.exchange
            where = -entry.seq if exchange is None else exchange
            self._problems.append((entry.seq, problem, where))
            self._in_exchange[problem, where] += 1
            self._exchanges[problem] += self._in_exchange[problem, where] == 1

    def _forget_problem(self, problem: Problem, where: int) -> None:
        self._in_exchange[problem, where] -= 1
        if not self._in_exchange[problem, where]:
            del self._in_exchange[problem, where]
            self._exchanges[problem] -= 1


def _names(event: AnyEvent) -> frozenset[_Name]:
    groups, way = groups_of(event), direction_of(event)
    return groups if way is None or "deliveries" in groups else groups | {_WAYS[way]}

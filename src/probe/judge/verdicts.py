"""The verdict of one rule about one subject, and how observations add up to it.

    FAIL > WARN > INCONCLUSIVE > PASS > NOT_OBSERVED

The verdict of a rule is the worst of its opportunities, so a FAIL stays one whatever comes later. NOT_OBSERVED is never
counted as good. An opportunity that the client's end has cut is INCONCLUSIVE, and never outweighs a PASS. Evidence
stands in the order of the log, so a living log and a saved one show the same.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, TypeAlias

from .retention import BOUNDS
from .trace.findings import Seen


class Verdict(IntEnum):
    """Ordered: the worst is the greatest."""

    NOT_OBSERVED = 0
    PASS = 1
    INCONCLUSIVE = 2
    WARN = 3
    FAIL = 4


# Each verdict keeps its first places, and its last where it is no PASS: a client that repeats a fault has no use for
# the thousandth one.
_FIRST: Final = 3
# Beyond all places: as long as the first ones are not known.
_UNKNOWN: Final = 2**63


@dataclass(frozen=True, slots=True, order=True)
class VerdictEvidence:
    """The entries of the log that one opportunity rests on, the oldest first, and a remark."""

    verdict: Verdict
    seqs: tuple[int, ...]
    remark: str = ""


_Placed: TypeAlias = tuple[int, tuple[int, ...], str]
"""The entry that an opportunity is about, the numbers of all entries that show it, and the remark."""


class _Opportunities:
    """The opportunities of one verdict: how many, the first ones, and the last one where there are more.

    An opportunity with a place beyond `known` is none of the first ones.
    """

    __slots__ = ("count", "first", "known", "last")

    def __init__(self) -> None:
        self.count = 0
        self.first: list[_Placed] = []
        self.last: _Placed | None = None
        self.known = _UNKNOWN

    def keep(self, placed: _Placed) -> _Placed | None:
        """Keep one of the first ones; returns the one that makes room."""
        insort(self.first, placed)
        over = self.first.pop() if len(self.first) > _FIRST else None
        if len(self.first) == _FIRST:
            self.known = self.first[-1][0]
        return over

    def add(self, placed: _Placed) -> None:
        self.count += 1
        over = self.keep(placed) if placed[0] <= self.known else placed
        if over is not None and (self.last is None or over > self.last):
            self.last = over


class RuleTally:
    """The opportunities of one rule and one subject, in bounded memory.

    `measured` are values by name. `breaches` are the numbers of the first 1,000 entries that break the rule, without
    those that only show it, such as the request that had the id before.
    """

    __slots__ = ("_at", "_cut", "_others", "_passed", "breaches", "measured")

    def __init__(self) -> None:
        self._passed = _Opportunities()
        # Those of each other verdict, and those that an end has cut.
        self._others: dict[Verdict, _Opportunities] = {}
        self._cut: _Opportunities | None = None
        self._at: dict[str, Verdict] = {}
        self.measured: dict[str, Any] = {}
        self.breaches: list[int] = []

    def add_pass(
        self, place: int, revision: str | None, shown_by: Collection[Seen | int] = (), remark: str = ""
    ) -> None:
        """One more PASS about the entry `place`. `revision` is that of the protocol where it is known."""
        passed = self._passed
        passed.count += 1
        if place <= passed.known:
            passed.keep((place, _numbers(place, shown_by), remark))
        if revision is not None and revision not in self._at:
            self._at[revision] = Verdict.PASS

    def add_passes(self, seen: _Opportunities, revision: str | None) -> None:
        """Several PASSes at once."""
        passed = self._passed
        passed.count += seen.count
        for placed in seen.first:
            passed.keep(placed)
        if revision is not None and revision not in self._at:
            self._at[revision] = Verdict.PASS

    def add(
        self, verdict: Verdict, place: int, revision: str | None, shown_by: Collection[Seen | int], remark: str
    ) -> None:
        """One more opportunity with any other verdict."""
        if verdict >= Verdict.WARN and len(self.breaches) < BOUNDS.places:
            self.breaches.append(place)
        others = self._others.get(verdict)
        if others is None:
            others = self._others[verdict] = _Opportunities()
        others.add((place, _numbers(place, shown_by), remark))
        if revision is not None and self._at.get(revision, -1) < verdict:
            self._at[revision] = verdict

    def add_cut(self, place: int, shown_by: Collection[Seen | int], remark: str) -> None:
        """An opportunity that an end has cut is INCONCLUSIVE, and counts only where nothing else was observed."""
        if self._cut is None:
            self._cut = _Opportunities()
        self._cut.add((place, _numbers(place, shown_by), remark))

    @property
    def has_passed(self) -> bool:
        """True after the first PASS."""
        return self._passed.count > 0

    @property
    def _observed(self) -> Mapping[Verdict, _Opportunities]:
        found = {verdict: self._others[verdict] for verdict in sorted(self._others, reverse=True)}
        if self._passed.count:
            found[Verdict.PASS] = self._passed
        return found or ({Verdict.INCONCLUSIVE: self._cut} if self._cut is not None else {})

    @property
    def at(self) -> Mapping[str, Verdict]:
        return self._at

    @property
    def verdict(self) -> Verdict:
        return max(self._observed, default=Verdict.NOT_OBSERVED)

    @property
    def counts(self) -> Mapping[Verdict, int]:
        return {verdict: seen.count for verdict, seen in self._observed.items()}

    @property
    def evidence(self) -> tuple[VerdictEvidence, ...]:
        """The first and the last opportunities of each verdict, the worst verdict first."""
        return tuple(
            VerdictEvidence(verdict, seqs, remark)
            for verdict, seen in self._observed.items()
            for _, seqs, remark in (*seen.first, *([] if seen.last is None else [seen.last]))
        )


class Passes:
    """PASSes that show nothing but their opportunity, not yet in the tallies: one count for the rules of each.

    Most findings are these. A call has some twenty, and most clients make room before a person asks for their tallies.
    """

    __slots__ = ("_counts", "_tallies")

    def __init__(self, tallies: Mapping[str, RuleTally]) -> None:
        self._tallies = tallies
        self._counts: dict[tuple[tuple[str, ...], str | None], _Opportunities] = {}

    def add(self, rules: tuple[str, ...], place: int, revision: str | None) -> None:
        """The opportunity at an entry is a PASS of each of some rules."""
        seen = self._counts.get((rules, revision))
        if seen is None:
            if len(self._counts) >= BOUNDS.parts:
                self.settle()
            seen = self._counts[rules, revision] = _Opportunities()
        seen.count += 1
        if place <= seen.known:
            seen.keep((place, (place,), ""))

    def settle(self) -> None:
        """Bring them into the tallies."""
        for (rules, revision), seen in self._counts.items():
            for rule in rules:
                self._tallies[rule].add_passes(seen, revision)
        self._counts.clear()


def _numbers(place: int, shown_by: Collection[Seen | int]) -> tuple[int, ...]:
    if not shown_by:
        return (place,)
    return tuple(sorted({place, *(each if isinstance(each, int) else each.seq for each in shown_by)}))

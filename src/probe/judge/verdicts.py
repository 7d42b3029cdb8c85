"""The verdict of one rule about one subject, and how observations add up to it.

    FAIL > WARN > INCONCLUSIVE > PASS > NOT_OBSERVED

A rule collects opportunities, each with a verdict. The verdict of the rule is the worst of them, so a FAIL stays one
whatever comes later. NOT_OBSERVED says that no opportunity came; it is never counted as good. An opportunity that the
client's end has cut is INCONCLUSIVE, and never outweighs a PASS. Evidence stands in the order of the log, whenever it
was found: a living log and a saved one show the same.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, TypeAlias


class Verdict(IntEnum):
    """Ordered: the worst is the greatest."""

    NOT_OBSERVED = 0
    PASS = 1
    INCONCLUSIVE = 2
    WARN = 3
    FAIL = 4


# Each verdict keeps its first places and its last: a client that repeats a fault has no use for the thousandth one.
_FIRST: Final = 3
# Entries that break one rule and are marked in a list: a page shows no more of them at a time.
_MOST_BREACHES: Final = 1_000


@dataclass(frozen=True, slots=True, order=True)
class VerdictEvidence:
    """The entries of the log that one opportunity rests on, the oldest first, and what to say about them."""

    verdict: Verdict
    seqs: tuple[int, ...]
    remark: str = ""


_Placed: TypeAlias = tuple[int, VerdictEvidence]
"""Evidence, and the number of the entry that it is about."""


@dataclass(slots=True)
class _Seen:
    """The opportunities of one verdict: how many, the first ones, and the last one where there are more."""

    count: int = 0
    first: list[_Placed] = field(default_factory=list)
    last: _Placed | None = None

    def is_known(self, place: int) -> bool:
        """True if the first ones are known, and all come before a place."""
        return len(self.first) == _FIRST and self.first[-1][0] < place

    def note(self, place: int, evidence: VerdictEvidence) -> None:
        """Count one more."""
        self.count += 1
        insort(self.first, (place, evidence))
        if len(self.first) > _FIRST:
            over = self.first.pop()
            # The hundredth PASS tells nothing that the first three do not.
            if evidence.verdict is not Verdict.PASS and (self.last is None or over > self.last):
                self.last = over


class RuleTally:
    """The opportunities of one rule and one subject, in bounded memory.

    `measured` are values that a rule has found, by name. `breaches` are the numbers of the entries that break it, the
    first 1,000: not those beside them that only show it, such as the request whose id was used again.
    """

    __slots__ = ("_at", "_cut", "_passed", "_seen", "breaches", "measured")

    def __init__(self) -> None:
        self._seen: dict[Verdict, _Seen] = {}
        self._passed: _Seen | None = None
        # The opportunities that an end has cut.
        self._cut = _Seen()
        self._at: dict[str, Verdict] = {}
        self.measured: dict[str, Any] = {}
        self.breaches: list[int] = []

    def pass_again(self, revision: str | None, place: int) -> bool:
        """Count one more PASS that would leave no other trace; False where it must be added, as it would.

        Most of all opportunities are of this kind, and nothing is made for them.
        """
        passed = self._passed
        if passed is None or not passed.is_known(place) or (revision is not None and revision not in self._at):
            return False
        passed.count += 1
        return True

    def add(self, verdict: Verdict, seqs: Iterable[int], remark: str, revision: str | None, place: int) -> None:
        """One more opportunity; `revision` is that of the protocol where it is known, `place` the entry it is about."""
        if verdict >= Verdict.WARN and len(self.breaches) < _MOST_BREACHES:
            self.breaches.append(place)
        seen = self._seen.get(verdict)
        if seen is None:
            seen = self._seen[verdict] = _Seen()
            if verdict is Verdict.PASS:
                self._passed = seen
        seen.note(place, VerdictEvidence(verdict, tuple(seqs), remark))
        if revision is not None and self._at.get(revision, -1) < verdict:
            self._at[revision] = verdict

    def add_cut(self, seqs: Iterable[int], remark: str, place: int) -> None:
        """An opportunity that an end has cut is INCONCLUSIVE, and counts only where nothing else was observed."""
        self._cut.note(place, VerdictEvidence(Verdict.INCONCLUSIVE, tuple(seqs), remark))

    @property
    def _observed(self) -> Mapping[Verdict, _Seen]:
        return self._seen or ({Verdict.INCONCLUSIVE: self._cut} if self._cut.count else {})

    @property
    def at(self) -> Mapping[str, Verdict]:
        """The worst verdict at each revision that is known."""
        return self._at

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all opportunities."""
        return max(self._observed, default=Verdict.NOT_OBSERVED)

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many opportunities had each verdict, the worst first; those without any are left out."""
        observed = self._observed
        return {verdict: observed[verdict].count for verdict in sorted(observed, reverse=True)}

    @property
    def evidence(self) -> tuple[VerdictEvidence, ...]:
        """The first and the last opportunities of each verdict, the worst verdict first."""
        found: list[VerdictEvidence] = []
        observed = self._observed
        for seen in (observed[verdict] for verdict in sorted(observed, reverse=True)):
            found += [evidence for _, evidence in (*seen.first, *([] if seen.last is None else [seen.last]))]
        return tuple(found)

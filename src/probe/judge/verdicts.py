"""The verdict of one rule about one subject, and how observations add up to it.

    FAIL > WARN > INCONCLUSIVE > PASS > NOT_OBSERVED

A rule collects opportunities, each with a verdict. The verdict of the rule is the worst of them, so a FAIL stays one
whatever comes later. NOT_OBSERVED says that no opportunity came; it is never counted as good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final


class Verdict(IntEnum):
    """Ordered: the worst is the greatest."""

    NOT_OBSERVED = 0
    PASS = 1
    INCONCLUSIVE = 2
    WARN = 3
    FAIL = 4


# Each verdict keeps its first places and its last: a client that repeats a fault has no use for the thousandth one.
_FIRST: Final = 3


@dataclass(frozen=True, slots=True)
class VerdictEvidence:
    """The entries of the log that one opportunity rests on, the oldest first, and what to say about them."""

    verdict: Verdict
    seqs: tuple[int, ...]
    remark: str = ""


@dataclass(slots=True)
class _Seen:
    """The opportunities of one verdict."""

    count: int = 0
    first: list[VerdictEvidence] = field(default_factory=list)
    last: VerdictEvidence | None = None


class RuleTally:
    """The opportunities of one rule and one subject, in bounded memory.

    `measured` are values that a rule has found, by name; `at` is the worst verdict at each revision that is known.
    """

    __slots__ = ("_passed", "_seen", "at", "measured")

    def __init__(self) -> None:
        self._seen: dict[Verdict, _Seen] = {}
        self._passed: _Seen | None = None
        self.at: dict[str, Verdict] = {}
        self.measured: dict[str, Any] = {}

    def pass_again(self, revision: str | None) -> bool:
        """Count one more PASS that would leave no other trace; False where it must be added, as it would.

        Most of all opportunities are of this kind, and nothing is made for them.
        """
        passed = self._passed
        if passed is None or len(passed.first) < _FIRST or (revision is not None and revision not in self.at):
            return False
        passed.count += 1
        return True

    def add(self, verdict: Verdict, seqs: Iterable[int], remark: str, revision: str | None) -> None:
        """One more opportunity; `revision` is that of the protocol, where it is known."""
        seen = self._seen.get(verdict)
        if seen is None:
            seen = self._seen[verdict] = _Seen()
            if verdict is Verdict.PASS:
                self._passed = seen
        seen.count += 1
        if revision is not None and self.at.get(revision, -1) < verdict:
            self.at[revision] = verdict
        # The hundredth PASS tells nothing that the first three do not.
        if len(seen.first) < _FIRST:
            seen.first.append(VerdictEvidence(verdict, tuple(seqs), remark))
        elif verdict is not Verdict.PASS:
            seen.last = VerdictEvidence(verdict, tuple(seqs), remark)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all opportunities."""
        return max(self._seen, default=Verdict.NOT_OBSERVED)

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many opportunities had each verdict, the worst first; those without any are left out."""
        return {verdict: self._seen[verdict].count for verdict in sorted(self._seen, reverse=True)}

    @property
    def evidence(self) -> tuple[VerdictEvidence, ...]:
        """The first and the last opportunities of each verdict, the worst verdict first."""
        found: list[VerdictEvidence] = []
        for verdict in sorted(self._seen, reverse=True):
            seen = self._seen[verdict]
            found += [*seen.first, *([] if seen.last is None else [seen.last])]
        return tuple(found)

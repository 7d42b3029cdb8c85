"""Two reports side by side: the same client directly and through a gateway, or two versions of it.

Subjects are matched by their label. A FAIL that comes only through a gateway is the gateway's, one that comes in both
is the client's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..report import Judgement, RuleReport
from ..verdicts import Verdict

Change: TypeAlias = Literal["better", "worse", "same", "only here", "only there"]
"""The change of a rule's verdict, compared with the other report."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One rule of one subject in both reports; `here` and `there` are its verdicts."""

    label: str
    rule: str
    title: str
    here: Verdict
    there: Verdict
    change: Change
    remark: str

    def is_worse(self, least: Verdict) -> bool:
        """Whether this report has a finding, at least so bad, and the other a better verdict or none."""
        return self.here >= least and self.here > self.there


def compare(here: Judgement, there: Judgement) -> Sequence[Compared]:
    """Every rule that either report has observed, in the order of this report's subjects and of the rules."""
    first, second = (_by_label(report) for report in (here, there))
    # Two logs of one unlabelled client have different labels, but one client each.
    if len(first) == len(second) == 1 and first.keys() != second.keys():
        second = {next(iter(first)): next(iter(second.values()))}
    found = []
    for label in [*first, *(label for label in second if label not in first)]:
        left, right = first.get(label, {}), second.get(label, {})
        found += [_compared(label, left.get(rule), right.get(rule)) for rule in sorted(left.keys() | right.keys())]
    return found


def _by_label(report: Judgement) -> dict[str, dict[str, RuleReport]]:
    return {
        subject.label: {rule.rule.id: rule for rule in subject.rules if rule.verdict is not Verdict.NOT_OBSERVED}
        for subject in report.subjects
    }


def _compared(label: str, here: RuleReport | None, there: RuleReport | None) -> Compared:
    rule = here or there
    assert rule is not None, "one of the two has it"
    before = Verdict.NOT_OBSERVED if there is None else there.verdict
    now = Verdict.NOT_OBSERVED if here is None else here.verdict
    worst = here if now >= before else there
    remark = worst.remark if worst is not None else ""
    return Compared(label, rule.rule.id, rule.rule.title, now, before, _change(now, before), remark)


def _change(now: Verdict, before: Verdict) -> Change:
    if before is Verdict.NOT_OBSERVED:
        return "only here"
    if now is Verdict.NOT_OBSERVED:
        return "only there"
    return "same" if now is before else "worse" if now > before else "better"

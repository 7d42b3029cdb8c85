"""Two reports side by side: the same client directly and through a gateway, or two versions of it.

Subjects are matched by their label. A FAIL that comes only through a gateway is the gateway's, one that comes in both
is the client's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..report import Judgement, RuleReport, SubjectReport
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


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A value that a client's rules have measured in both logs, with two results, such as 5.0 and 61.2 seconds."""

    label: str
    name: str
    here: Any
    there: Any


def compare(here: Judgement, there: Judgement) -> Sequence[Compared]:
    """Every rule that either report has observed, in the order of this report's subjects and of the rules."""
    found = []
    for label, one, other in _clients(here, there):
        left, right = _observed(one), _observed(other)
        found += [_compared(label, left.get(rule), right.get(rule)) for rule in sorted(left.keys() | right.keys())]
    return found


def compare_values(here: Judgement, there: Judgement) -> Sequence[ComparedValue]:
    """The values that both reports have measured and that differ, by subject and name."""
    return [
        ComparedValue(label, name, one.measured[name], other.measured[name])
        for label, one, other in _clients(here, there)
        if one is not None and other is not None
        for name in sorted(one.measured.keys() & other.measured.keys())
        if one.measured[name] != other.measured[name]
    ]


def _clients(here: Judgement, there: Judgement) -> Sequence[tuple[str, SubjectReport | None, SubjectReport | None]]:
    first, second = ({subject.label: subject for subject in report.subjects} for report in (here, there))
    # Two logs of one unlabelled client have different labels, but one client each.
    if len(first) == len(second) == 1 and first.keys() != second.keys():
        second = {next(iter(first)): next(iter(second.values()))}
    return [(label, first.get(label), second.get(label)) for label in dict.fromkeys([*first, *second])]


def _observed(subject: SubjectReport | None) -> Mapping[str, RuleReport]:
    rules = () if subject is None else subject.rules
    return {rule.rule.id: rule for rule in rules if rule.verdict is not Verdict.NOT_OBSERVED}


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

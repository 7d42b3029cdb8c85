"""The exit status of a run of the judge, and the reasons for it.

0  no finding that was not expected
1  a FAIL that was not expected, with `--strict` a WARN, or an expectation that is stale
2  nothing can be said: no message came, too little was observed, the log is not whole, the code of a rule has a
   defect, or a finding may be that of another client under the same name

A comparison of two reports finds only rules that became worse: a FAIL, or a WARN with `--strict`, where the other
report has a better verdict, or none: many rules have an opportunity only when they are broken. It finds none where the
other report can be doubted, and calls no rule worse that is INCONCLUSIVE there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from ..report import Judgement, RuleReport, SubjectReport
from ..verdicts import Verdict
from .comparison import Compared
from .expectations import Expectation, stale, unexpected

CLEAN, FOUND, NOTHING_SAID = 0, 1, 2
MINIMUM: Final = ("message", "list", "call")
"""The least that must have come, so that a run in which nothing happened does not pass."""


@dataclass(frozen=True, slots=True)
class Demands:
    """The demands of a person on a run: whether warnings count, the expected findings, and rules that must be observed.

    `require` has ids of rules, and prefixes such as `ping.*`: at least one rule of each must have been observed. It may
    have the words of `MINIMUM`, too: a request of any kind (`message`), a request for a list, a call of what it lists.
    With `own_servers` the client started the servers: one whose log was cut off was killed by it, and is judged by what
    is there.
    """

    strict: bool = False
    expected: Sequence[Expectation] = ()
    require: Sequence[str] = MINIMUM
    own_servers: bool = False


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """The exit status, and a line for each reason."""

    status: int
    reasons: Sequence[str]


def outcome(report: Judgement, demands: Demands, today: date) -> ExitStatus:
    """The exit status of a report."""
    least = Verdict.WARN if demands.strict else Verdict.FAIL
    new = [each for each in unexpected(report, demands.expected, today) if each.verdict >= least]
    found = [f"{each.client}: {each.verdict.name} {each.rule}" for each in new]
    doubts = list(_nothing_said(report, demands))
    if found or not doubts:
        found += [_stale(each, today, report.catalogue.version) for each in stale(report, demands.expected, today)]
    if found:
        return ExitStatus(FOUND, [*found, *doubts])
    return ExitStatus(NOTHING_SAID if doubts else CLEAN, doubts)


def outcome_of_comparison(here: Judgement, there: Judgement, found: Sequence[Compared], demands: Demands) -> ExitStatus:
    """The exit status of a comparison, which finds the rules that became worse, and no fault that both reports have.

    A fault of `here` counts in spite of doubts about `here`. It does not count with a doubt about `there`, as that may
    have the same fault unseen. Expectations are about one report, and have no part in it.
    """
    least = Verdict.WARN if demands.strict else Verdict.FAIL
    worse: list[str] = []
    undecided: list[str] = []
    for each in found:
        if each.is_worse(least):
            lines = undecided if each.there is Verdict.INCONCLUSIVE else worse
            lines.append(f"{each.label}: {each.rule} is {each.here.name}, and {each.there.name} there")
    about_here = [f"--log: {why}" for why in _nothing_said(here, demands)]
    about_there = [f"--against: {why}" for why in _nothing_said(there, demands)]
    reasons = [*worse, *undecided, *about_here, *about_there]
    if worse and not about_there:
        return ExitStatus(FOUND, reasons)
    return ExitStatus(NOTHING_SAID if reasons else CLEAN, reasons)


def _stale(expected: Expectation, today: date, version: int) -> str:
    if expected.is_over(today, version):
        return f"no longer expected since {expected.until}: {expected.rule}"
    return f"expected, but it did not come: {expected.rule}"


def _nothing_said(report: Judgement, demands: Demands) -> Iterator[str]:
    for log in report.logs:
        if log.gaps:
            yield f"the log of run {log.run} lacks entries"
        elif log.cut_off and not demands.own_servers:
            yield f"the log of run {log.run} was cut off"
    for rule in report.broken:
        yield f"the code of {rule} has a defect"
    for subject in report.subjects:
        if doubted := [each.rule.id for each in subject.rules if _may_be_of_another(each, subject, demands)]:
            yield f"{subject.label}: {subject.several}, so {', '.join(doubted)} is not decided; give each its own name"
    yield from _not_observed(report, demands)


def _may_be_of_another(found: RuleReport, subject: SubjectReport, demands: Demands) -> bool:
    """Whether only the number of clients under this name keeps a rule from a verdict that would be a finding."""
    may_fail = found.level == "must" and found.rule.worst == "FAIL"
    if subject.several is None or not (demands.strict or may_fail):
        return False
    return any(each.verdict is Verdict.INCONCLUSIVE and subject.several in each.remark for each in found.evidence)


def _not_observed(report: Judgement, demands: Demands) -> Iterator[str]:
    observed = {
        rule.rule.id
        for subject in report.subjects
        for rule in subject.rules
        if rule.verdict is not Verdict.NOT_OBSERVED
    }
    seen = {
        "message": any(subject.requests for subject in report.subjects),
        "list": any(subject.lists for subject in report.subjects),
        "call": any(subject.uses for subject in report.subjects),
    }
    if demands.require and not seen["message"]:
        exchanges = sum(subject.exchanges for subject in report.subjects)
        none = f"none of {exchanges} HTTP requests had a request of the protocol that the server could read"
        yield none if exchanges else _MISSING["message"]
        return
    for wanted in demands.require:
        if wanted in seen:
            if not seen[wanted]:
                yield _MISSING[wanted]
        elif not any(_is_meant(wanted, rule) for rule in observed):
            yield f"{wanted} was not observed"


_MISSING: Final = {
    "message": "no request of a client came",
    "list": "the client asked for no list; with --require call it need not",
    "call": "the client called no tool, and used no prompt or resource",
}


def _is_meant(wanted: str, rule: str) -> bool:
    return rule.startswith(wanted[:-1]) if wanted.endswith("*") else rule == wanted

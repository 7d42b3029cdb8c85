"""The findings of the judge, as values: one model for the terminal, JSON, JUnit, the card, the badge and the pages.

The same log gives the same report, byte for byte: it names no time of judging, and everything in it has an order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..observe.log import Gap
from ..observe.ndjson import End
from .catalogue import Level, Rule, RuleCatalogue
from .judge import Judge, JudgedLog, Subject
from .life import Life
from .predicate import Predicate
from .verdicts import Verdict, VerdictEvidence

NOT_VISIBLE: Final = (
    "whether a person was asked for consent, and what a person was shown",
    "whether structuredContent was validated, and whether caches are shared (cacheScope)",
    "what the client logs, and whether it inspects requestState or trusts tool annotations",
    "authorization: this server has none",
)
"""Duties of clients that no server can see; a report without faults says nothing about them."""


@dataclass(frozen=True, slots=True)
class RuleReport:
    """The verdict of one rule. `level` is the strongest that the rule has at a revision that was spoken.

    `at` is the worst verdict at each revision, `broken` the defect of the predicate that keeps it from a verdict.
    """

    rule: Rule
    verdict: Verdict
    level: Level
    counts: Mapping[Verdict, int]
    evidence: tuple[VerdictEvidence, ...]
    measured: Mapping[str, Any]
    at: Mapping[str, Verdict]
    broken: str | None = None

    @property
    def remark(self) -> str:
        """The remark about the worst that was seen."""
        return self.evidence[0].remark if self.evidence else ""


@dataclass(frozen=True, slots=True)
class SubjectReport:
    """One subject: who it is, as far as the log says, and a verdict for each rule that can apply to it.

    `rules` are in the order of the catalogue; rules for revisions or transports that it never used are in
    `out_of_reach`.
    """

    label: str
    kind: str
    names: tuple[tuple[str, str], ...]
    revisions: tuple[str, ...]
    transports: tuple[str, ...]
    capabilities: Mapping[str, int]
    several: str | None
    whole: bool
    requests: int
    lists: int
    uses: int
    sessions: int
    rules: tuple[RuleReport, ...]
    out_of_reach: tuple[Rule, ...]

    def having(self, verdict: Verdict) -> Sequence[RuleReport]:
        """The rules with a verdict."""
        return [rule for rule in self.rules if rule.verdict is verdict]

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many rules have each verdict, the worst first."""
        return {verdict: len(self.having(verdict)) for verdict in sorted(Verdict, reverse=True)}

    @property
    def worst(self) -> Verdict:
        """The worst verdict of all rules."""
        return max((rule.verdict for rule in self.rules), default=Verdict.NOT_OBSERVED)

    @property
    def measured(self) -> Mapping[str, Any]:
        """The values that the rules have measured, by name."""
        return {name: value for rule in self.rules for name, value in sorted(rule.measured.items())}


@dataclass(frozen=True, slots=True)
class LogReport:
    """A log that was judged: which run of which server, up to which entry, and whether it is whole.

    The numbers of its entries are moved by `offset` in the evidence. A `living` log goes on.
    """

    run: str
    program: str
    offset: int
    last: int
    end: End | None
    gaps: tuple[Gap, ...]
    living: bool

    @property
    def whole(self) -> bool:
        """Whether no entry is missing so far, and of a saved log the end is there."""
        return not self.gaps and (self.living or (self.end is not None and self.end.why == "complete"))

    @property
    def cut_off(self) -> bool:
        """Whether a saved log has no end."""
        return self.end is None and not self.living


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything. `forgotten` is how many subjects made room for others."""

    catalogue: RuleCatalogue
    logs: tuple[LogReport, ...]
    subjects: tuple[SubjectReport, ...]
    forgotten: int

    @property
    def broken(self) -> Mapping[str, str]:
        """The predicates that have a defect, by rule."""
        return {
            rule.rule.id: rule.broken for subject in self.subjects for rule in subject.rules if rule.broken is not None
        }


def report_of(judge: Judge) -> Judgement:
    """The findings of a judge so far; the judge can go on."""
    return report_with(judge, map(subject_report, judge.subjects))


def report_with(judge: Judge, subjects: Iterable[SubjectReport]) -> Judgement:
    """A report about some of the subjects of a judge."""
    return Judgement(judge.catalogue, tuple(map(_log_report, judge.logs)), tuple(subjects), judge.forgotten)


def _log_report(log: JudgedLog) -> LogReport:
    header = log.header
    return LogReport(header.run, header.program, log.offset, log.last, log.end, tuple(log.gaps), log.living)


def subject_report(subject: Subject) -> SubjectReport:
    """The findings of a judge about one subject."""
    life = subject.life
    within = [each for each in subject.predicates if _in_reach(each.rule, life)]
    judged = sorted(within, key=lambda predicate: predicate.rule.id)
    return SubjectReport(
        life.label,
        life.kind,
        tuple(sorted(life.names)),
        tuple(sorted(life.revisions)),
        tuple(sorted(life.transports)),
        dict(sorted(life.capabilities.items())),
        life.several,
        life.whole,
        life.requests,
        life.listings,
        life.uses,
        len(life.sessions),
        tuple(_rule_report(predicate, subject) for predicate in judged),
        tuple(each.rule for each in subject.predicates if not _in_reach(each.rule, life)),
    )


def _in_reach(rule: Rule, life: Life) -> bool:
    """Whether a rule can apply to what a subject spoke, and over what."""
    if life.transports and not life.transports & set(rule.transports):
        return False
    return not life.revisions or bool(life.revisions & set(rule.revisions))


def _rule_report(predicate: Predicate, subject: Subject) -> RuleReport:
    rule, tally = predicate.rule, predicate.tally
    return RuleReport(
        rule,
        tally.verdict,
        _level(rule, subject.life.revisions),
        tally.counts,
        tally.evidence,
        dict(sorted(tally.measured.items())),
        dict(sorted(tally.at.items())),
        subject.broken.get(rule.id),
    )


def _level(rule: Rule, revisions: Iterable[str]) -> Level:
    levels = [rule.level_of(revision) for revision in revisions if revision in rule.revisions]
    return max(levels, key=_STRENGTH.index) if levels else rule.level


_STRENGTH: Final = ("may", "practice", "should", "must")

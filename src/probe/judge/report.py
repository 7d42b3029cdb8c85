"""The report of a judge, as values: one model for the terminal, JSON, JUnit, the page, the badge and the dashboard.

The same log gives the same report, byte for byte: it has no time of judging, and everything in it has an order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..log.event_log import Gap
from ..log.ndjson import End
from .clients.subject import Subject
from .judge import Judge, JudgedLog
from .rules.catalogue import Level, Rule, RuleCatalogue
from .verdicts import RuleTally, Verdict, VerdictEvidence

NOT_VISIBLE: Final = (
    "whether a person was asked for consent, and what a person was shown",
    "whether structuredContent was validated, and whether caches are shared (cacheScope)",
    "what the client logs, and whether it inspects requestState or trusts tool annotations",
    "authorization: this server has none",
)
"""Duties of clients that no server can see; a report without faults says nothing about them."""


@dataclass(frozen=True, slots=True)
class RuleReport:
    """The verdict of one rule. `level` is its strongest at the revisions of the subject.

    `breaches` are the entries that break it (`RuleTally`), `at` is the worst verdict at each revision, `broken` the
    defect of its code that keeps it from a verdict.
    """

    rule: Rule
    verdict: Verdict
    level: Level
    counts: Mapping[Verdict, int]
    evidence: tuple[VerdictEvidence, ...]
    breaches: tuple[int, ...]
    measured: Mapping[str, Any]
    at: Mapping[str, Verdict]
    broken: str | None = None

    @property
    def remark(self) -> str:
        return self.evidence[0].remark if self.evidence else ""


@dataclass(frozen=True, slots=True)
class SubjectReport:
    """One subject, and a verdict for each rule that can apply to it.

    `exchanges` are its HTTP requests, `requests` those of the protocol. `rules` are in the order of the catalogue;
    rules for other revisions or transports than its own are in `out_of_reach`. `agents` are the values of its
    `User-Agent`, cut to 60 characters.
    """

    label: str
    kind: str
    names: tuple[tuple[str, str], ...]
    agents: tuple[str, ...]
    revisions: tuple[str, ...]
    transports: tuple[str, ...]
    capabilities: Mapping[str, int]
    several: str | None
    whole: bool
    exchanges: int
    requests: int
    lists: int
    uses: int
    sessions: int
    rules: tuple[RuleReport, ...]
    out_of_reach: tuple[Rule, ...]

    def having(self, verdict: Verdict) -> Sequence[RuleReport]:
        return [rule for rule in self.rules if rule.verdict is verdict]

    @property
    def counts(self) -> Mapping[Verdict, int]:
        return {verdict: len(self.having(verdict)) for verdict in sorted(Verdict, reverse=True)}

    @property
    def worst(self) -> Verdict:
        return max((rule.verdict for rule in self.rules), default=Verdict.NOT_OBSERVED)

    @property
    def measured(self) -> Mapping[str, Any]:
        return {name: value for rule in self.rules for name, value in sorted(rule.measured.items())}


@dataclass(frozen=True, slots=True)
class LogReport:
    """A log that was judged: which run of which server, up to which entry, and whether it is whole.

    The numbers of its entries are moved by `offset` in the evidence. A `living` log goes on. `is_lossy` is false if
    what is missing is about other clients. `is_part` is true for a part of a log of which nobody knows whether it lacks
    entries about its clients.
    """

    run: str
    program: str
    offset: int
    last: int
    end: End | None
    gaps: tuple[Gap, ...]
    living: bool
    is_lossy: bool
    is_part: bool

    @property
    def whole(self) -> bool:
        """True if no entry is missing so far, and a saved log has its end."""
        return not self.gaps and (self.living or (self.end is not None and self.end.why == "complete"))

    @property
    def cut_off(self) -> bool:
        """True for a saved log without an end."""
        return self.end is None and not self.living


@dataclass(frozen=True, slots=True)
class Judgement:
    """The whole report. `forgotten` is the number of subjects that made room for others."""

    catalogue: RuleCatalogue
    logs: tuple[LogReport, ...]
    subjects: tuple[SubjectReport, ...]
    forgotten: int

    @property
    def broken(self) -> Mapping[str, str]:
        return {
            rule.rule.id: rule.broken for subject in self.subjects for rule in subject.rules if rule.broken is not None
        }


_NOTHING_FOUND: Final = RuleTally()


def report_of(judge: Judge) -> Judgement:
    """The findings of a judge so far; the judge can go on."""
    return report_with(judge, (subject_report(judge, subject) for subject in judge.subjects))


def report_with(judge: Judge, subjects: Iterable[SubjectReport]) -> Judgement:
    """A report about some of the subjects of a judge."""
    return Judgement(judge.catalogue, tuple(map(_log_report, judge.logs)), tuple(subjects), judge.forgotten)


def _log_report(log: JudgedLog) -> LogReport:
    header, gaps, end = log.header, tuple(log.gaps), log.end
    is_part = end is not None and end.why == "filtered" and log.about is None and not log.old
    return LogReport(header.run, header.program, log.offset, log.last, end, gaps, log.living, log.is_lossy, is_part)


def subject_report(judge: Judge, subject: Subject) -> SubjectReport:
    """The findings of a judge about one subject."""
    asked = judge.rules_about(subject)
    return SubjectReport(
        subject.label,
        subject.kind,
        tuple(sorted(subject.names)),
        tuple(sorted(subject.agents)),
        tuple(sorted(subject.revisions)),
        tuple(sorted(subject.transports)),
        dict(sorted(subject.capabilities.items())),
        None if subject.several is None else subject.several.why,
        not subject.gaps,
        subject.exchanges,
        subject.requests,
        subject.listings,
        subject.uses,
        subject.sessions,
        tuple(_rule_report(rule, subject) for rule in asked if _in_reach(rule, subject)),
        tuple(rule for rule in asked if not _in_reach(rule, subject)),
    )


def _in_reach(rule: Rule, subject: Subject) -> bool:
    if subject.transports and not subject.transports & set(rule.transports):
        return False
    return not subject.revisions or bool(subject.revisions & set(rule.revisions))


def _rule_report(rule: Rule, subject: Subject) -> RuleReport:
    tally = subject.tallies.get(rule.id, _NOTHING_FOUND)
    return RuleReport(
        rule,
        tally.verdict,
        _level(rule, subject.revisions),
        tally.counts,
        tally.evidence,
        tuple(sorted(tally.breaches)),
        dict(sorted(tally.measured.items())),
        dict(sorted(tally.at.items())),
        subject.broken.get(rule.id),
    )


def _level(rule: Rule, revisions: Iterable[str]) -> Level:
    levels = [rule.level_of(revision) for revision in revisions if revision in rule.revisions]
    return max(levels, key=_STRENGTH.index) if levels else rule.level


_STRENGTH: Final = ("may", "practice", "should", "must")

"""The judgement of a judge: what it has found so far, as values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..clients.subject import Subject
from ..judge import Judge, JudgedLog
from ..report import Judgement, LogReport, RuleReport, SubjectReport
from ..rules.catalogue import Level, Rule
from ..verdicts import RuleTally

_NOTHING_FOUND: Final = RuleTally()


def report_of(judge: Judge) -> Judgement:
    """The findings of a judge so far; the judge can go on."""
    return report_with(judge, (subject_report(judge, subject) for subject in judge.subjects))


def report_with(judge: Judge, subjects: Iterable[SubjectReport]) -> Judgement:
    """A report about some of the subjects of a judge."""
    return Judgement(judge.catalogue, tuple(map(_log_report, judge.logs)), tuple(subjects), judge.forgotten)


def _log_report(log: JudgedLog) -> LogReport:
    header = log.header
    return LogReport(header.run, header.program, log.offset, log.last, log.end, tuple(log.gaps), log.living)


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
    """Whether a rule can apply to what a subject spoke, and over what."""
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

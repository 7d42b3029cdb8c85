"""The judgement of a judge: what it has found so far, as values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..judge import Judge, JudgedLog, Subject
from ..projection.life import Life
from ..report import Judgement, LogReport, RuleReport, SubjectReport
from ..rules.catalogue import Level, Rule
from ..rules.predicate import Predicate


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
        tuple(sorted(life.agents)),
        tuple(sorted(life.revisions)),
        tuple(sorted(life.transports)),
        dict(sorted(life.capabilities.items())),
        life.several,
        life.whole,
        life.exchanges,
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

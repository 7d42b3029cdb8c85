"""Findings that a project expects: `judge.expect.toml`, and what is left of a report when they are taken away.

    [[expect]]
    rule = "ping.answered"
    verdict = "FAIL"
    reason = "fixed in 2.4 of our SDK"
    until = 2027-03-01                # or a version of the catalogue: until = 2
    client = "acme"                   # optional; without it the expectation is about every client

An expected finding that does not come is stale, and so is one whose `until` has passed. A rule that was not
observed, or not decided, makes nothing stale.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from ..report import Judgement
from ..rules.catalogue import RuleCatalogue
from ..verdicts import Verdict

_VERDICTS: Final = {"FAIL": Verdict.FAIL, "WARN": Verdict.WARN}
_MEMBERS: Final = frozenset({"rule", "verdict", "reason", "until", "client"})


class ExpectationError(ValueError):
    """A file of expectations cannot be used; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expected finding. `until` is a day, or a version of the catalogue, on which it is not expected any more."""

    rule: str
    verdict: Verdict
    reason: str
    until: date | int | None = None
    client: str | None = None

    def is_about(self, client: str) -> bool:
        """Whether it is about a client."""
        return self.client in (None, client)

    def is_over(self, today: date, version: int) -> bool:
        """Whether its time has passed on a day, or at a version of the catalogue."""
        if isinstance(self.until, date):
            return today >= self.until
        return self.until is not None and version >= self.until


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """A verdict worse than INCONCLUSIVE, of one rule on one client."""

    client: str
    rule: str
    verdict: Verdict


def load(text: bytes, catalogue: RuleCatalogue) -> Sequence[Expectation]:
    """Read a file of expectations. Raises `ExpectationError`, also for a rule that the catalogue does not have."""
    try:
        raw = tomllib.loads(text.decode())
    except ValueError as error:
        raise ExpectationError(f"no TOML: {error}") from None
    rows = raw.pop("expect", [])
    if raw or not isinstance(rows, list):
        raise ExpectationError("a file of expectations has [[expect]] tables and nothing else")
    return [_read(number, row, catalogue) for number, row in enumerate(rows, 1)]


def _read(number: int, row: Any, catalogue: RuleCatalogue) -> Expectation:
    def wrong(why: str) -> ExpectationError:
        return ExpectationError(f"expectation {number}: {why}")

    if not isinstance(row, dict):
        raise wrong("it is no table")
    if unknown := row.keys() - _MEMBERS:
        raise wrong(f"unknown member {min(unknown)!r}")
    rule, reason, client = row.get("rule"), row.get("reason"), row.get("client")
    if not isinstance(rule, str) or rule not in catalogue.rules:
        raise wrong(f"there is no rule {rule!r}")
    if catalogue.rules[rule].needs_drill:
        raise wrong(f"{rule!r} needs a drill, which this server has not, so nothing is found")
    if row.get("verdict") not in _VERDICTS:
        raise wrong("verdict is FAIL or WARN")
    if not isinstance(reason, str) or not reason.strip():
        raise wrong("a reason is needed")
    if client is not None and not isinstance(client, str):
        raise wrong("client is the name of one")
    until = row.get("until")
    if until is not None and (isinstance(until, (bool, datetime)) or not isinstance(until, (date, int))):
        raise wrong("until is a date such as 2027-03-01, or a version of the catalogue")
    return Expectation(rule, _VERDICTS[row["verdict"]], reason, until, client)


def findings(report: Judgement) -> Iterator[RuleFinding]:
    """All findings of a report."""
    for subject in report.subjects:
        for rule in subject.rules:
            if rule.verdict > Verdict.INCONCLUSIVE:
                yield RuleFinding(subject.label, rule.rule.id, rule.verdict)


def unexpected(report: Judgement, expected: Sequence[Expectation], today: date) -> Sequence[RuleFinding]:
    """The findings that nobody expected, or that are worse than expected."""
    valid = [each for each in expected if not each.is_over(today, report.catalogue.version)]
    return [
        finding
        for finding in findings(report)
        if not any(
            each.rule == finding.rule and each.is_about(finding.client) and each.verdict >= finding.verdict
            for each in valid
        )
    ]


def stale(report: Judgement, expected: Sequence[Expectation], today: date) -> Sequence[Expectation]:
    """The expectations whose finding has not come although the rule was decided, or whose time has passed."""
    return [each for each in expected if each.is_over(today, report.catalogue.version) or _is_stale(report, each)]


def _is_stale(report: Judgement, expected: Expectation) -> bool:
    verdicts = [
        rule.verdict
        for subject in report.subjects
        for rule in subject.rules
        if rule.rule.id == expected.rule and expected.is_about(subject.label)
    ]
    decided = [verdict for verdict in verdicts if verdict not in (Verdict.NOT_OBSERVED, Verdict.INCONCLUSIVE)]
    return bool(decided) and expected.verdict not in decided

"""A report against the expectations of a project, against another report, and the exit status of the run."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Literal, TypeAlias

from .report import Judgement, RuleReport, SubjectReport
from .rules.catalogue import RuleCatalogue
from .verdicts import Verdict

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
        """True if this report has a finding, and the other a better verdict or none."""
        return self.here >= least and self.here > self.there


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A value that a client's rules have measured in both logs, with two results, such as 5.0 and 61.2 seconds."""

    label: str
    name: str
    here: Any
    there: Any


def compare(here: Judgement, there: Judgement) -> Sequence[Compared]:
    """Every rule that either report has observed, in the order of this report."""
    found = []
    for label, one, other in _clients(here, there):
        left, right = _observed(one), _observed(other)
        found += [_compared(label, left.get(rule), right.get(rule)) for rule in sorted(left.keys() | right.keys())]
    return found


def compare_values(here: Judgement, there: Judgement) -> Sequence[ComparedValue]:
    """The values that both reports have measured and that differ."""
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


_VERDICTS: Final = {"FAIL": Verdict.FAIL, "WARN": Verdict.WARN}
_MEMBERS: Final = frozenset({"rule", "verdict", "reason", "until", "client"})


class ExpectationError(ValueError):
    """A file of expectations cannot be used; the message has the place and the reason."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expected finding. `until` is a day, or a version of the catalogue, on which it is not expected any more."""

    rule: str
    verdict: Verdict
    reason: str
    until: date | int | None = None
    client: str | None = None

    def is_about(self, client: str) -> bool:
        return self.client in (None, client)

    def is_over(self, today: date, version: int) -> bool:
        """True if its time has passed on a day, or at a version of the catalogue."""
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
    """The findings without an expectation, or worse than it."""
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
    """The expectations without their finding although the rule was decided, and those that are over."""
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


CLEAN, FOUND, NOTHING_SAID = 0, 1, 2
MINIMUM: Final = ("message", "list", "call")
"""The least that must have come, so that a run in which nothing happened does not pass."""


@dataclass(frozen=True, slots=True)
class Demands:
    """The demands on a run: do warnings count, the expected findings, and rules that must be observed.

    `require` has ids of rules, prefixes such as `ping.*` of which one rule must have been observed, and words of
    `MINIMUM`: a request of any kind (`message`), a request for a list, a call of what it lists. A report without any
    request has no verdict, whatever is required. With `own_servers` the client started the servers: a log that was cut
    off is that of a server it killed, and is judged by what is there.
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
    """The exit status of a comparison, which finds the rules that became worse.

    A fault of `here` counts in spite of doubts about `here`. It does not count with a doubt about `there`, which may
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
        if log.is_lossy:
            yield f"the log of run {log.run} lacks entries{_PART if log.is_part else ''}"
        elif log.cut_off and not demands.own_servers:
            yield f"the log of run {log.run} was cut off"
    for rule in report.broken:
        yield f"the code of {rule} has a defect"
    for subject in report.subjects:
        if doubted := [each.rule.id for each in subject.rules if _may_be_of_another(each, subject, demands)]:
            yield f"{subject.label}: {subject.several}, so {', '.join(doubted)} is not decided; give each its own name"
    yield from _not_observed(report, demands)


def _may_be_of_another(found: RuleReport, subject: SubjectReport, demands: Demands) -> bool:
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
    if not seen["message"]:
        yield _no_message(report)
        return
    for wanted in demands.require:
        if wanted in seen:
            if not seen[wanted]:
                yield _MISSING[wanted]
        elif not any(_is_meant(wanted, rule) for rule in observed):
            yield f"{wanted} was not observed"


def _no_message(report: Judgement) -> str:
    exchanges = sum(subject.exchanges for subject in report.subjects)
    none = f"none of {exchanges} HTTP requests had a request of the protocol that the server could read"
    return none if exchanges else NO_REQUEST


_PART: Final = ": it is a part of a log, and what was left out may be about its client"

NO_REQUEST: Final = "no request of a client came"
"""The reason where a client has sent nothing that could be read."""

_MISSING: Final = {
    "message": NO_REQUEST,
    "list": "the client asked for no list; with --require call it need not",
    "call": "the client called no tool, and used no prompt or resource",
}


def _is_meant(wanted: str, rule: str) -> bool:
    return rule.startswith(wanted[:-1]) if wanted.endswith("*") else rule == wanted

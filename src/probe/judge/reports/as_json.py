"""A report as JSON: for `--json`, for `/api/judge`, and described by `docs/judge.schema.json`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

from ... import __version__
from ..report import NOT_VISIBLE, Judgement, LogReport, RuleReport, SubjectReport
from ..rules.catalogue import Bug, Kind, Level, Rule, RuleCatalogue
from ..verdicts import Verdict
from .links import github, link
from .wording import conclusion

FORMAT: Final = "mcp-probe-judge"
VERSION: Final = 1
ALL_VERDICTS: Final = frozenset(Verdict)

VerdictName: TypeAlias = Literal["FAIL", "WARN", "INCONCLUSIVE", "PASS", "NOT_OBSERVED"]
"""From the worst on. NOT_OBSERVED says that no opportunity came, which is no good sign."""


@dataclass(frozen=True, slots=True)
class JudgedExample:
    """One opportunity of a rule: its verdict, the numbers of the entries it rests on, and what to say of it."""

    verdict: VerdictName
    entries: list[int]
    remark: str


@dataclass(frozen=True, slots=True)
class JudgedRule:
    """The verdict of one rule on one subject.

    `title` says what keeps the rule, `fault` what is wrong where it is broken. `count` is how many opportunities there
    were, `counts` how many of them had each verdict. `evidence` are the sequence numbers of entries behind the worst of
    them, `breaches` those of the entries that break the rule, at most 1,000. `examples` are the first and the last of
    each verdict. `at` is the worst verdict at each revision, `measured` are values that the rule has found.
    """

    rule: str
    title: str
    fault: str
    kind: Kind
    verdict: VerdictName
    level: Level
    count: int
    counts: Mapping[str, int]
    evidence: list[int]
    breaches: list[int]
    remark: str
    examples: list[JudgedExample]
    at: Mapping[str, str]
    measured: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JudgedName:
    """A name and a version that a client gave itself."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class JudgedSubject:
    """One subject: a client or gateway, as far as it can be told from others.

    `kind` is what makes it one: the `label` that it was given, a legacy `session`, the connection of a `pipe`, a modern
    `client` by its name and address; `nothing` is what belongs to nobody. `several` says why more than one client may
    be judged here, null where there is no sign of it. `whole` says that no entry is missing. `summary` counts the rules
    by their verdict, and `verdict` is the worst; both are of all rules, also where `verdicts` was asked for some only.
    `conclusion` is a sentence, such as "breaks 3 MUST rules of 2025-11-25; 25 of 96 rules exercised".
    `out_of_reach` are rules for revisions and transports that it never used.
    """

    label: str
    kind: str
    names: list[JudgedName]
    revisions: list[str]
    transports: list[str]
    capabilities: Mapping[str, int]
    several: str | None
    whole: bool
    requests: int
    sessions: int
    verdict: VerdictName
    conclusion: str
    summary: Mapping[str, int]
    verdicts: list[JudgedRule]
    out_of_reach: list[str]
    measured: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JudgedLogRow:
    """A log that was judged. `offset` is what its sequence numbers are moved by in this report, 0 for the first log.

    `gaps` are the first and the last number of each range that is missing.
    """

    run: str
    program: str
    offset: int
    last: int
    whole: bool
    cut_off: bool
    gaps: list[list[int]]


@dataclass(frozen=True, slots=True)
class JudgedCatalogue:
    """The catalogue of rules: its version, the digest of its file, and how many rules it has."""

    version: int
    sha256: str
    rules: int


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """Verdicts on every subject of the logs, from the event log alone.

    `forgotten` subjects made room for others. `broken` are rules whose code has a defect, with the defect.
    `not_visible` is what the specification asks of clients and no server can see.
    """

    format: str
    version: int
    program: str
    catalogue: JudgedCatalogue
    logs: list[JudgedLogRow]
    subjects: list[JudgedSubject]
    forgotten: int
    broken: Mapping[str, str]
    not_visible: list[str]


@dataclass(frozen=True, slots=True)
class RuleSentence:
    """A sentence of the specification: `demands` it, or is only its `context`."""

    doc: str
    text: str
    role: str
    word: str
    link: str


@dataclass(frozen=True, slots=True)
class KnownBug:
    """A bug of a client or gateway in a public tracker. `link` is its page, null where `ref` names none."""

    ref: str
    about: str
    link: str | None


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """A rule of the catalogue: what it asks, when an opportunity comes, and what passes, fails or stays silent.

    `fault` says what is wrong where it is broken, and is empty for a rule that is not applied. `worst` is the worst
    verdict that it may give. `provoke` is how a person makes the opportunity; `needs_drill` says
    that the server would have to do something for it that it does not do yet. `bugs` are those of clients that broke
    it. `docs` is its place in the documents of the project, null for a rule that is not applied.
    """

    rule: str
    title: str
    fault: str
    revisions: list[str]
    transports: list[str]
    level: Level
    level_at: Mapping[str, str]
    worst: str
    kind: Kind
    spec: list[RuleSentence]
    observe: str
    passes: str
    fails: str
    silent: str
    provoke: str
    needs_drill: bool
    risk: str
    official_id: str
    bugs: list[KnownBug]
    docs: str | None


@dataclass(frozen=True, slots=True)
class RuleList:
    """Every rule of the catalogue."""

    version: int
    sha256: str
    rules: list[RuleInfo]


def as_json(report: Judgement, verdicts: Collection[Verdict] = ALL_VERDICTS) -> dict[str, Any]:
    """The report as JSON has it; of the rules those that have one of these verdicts."""
    return asdict(document(report, verdicts))


def document(report: Judgement, verdicts: Collection[Verdict] = ALL_VERDICTS) -> JudgeReport:
    """The report; of the rules those that have one of these verdicts."""
    catalogue = report.catalogue
    return JudgeReport(
        FORMAT,
        VERSION,
        __version__,
        JudgedCatalogue(catalogue.version, catalogue.digest, len(catalogue.rules)),
        [_log(log) for log in report.logs],
        [subject_row(subject, verdicts) for subject in report.subjects],
        report.forgotten,
        dict(report.broken),
        list(NOT_VISIBLE),
    )


def _log(log: LogReport) -> JudgedLogRow:
    gaps = [[gap.first, gap.last] for gap in log.gaps]
    return JudgedLogRow(log.run, log.program, log.offset, log.last, log.whole, log.cut_off, gaps)


def subject_row(subject: SubjectReport, verdicts: Collection[Verdict]) -> JudgedSubject:
    """One subject, with its rules that have one of these verdicts."""
    return JudgedSubject(
        subject.label,
        subject.kind,
        [JudgedName(name, version) for name, version in subject.names],
        list(subject.revisions),
        list(subject.transports),
        dict(subject.capabilities),
        subject.several,
        subject.whole,
        subject.requests,
        subject.sessions,
        _name(subject.worst),
        conclusion(subject),
        _named(subject.counts),
        [rule_row(rule) for rule in subject.rules if rule.verdict in verdicts],
        [rule.id for rule in subject.out_of_reach],
        dict(subject.measured),
    )


def rule_row(rule: RuleReport) -> JudgedRule:
    """One rule of one subject."""
    worst = [each for each in rule.evidence if each.verdict is rule.verdict]
    return JudgedRule(
        rule.rule.id,
        rule.rule.title,
        rule.rule.fault,
        rule.rule.kind,
        _name(rule.verdict),
        rule.level,
        sum(rule.counts.values()),
        _named(rule.counts),
        sorted({seq for each in worst for seq in each.seqs}),
        sorted(set(rule.breaches)),
        rule.remark,
        [JudgedExample(_name(each.verdict), list(each.seqs), each.remark) for each in rule.evidence],
        {revision: verdict.name for revision, verdict in rule.at.items()},
        dict(rule.measured),
    )


def rule_list(catalogue: RuleCatalogue) -> RuleList:
    """The catalogue."""
    return RuleList(catalogue.version, catalogue.digest, [_info(rule, catalogue) for rule in catalogue.rules.values()])


def _info(rule: Rule, catalogue: RuleCatalogue) -> RuleInfo:
    return RuleInfo(
        rule.id,
        rule.title,
        rule.fault,
        list(rule.revisions),
        list(rule.transports),
        rule.level,
        dict(rule.level_at),
        rule.worst,
        rule.kind,
        [RuleSentence(each.doc, each.text, each.role, each.word, link(each.doc)) for each in rule.spec],
        rule.observe,
        rule.passes,
        rule.fails,
        rule.silent,
        rule.provoke,
        rule.needs_drill,
        rule.false_fail_risk,
        rule.official_id,
        [_known(catalogue.bugs[bug]) for bug in rule.bugs],
        None if rule.needs_drill else f"docs/judge-rules.md#{rule.id}",
    )


def _known(bug: Bug) -> KnownBug:
    return KnownBug(bug.ref, bug.about, github(bug.ref))


def _named(counts: Mapping[Verdict, int]) -> dict[str, int]:
    return {verdict.name: count for verdict, count in counts.items()}


def _name(verdict: Verdict) -> VerdictName:
    return _NAMES[verdict]


_NAMES: Final[Sequence[VerdictName]] = ("NOT_OBSERVED", "PASS", "INCONCLUSIVE", "WARN", "FAIL")

"""Findings as a table, Markdown, JUnit XML, HTML and JSON; accepted deviations and the exit code.

Text of a gateway is escaped: it may have markup or control characters.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import quoteattr

from ..wire.gateway_report import (
    FORMAT,
    VERSION,
    GatewayArrival,
    GatewayEntry,
    GatewayExchange,
    GatewayFinding,
    GatewayHint,
    GatewayLog,
    GatewayReport,
    GatewayTrial,
)
from .behind import Row
from .checks import CHECKS, CheckResult, GatewayVerdict, Hint, product_of
from .client.records import ClientExchange
from .phases import STEPS
from .refusal import clean
from .trials import GatewayRun, Trial

_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1b1f24;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.4rem .6rem;
border-bottom:1px solid #d0d7de}code{font-family:ui-monospace,monospace}.hint{color:#57606a}
pre{margin:0;display:inline-block;vertical-align:top}
.broken{color:#a40e26;font-weight:600}.degraded,.unclear{color:#7d4e00}.changed{color:#0550ae}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}
.hint{color:#9198a1}.broken{color:#ff7b72}.degraded,.unclear{color:#e3b341}.changed{color:#79c0ff}}
"""
_WIDEST = 34
_WORST_FIRST: Final = [*reversed(GatewayVerdict)]
_ORDER = (
    GatewayVerdict.SAME,
    GatewayVerdict.CHANGED,
    GatewayVerdict.DEGRADED,
    GatewayVerdict.BROKEN,
    GatewayVerdict.NOT_APPLICABLE,
    GatewayVerdict.UNCLEAR,
)

# An entry is described by the first of these members it has.
_DESCRIBING: Final = ("method", "rpc", "status", "outcome", "tool", "by", "why", "problem", "revision")


class AllowedError(ValueError):
    """The file of accepted deviations has a wrong line, or is not TOML."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Accepted deviations: a verdict by the name of its check, such as {"close.lost": "broken"}."""

    verdicts: Mapping[str, str] = field(default_factory=dict)

    def accepts(self, finding: CheckResult) -> bool:
        return self.verdicts.get(finding.name) == finding.verdict

    def mark(self, finding: CheckResult) -> str:
        return " (allowed)" if self.accepts(finding) else ""


def read_allowed(text: str, names: Iterable[str]) -> Allowed:
    """Read lines such as `"close.lost" = "broken"` (TOML). Raises `AllowedError`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise AllowedError(f"it is no TOML: {error}") from None
    known = set(names)
    for name, verdict in data.items():
        if name not in known:
            raise AllowedError(f'there is no check {name!r}; a line is "stream.late" = "degraded", the name in quotes')
        if verdict not in {each.value for each in GatewayVerdict}:
            raise AllowedError(f"{name} cannot be {verdict!r}, but one of {', '.join(GatewayVerdict)}")
    return Allowed(data)


def summary(findings: Sequence[CheckResult], partial: str = "") -> str:
    """One line of counts, and why the run is `partial`."""
    counts = Counter(finding.verdict for finding in findings)
    parts = [f"{counts[verdict]} {_shown(verdict)}" for verdict in _ORDER if counts[verdict]]
    counted = " · ".join(parts) or "nothing was checked"
    return f"{counted} · PARTIAL: {partial}" if partial else counted


def _shown(verdict: GatewayVerdict) -> str:
    return verdict.upper() if verdict == GatewayVerdict.BROKEN else str(verdict)


def exit_code(findings: Sequence[CheckResult], allowed: Allowed, *, strict: bool = False, partial: bool = False) -> int:
    """1 if a finding is broken (with `strict` also degraded), else 3 if one is unclear or was not done, else 0."""
    left = [finding.verdict for finding in findings if not allowed.accepts(finding)]
    bad = {GatewayVerdict.BROKEN, GatewayVerdict.DEGRADED} if strict else {GatewayVerdict.BROKEN}
    if bad.intersection(left):
        return 1
    return 3 if GatewayVerdict.UNCLEAR in left or partial or not findings else 0


def _cells(finding: CheckResult, allowed: Allowed) -> tuple[str, str, str, str, str]:
    cells = (
        finding.name,
        finding.direct,
        finding.through,
        _shown(finding.verdict) + allowed.mark(finding),
        finding.evidence,
    )
    return (clean(cells[0]), clean(cells[1]), clean(cells[2]), cells[3], clean(cells[4]))


def table(
    run: GatewayRun,
    findings: Sequence[CheckResult],
    allowed: Allowed,
    *,
    verbose: bool = False,
    width: int | None = None,
) -> str:
    """The report as a table for a terminal, the worst findings first.

    Without `verbose` all that is `same` is one line. Lines are cut to `width`, but for hints: a person copies them. A
    verdict stands before what was measured, so that no cut takes it.
    """
    ordered = sorted(findings, key=lambda each: (_WORST_FIRST.index(each.verdict), each.fault.severity))
    listed = [each for each in ordered if verbose or each.verdict != GatewayVerdict.SAME]
    rows = [("check", "direct", "through", "verdict", "evidence"), *(_cells(each, allowed) for each in listed)]
    rows = [(name, verdict, direct, through, evidence) for name, direct, through, verdict, evidence in rows]
    widths = [min(_WIDEST, max(len(cells[at]) for cells in rows)) for at in range(4)]
    lines: list[str] = []
    for cells, finding in zip(rows, (None, *listed), strict=True):
        lines.append(_cut("  ".join([*map(str.ljust, cells[:4], widths), cells[4]]).rstrip(), width))
        if finding is not None and finding.hints:
            lines.append(_cut(f"    {finding.fault.title}", width))
            lines += [line for hint in finding.hints for line in _hint(hint)]
    if folded := len(ordered) - len(listed):
        checks = f"{folded} check{' is' if folded == 1 else 's are'}"
        lines = [*(lines if listed else []), _cut(f"{checks} the same on both ways (--verbose lists them)", width)]
    return "\n".join([*lines, "", summary(findings, run.partial), ""])


def _cut(line: str, width: int | None) -> str:
    return line if width is None or len(line) <= width else f"{line[: width - 1]}…"


def _hint(hint: Hint) -> list[str]:
    before = "    -> " + (f"{hint.product}: " if hint.product is not None else "")
    return [(before if at == 0 else " " * len(before)) + line for at, line in enumerate(hint.lines)]


def _cell(text: str) -> str:
    escaped = clean(text).replace("\\", "\\\\").replace("|", "\\|").replace("`", "'")
    return escaped.replace("<", "&lt;").replace("[", "\\[")


def markdown(run: GatewayRun, findings: Sequence[CheckResult], allowed: Allowed) -> str:
    """The report as Markdown, such as for a comment on a pull request."""
    when = datetime.fromtimestamp(run.started_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    made_by = [f"mcp-probe {run.program}", *map(_cell, filter(None, [product_of(run)]))]
    lines = [
        f"## Gateway check: {_cell(run.through)}",
        "",
        f"{when}, profile {run.profile}, {', '.join(made_by)}. {summary(findings, run.partial)}.",
        "",
        "| check | direct | through | verdict | evidence and hint |",
        "|---|---|---|---|---|",
    ]
    for finding in findings:
        name, direct, through, verdict, evidence = map(_cell, _cells(finding, allowed))
        title = f"{finding.fault.title}:" if finding.hints else ""
        parts = [evidence, title, *(f"- {_cell(str(hint))}" for hint in finding.hints)]
        lines.append(f"| `{name}` | {direct} | {through} | {verdict} | {'<br>'.join(filter(None, parts))} |")
    return "\n".join(lines) + "\n"


def junit(run: GatewayRun, findings: Sequence[CheckResult], allowed: Allowed) -> str:
    """The report as JUnit XML: broken is a failure, unclear and a partial run an error, what is not offered skipped."""
    cases = "".join(_case(finding, allowed) for finding in findings)
    if run.partial:
        why = f"the run is partial: {run.partial}"
        cases += f'<testcase classname="gateway" name="run" time="0"><error message={quoteattr(why)}/></testcase>\n'
    counted = [finding for finding in findings if not allowed.accepts(finding)]
    counts = {
        "tests": len(findings) + bool(run.partial),
        "failures": sum(each.verdict == GatewayVerdict.BROKEN for each in counted),
        "errors": sum(each.verdict == GatewayVerdict.UNCLEAR for each in counted) + bool(run.partial),
        "skipped": sum(each.verdict == GatewayVerdict.NOT_APPLICABLE for each in findings),
    }
    numbers = " ".join(f'{name}="{value}"' for name, value in counts.items())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
        f'<testsuite name="mcp-probe gateway" {numbers} time="0">\n'
        f"{cases}</testsuite>\n</testsuites>\n"
    )


def _case(finding: CheckResult, allowed: Allowed) -> str:
    name, direct, through, _, evidence = _cells(finding, allowed)
    text = clean(f"direct: {direct}; through: {through}; {evidence}")
    text = "\n".join([text, *(f"- {hint}" for hint in finding.hints)])
    inner = ""
    if allowed.accepts(finding):
        inner = f"<system-out>allowed: {escape(text)}</system-out>"
    elif finding.verdict == GatewayVerdict.BROKEN:
        inner = f"<failure message={quoteattr(finding.fault.title)}>{escape(text)}</failure>"
    elif finding.verdict == GatewayVerdict.UNCLEAR:
        inner = f"<error message={quoteattr(evidence)}>{escape(text)}</error>"
    elif finding.verdict == GatewayVerdict.NOT_APPLICABLE:
        inner = f"<skipped message={quoteattr(evidence)}/>"
    elif finding.verdict != GatewayVerdict.SAME:
        inner = f"<system-out>{finding.verdict}: {escape(text)}</system-out>"
    return f'<testcase classname="gateway" name={quoteattr(name)} time="0">{inner}</testcase>\n'


def html(run: GatewayRun, findings: Sequence[CheckResult], allowed: Allowed) -> str:
    """One page without other files."""
    rows = "".join(_html_row(finding, allowed) for finding in findings)
    title = escape(f"Gateway check of {clean(run.through)}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>{escape(summary(findings, run.partial))}</p><table>"
        "<thead><tr><th>check<th>direct<th>through<th>verdict<th>evidence</tr></thead>"
        f"<tbody>{rows}</tbody></table></html>\n"
    )


def _html_row(finding: CheckResult, allowed: Allowed) -> str:
    name, direct, through, verdict, evidence = map(escape, _cells(finding, allowed))
    hints = "".join(map(_html_hint, finding.hints))
    hint = f'<div class="hint">{escape(finding.fault.title)}<ul>{hints}</ul></div>' if hints else ""
    kind = finding.verdict.replace("/", "")
    return f'<tr><td><code>{name}</code><td>{direct}<td>{through}<td class="{kind}">{verdict}<td>{evidence}{hint}</tr>'


def _html_hint(hint: Hint) -> str:
    if hint.product is None:
        return f"<li>{escape(hint.lines[0])}"
    return f"<li>{escape(hint.product)}: <pre>{escape(chr(10).join(hint.lines))}</pre>"


class _Kept(NamedTuple):
    """The parts of a trial and of each exchange in a report: a page reads a report whole.

    Of a hundred calls the first ones are kept: their step puts the latest first.
    """

    exchanges: int = 12
    messages: int = 24
    entries: int = 60
    ends_of_calls: int = 220
    body: int = 300


_KEPT: Final = _Kept()
_PHASES: Final[Mapping[str, str]] = {step.name: step.phase for step in STEPS}
_STEPS: Final[Mapping[int, Sequence[str]]] = {check.number: check.steps for check in CHECKS}


def document(run: GatewayRun, findings: Sequence[CheckResult], allowed: Allowed) -> GatewayReport:
    """The report of a run."""
    return GatewayReport(
        FORMAT,
        VERSION,
        run.program,
        run.started_at,
        run.direct,
        run.through,
        run.profile,
        run.partial,
        product_of(run),
        GatewayLog(run.api, run.log),
        {way: list(offers) for way, offers in run.offers.items()},
        {verdict.value: sum(each.verdict == verdict for each in findings) for verdict in GatewayVerdict},
        [_finding(run, each, allowed) for each in findings],
        [_trial(run, trial) for trial in run.trials],
    )


def json_report(run: GatewayRun, findings: Sequence[CheckResult], allowed: Allowed) -> str:
    """The report as JSON, for programs and pages."""
    return json.dumps(asdict(document(run, findings, allowed)), ensure_ascii=False, separators=(",", ":")) + "\n"


def _finding(run: GatewayRun, finding: CheckResult, allowed: Allowed) -> GatewayFinding:
    fault = finding.fault
    steps = [step for step in _STEPS[fault.number] if any(trial.step == step for trial in run.trials)]
    return GatewayFinding(
        finding.name,
        fault.number,
        _PHASES[_STEPS[fault.number][0]],
        steps,
        fault.severity,
        fault.title,
        finding.verdict.value,
        allowed.accepts(finding),
        finding.direct,
        finding.through,
        finding.evidence,
        [GatewayHint(hint.product, list(hint.lines)) for hint in finding.hints],
        {way: list(calls) for way, calls in finding.calls.items()},
        [number for number, trial in enumerate(run.trials) if trial.step in steps],
    )


def _trial(run: GatewayRun, trial: Trial) -> GatewayTrial:
    calls = [call.started["call"] for call in trial.behind.all_calls(trial.mark)]
    return GatewayTrial(
        trial.step,
        _PHASES[trial.step],
        trial.way,
        trial.turn,
        trial.mark,
        trial.skipped,
        dict(trial.moments),
        list(dict.fromkeys(calls)),
        [_exchange(item) for item in _exchanges(run, trial)],
        len(trial.exchanges),
        [_entry(row) for row in _entries(trial)],
        len(trial.behind.entries),
    )


def _exchanges(run: GatewayRun, trial: Trial) -> Sequence[ClientExchange]:
    if len(trial.exchanges) <= _KEPT.exchanges:
        return trial.exchanges
    both = [other for other in run.trials if (other.step, other.turn) == (trial.step, trial.turn)]
    named = {item.name for other in both for item in other.exchanges[: _KEPT.exchanges // 2]}
    return [item for item in trial.exchanges if item.name in named]


def _entries(trial: Trial) -> Sequence[Row]:
    """The end of each call is the evidence of `load.serial`."""
    rows = trial.behind.entries
    ends = [row for row in rows[_KEPT.entries :] if row["kind"] in ("call.started", "call.settled")]
    return [*rows[: _KEPT.entries], *ends[: _KEPT.ends_of_calls]]


def _exchange(item: ClientExchange) -> GatewayExchange:
    kept = item.messages[: _KEPT.messages]
    return GatewayExchange(
        item.name,
        item.protocol,
        item.method,
        item.began,
        item.status,
        item.head_at,
        item.header("content-type"),
        item.framing,
        len(item.messages),
        [GatewayArrival(each.at, each.event_id, each.size, _what(each.message)) for each in kept],
        len(item.comments),
        item.body[: _KEPT.body],
        list(item.faults),
        item.end,
        item.ended,
        item.problem,
    )


def _what(message: Mapping[str, Any] | None) -> str:
    if message is None:
        return "a message too large to keep"
    error = message.get("error")
    if isinstance(error, dict):
        return f"error {error.get('code')}"
    return "result" if "result" in message else str(message.get("method", "no JSON-RPC message"))


def _entry(row: Row) -> GatewayEntry:
    description = next((str(row[name]) for name in _DESCRIBING if row.get(name) is not None), "")
    return GatewayEntry(
        row["seq"], row["at"], row["kind"], row["connection"], row["exchange"], row["session"], row["call"], description
    )


FORMATS: Final[Mapping[str, Callable[[GatewayRun, Sequence[CheckResult], Allowed], str]]] = {
    "table": table,
    "json": json_report,
    "junit": junit,
    "markdown": markdown,
    "html": html,
}

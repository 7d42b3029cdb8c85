"""Findings as text: a table for a terminal, Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ..checks import CheckResult, Verdict
from ..checks import product_of as product
from ..cleaning import clean
from ..faults import Hint
from ..trials import Run
from .summary import Allowed, summary

_WIDEST = 34


def row(finding: CheckResult, allowed: Allowed) -> tuple[str, str, str, str, str]:
    """The cells of a finding: name, direct, through, verdict, evidence."""
    verdict = finding.verdict.upper() if finding.verdict == Verdict.BROKEN else str(finding.verdict)
    cells = (finding.name, finding.direct, finding.through, verdict + allowed.mark(finding), finding.evidence)
    return (clean(cells[0]), clean(cells[1]), clean(cells[2]), cells[3], clean(cells[4]))


def table(run: Run, findings: Sequence[CheckResult], allowed: Allowed) -> str:
    """The report as a table for a terminal."""
    rows = [("check", "direct", "through", "verdict", "evidence"), *(row(finding, allowed) for finding in findings)]
    widths = [min(_WIDEST, max(len(cells[at]) for cells in rows)) for at in range(4)]
    hinted = {finding.name: finding for finding in findings if finding.hints}
    lines: list[str] = []
    for cells in rows:
        lines.append("  ".join([*map(str.ljust, cells[:4], widths), cells[4]]).rstrip())
        if cells[0] in hinted:
            lines.append(f"    {hinted[cells[0]].fault.title}")
            lines += [line for hint in hinted[cells[0]].hints for line in _hint(hint)]
    return "\n".join([*lines, "", summary(findings, run.partial), ""])


def _hint(hint: Hint) -> list[str]:
    """A hint over several lines, those of a configuration one below the other."""
    before = "    -> " + (f"{hint.product}: " if hint.product is not None else "")
    return [(before if at == 0 else " " * len(before)) + line for at, line in enumerate(hint.lines)]


def _cell(text: str) -> str:
    escaped = clean(text).replace("\\", "\\\\").replace("|", "\\|").replace("`", "'")
    return escaped.replace("<", "&lt;").replace("[", "\\[")


def markdown(run: Run, findings: Sequence[CheckResult], allowed: Allowed) -> str:
    """A page, or a comment on a pull request."""
    when = datetime.fromtimestamp(run.started_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    made_by = [f"mcp-probe {run.program}", *map(_cell, filter(None, [product(run)]))]
    lines = [
        f"## Gateway check: {_cell(run.through)}",
        "",
        f"{when}, profile {run.profile}, {', '.join(made_by)}. {summary(findings, run.partial)}.",
        "",
        "| check | direct | through | verdict | evidence and hint |",
        "|---|---|---|---|---|",
    ]
    for finding in findings:
        name, direct, through, verdict, evidence = map(_cell, row(finding, allowed))
        title = f"{finding.fault.title}:" if finding.hints else ""
        said = [evidence, title, *(f"- {_cell(str(hint))}" for hint in finding.hints)]
        lines.append(f"| `{name}` | {direct} | {through} | {verdict} | {'<br>'.join(filter(None, said))} |")
    return "\n".join(lines) + "\n"

"""Findings as JUnit XML and as a page of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from xml.sax.saxutils import quoteattr

from ..checks import CheckResult, Verdict
from ..cleaning import clean
from ..faults import Hint
from ..trials import Run
from .plain import row
from .summary import Allowed, summary

_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1b1f24;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.4rem .6rem;
border-bottom:1px solid #d0d7de}code{font-family:ui-monospace,monospace}.hint{color:#57606a}
pre{margin:0;display:inline-block;vertical-align:top}
.broken{color:#a40e26;font-weight:600}.degraded,.unclear{color:#7d4e00}.changed{color:#0550ae}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}
.hint{color:#9198a1}.broken{color:#ff7b72}.degraded,.unclear{color:#e3b341}.changed{color:#79c0ff}}
"""


def junit(run: Run, findings: Sequence[CheckResult], allowed: Allowed) -> str:
    """The report as JUnit XML: broken is a failure, unclear and a partial run an error, what is not offered skipped."""
    cases = "".join(_case(finding, allowed) for finding in findings)
    if run.partial:
        why = f"the run is partial: {run.partial}"
        cases += f'<testcase classname="gateway" name="run" time="0"><error message={quoteattr(why)}/></testcase>\n'
    counted = [finding for finding in findings if not allowed.accepts(finding)]
    counts = {
        "tests": len(findings) + bool(run.partial),
        "failures": sum(each.verdict == Verdict.BROKEN for each in counted),
        "errors": sum(each.verdict == Verdict.UNCLEAR for each in counted) + bool(run.partial),
        "skipped": sum(each.verdict == Verdict.NOT_APPLICABLE for each in findings),
    }
    numbers = " ".join(f'{name}="{value}"' for name, value in counts.items())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
        f'<testsuite name="mcp-probe gateway" {numbers} time="0">\n'
        f"{cases}</testsuite>\n</testsuites>\n"
    )


def _case(finding: CheckResult, allowed: Allowed) -> str:
    name, direct, through, _, evidence = row(finding, allowed)
    said = clean(f"direct: {direct}; through: {through}; {evidence}")
    said = "\n".join([said, *(f"- {hint}" for hint in finding.hints)])
    inner = ""
    if allowed.accepts(finding):
        inner = f"<system-out>allowed: {escape(said)}</system-out>"
    elif finding.verdict == Verdict.BROKEN:
        inner = f"<failure message={quoteattr(finding.fault.title)}>{escape(said)}</failure>"
    elif finding.verdict == Verdict.UNCLEAR:
        inner = f"<error message={quoteattr(evidence)}>{escape(said)}</error>"
    elif finding.verdict == Verdict.NOT_APPLICABLE:
        inner = f"<skipped message={quoteattr(evidence)}/>"
    elif finding.verdict != Verdict.SAME:
        inner = f"<system-out>{finding.verdict}: {escape(said)}</system-out>"
    return f'<testcase classname="gateway" name={quoteattr(name)} time="0">{inner}</testcase>\n'


def html(run: Run, findings: Sequence[CheckResult], allowed: Allowed) -> str:
    """One page that needs nothing else."""
    rows = "".join(_row(finding, allowed) for finding in findings)
    title = escape(f"Gateway check of {clean(run.through)}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>{escape(summary(findings, run.partial))}</p><table>"
        "<thead><tr><th>check<th>direct<th>through<th>verdict<th>evidence</tr></thead>"
        f"<tbody>{rows}</tbody></table></html>\n"
    )


def _row(finding: CheckResult, allowed: Allowed) -> str:
    name, direct, through, verdict, evidence = map(escape, row(finding, allowed))
    hints = "".join(map(_hint, finding.hints))
    hint = f'<div class="hint">{escape(finding.fault.title)}<ul>{hints}</ul></div>' if hints else ""
    kind = finding.verdict.replace("/", "")
    return f'<tr><td><code>{name}</code><td>{direct}<td>{through}<td class="{kind}">{verdict}<td>{evidence}{hint}</tr>'


def _hint(hint: Hint) -> str:
    if hint.product is None:
        return f"<li>{escape(hint.lines[0])}"
    return f"<li>{escape(hint.product)}: <pre>{escape(chr(10).join(hint.lines))}</pre>"

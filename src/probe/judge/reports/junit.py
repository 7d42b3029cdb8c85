"""A report as JUnit XML: one suite for each subject and group of rules.

A FAIL is a `failure`, and so is a WARN where warnings count (`strict`), else its text is in `system-out`. A rule that
was not observed, or not decided, is `skipped` with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ...core.escaping import shown
from ..report import Judgement, RuleReport, SubjectReport
from ..verdicts import Verdict
from .wording import WHERE_MORE, Lookup, act, entry_line, head, heading, sentences


def junit(report: Judgement, lookup: Lookup, *, strict: bool = False) -> bytes:
    """The document, with its declaration."""
    root = Element("testsuites", name="mcp-probe judge")
    for subject in report.subjects:
        for group, rules in groupby(subject.rules, key=lambda rule: rule.rule.group):
            _suite(root, subject, group, rules, lookup, strict=strict)
    indent(root)
    return ('<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n").encode()


def _suite(
    root: Element, subject: SubjectReport, group: str, rules: Iterable[RuleReport], lookup: Lookup, *, strict: bool
) -> None:
    judged, name = list(rules), f"{shown(subject.label)}.{group}"
    fatal = {Verdict.FAIL, Verdict.WARN} if strict else {Verdict.FAIL}
    skipped = {Verdict.INCONCLUSIVE, Verdict.NOT_OBSERVED}
    suite = SubElement(
        root,
        "testsuite",
        name=name,
        tests=str(len(judged)),
        failures=str(sum(rule.verdict in fatal for rule in judged)),
        errors="0",
        skipped=str(sum(rule.verdict in skipped for rule in judged)),
    )
    for rule in judged:
        case = SubElement(suite, "testcase", classname=name, name=rule.rule.id)
        if rule.verdict in fatal:
            failure = SubElement(case, "failure", type=rule.verdict.name, message=shown(rule.remark))
            failure.text = _text(rule, subject, lookup)
        elif rule.verdict is Verdict.WARN:
            SubElement(case, "system-out").text = _text(rule, subject, lookup)
        elif rule.verdict in skipped:
            why = rule.remark or f"not observed; to reach it: {act(rule.rule)}"
            SubElement(case, "skipped", message=shown(why))


def _text(rule: RuleReport, subject: SubjectReport, lookup: Lookup) -> str:
    lines = [heading(rule), rule.remark]
    lines += [f"{each.doc}: {each.text}" for each in sentences(rule.rule, subject.revisions)]
    for evidence in rule.evidence:
        for seq in evidence.seqs if evidence.verdict is rule.verdict else ():
            entry = lookup(seq)
            lines += [entry_line(seq, entry), *(f"    {text}" for text in [head(entry)] if text)]
    lines.append(WHERE_MORE)
    # What is not printable would end a line or be no character of XML 1.0, such as U+FFFE.
    return "\n".join(map(shown, lines))

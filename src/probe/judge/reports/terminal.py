"""A report for a terminal: the conclusion first, then the evidence, then what was not observed and how to reach it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from ...core.escaping import shown
from ..outcome import Compared, ComparedValue
from ..report import Judgement, RuleReport, SubjectReport
from ..verdicts import Verdict
from .wording import (
    WHERE_MORE,
    Lookup,
    checklist,
    conclusion,
    counted,
    entry_line,
    head,
    heading,
    missing,
    sentences,
    share,
    spoken,
    who,
)

# Acts of the checklist that are shown; a person does one after the other, and looks again.
_MOST_ACTS: Final = 8
_MOST_ENTRIES: Final = 3


def terminal(report: Judgement, lookup: Lookup, *, verbose: bool = False, width: int = 100) -> Iterator[str]:
    """The lines of a report, without colour, escaped so that each is one line.

    `verbose` adds what passed, and all that was not observed.
    """
    return map(shown, _lines(report, lookup, verbose=verbose, width=width))


def _lines(report: Judgement, lookup: Lookup, *, verbose: bool, width: int) -> Iterator[str]:
    for log in report.logs:
        if not log.whole:
            yield from _wrapped(f"The log of run {log.run} is not whole: {missing(log)}.", 0, width)
            yield ""
    seen = [subject for subject in report.subjects if subject.requests or subject.worst]
    for subject in seen:
        yield from _subject(subject, lookup, verbose=verbose, width=width)
    if not seen:
        yield "No client was seen."
    for subject in seen:
        yield from _wrapped(f"{subject.label}: {conclusion(subject)}.", 0, width)
    for rule, defect in report.broken.items():
        yield from _wrapped(f"The code of {rule} has a defect and gave no verdict: {defect}", 0, width)


def comparison(found: Sequence[Compared], values: Sequence[ComparedValue], *, verbose: bool) -> Iterator[str]:
    """The lines of a comparison: verdicts and measured values that differ; `verbose` lists equal verdicts, too."""
    for each in found:
        if verbose or each.change != "same":
            verdicts = f"{each.there.name} → {each.here.name}"
            yield shown(f"{each.change:<10} {verdicts}  {each.rule}  {each.label}: {each.remark}".rstrip(": "))
    for value in values:
        yield shown(f"{'measured':<10} {value.there} → {value.here}  {value.label}: {value.name}")
    yield f"{sum(each.change == 'same' for each in found)} rules have the same verdict in both."


def _subject(subject: SubjectReport, lookup: Lookup, *, verbose: bool, width: int) -> Iterator[str]:
    name = who(subject)
    yield f"{subject.label}{f' ({name})' if name and name != subject.label else ''}: {counted(subject)}"
    yield f"    {spoken(subject)}"
    if subject.several:
        yield from _wrapped(f"More than one client may be judged here: {subject.several}.", 4, width)
    yield ""
    for verdict in (Verdict.FAIL, Verdict.WARN, Verdict.INCONCLUSIVE, *([Verdict.PASS] if verbose else [])):
        for rule in subject.having(verdict):
            yield from _rule(rule, subject, lookup, width)
    if subject.worst >= Verdict.INCONCLUSIVE:
        yield from _wrapped(WHERE_MORE, 0, width)
        yield ""
    yield from _unobserved(subject, verbose=verbose, width=width)


def _rule(rule: RuleReport, subject: SubjectReport, lookup: Lookup, width: int) -> Iterator[str]:
    yield f"{rule.verdict.name:<7} {rule.rule.id}  ({share(rule)})  {heading(rule)}"
    if rule.verdict is Verdict.PASS:
        return
    yield from _wrapped(rule.remark, 8, width)
    for sentence in sentences(rule.rule, subject.revisions)[:1]:
        yield from _wrapped(f"{sentence.doc}: “{sentence.text}”", 8, width)
    for seq in rule.evidence[0].seqs[:_MOST_ENTRIES]:
        entry = lookup(seq)
        yield f"        {entry_line(seq, entry)}"
        if text := head(entry):
            yield f"            {text}"
    if rule.verdict is not Verdict.INCONCLUSIVE:
        yield from _wrapped(f"right: {rule.rule.passes}", 8, width)
    yield ""


def _unobserved(subject: SubjectReport, *, verbose: bool, width: int) -> Iterator[str]:
    acts = checklist(subject)
    if not acts:
        return
    yield "Not observed, and how to reach it:"
    for act, rules in acts if verbose else acts[:_MOST_ACTS]:
        yield from _wrapped(f"{act}: {', '.join(rule.rule.id for rule in rules)}", 4, width)
    rest = sum(len(rules) for _, rules in acts[_MOST_ACTS:])
    if rest and not verbose:
        yield f"    and {rest} more (--verbose)"
    yield ""


def _wrapped(text: str, indent: int, width: int) -> Iterator[str]:
    space = " " * indent
    # The id of a rule is one word, and is copied.
    lines = textwrap.wrap(text, max(width, 40), initial_indent=space, subsequent_indent=space, break_on_hyphens=False)
    yield from lines or [space]

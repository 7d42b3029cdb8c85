"""A report as one HTML page that needs nothing else: to read, to print, to attach to a bug report.

The page has no script. Each finding opens to its sentence, what to do, the entries behind it, and what is known of
other clients with the same fault.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined, Template, select_autoescape

from ... import __version__
from ...observe.log import Entry
from ...wire.revisions import LEGACY, MODERN
from ..report import NOT_VISIBLE, Judgement, RuleReport, SubjectReport
from ..verdicts import Verdict
from . import links, wording
from .badge import badge_text
from .wording import Lookup

CARD: Final = "card.html"

_REVISIONS: Final = (*LEGACY, *MODERN)
# A message of a page; what is longer is cut, as the log has it whole.
_LONGEST: Final = 4000
_CLASSES: Final = {
    Verdict.FAIL: "fail",
    Verdict.WARN: "warn",
    Verdict.INCONCLUSIVE: "unclear",
    Verdict.PASS: "pass",
    Verdict.NOT_OBSERVED: "none",
}
_SIGNS: Final = {
    Verdict.FAIL: "\N{BALLOT X}",
    Verdict.WARN: "!",
    Verdict.INCONCLUSIVE: "?",
    Verdict.PASS: "\N{CHECK MARK}",
    Verdict.NOT_OBSERVED: "\N{MIDDLE DOT}",
}


@dataclass(frozen=True, slots=True)
class _Cell:
    """A group of rules at one revision: the worst verdict, and how many rules were observed of how many there are."""

    style: str
    sign: str
    text: str


def card(report: Judgement, lookup: Lookup) -> str:
    """The page."""
    return wording.harmless(_template().render(card_values(report, lookup)))


def card_values(report: Judgement, lookup: Lookup) -> dict[str, Any]:
    """What `card.html` needs, also where another page extends it."""
    subjects = [subject for subject in report.subjects if subject.requests or subject.worst]
    totals = {verdict: sum(subject.counts[verdict] for subject in subjects) for verdict in Verdict}
    return {
        "report": report,
        "subjects": subjects,
        "verdicts": sorted(Verdict, reverse=True),
        "Verdict": Verdict,
        "headline": badge_text(totals),
        "program": __version__,
        "not_visible": NOT_VISIBLE,
        "revisions": _REVISIONS,
        "classes": _CLASSES,
        "signs": _SIGNS,
        "names": wording.NAMES,
        "who": wording.who,
        "spoken": wording.spoken,
        "counted": wording.counted,
        "share": wording.share,
        "link": links.link,
        "sentences": wording.sentences,
        "checklist": wording.checklist,
        "matrix": _matrix,
        "bugs": lambda rule: [report.catalogue.bugs[bug] for bug in rule.rule.bugs],
        "github": links.github,
        "entry": lambda seq: entry_shown(seq, lookup(seq)),
    }


def _matrix(subject: SubjectReport) -> Sequence[tuple[str, Sequence[_Cell]]]:
    """A row for each group of rules, a cell for each revision."""
    return [
        (group, [_cell(list(rules), revision, subject) for revision in _REVISIONS])
        for group, rules in ((name, list(each)) for name, each in groupby(subject.rules, lambda rule: rule.rule.group))
    ]


def _cell(rules: Sequence[RuleReport], revision: str, subject: SubjectReport) -> _Cell:
    there = [rule for rule in rules if revision in rule.rule.revisions]
    if not there:
        return _Cell("absent", "", "no rule in this revision")
    if revision not in subject.revisions:
        return _Cell("absent", "", "the client did not speak it")
    found = [rule.at.get(revision, Verdict.NOT_OBSERVED) for rule in there]
    worst = max(found)
    observed = sum(verdict is not Verdict.NOT_OBSERVED for verdict in found)
    return _Cell(_CLASSES[worst], _SIGNS[worst], f"{wording.NAMES[worst]}; {observed} of {len(there)} rules observed")


def entry_shown(seq: int, entry: Entry | None) -> Mapping[str, str]:
    """One entry of the log: its line, and its message or headers."""
    body = ""
    if entry is not None:
        fact: Any = entry.fact
        message, headers = getattr(fact, "message", None), getattr(fact, "headers", None)
        if isinstance(message, bytes):
            body = json.dumps(json.loads(message), indent=2, ensure_ascii=False)
        elif headers:
            body = "\n".join(f"{name}: {value}" for name, value in headers)
        else:
            body = str(getattr(fact, "head", "") or "")
    cut = body if len(body) <= _LONGEST else f"{body[:_LONGEST]}\n… ({len(body)} characters)"
    return {"line": wording.entry_line(seq, entry), "body": cut}


@cache
def _template() -> Template:
    return templates().get_template(CARD)


def templates(**others: str) -> Environment:
    """The template of the card, and other pages by their names, which may extend it."""
    return Environment(
        loader=DictLoader({CARD: files(__package__).joinpath(CARD).read_text(), **others}),
        autoescape=select_autoescape(default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

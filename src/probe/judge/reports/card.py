"""A report as one HTML page that needs nothing else, and as a badge in SVG.

The page has no script. Each finding opens to its sentence, what to do, the entries behind it, and what is known of
other clients with the same fault. The badge counts what was not observed, so that nothing looks better than it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined, Template, select_autoescape

from ... import __version__
from ...log.event_log import Entry
from ...wire.revisions import LEGACY, MODERN
from ..report import NOT_VISIBLE, Judgement, RuleReport, SubjectReport
from ..verdicts import Verdict
from . import links, wording
from .wording import Lookup

_LEFT: Final = "MCP client"
# The width of a letter of 11 px Verdana on average, and the space around each half.
_LETTER: Final = 6.6
_PADDING: Final = 12
_RED, _AMBER, _GREEN, _GREY = "#b3261e", "#8a5a00", "#1b6e3c", "#5f6368"


def badge(report: Judgement) -> str:
    """The badge of all subjects together."""
    totals = {verdict: sum(subject.counts[verdict] for subject in report.subjects) for verdict in Verdict}
    text = badge_text(totals)
    if totals[Verdict.FAIL]:
        colour = _RED
    elif totals[Verdict.WARN]:
        colour = _AMBER
    else:
        colour = _GREEN if totals[Verdict.PASS] else _GREY
    return _svg(text, colour)


def badge_text(totals: dict[Verdict, int]) -> str:
    """`61 passed, 2 warnings, 84 not observed`."""
    parts = [f"{totals[Verdict.FAIL]} failed"] if totals[Verdict.FAIL] else []
    parts.append(f"{totals[Verdict.PASS]} passed")
    if totals[Verdict.WARN]:
        parts.append(f"{totals[Verdict.WARN]} warning{'s' if totals[Verdict.WARN] > 1 else ''}")
    return ", ".join([*parts, f"{totals[Verdict.NOT_OBSERVED]} not observed"])


def _svg(text: str, colour: str) -> str:
    left, right = (round(len(each) * _LETTER) + _PADDING for each in (_LEFT, text))
    label = escape(f"{_LEFT}: {text}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{label}">'
        f"<title>{label}</title>"
        f'<rect width="{left}" height="20" fill="#333"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="14">{_LEFT}</text><text x="{left + right / 2}" y="14">{escape(text)}</text>'
        "</g></svg>\n"
    )


CARD: Final = "card.html"
REPORT: Final = "report.html"
"""The part of `card.html` that other pages include."""

_REVISIONS: Final = (*LEGACY, *MODERN)
# Characters of a message on a page; a longer one is cut, as the log has it whole.
_LONGEST: Final = 4000
_INDENTED: Final = json.JSONEncoder(indent=2, ensure_ascii=False)
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
    """A group of rules at one revision: the worst verdict, and how many of its rules were observed."""

    style: str
    sign: str
    text: str


def card(report: Judgement, lookup: Lookup) -> str:
    """The page."""
    return wording.harmless(_template().render(card_values(report, lookup)))


def card_values(report: Judgement, lookup: Lookup) -> dict[str, Any]:
    """The values that `card.html` and pages that extend it need. The worst client stands first."""
    seen = (subject for subject in report.subjects if subject.requests or subject.worst)
    subjects = sorted(seen, key=lambda subject: subject.worst, reverse=True)
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
        "heading": wording.heading,
        "conclusion": wording.conclusion,
        "missing": wording.missing,
        "link": links.link,
        "sentences": wording.sentences,
        "checklist": wording.checklist,
        "matrix": _matrix,
        "bugs": lambda rule: [report.catalogue.bugs[bug] for bug in rule.rule.bugs],
        "github": links.github,
        "entry": lambda seq: entry_shown(seq, lookup(seq)),
    }


def _matrix(subject: SubjectReport) -> Sequence[tuple[str, Sequence[_Cell]]]:
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
            body = _message_shown(message)
        elif headers:
            body = _cut("\n".join(f"{name}: {value}" for name, value in headers))
        else:
            body = _cut(str(getattr(fact, "head", "") or ""))
    return {"line": wording.entry_line(seq, entry), "body": body}


def _message_shown(message: bytes) -> str:
    # To parse a message of some MiB would take tenths of a second.
    if len(message) > 4 * _LONGEST:
        return f"{message[:_LONGEST].decode(errors='ignore')}\n… ({len(message)} bytes)"
    text = ""
    # Indented, deeply nested JSON is many times as long, so no more of it is made than is shown.
    for piece in _INDENTED.iterencode(json.loads(message)):
        text += piece
        if len(text) > _LONGEST:
            return f"{text[:_LONGEST]}\n… ({len(message)} bytes)"
    return text


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n… ({len(text)} characters)"


@cache
def _template() -> Template:
    return templates().get_template(CARD)


def templates(**others: str) -> Environment:
    """The template of the card, and other pages by their names, which may extend it."""
    return Environment(
        loader=DictLoader({name: files(__package__).joinpath(name).read_text() for name in (CARD, REPORT)} | others),
        autoescape=select_autoescape(default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

"""A badge as SVG. It always shows what was not observed, so that nothing looks better than it was seen."""

from __future__ import annotations

from html import escape
from typing import Final

from ..report import Judgement
from ..verdicts import Verdict

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

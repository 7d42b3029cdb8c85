"""The documents of this project: their links, their headings, and the examples in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_CODE = re.compile(r"`[^`\n]+`")


class Example(NamedTuple):
    """A block of code in a page."""

    page: Path
    language: str
    code: str


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def examples(page: Path) -> list[Example]:
    return [Example(page, language, code) for language, code in _FENCE.findall(page.read_text())]


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text())


def links(page: Path) -> Iterator[str]:
    """Where a page links to, beside other sites."""
    for found in _LINK.findall(_CODE.sub("", prose(page))):
        target = found[0] or found[1]
        if not target.startswith(("http://", "https://", "mailto:")):
            yield target


def anchors(page: Path) -> set[str]:
    """What a link can name in a page: its headings, as GitHub and the site make them, and its own anchors."""
    text = prose(page)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {_slug(heading) for heading in headings} | set(re.findall(r"<a id=\"([^\"]+)\"", text))


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")

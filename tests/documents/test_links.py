"""Every link leads to a file and to a heading that it has; every page of docs/ stands in the menu of the site."""

from __future__ import annotations

from pathlib import Path

import pytest

from .markdown import PAGES, ROOT, anchors, links, name


def broken(page: Path) -> list[str]:
    wrong: list[str] = []
    for link in links(page):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        # an image of the site for one theme
        anchored = anchor and target.suffix == ".md"
        if not target.exists() or (anchored and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading: of `it`\n[a](none.md) [b](#a-heading-of-it) [c](#none) `[d](none.md)`\n```\n[e](none.md)\n```\n"
    )
    assert broken(page) == ["none.md", "#none"]


def test_every_page_stands_in_the_menu_of_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")]
    assert [page for page in pages if f": {page}\n" not in site] == []

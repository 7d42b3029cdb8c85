"""Every picture of README and docs/ is made by `nox -s screenshots`, and every picture that it makes is shown."""

from __future__ import annotations

import re
from pathlib import Path

from .markdown import PAGES, ROOT

IMAGES = ROOT / "docs" / "images"
PICTURES = {".png", ".webp", ".jpg", ".gif", ".svg"}
MAKER = ROOT / "dashboard" / "e2e" / "screenshots.ts"


def made() -> set[str]:
    """The files that the session makes: one for each theme."""
    names = re.findall(r'\{ name: "([\w-]+)", path:', MAKER.read_text())
    return {f"{name}-{theme}.png" for name in names for theme in ("light", "dark")}


def shown() -> set[str]:
    """The pictures of this repository that a page shows, in Markdown or in HTML."""
    found: set[str] = set()
    for page in PAGES:
        images = re.findall(r'(?:!\[[^\]]*\]\(|src(?:set)?=")([^)"\s]+)', page.read_text())
        files = [image.partition("#")[0] for image in images if "://" not in image]
        files = [file for file in files if Path(file).suffix in PICTURES]
        found |= {(page.parent / file).resolve().relative_to(ROOT).as_posix() for file in files}
    return found


def test_every_picture_is_made_by_the_session_and_shown_by_a_page() -> None:
    assert "call-light.png" in made()
    assert shown() == {f"docs/images/{name}" for name in made()}
    assert {file.name for file in IMAGES.iterdir()} == made()

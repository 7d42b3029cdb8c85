"""A hook of mkdocs.yml: what the site of the documents has beside the pages of docs/.

* the colours and sizes of the dashboard, from its own `tokens.css`, and its mark;
* a table of the judge's rules in place of the committed text, and a page for each rule (`rule_pages.py`);
* links to files elsewhere in the repository, which lead to GitHub. `SITE_REPOSITORY` is the address of the repository.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File
from rule_pages import site_pages, site_table

_DASHBOARD = Path(__file__).parents[1] / "dashboard" / "src"
_REPOSITORY = os.environ.get("SITE_REPOSITORY", "https://github.com/OWNER/mcp-probe")
_UPWARDS = re.compile(r"\]\(((?:\.\./)+)([^)\s]+)\)")
# the typefaces come with the packages of the dashboard, which this site is built without
_FONT_FACE = re.compile(r"@font-face \{.*?\}\n", re.DOTALL)
_RULES = "judge-rules.md"


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Called by mkdocs with the files of docs/: adds those that are made."""
    made = dict(site_pages())
    made["site/tokens.css"] = _FONT_FACE.sub("", (_DASHBOARD / "ui" / "tokens.css").read_text())
    made["site/icon.svg"] = (_DASHBOARD / "app" / "icon.svg").read_text()
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    if page.file.src_uri == _RULES:
        return site_table()
    depth = len(PurePosixPath(page.file.src_uri).parts)

    def outside(found: re.Match[str]) -> str:
        if found[1].count("../") < depth:
            return found[0]
        return f"]({_REPOSITORY}/blob/main/{found[2]})"

    return _UPWARDS.sub(outside, markdown)

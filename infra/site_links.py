"""A hook of mkdocs.yml: what a page of docs/ links to elsewhere in the repository, the site links to on GitHub.

`SITE_REPOSITORY` is the address of the repository.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePosixPath
from typing import Any

_REPOSITORY = os.environ.get("SITE_REPOSITORY", "https://github.com/OWNER/mcp-probe")
_UPWARDS = re.compile(r"\]\(((?:\.\./)+)([^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    depth = len(PurePosixPath(page.file.src_uri).parts)

    def outside(found: re.Match[str]) -> str:
        if found[1].count("../") < depth:
            return found[0]
        return f"]({_REPOSITORY}/blob/main/{found[2]})"

    return _UPWARDS.sub(outside, markdown)

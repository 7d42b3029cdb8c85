"""The table of the kinds of entries in docs/observation.md: the docstring of each class of `probe.log.events`.

`python -m tests.documents.events` writes it anew.
"""

from __future__ import annotations

import inspect
import re
from typing import Final, get_args

from probe.log.events import Event

from .markdown import ROOT

PAGE: Final = ROOT / "docs" / "observation.md"
BEGIN: Final = "<!-- begin: python -m tests.documents.events -->\n"
END: Final = "<!-- end -->\n"


def words(docstring: str) -> str:
    """A docstring on one line, with JSON's name for None."""
    return re.sub(r"\bNone\b", "null", " ".join(docstring.split()))


def table() -> str:
    rows = (f"| `{kind.kind}` | {words(inspect.getdoc(kind) or '')} |\n" for kind in get_args(Event))
    return "| kind | recorded when |\n|---|---|\n" + "".join(rows)


def written(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))

"""docs/internals/dependencies.md names every dependency, with a reason and what was rejected, and no other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def declared() -> set[str]:
    """The names of all packages in pyproject.toml."""
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = whole["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values(), *whole["dependency-groups"].values()]
    texts = [entry for group in groups for entry in group if isinstance(entry, str)]
    return {re.split(r"[<>=!~\[; ]", text)[0] for text in texts}


def test_every_dependency_has_its_reason_and_what_was_rejected() -> None:
    text = (ROOT / "docs" / "internals" / "dependencies.md").read_text()
    rows = re.findall(r"^\| `([\w.-]+)`[^|]* \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    assert {name for name, _, _ in rows} == declared()
    assert len(rows) == len(declared()), "no package stands twice"
    assert [name for name, why, rejected in rows if not (why.endswith(".") and rejected.endswith("."))] == []

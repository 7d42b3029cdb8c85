"""The map of the packages in CONTRIBUTING.md: the first line of each docstring, in the order of the imports.

`python -m tests.documents.rooms` writes it anew.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from .markdown import ROOT

PAGE: Final = ROOT / "CONTRIBUTING.md"
SOURCES: Final = ROOT / "src" / "probe"
BEGIN: Final = "<!-- begin: python -m tests.documents.rooms -->\n"
END: Final = "<!-- end -->\n"


def packages(sources: Path) -> set[Path]:
    return {module.parent for module in sources.rglob("*.py")} - {sources}


def rooms(root: Path) -> list[str]:
    """The folders directly in the package, in the order in which one may import another: the lowest layer first."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract.get("containers") == ["probe"])
    return [room.strip() for layer in reversed(layers) for room in layer.split("|")]


def rows(sources: Path, order: Sequence[str]) -> Iterator[str]:
    """A row for each package. Raises `ValueError` for one without a docstring, or in a room that has no place."""
    found = {package.relative_to(sources): package for package in packages(sources)}
    for name in sorted(found, key=lambda name: (order.index(name.parts[0]), name)):
        init = found[name] / "__init__.py"
        words = ast.get_docstring(ast.parse(init.read_text())) if init.exists() else None
        if not words:
            raise ValueError(f"{init} has no docstring")
        yield f"| `src/probe/{name.as_posix()}/` | {words.splitlines()[0]} |\n"


def written(page: str, table: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{table}{END}{rest.partition(END)[2]}"


def table() -> str:
    return "| package | what |\n|---|---|\n" + "".join(rows(SOURCES, rooms(ROOT)))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(), table()))

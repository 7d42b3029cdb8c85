"""The map of the packages in CONTRIBUTING.md is that of the tree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .rooms import BEGIN, END, PAGE, ROOT, SOURCES, packages, rooms, rows, table, written


def test_the_map_is_that_of_the_tree() -> None:
    """Else: python -m tests.documents.rooms."""
    page = PAGE.read_text()
    assert page.count(BEGIN) == page.count(END) == 1
    assert page == written(page, table())


def test_the_top_has_the_rooms_and_nothing_else() -> None:
    beside = {entry.name for entry in SOURCES.iterdir()} - {"__pycache__"}
    assert beside == {*rooms(ROOT), "__init__.py", "__main__.py", "py.typed"}


def test_each_package_has_a_row_in_the_order_of_the_layers(tmp_path: Path) -> None:
    for name, words in {"b": "The first.\n\nMore.", "a": "The second.", "b/c": "Inside the first."}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f'"""{words}"""\n')
    assert list(rows(tmp_path, ["b", "a"])) == [
        "| `src/probe/b/` | The first. |\n",
        "| `src/probe/b/c/` | Inside the first. |\n",
        "| `src/probe/a/` | The second. |\n",
    ]


def test_each_file_that_a_package_lists_is_there() -> None:
    files = {
        package / name
        for package in packages(SOURCES)
        for name in re.findall(r"^ +(\S+\.(?:py|toml)) {2}", _docstring(package), re.MULTILINE)
    }
    assert len(files) > 20
    assert [file for file in files if not file.exists()] == []


def _docstring(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""


@pytest.mark.parametrize("module", ["__init__.py", "module.py"])
def test_a_package_without_a_docstring_is_an_error(module: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / module).write_text("x = 1\n")
    with pytest.raises(ValueError, match="has no docstring"):
        list(rows(tmp_path, ["a"]))

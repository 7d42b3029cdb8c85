"""The lines by which the documents start the server, in both positions of their one switch."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from infra import way_in

from .markdown import ROOT, examples


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the files that the switch writes."""
    for name in way_in.NAMES_THE_ACCOUNT:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def contents(tree: Path) -> dict[str, str]:
    return {name: (tree / name).read_text() for name in way_in.NAMES_THE_ACCOUNT}


def commands(page: Path) -> list[str]:
    """The blocks of a page that start the server, in their order."""
    return [example.code for example in examples(page) if example.language == "sh" and "serve" in example.code]


def test_the_committed_lines_are_those_of_the_switch(tree: Path) -> None:
    """Else: python infra/way_in.py."""
    committed = contents(tree)
    way_in.write(tree)
    assert contents(tree) == committed


def test_until_something_is_published_the_clone_comes_first(tmp_path: Path) -> None:
    for name in ("start", "home", "tutorial"):
        (tmp_path / "page.md").write_text(way_in.PLACES[name].from_clone)
        assert commands(tmp_path / "page.md")[0].startswith(
            "git clone https://github.com/OWNER/mcp-probe && cd mcp-probe"
        )
    readme = way_in.PLACES["start"].from_clone
    assert readme.index("Once the package and the image are published") < readme.index("uvx ") < readme.index("docker ")
    assert "uvx" not in way_in.PLACES["home"].from_clone + way_in.PLACES["tutorial"].from_clone


def test_the_one_command_of_the_home_page_is_the_two_of_the_readme(tmp_path: Path) -> None:
    found: list[list[str]] = []
    for name in ("start", "home"):
        (tmp_path / "page.md").write_text(way_in.PLACES[name].from_clone)
        found.append([word for word in re.split(r"\s*(?:&&|\n)\s*", commands(tmp_path / "page.md")[0]) if word])
    assert found[0] == found[1]


def test_the_switch_turns_every_page_and_leaves_no_other_account(tree: Path) -> None:
    way_in.turn(tree, "somebody")
    for name, text in contents(tree).items():
        assert not re.search(r"\bOWNER\b", text), name
    assert commands(tree / "README.md")[0].splitlines() == [
        "uvx mcp-probe-server serve --open",
        "pipx run mcp-probe-server serve --open",
        "docker run --rm --publish 127.0.0.1:8000:8000 ghcr.io/somebody/mcp-probe",
    ]
    assert commands(tree / "docs/index.md") == ["uvx mcp-probe-server serve --open\n"]
    assert commands(tree / "docs/tutorial.md")[0].startswith("uv tool install mcp-probe-server\n")
    assert "git+https" not in (tree / "docs/how-to/ci.md").read_text()
    once = contents(tree)
    way_in.write(tree)
    assert contents(tree) == once


def test_a_page_without_the_marks_is_named(tree: Path) -> None:
    (tree / "docs/index.md").write_text("# MCP Probe\n")
    with pytest.raises(ValueError, match=r"docs/index\.md has no <!-- begin home"):
        way_in.write(tree)

"""What is published: the listing of the MCP registry, and the agreement of all places that name a version."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from .tools import ROOT, accepted, script, tool

release = script("release")
way_in = script("way_in")
SCHEMA = "tests/schemas/server-json/server.schema.json"
LISTING = json.loads((ROOT / "server.json").read_text())
NAME = "somebody/mcp-probe"


def test_the_listing_fits_the_schema_of_the_registry() -> None:
    accepted("check-jsonschema", "--schemafile", SCHEMA, "server.json")
    assert LISTING["$schema"] == json.loads((ROOT / SCHEMA).read_text())["$id"]


def test_the_schema_of_the_listing_is_looked_at(tmp_path: Path) -> None:
    wrong = tmp_path / "server.json"
    wrong.write_text(json.dumps(LISTING | {"description": "x" * 101}))
    assert tool("check-jsonschema", "--schemafile", SCHEMA, str(wrong)).returncode == 1


def test_the_listing_names_the_package_and_starts_it() -> None:
    (package,) = (found for found in LISTING["packages"] if found["registryType"] == "pypi")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert package["identifier"] == project["name"]
    assert project["name"] in project["scripts"], "so that uvx finds what to start"
    words = [found.get("value") or found["name"] for found in package["packageArguments"]]
    said = subprocess.run(
        [sys.executable, "-m", "probe", *words[:1], "--help"], check=True, text=True, stdout=subprocess.PIPE, timeout=60
    )
    assert words == ["stdio", "--dashboard"]
    assert "--dashboard PORT" in said.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """This tree as far as a release looks at it, made ready for version 9.8.7 of an account."""
    names = {"src/probe/__init__.py", "CHANGELOG.md", "README.md", *way_in.NAMES_THE_ACCOUNT}
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text()
        (tmp_path / name).write_text(text.replace(release.package_version(ROOT), "9.8.7"))
    way_in.turn(tmp_path, "somebody")
    changelog = tmp_path / "CHANGELOG.md"
    ready = "## Unreleased\n\n## 9.8.7 - 2026-11-30\n\n- It is new.\n\n## 0.0.1 - 2026-01-01\n\n- It is old.\n"
    changelog.write_text(ready)
    return tmp_path


def test_a_tree_that_is_ready_is_released_with_its_section_of_the_changelog(tree: Path) -> None:
    assert [*release.mistakes(tree, "v9.8.7", NAME)] == []
    assert release.notes(tree, "9.8.7") == "- It is new."
    assert release.notes(tree, "0.0.1") == "- It is old."


@pytest.mark.parametrize(
    ("tag", "name", "wrong"),
    [
        ("9.8.7", NAME, "9.8.7 is no tag of a release"),
        ("v9.8", NAME, "v9.8 is no tag of a release"),
        ("v9.8.6", NAME, "src/probe/__init__.py has version 9.8.7"),
        ("v9.8.6", NAME, "CHANGELOG.md has nothing under '## 9.8.6"),
        ("v9.8.6", NAME, "server.json has version 9.8.7"),
        ("v9.8.6", NAME, "server.json has version 9.8.7 of the package"),
        ("v9.8.6", NAME, "server.json has the image ghcr.io/somebody/mcp-probe:9.8.7"),
        ("v9.8.7", "other/mcp-probe", "server.json has the name io.github.somebody/mcp-probe"),
        ("v9.8.7", "other/mcp-probe", "README.md does not have 'mcp-name: io.github.other/mcp-probe'"),
        ("v9.8.7", "other/mcp-probe", "README.md does not have 'ghcr.io/other/mcp-probe'"),
    ],
)
def test_what_does_not_agree_is_named(tag: str, name: str, wrong: str, tree: Path) -> None:
    assert [found for found in release.mistakes(tree, tag, name) if found.startswith(wrong)] != []


def test_a_readme_that_starts_from_a_clone_is_not_released(tree: Path) -> None:
    (tree / "README.md").write_text((ROOT / "README.md").read_text().replace("OWNER", "somebody"))
    found = ["README.md starts the server from a clone: python infra/way_in.py somebody"]
    assert [*release.mistakes(tree, "v9.8.7", NAME)] == found


def test_without_a_section_there_is_nothing_to_release(tree: Path) -> None:
    shutil.copy(ROOT / "CHANGELOG.md", tree)
    assert [*release.mistakes(tree, "v9.8.7", NAME)] == ["CHANGELOG.md has nothing under '## 9.8.7 - YEAR-MONTH-DAY'"]


def test_as_it_is_committed_it_names_no_account(capsys: pytest.CaptureFixture[str]) -> None:
    """An image under an account that another person owns could be anything."""
    assert release.main([f"v{release.package_version(ROOT)}", "--name", NAME]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "server.json has the name io.github.OWNER/mcp-probe\n" in err


def test_every_place_of_the_readme_names_the_same_package() -> None:
    named = set(re.findall(r"(?:uvx|pipx run|pip install) '?(mcp-probe[\w-]*)", (ROOT / "README.md").read_text()))
    assert named == {LISTING["packages"][0]["identifier"]}

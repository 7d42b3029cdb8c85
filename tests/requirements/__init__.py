"""What the protocol asks of a server, beside the tests that prove it.

`docs/internals/requirements.md` is made from both.

The clauses are the `*.toml` files of this folder. A test names those that it proves by their ids:
`@pytest.mark.proves("2025-11-25/cancellation/3")`. Markers are read from the source and nothing is imported, so what
the document lists does not depend on what can be collected on this machine.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
DOCUMENT = TESTS.parent / "docs" / "internals" / "requirements.md"
LEVELS = {"MUST", "MUST NOT", "REQUIRED", "SHOULD", "SHOULD NOT", "MAY", "statement"}
"""`statement`: a sentence without any of these words on which clients build and which the official suite ignores."""

INTRODUCTION = """\
# Requirements

Every MUST and SHOULD for servers in transports, cancellation, progress, tasks, multi-round-trip requests and
subscriptions, with the tests that prove it or the reason why none can. Sentences that bind only clients are left out;
a sentence with several obligations has a row for each. A few sentences without such a word are there too, as
`statement` or `MAY`: clients build on them and the official conformance suite does not look at them.

This file is made by `python -m tests.requirements` from `tests/requirements/*.toml` and the `proves` markers of the
tests. It lists no test that does not name the clause itself.
"""


@dataclass(frozen=True)
class Clause:
    """One obligation, quoted; `about` says in which sense a general sentence is meant."""

    id: str
    section: str
    level: str
    text: str
    about: str = ""
    unprovable: str = ""


@dataclass(frozen=True)
class Page:
    """The clauses of one page of a specification."""

    title: str
    path: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Specification:
    """One file of clauses; `name` is its stem and the beginning of its ids."""

    name: str
    title: str
    source: str
    pages: tuple[Page, ...]

    @property
    def clauses(self) -> tuple[Clause, ...]:
        return tuple(clause for page in self.pages for clause in page.clauses)


@dataclass(frozen=True, order=True)
class Proof:
    """A test, by its file relative to `tests` and its name."""

    path: str
    test: str


Proofs = dict[str, list[Proof]]
"""By the id of the clause."""


def specifications() -> list[Specification]:
    return [_specification(path) for path in sorted(Path(__file__).parent.glob("*.toml"))]


def _specification(path: Path) -> Specification:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    pages = [
        Page(page["title"], page["path"], tuple(Clause(**clause) for clause in page["clauses"]))
        for page in data["pages"]
    ]
    return Specification(path.stem, data["title"], data["source"], tuple(pages))


@cache
def proofs() -> Proofs:
    """Every test with a `proves` marker. Raises `ValueError` for a marker that is no plain decorator of a test."""
    found: Proofs = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        if "node_modules" not in path.parts:
            for id, test in _markers(path):
                found.setdefault(id, []).append(Proof(path.relative_to(TESTS).as_posix(), test))
    return {id: sorted(set(tests)) for id, tests in found.items()}


def _markers(path: Path) -> Iterator[tuple[str, str]]:
    source = path.read_text(encoding="utf-8")
    # to parse all tests takes seconds
    nodes = list(ast.walk(ast.parse(source))) if "proves" in source else []
    read = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for marker in filter(_is_marker, node.decorator_list):
                read.add(marker)
                for id in _ids(marker, path):
                    yield id, node.name
    if any(_is_marker(node) and node not in read for node in nodes):
        raise ValueError(f"{path}: a proves marker somewhere else than above a test")


def _is_marker(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "proves"


def _ids(marker: ast.AST, path: Path) -> list[str]:
    assert isinstance(marker, ast.Call)
    ids = [argument.value for argument in marker.args if isinstance(argument, ast.Constant)]
    if not ids or len(ids) < len(marker.args) or not all(isinstance(id, str) for id in ids):
        raise ValueError(f"{path}, line {marker.lineno}: proves takes one or more ids as plain strings")
    return [str(id) for id in ids]


def document() -> str:
    """What `docs/internals/requirements.md` must say."""
    asked, proven = specifications(), proofs()
    parts = [INTRODUCTION, _summary(asked, proven)]
    for specification in asked:
        parts.append(f"## {specification.title}\n\nSource: <{specification.source}>\n")
        parts += [_table(page, proven) for page in specification.pages]
    return "\n".join(parts)


def _summary(asked: list[Specification], proven: Proofs) -> str:
    rows = ["| | clauses | proven by a test | not provable by one |", "|---|---|---|---|"]
    for specification in asked:
        clauses = specification.clauses
        tested = sum(clause.id in proven for clause in clauses)
        reasons = sum(bool(clause.unprovable) for clause in clauses)
        rows.append(f"| {specification.title} | {len(clauses)} | {tested} | {reasons} |")
    return "\n".join(rows) + "\n"


def _table(page: Page, proven: Proofs) -> str:
    rows = [f"### {page.title}: `{page.path}`\n", "| id | level | sentence | proven by |", "|---|---|---|---|"]
    rows += [_row(clause, proven.get(clause.id, [])) for clause in page.clauses]
    return "\n".join(rows) + "\n"


def _row(clause: Clause, tests: list[Proof]) -> str:
    about = f"<br>({clause.about})" if clause.about else ""
    links = "<br>".join(f"[{proof.path}::{proof.test}](../../tests/{proof.path})" for proof in tests)
    evidence = links or (f"No test: {clause.unprovable}" if clause.unprovable else "**Not proven**")
    sentence = f"*{clause.section}*<br>{clause.text}{about}".replace("|", "\\|")
    return f"| {clause.id} | {clause.level} | {sentence} | {evidence} |"

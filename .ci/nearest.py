"""Names the test files to run for what has changed, for `nox -s quick`.

    python nearest.py [COMMIT]

What has changed is what git finds between COMMIT and the files as they are. Without COMMIT it is what is not committed;
if everything is, what was committed since the branch left main.
A module has the tests of its name in its room, such as `judge/test_page.py` for `judge/rules/lists/page.py`, and those
that import it, also by a helper in their own folder. Where there is none, it has the tests of the modules that import
it; a module that no other imports, such as a command, has those of its room. Any other file has the tests that name it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "probe"
TESTS = ROOT / "tests"
# these have environments of their own
ELSEWHERE = ("tests/clients/", "tests/conformance/", "tests/infra/", "tests/bugs/")
# so many files of tests run within a minute
MOST = 25


def git(*arguments: str) -> list[str]:
    """The lines that git says; none where it refuses."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603, S607
    return done.stdout.split()


def changed(commit: str | None) -> set[Path]:
    """Files that differ from a commit, by default as the docstring of this module says, and files new to git."""
    new = git("ls-files", "--others", "--exclude-standard")
    names = [*git("diff", "--name-only", commit or "HEAD"), *new]
    if not names and commit is None:
        names = git("diff", "--name-only", *git("merge-base", "HEAD", "main"))
    return {ROOT / name for name in names}


def imported(file: Path) -> Iterator[str]:
    """The modules that a file imports, by their whole names; of `from a import b` also `a.b`, which may be one."""
    package = dotted(file).split(".")
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def dotted(file: Path) -> str:
    """The name of a module, as an import says it; `__init__` is a part of its own, so that it counts as one level."""
    above = SOURCES.parent if file.is_relative_to(SOURCES) else ROOT
    return ".".join(file.relative_to(above).with_suffix("").parts)


def nearest(file: Path, uses: Mapping[Path, set[str]]) -> set[Path]:
    """The test files that are nearest to one file; `uses` has the imports of all modules and tests."""
    if file.suffix != ".py":
        # a name without a suffix, such as `run`, is a word of any test
        return {test for test in uses if is_test(test) and file.suffix and f'{file.name}"' in test.read_text()}
    if is_test(file):
        return {file} & uses.keys()
    if not file.is_relative_to(SOURCES):
        return importing(dotted(file), uses)
    seen, ring, found = {file}, {file}, set[Path]()
    while ring and not found:
        found = {test for module in ring for test in own(module, uses)}
        names = {dotted(module).removesuffix(".__init__") for module in ring}
        ring = {other for other in uses if other.is_relative_to(SOURCES) and names & uses[other]} - seen
        seen |= ring
    return found or {test for test in uses if is_test(test) and room(file) in test.parts}


def room(module: Path) -> str:
    """The package below `probe` that has a module."""
    return module.relative_to(SOURCES).parts[0]


def is_test(file: Path) -> bool:
    """True if pytest collects this file."""
    return file.name.startswith("test_")


def own(module: Path, uses: Mapping[Path, set[str]]) -> set[Path]:
    """The test files that have the name of a module or import it."""
    named = {test for test in uses if test.name == f"test_{module.stem}.py" and room(module) in test.parts}
    return named | importing(dotted(module).removesuffix(".__init__"), uses)


def importing(name: str, uses: Mapping[Path, set[str]]) -> set[Path]:
    """The test files that import a module, also by a helper beside them."""
    found = {test for test, modules in uses.items() if test.is_relative_to(TESTS) and name in modules}
    for helper in {other for other in found if not is_test(other)}:
        found |= {test for test in uses if test.parent == helper.parent and dotted(helper) in uses[test]}
    return {test for test in found if is_test(test)}


def main() -> None:
    """Print the names, one a line."""
    uses = {file: set(imported(file)) for folder in (SOURCES, TESTS) for file in folder.glob("**/*.py")}
    files = [file for file in changed(next(iter(sys.argv[1:]), None)) if file.exists()]
    wanted = Counter(str(test.relative_to(ROOT)) for file in files for test in nearest(file, uses))
    tests = [test for test, _ in wanted.most_common() if not test.startswith(ELSEWHERE)]
    if len(tests) > MOST:
        print(f"{len(tests)} files of tests run what has changed; those that run most of it are taken", file=sys.stderr)
    print("\n".join(sorted(tests[:MOST])))


if __name__ == "__main__":
    main()

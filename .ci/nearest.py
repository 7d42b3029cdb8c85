"""Names the test files that are nearest to what has changed, for `nox -s quick`.

    python nearest.py [COMMIT]

What has changed is what git finds between COMMIT and the files as they are. Without COMMIT it is what is not committed;
if everything is, what was committed since the branch left main.
Near to a module are the tests of its name (`log/follower.py`: `test_follower.py`), those that import it, also by a
helper in their own folder, and where there is neither, the folder of its name. Near to any other file are the tests
that name it.
What very many tests import has only those of its name, and tests that reach a change by way of the whole engine are not
found: `nox -s tests` runs them.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
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


def nearest(file: Path, uses: dict[Path, set[str]]) -> set[Path]:
    """The test files that are nearest to one file."""
    if file.suffix != ".py":
        # a name without a suffix, such as `run`, is a word of any test
        return {test for test in uses if file.suffix and f'{file.name}"' in test.read_text()}
    if file.name.startswith("test_"):
        return {file} & uses.keys()
    name = dotted(file).removesuffix(".__init__")
    found = {test for test, modules in uses.items() if name in modules or test.name == f"test_{file.stem}.py"}
    beside = {other for other in found if not other.name.startswith("test_")}
    for helper in beside:
        found |= {test for test in uses if test.parent == helper.parent and dotted(helper) in uses[test]}
    return found or {test for test in uses if {test.parent.name} & set(file.parent.parts)}


def main() -> None:
    """Print the names, one a line."""
    uses = {file: set(imported(file)) for file in TESTS.glob("**/*.py")}
    files = [file for file in changed(next(iter(sys.argv[1:]), None)) if file.exists()]
    near: set[str] = set()
    for file in files:
        tests = {test for test in nearest(file, uses) if test.name.startswith("test_")}
        if len(tests) > MOST:
            print(f"{file.relative_to(ROOT)} is used by {len(tests)} files of tests; not all are run", file=sys.stderr)
            tests = {test for test in tests if test.name in (f"test_{file.stem}.py", f"test_{file.parent.name}.py")}
        near |= {str(test.relative_to(ROOT)) for test in tests}
    near = {test for test in near if not test.startswith(ELSEWHERE)}
    print("\n".join(sorted(near)))


if __name__ == "__main__":
    main()

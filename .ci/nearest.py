"""Names the tests to run for what has changed, for `nox -s quick`.

    python nearest.py [COMMIT]    prints them, one a line
    python nearest.py --map       makes the map of what `recorder/sitecustomize.py` has recorded, for `nox -s record`

What has changed is what git finds between COMMIT and the files as they are. Without COMMIT it is what is not committed;
if everything is, what was committed since the branch left main. Modules are compared function by function: the map has
the tests that run each, in their own process or in one that they start, and the tests that read each file of data. A
change outside of functions has the tests that run any function of the module, and the files that import it.

Test files that the map does not know, all of them where there is no map, are found by their imports.
A module has the tests of its name in its room, such as `judge/test_page.py` for `judge/rules/lists/page.py`, and those
that import it, also by a helper in their own folder. Where there is none, it has the tests of the modules that import
it; a module that no other imports, such as a command, has those of its room. Any other file has the tests that name it.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "probe"
TESTS = ROOT / "tests"
RAN = ROOT / ".nox" / "ran"
MAP = ROOT / ".nox" / "map.json"
# these have environments of their own
ELSEWHERE = ("tests/clients/", "tests/conformance/", "tests/infra/", "tests/bugs/")
# what the tests that are chosen may take in one process, and what one file takes that the map does not know
MOST_S = 60.0
FILE_S = 2.4


@dataclass
class Covered:
    """What tests run: functions by `path::name`, and files that they read by their path."""

    seconds: dict[str, float] = field(default_factory=dict)
    """How long each test takes, in the order of the tests' numbers."""
    reached: dict[str, list[int]] = field(default_factory=dict)
    """The numbers of the tests that run or read each of them."""

    def tests(self, name: str) -> set[str]:
        """The tests that run a function or read a file."""
        tests = list(self.seconds)
        return {tests[number] for number in self.reached.get(name, ())}

    def of_file(self, path: str) -> set[str]:
        """The tests that run any function of a file."""
        return {test for name in self.reached if name.startswith(f"{path}::") for test in self.tests(name)}


def recorded() -> Covered:
    """What the processes of a run have recorded."""
    seconds, reached = dict[str, float](), defaultdict[str, set[str]](set)
    for file in RAN.iterdir():
        meaning, took, test = dict[str, str](), Counter[str](), ""
        for line in file.read_text().splitlines():
            kind, _, rest = line.partition(" ")
            if kind == ">":
                test = rest
            elif kind == "<":
                took[test] += round(1000 * float(rest))
            elif kind == "=":
                number, _, name = rest.partition(" ")
                meaning[number] = name
            elif test:
                reached[meaning[kind]].add(test)
        # the workers of xdist share the parameters of a test
        seconds |= {test: ms / 1000 + seconds.get(test, 0.0) for test, ms in took.items()}
    numbers = {test: number for number, test in enumerate(seconds)}
    return Covered(
        seconds, {name: [numbers[test] for test in tests & numbers.keys()] for name, tests in reached.items()}
    )


def git(*arguments: str) -> str:
    """What git prints; nothing where it refuses, as for a file that a commit does not have."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607
    return done.stdout


def changed(commit: str | None) -> tuple[str, set[Path]]:
    """A commit, by default as the docstring of this module says, and the files that differ from it."""
    new = git("ls-files", "--others", "--exclude-standard").split()
    base = commit or "HEAD"
    paths = [*git("diff", "--name-only", base).split(), *new]
    if not paths and commit is None:
        base = git("merge-base", "HEAD", "main").strip()
        paths = git("diff", "--name-only", base).split()
    return base, {ROOT / path for path in paths}


def parts(source: str) -> dict[str, str]:
    """The functions and methods of a module by their qualified names, and by an empty name what is outside."""
    found = defaultdict[str, str](str)

    def sort(nodes: list[ast.stmt], prefix: str) -> None:
        for node in nodes:
            name = ""
            if isinstance(node, ast.ClassDef):
                sort(node.body, f"{prefix}{node.name}.")
                node.body = []
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = prefix + node.name
            found[name] += ast.dump(node)

    sort(ast.parse(source).body, "")
    return found


def differing(before: str, now: str) -> set[str]:
    """The names of `parts` that differ; the empty one for a new function, which may change what its class does."""
    old, new = parts(before), parts(now)
    return {name if name in old else "" for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def wanted(file: Path, base: str, covered: Covered, uses: Mapping[Path, set[str]]) -> Iterator[set[str]]:
    """For each part that has changed in a file the tests that run or read it; a test file stands for all its tests."""
    path = str(file.relative_to(ROOT))
    known = {test.partition("::")[0] for test in covered.seconds}
    near = paths_of(nearest(file, uses))
    if is_test(file):
        yield near
    elif file.suffix != ".py":
        # what is read once in a process is recorded for one of the tests that depend on it
        yield near | covered.tests(path)
    else:
        now = file.read_text() if file.exists() else ""
        of_module = covered.of_file(path) | paths_of(importing(module_name(file), uses))
        for name in differing(git("show", f"{base}:{path}"), now):
            tests = covered.tests(f"{path}::{name}") or of_module
            yield tests | (near - known) if tests else near


def paths_of(files: Iterable[Path]) -> set[str]:
    """The paths of some files below the project."""
    return {str(file.relative_to(ROOT)) for file in files}


def chosen(changes: Iterable[set[str]], covered: Covered) -> list[str]:
    """The tests that run most of what has changed, and little else, up to `MOST_S`; at least one for each part."""
    changes = [kept for tests in changes if (kept := standing(tests))]
    sizes = Counter(number for numbers in covered.reached.values() for number in numbers)
    size = {test: sizes[number] for number, test in enumerate(covered.seconds)}
    often = Counter(test for tests in changes for test in tests)
    rank = {test: (-often[test], size.get(test, 0), test) for test in often}
    taken = {min(tests, key=rank.__getitem__) for tests in changes}
    left = MOST_S - sum(duration(test, covered) for test in taken)
    for test in sorted(rank.keys() - taken, key=rank.__getitem__):
        left -= duration(test, covered)
        if left < 0:
            print(f"{len(rank)} tests run what has changed; the {len(taken)} nearest are taken", file=sys.stderr)
            break
        taken.add(test)
    return sorted(taken)


def standing(tests: Iterable[str]) -> set[str]:
    """Those tests that are still there; if there is none, the files in which they were."""
    return set(filter(stands, tests)) or set(filter(stands, (test.partition("::")[0] for test in tests)))


def stands(test: str) -> bool:
    """True if a test is still there, and in the environment of `nox -s quick`."""
    path, _, name = test.partition("::")
    if path.startswith(ELSEWHERE) or not (ROOT / path).exists():
        return False
    name = name.rpartition("::")[2]
    # no file defines the test of a state machine of hypothesis
    return name in ("", "runTest") or f"def {name}(" in content(path)


@cache
def content(path: str) -> str:
    """The text of a file of tests."""
    return (ROOT / path).read_text()


def duration(test: str, covered: Covered) -> float:
    """How long a test, or a file of tests, takes."""
    if test in covered.seconds:
        return covered.seconds[test]
    return sum(took for name, took in covered.seconds.items() if name.startswith(f"{test}::")) or FILE_S


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


def module_name(file: Path) -> str:
    """The name by which a module, or a package, is imported."""
    return dotted(file).removesuffix(".__init__")


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
        found = {test for file in ring for test in own(file, uses)}
        imports = {module_name(file) for file in ring}
        ring = {other for other in uses if other.is_relative_to(SOURCES) and imports & uses[other]} - seen
        seen |= ring
    return found or {test for test in uses if is_test(test) and room(file) in test.parts}


def room(file: Path) -> str:
    """The package below `probe` that has a module."""
    return file.relative_to(SOURCES).parts[0]


def is_test(file: Path) -> bool:
    """True if pytest collects this file."""
    return file.name.startswith("test_")


def own(file: Path, uses: Mapping[Path, set[str]]) -> set[Path]:
    """The test files that have the name of a module or import it."""
    named = {test for test in uses if test.name == f"test_{file.stem}.py" and room(file) in test.parts}
    return named | importing(module_name(file), uses)


def importing(name: str, uses: Mapping[Path, set[str]]) -> set[Path]:
    """The test files that import a module, also by a helper beside them."""
    found = {test for test, modules in uses.items() if test.is_relative_to(TESTS) and name in modules}
    for helper in {other for other in found if not is_test(other)}:
        found |= {test for test in uses if test.parent == helper.parent and dotted(helper) in uses[test]}
    return {test for test in found if is_test(test)}


def main() -> None:
    """Print the tests, or make the map."""
    if sys.argv[1:] == ["--map"]:
        MAP.write_text(json.dumps(asdict(recorded())))
        return
    covered = Covered(**json.loads(MAP.read_text())) if MAP.exists() else Covered()
    uses = {file: set(imported(file)) for folder in (SOURCES, TESTS) for file in folder.glob("**/*.py")}
    base, files = changed(next(iter(sys.argv[1:]), None))
    changes = (tests for file in sorted(files) for tests in wanted(file, base, covered, uses))
    print("\n".join(chosen(changes, covered)))


if __name__ == "__main__":
    main()

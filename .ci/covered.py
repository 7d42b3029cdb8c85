"""Writes which test files run which module, into covered.json beside this file: `nox -s covered` makes it.

    python covered.py COVERAGE_DATA

The data has a context for each test, such as `tests/core/test_call.py::test_a|run` (pytest-cov, and coveragerc for the
processes that tests start). Only lines in
functions count, since the first test that imports a module runs all others.

Many test files run the same module by way of the whole server. For each module the map has the fewest that together run
every line of it that any test runs. A file that runs little else comes first: for `core/call.py`,
`tests/core/test_call.py` comes before `tests/transports/test_calls.py`.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).parents[1]
MAP = Path(__file__).with_name("covered.json")
# The tests of one module that `nox -s quick` runs, at most.
MOST = 8


def lines_of_functions(file: Path) -> set[int]:
    """The numbers of the lines that only a call runs."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= set(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
    return found


def covered(data: CoverageData) -> Iterator[tuple[str, Mapping[str, set[int]]]]:
    """Each module with the test files that run it, and the lines that they run."""
    for name in sorted(data.measured_files()):
        file = Path(name)
        if not file.is_relative_to(ROOT / "src"):
            continue
        wanted = lines_of_functions(file)
        tests: dict[str, set[int]] = defaultdict(set)
        for line, contexts in data.contexts_by_lineno(name).items():
            if line in wanted:
                for test in {context.partition("::")[0] for context in contexts if context}:
                    tests[test].add(line)
        yield str(file.relative_to(ROOT)), tests


def fewest(tests: Mapping[str, set[int]], breadth: Mapping[str, int]) -> list[str]:
    """The test files that together cover all lines; `breadth` says how many modules each of them runs."""
    left = set().union(*tests.values())
    chosen: list[str] = []
    while left and len(chosen) < MOST:
        best = max(sorted(tests), key=lambda test: len(tests[test] & left) / breadth[test])
        chosen.append(best)
        left -= tests[best]
    return chosen


def main() -> None:
    """Write the map."""
    data = CoverageData(sys.argv[1])
    data.read()
    modules = dict(covered(data))
    breadth = Counter(test for tests in modules.values() for test in tests)
    chosen = {module: fewest(tests, breadth) for module, tests in modules.items()}
    MAP.write_text(json.dumps(chosen, indent=1) + "\n")


if __name__ == "__main__":
    main()

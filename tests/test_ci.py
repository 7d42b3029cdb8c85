"""The programs of `.ci`: which tests `nox -s quick` runs, and what the whole check says at its end.

For the first a small project is tested and mapped, then one thing of it is changed at a time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"
FILES = {
    ".gitignore": ".nox/\n__pycache__/\n",
    "src/probe/__init__.py": "",
    "src/probe/room/__init__.py": "",
    "src/probe/room/work.py": """\
LIMIT = 3


class Work:
    def near(self) -> int:
        return max(LIMIT, *(number for number in [1]))

    def unused(self) -> int:
        return 0


def far() -> int:
    return 2


def forked() -> int:
    return 4


def slow() -> int:
    return 5


def replayed() -> int:
    return 6
""",
    "src/probe/room/table.toml": "rows = 1\n",
    # it is killed, so nothing that waits for its end is recorded
    "src/probe/__main__.py": """\
import os, sys
from .room.work import far, forked
if sys.argv[1:] == ["fork"]:
    os._exit(os.waitpid(os.fork(), 0)[1] if os.fork() else forked())
far()
os.kill(os.getpid(), 9)
""",
    "tests/__init__.py": "",
    "tests/room/__init__.py": "",
    "tests/room/test_near.py": """\
import importlib

def test_near():
    importlib.import_module('probe.room.work').Work().near()
""",
    "tests/room/test_process.py": """\
import subprocess, sys
import pytest

@pytest.mark.parametrize("how", ["kill"])
def test_far(how):
    assert subprocess.run([sys.executable, "-m", "probe", how]).returncode == -9

def test_fork():
    subprocess.run([sys.executable, "-m", "probe", "fork"])
""",
    # like a state machine of hypothesis: its test is defined in no test file
    "tests/room/machine.py": """\
import importlib, unittest

class Machine(unittest.TestCase):
    def runTest(self):
        importlib.import_module('probe.room.work').replayed()
""",
    "tests/room/test_replay.py": "from .machine import Machine as TestReplay\n",
    "tests/room/test_table.py": """\
from pathlib import Path

def test_table():
    (file,) = Path("src/probe/room").glob("*.toml")
    file.read_text()
""",
}
WORK = "src/probe/room/work.py"
NEAR, FAR = "tests/room/test_near.py::test_near", "tests/room/test_process.py::test_far"
FORK, TABLE = "tests/room/test_process.py::test_fork", "tests/room/test_table.py::test_table"
REPLAY = "tests/room/test_replay.py::TestReplay::runTest"


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., str]:
    """A project with its map; gives what runs a program in it and returns what that prints."""
    shutil.copytree(CI, tmp_path / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def run(*command: str, **environment: str) -> str:
        variables = {**os.environ, **environment}
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("git", "init", "--quiet", "--initial-branch", "main")
    commit(run)
    return run


def commit(run: Callable[..., str]) -> None:
    run("git", "add", ".")
    run("git", "-c", "user.name=me", "-c", "user.email=me@example.com", "commit", "--quiet", "-m", "All")


def mapped(run: Callable[..., str]) -> None:
    """Run the tests with the recorder and make the map, as `nox -s record` does."""
    # without the plugin of this package, which would be looked for in the small project
    environment = {"PYTHONPATH": os.pathsep.join([".ci/recorder", "src"]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    options = ("-c", os.devnull, "--rootdir", ".", "-p", "xdist", "-p", "sitecustomize", "-n", "1")
    run(sys.executable, "-m", "pytest", *options, **environment)
    run(sys.executable, ".ci/nearest.py", "--map")


def change(tmp_path: Path, name: str, before: str, after: str) -> None:
    file = tmp_path / name
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after, 1))


CHANGES = [
    ("a method", WORK, "return max(LIMIT", "return min(LIMIT", [NEAR]),
    ("a function that only another process runs, which is killed", WORK, "return 2", "return 22", [FAR]),
    ("a function that only a forked process runs", WORK, "return 4", "return 44", [FORK]),
    ("a file that is read", "src/probe/room/table.toml", "1", "2", [TABLE]),
    ("a test file", "tests/room/test_table.py", "read_text", "read_bytes", ["tests/room/test_table.py"]),
    ("a value outside of functions", WORK, "LIMIT = 3", "LIMIT = 4", [NEAR, FAR, FORK, REPLAY]),
    ("a new method", WORK, "    def unused", "    def new(self): ...\n\n    def unused", [NEAR, FAR, FORK, REPLAY]),
    ("a function that no test runs", WORK, "return 5", "return 55", [NEAR, FAR, FORK, REPLAY]),
    ("a function that only a test without a definition runs", WORK, "return 6", "return 66", [REPLAY]),
    ("a comment", WORK, "return 2", "return 2  # two", []),
]


def test_a_change_selects_the_tests_that_run_it_and_their_file_where_they_are_gone(
    project: Callable[..., str], tmp_path: Path
) -> None:
    mapped(project)
    for what, name, before, after, tests in CHANGES:
        change(tmp_path, name, before, after)
        assert project(sys.executable, ".ci/nearest.py").split() == tests, what
        project("git", "checkout", "--quiet", ".")
    change(tmp_path, "tests/room/test_process.py", "def test_fork(", "def test_forked(")
    commit(project)
    change(tmp_path, WORK, "return 4", "return 44")
    assert project(sys.executable, ".ci/nearest.py").split() == ["tests/room/test_process.py"]


def test_a_test_has_the_time_of_all_its_workers_and_none_of_the_process_that_leads_them(
    project: Callable[..., str], tmp_path: Path
) -> None:
    mapped(project)
    ran = list((tmp_path / ".nox/ran").iterdir())
    assert sum(file.read_text().count("\n< ") for file in ran) == len([NEAR, FAR, FORK, REPLAY, TABLE])
    for file in ran:
        file.unlink()
    for name, seconds in (("one", 0.25), ("other", 0.5)):
        (tmp_path / ".nox/ran" / name).write_text(f"> {FAR}\n< {seconds}\n")
    project(sys.executable, ".ci/nearest.py", "--map")
    assert json.loads((tmp_path / ".nox/map.json").read_text())["seconds"] == {FAR: 0.75}


def test_nothing_is_recorded_into_a_file_of_a_program_that_closes_all_others(
    project: Callable[..., str], tmp_path: Path
) -> None:
    program = "import os; os.closerange(3, 4096); os.open('own', os.O_CREAT | os.O_WRONLY); import probe.room.work"
    project(sys.executable, "-c", program, PYTHONPATH=os.pathsep.join([".ci/recorder", "src"]))
    assert (tmp_path / "own").read_bytes() == b""
    assert list((tmp_path / ".nox/ran").iterdir()), "it was recorded until then"


def test_test_files_that_the_map_does_not_know_count_and_a_minute_is_the_bound(
    project: Callable[..., str], tmp_path: Path
) -> None:
    """New files of tests are found by their imports. A part that has changed keeps one test however long that takes."""
    mapped(project)
    new = "from probe.room.work import far\n\ndef test_new():\n    far()\n"
    (tmp_path / "tests/room/test_new.py").write_text(new)
    commit(project)
    change(tmp_path, WORK, "return 2", "return 22")
    assert project(sys.executable, ".ci/nearest.py").split() == ["tests/room/test_new.py", FAR]
    file = tmp_path / ".nox/map.json"
    known = json.loads(file.read_text())
    file.write_text(json.dumps(known | {"seconds": dict.fromkeys(known["seconds"], 59.0)}))
    assert project(sys.executable, ".ci/nearest.py").split() == ["tests/room/test_new.py"]
    change(tmp_path, WORK, "return 4", "return 44")
    assert project(sys.executable, ".ci/nearest.py").split() == ["tests/room/test_new.py"]
    (tmp_path / "tests/room/test_new.py").unlink()
    commit(project)
    change(tmp_path, WORK, "return 22", "return 222")
    change(tmp_path, WORK, "return 44", "return 444")
    assert project(sys.executable, ".ci/nearest.py").split() == [FAR, FORK]


def test_without_a_map_tests_are_found_by_imports_and_names(project: Callable[..., str], tmp_path: Path) -> None:
    change(tmp_path, "tests/room/test_near.py", "importlib\n", "importlib\nimport probe.room.work\n")
    commit(project)
    change(tmp_path, WORK, "return 2", "return 22")
    assert project(sys.executable, ".ci/nearest.py").split() == ["tests/room/test_near.py"]


def test_of_two_runs_beside_each_other_the_session_that_failed_first_is_named_with_its_test(tmp_path: Path) -> None:
    """`tests` ended before `lint`, but after `types`, which passed; `build` failed without a test."""
    rows = [
        [("tests", "failed", 20.0)],
        [("types", "success", 5.0), ("lint", "success", 25.0), ("build", "failed", 1.0)],
    ]
    reports = []
    for number, row in enumerate(rows):
        reports.append(tmp_path / f"report-{number}.json")
        sessions = [{"name": name, "result": result, "duration": seconds} for name, result, seconds in row]
        reports[-1].write_text(json.dumps({"sessions": sessions}))
    case = '<testcase classname="tests.test_x" name="test_%s">%s</testcase>'
    cases = case % ("good", "") + case % ("bad", "<failure/>") + case % ("worse", "<error/>")
    counts = 'tests="3" failures="1" errors="1" skipped="0"'
    (tmp_path / "tests.xml").write_text(f"<testsuites><testsuite {counts}>{cases}</testsuite></testsuites>")
    command = [sys.executable, CI / "tally.py", tmp_path, *reports]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-2:] == [
        "failed first: tests, 20 s after the start: tests.test_x.test_bad",
        "1 passed, 3 failed",
    ]

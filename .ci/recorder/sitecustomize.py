"""Records which functions each test runs and which files it reads, for `nox -s record`.

Python loads this module at its start, also in each process that a test starts, as its folder is on PYTHONPATH; pytest
loads it as a plugin. Each process writes a file of lines into `.nox/ran/`:

    > tests/cli/test_program.py::test_help    what follows belongs to this test, with all its parameters
    = 7 src/probe/cli/program.py::main        7 means this function; the name of a file that is read has no `::`
    7                                         the test runs it
    < 0.25                                    the test has ended, 0.25 seconds after it began

A line is written when its function is run, so a process that is killed loses none.
pytest leaves its asserts alone, as Python has loaded it before: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep  # noqa: PTH100, PTH120
FOLDER = f"{ROOT}.nox/ran"
# of the numbers that sys.monitoring has for tools, one that no kind of tool has for itself
TOOL = 3
# a program that closes all files and opens its own gives them lower ones; macOS allows 256
FILE_NUMBER = 200


class Recorder:
    """The lines of one process."""

    def __init__(self) -> None:
        self._test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" (")[0]
        self._began = 0.0
        self.open()

    def open(self) -> None:
        """Begin a file. A forked process has one of its own: its numbers would mean other names than its parent's."""
        os.makedirs(FOLDER, exist_ok=True)  # noqa: PTH103
        file = os.open(f"{FOLDER}/{os.getpid()}-{time.time_ns()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, FILE_NUMBER)
        os.close(file)
        self._numbers = dict[str, int]()
        self._count = itertools.count()
        self.begin(self._test)

    def begin(self, test: str) -> None:
        """What is noted from now on belongs to this test."""
        self._test = test.partition("[")[0]
        self._began = time.perf_counter()
        self._seen = set[int]()
        self._write(f"> {self._test}")
        if sys.version_info >= (3, 12):
            sys.monitoring.restart_events()

    def end(self, test: str) -> None:
        """A test has ended; the process that leads the workers of xdist hears of those of the workers."""
        if test.partition("[")[0] == self._test:
            self._write(f"< {time.perf_counter() - self._began:.3f}")

    def note(self, path: str, function: str = "") -> None:
        """Note a function, or a file that was read, once for each test. Files outside the project are left out."""
        name = path.removeprefix(ROOT) + function
        if not path.startswith(ROOT) or name.startswith(".") or f"{os.sep}." in name:
            return
        number = self._numbers.get(name)
        if number is None:
            number = next(self._count)
            self._write(f"= {number} {name}")
            # only now, as another thread that finds it writes the number at once
            self._numbers[name] = number
        if number not in self._seen:
            self._seen.add(number)
            self._write(str(number))

    def _write(self, line: str) -> None:
        try:
            os.write(self._file, f"{line}\n".encode())
        except OSError:
            # the program closes files that it did not open: it ends without a map, and not because of it
            return

    def ran(self, code: CodeType) -> None:
        """A function is run. What is inside of it, such as a lambda, counts as the function itself."""
        self.note(code.co_filename, "::" + code.co_qualname.partition(".<locals>")[0])

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        """The same, for Python 3.11."""
        if event == "call":
            self.ran(frame.f_code)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """A file is opened; those of modules are not data."""
        if event == "open":
            path, mode, _ = arguments
            if isinstance(path, str) and isinstance(mode, str) and "r" in mode and not path.endswith((".py", ".pyc")):
                self.note(os.path.abspath(path))  # noqa: PTH100 - pathlib is not loaded in each process

    def start(self) -> None:
        """Record from now on to the end of the process."""
        os.register_at_fork(after_in_child=self.open)
        sys.addaudithook(self.audit)
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring

            def once(code: CodeType, offset: int) -> Any:
                self.ran(code)
                return monitoring.DISABLE

            monitoring.use_tool_id(TOOL, "the map of the tests")
            for event in (monitoring.events.PY_START, monitoring.events.PY_RESUME):
                monitoring.register_callback(TOOL, event, once)
            monitoring.set_events(TOOL, monitoring.events.PY_START | monitoring.events.PY_RESUME)
        else:
            threading.setprofile(self.profile)
            sys.setprofile(self.profile)


recorder = Recorder()
recorder.start()


def pytest_runtest_protocol(item: Any) -> None:
    """pytest begins with a test in this process."""
    recorder.begin(item.nodeid)


def pytest_runtest_logfinish(nodeid: str, location: object) -> None:
    """pytest is done with a test, in this process or in a worker."""
    recorder.end(nodeid)

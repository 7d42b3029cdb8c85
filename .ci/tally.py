"""Prints what one or more runs of nox came to: a table of the sessions, then `N passed, N failed` over all tests.

    python tally.py JUNIT_DIRECTORY REPORT...

Each session that was skipped has a line with the reason. Where sessions failed, the line before the last names the one
that failed first, and its first test: others often have the same cause. A session that failed without a failing test
(lint, a crash, a timeout) counts as one failure, so the last line never says `0 failed` about a run that failed. The
exit code is 1 if anything failed, and if no test passed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET


@dataclass(frozen=True)
class Session:
    """What one session came to; it took `seconds`, in which other sessions may have run beside it.

    `ended` is the time at which it ended, in seconds since its run of nox began.
    """

    name: str
    result: str
    seconds: float
    ended: float
    passed: int
    failed: int
    reason: str
    first: str = ""


def count(junit: Path) -> tuple[int, int]:
    """(passed, failed) of one session; skipped and expected failures are neither."""
    suites = [suite.attrib for suite in ET.parse(junit).iter("testsuite")]  # noqa: S314 - pytest wrote it just now
    total, failures, errors, skipped = (
        sum(int(suite[key]) for suite in suites) for key in ("tests", "failures", "errors", "skipped")
    )
    return total - failures - errors - skipped, failures + errors


def first_failure(junit: Path) -> str:
    """The first test that failed, as `class.test`; empty where none did."""
    for case in ET.parse(junit).iter("testcase"):  # noqa: S314 - as above
        if case.find("failure") is not None or case.find("error") is not None:
            return f"{case.get('classname')}.{case.get('name')}"
    return ""


def sessions(reports: Iterable[Path], junits: Path) -> Iterator[Session]:
    """Each session of some reports."""
    for report in reports:
        ended = 0.0
        for session in json.loads(report.read_text())["sessions"]:
            junit = junits / f"{session['name']}.xml"
            passed, failed = count(junit) if junit.exists() else (0, 0)
            if session["result"] not in ("success", "skipped"):
                failed = max(failed, 1)
            ended += session["duration"]
            first = first_failure(junit) if junit.exists() else ""
            counts, reason = (passed, failed), session.get("reason") or ""
            yield Session(session["name"], session["result"], session["duration"], ended, *counts, reason, first)


def main() -> int:
    """Print it all; returns the exit code."""
    ran = list(sessions(map(Path, sys.argv[2:]), Path(sys.argv[1])))
    print(f"{'session':<18}{'result':<10}{'seconds':>8}{'passed':>8}{'failed':>8}")
    for session in ran:
        counts = f"{session.passed:>8}{session.failed:>8}" if session.passed + session.failed else ""
        print(f"{session.name:<18}{session.result:<10}{session.seconds:>8.0f}{counts}")
    for session in ran:
        if session.result == "skipped":
            print(f"skipped: {session.name}: {session.reason}")
    passed, failed = (sum(getattr(session, which) for session in ran) for which in ("passed", "failed"))
    if broken := [session for session in ran if session.failed]:
        first = min(broken, key=lambda session: session.ended)
        print(f"failed first: {first.name}, {first.ended:.0f} s after the start{first.first and f': {first.first}'}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

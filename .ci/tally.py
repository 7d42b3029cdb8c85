"""Prints what a run of nox came to: one line per failed session, then `N passed, N failed` over all tests.

    python tally.py REPORT JUNIT_DIRECTORY

A session that failed without a failing test (lint, a crash, a timeout) counts as one failure, so the last line never
says `0 failed` about a run that failed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET


def count(junit: Path) -> tuple[int, int]:
    """(passed, failed) of one session; skipped and expected failures are neither."""
    suites = [suite.attrib for suite in ET.parse(junit).iter("testsuite")]  # noqa: S314 - pytest wrote it just now
    total, failures, errors, skipped = (
        sum(int(suite[key]) for suite in suites) for key in ("tests", "failures", "errors", "skipped")
    )
    return total - failures - errors - skipped, failures + errors


def tally(report: Path, junits: Path) -> tuple[int, int]:
    """(passed, failed) of the whole run; names the sessions that failed."""
    passed = failed = 0
    for session in json.loads(report.read_text())["sessions"]:
        junit = junits / f"{session['name']}.xml"
        good, bad = count(junit) if junit.exists() else (0, 0)
        if session["result"] != "success":
            print(f"session {session['name']}: {session['result']}")
            bad = max(bad, 1)
        passed, failed = passed + good, failed + bad
    return passed, failed


if __name__ == "__main__":
    print("{} passed, {} failed".format(*tally(Path(sys.argv[1]), Path(sys.argv[2]))))

"""`.ci/tally.py`: a session that was skipped is named with its reason, and is no failure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .tools import ROOT

JUNIT = '<testsuites><testsuite tests="3" failures="0" errors="0" skipped="1" /></testsuites>'


@pytest.mark.parametrize(
    ("result", "reason", "code", "last"),
    [
        ("success", "", 0, ["2 passed, 0 failed"]),
        ("skipped", "no nginx", 0, ["skipped: balancers: no nginx", "2 passed, 0 failed"]),
        ("failed", "exit code 1", 1, ["failed first: balancers, 11 s after the start", "2 passed, 1 failed"]),
    ],
)
def test_a_session_without_tests(result: str, reason: str, code: int, last: list[str], tmp_path: Path) -> None:
    (tmp_path / "tests.xml").write_text(JUNIT)
    sessions = [
        {"name": "tests", "result": "success", "reason": None, "duration": 10.0},
        {"name": "balancers", "result": result, "reason": reason, "duration": 1.0},
    ]
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"sessions": sessions}))
    command = [sys.executable, str(ROOT / ".ci" / "tally.py"), str(tmp_path), str(report)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout.splitlines()[3:]) == (code, last)

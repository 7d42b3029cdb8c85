"""Floods of a second each against a real server, with few clients."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What it does is looked at here, not how fast this machine is at the moment.
PATIENT = ("--aim-ms", "20000", "--share", "0.03", "--seconds", "4")


@pytest.mark.parametrize(
    ("options", "floods"),
    [((), ("connection churn", "cancel storm")), (("--rooms", "5"), ("cancel storm", "new rooms"))],
)
def test_a_short_run_finds_a_server_that_holds(
    options: tuple[str, ...], floods: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "load.json"
    only = [word for name in floods for word in ("--only", name)]
    command = [sys.executable, "-m", "load", *PATIENT, *options, *only, "--file", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Everything is within its bounds." in done.stdout
    found = {one["flood"]: one for one in json.loads(file.read_text())["floods"]}
    assert tuple(found) == floods
    for one in found.values():
        assert one["per_second"] > 0
        assert one["served"] > 0
        assert (one["failed"], one["left"]) == ({}, {})
        assert one["peak"] >= one["before"] > 10_000_000

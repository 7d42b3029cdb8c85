"""What the judge says of the official Python SDK 1.30.0: what is expected of it, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from probe.cli.program import main

HERE = Path(__file__).parents[1]


def test_the_sdk_breaks_the_rules_that_are_known(capfd: pytest.CaptureFixture[str]) -> None:
    expected = str(HERE / "expectations" / "python_sdk_1.toml")
    client = [sys.executable, str(HERE / "judged" / "python_sdk_1.py")]
    options = ["--strict", "--tools", "all", "--for", "60", "--expect", expected, "--require", "tasks.related-task"]
    assert main(["judge", *options, "--", *client]) == 0, capfd.readouterr().out

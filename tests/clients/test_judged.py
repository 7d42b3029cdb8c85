"""What the judge says of the official SDKs, Python 2.3.0 in both eras and TypeScript 1.32.2: nothing that is wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from probe.cli import main

from .node_stories import FOLDER

PYTHON = [sys.executable, str(Path(__file__).parent / "judged" / "python_sdk_2.py")]
NODE = [os.environ.get("PROBE_NODE", "node"), str(FOLDER / "judged.mjs")]


@pytest.mark.parametrize(
    "client", [[*PYTHON, "legacy"], [*PYTHON, "auto"], NODE], ids=["legacy", "modern", "typescript"]
)
def test_the_sdk_breaks_no_rule(client: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    required = ["--require", "tools.*", "--require", "progress.*", "--require", "elicit.*"]
    status = main(["judge", "--strict", "--tools", "all", "--for", "60", *required, "--", *client])
    assert status == 0, capfd.readouterr().out

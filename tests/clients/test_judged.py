"""What the judge says of the official SDKs, Python 2.3.0 and TypeScript 2.4.0 in both eras, and TypeScript 1.32.2.

Each finding is expected with its reason, which somebody read in the code of the SDK.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from probe.cli.program import main

from .node_stories import FOLDER

PYTHON = [sys.executable, str(Path(__file__).parent / "judged" / "python_sdk_2.py")]
NODE = os.environ.get("PROBE_NODE", "node")
TYPESCRIPT = [NODE, str(FOLDER / "judged-2.mjs")]
EXPECTED = Path(__file__).parent / "expectations"


@pytest.mark.parametrize(
    "client",
    [[*PYTHON, "legacy"], [*PYTHON, "auto"], [NODE, str(FOLDER / "judged.mjs")], [*TYPESCRIPT, "legacy"]],
    ids=["python-legacy", "python-modern", "typescript-1", "typescript-legacy"],
)
def test_the_sdk_breaks_no_rule(client: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    required = ["--require", "tools.*", "--require", "progress.*", "--require", "elicit.*"]
    status = main(["judge", "--strict", "--tools", "all", "--for", "60", *required, "--", *client])
    assert status == 0, capfd.readouterr().out


def test_the_typescript_sdk_cancels_what_is_over(capfd: pytest.CaptureFixture[str]) -> None:
    expected = ["--expect", str(EXPECTED / "typescript_sdk_2.toml"), "--require", "listen.*"]
    status = main(["judge", "--strict", "--tools", "all", "--for", "60", *expected, "--", *TYPESCRIPT, "auto"])
    assert status == 0, capfd.readouterr().out

"""What the judge says of frameworks with an MCP client: what is expected of each, and nothing else.

`nox -s frameworks` installs them. docs/judge.md has these and others, which were tried by hand.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from probe.cli.program import main

HERE = Path(__file__).parent
PYTHON = os.environ.get("PROBE_FRAMEWORKS", sys.executable)
EXPECTED = HERE.parent / "expectations"


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("chuk_mcp_client.py", ["--expect", str(EXPECTED / "chuk_mcp.toml")]),
        ("langchain_client.py", ["--require", "tools.error-survived"]),
        ("mcp_use_client.py", ["--expect", str(EXPECTED / "mcp_use.toml"), "--require", "page.followed"]),
    ],
)
def test_a_framework_breaks_the_rules_that_are_known(
    program: str, options: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # mcp-use tells its makers who uses it
    monkeypatch.setenv("MCP_USE_ANONYMIZED_TELEMETRY", "false")
    required = [word for kind in ("message", "list", "call") for word in ("--require", kind)]
    client = [PYTHON, str(HERE / program)]
    # the start of mcp-use takes seconds of processor time; a test may take 300 s
    status = main(["judge", "--strict", "--for", "240", "--client-must-exit-0", *options, *required, "--", *client])
    assert status == 0, capfd.readouterr().out

"""The pytest plugin, in a run of pytest of its own: tests of clients over HTTP and on standard streams."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from .test_command import CLIENT

TESTS = textwrap.dedent(
    """
    import json, subprocess, sys
    import pytest

    def run(probe, *arguments):
        subprocess.run([sys.executable, "client.py", *arguments, probe.url], check=True)

    @pytest.mark.mcp_rules("meta.*", "jsonrpc.version")
    def test_clean(mcp_probe):
        run(mcp_probe)
        mcp_probe.assert_clean()
        assert mcp_probe.verdicts["jsonrpc.version"] == "PASS"
        received = mcp_probe.events(kind="message.received")
        assert [entry["method"] for entry in received] == ["tools/list", "tools/call"]

    def test_other_tests_are_other_clients(mcp_probe):
        assert mcp_probe.verdicts == {}
        assert mcp_probe.events() == []

    def test_broken(mcp_probe):
        run(mcp_probe, "version")
        mcp_probe.assert_clean(ignore=["jsonrpc.*"])
        mcp_probe.assert_clean()

    @pytest.mark.mcp_rules("ping.answered")
    def test_not_observed(mcp_probe):
        run(mcp_probe)

    def test_nothing(mcp_probe):
        mcp_probe.assert_clean()

    def test_stdio(mcp_probe):
        server = subprocess.Popen(mcp_probe.stdio_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        server.communicate(b'{"id": 1, "method": "ping"}\\n')
        run(mcp_probe)
        assert mcp_probe.verdicts["jsonrpc.version"] == "FAIL"
    """
)


def test_the_plugin_in_a_run_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "test_client.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rfE", "test_client.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "2 failed, 4 passed, 1 error" in run.stdout, run.stdout + run.stderr
    for said in (
        'FAIL jsonrpc.version: A message lacks "jsonrpc": "2.0"',
        "the probe has seen no request of the client",
        "the probe has not observed ping.answered",
    ):
        assert said in run.stdout, run.stdout

"""The official TypeScript SDK 1.32.2. The stories are in tests/node/client; each is one test here.

Needs `npm ci` in tests/node; `PROBE_NODE` names the node binary if it is not `node`.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

STORIES = Path(__file__).parent.parent / "node" / "client" / "stories.test.mjs"
NAMES = re.findall(r'^test\("(.+?)",', STORIES.read_text(), re.MULTILINE)
# the timeout of a story, and the start of node on a slow machine
BOUND_S = 60.0


@pytest.mark.parametrize("name", NAMES)
def test_typescript_sdk(server: str, name: str) -> None:
    command = [os.environ.get("PROBE_NODE", "node"), "--test", "--test-reporter=tap"]
    command += [f"--test-name-pattern=^{re.escape(name)}$", str(STORIES)]
    environment = {**os.environ, "PROBE_URL": server}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=BOUND_S, check=False, env=environment)
    counted = re.findall(r"^# (pass|fail|cancelled) (\d+)$", ended.stdout, re.MULTILINE)
    counts = {kind: int(count) for kind, count in counted}
    assert counts == {"pass": 1, "fail": 0, "cancelled": 0}, ended.stdout + ended.stderr

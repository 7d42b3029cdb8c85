"""Runs a file of stories by node's own test runner: all of them in one process, for node takes seconds to start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "node" / "client"
_RESULT = re.compile(r"^((?:not )?ok) \d+ - (.+)$", re.MULTILINE)


def names(file: str) -> list[str]:
    """The names of the stories in a file."""
    return re.findall(r'^test\("(.+?)",', (FOLDER / file).read_text(), re.MULTILINE)


def run_stories(file: str, url: str, *, bound_s: float) -> Mapping[str, str]:
    """Run them against the server at this URL; gives, by name, what is wrong with each: nothing if it passed.

    Needs `npm ci` in tests/node; `PROBE_NODE` names the node binary if it is not `node`. Raises `TimeoutExpired` after
    `bound_s` seconds.
    """
    command = [
        os.environ.get("PROBE_NODE", "node"),
        "--test",
        "--test-force-exit",
        "--test-reporter=tap",
        str(FOLDER / file),
    ]
    environment = {**os.environ, "PROBE_URL": url, "PROBE_PYTHON": sys.executable}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=bound_s, check=False, env=environment)
    heads = list(_RESULT.finditer(ended.stdout))
    assert {head[2] for head in heads} >= set(names(file)), ended.stdout + ended.stderr
    found = {}
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        said = ended.stdout[head.end() : None if following is None else following.start()]
        found[head[2]] = "" if head[1] == "ok" and not re.search("# (SKIP|TODO)", head[0]) else said + ended.stderr
    return found

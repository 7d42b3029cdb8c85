"""docs/limits.md is made from the settings, and says of each limit what is beyond it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from probe.settings import Limits, Settings, described

from . import page as limits

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "docs" / "limits.md"
LIMITS = [spec.name for spec in described(Limits)]
SETTINGS = [spec.name for spec in described(Settings)]
TIMES = [spec.name for spec in described(Settings) if spec.name.endswith(("_s", "_ms"))]
NO_BOUNDS = {"feed_tick_s", "sse_retry_ms", "ping_interval_s", "task_poll_ms", "audit_flush_s"}
"""Times at which something happens; nobody can be beyond them."""


def test_the_committed_page_is_not_stale() -> None:
    """Else: python -m tests.limits.page > docs/limits.md."""
    assert COMMITTED.read_text(encoding="utf-8") == limits.page()


def test_the_program_prints_it() -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.limits.page"]
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    printed = subprocess.run(command, check=True, capture_output=True, timeout=60, env=env, cwd=ROOT)
    assert printed.stdout == COMMITTED.read_bytes()


def test_it_says_of_each_limit_and_each_time_what_is_beyond_it() -> None:
    assert limits.BEYOND.keys() == {*LIMITS, *TIMES} - NO_BOUNDS


def test_every_setting_that_it_names_exists() -> None:
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", limits.page()))
    assert named - {"host_busy", "server_full"} <= {*LIMITS, *SETTINGS}


def test_what_has_a_share_is_what_is_asked_for() -> None:
    """Each name that the code checks a share of is in the page, and the other way round."""
    asked: set[str] = set()
    for path in (ROOT / "src" / "probe").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        asked |= set(re.findall(r"(?:\b(?:Byte)?Limit|shares\.held)\(\s*\"(max_\w+)\"", text))
    # Tool hosts and processes that report have a secret, so no share bounds them; the listener has shares of its own.
    assert asked - {"max_tool_hosts", "max_forwarders"} | {"max_connections"} == set(limits.SHARED)

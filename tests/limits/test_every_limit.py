"""docs/limits.md is made from the settings, and says of each limit what is beyond it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from probe.settings import Limits, Settings, described

from ..support.api import page
from ..support.legacy import Legacy, RpcError
from ..support.probe import running
from . import page as limits
from .strangers import reached

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


# Limits at their edges that are tested nowhere else.


async def test_finished_streams_of_a_session_are_bounded_in_bytes(autojump_clock: MockClock) -> None:
    """Three streams of two megabytes where six are allowed; with the fourth the first is gone."""
    async with running(replay_bytes_per_session=6_100_000) as probe:
        client = Legacy(probe.app, "/mcp?tools=all")
        await client.initialize("2025-03-26")

        async def two_megabytes() -> None:
            big = {"name": "long_output", "arguments": {"blocks": 30, "chars": 65536}}
            wait = {"name": "simple_tool", "arguments": {"delayMs": 10}}
            both = [client.request("tools/call", wait), client.request("tools/call", big)]
            async with client.post(both) as answer:
                assert answer.status == 200
                await client.read(answer)

        async def resumed(stream: str) -> int:
            async with client.get(f"{stream}-0") as answer:
                return answer.status

        for _ in range(3):
            await two_megabytes()
        assert [await resumed(f"p{number}") for number in (1, 2, 3)] == [200, 200, 200]
        await two_megabytes()
        assert [await resumed(f"p{number}") for number in (1, 2, 3, 4)] == [410, 200, 200, 200]


async def test_pages_of_url_elicitation_are_bounded(autojump_clock: MockClock) -> None:
    async with running(max_interactions=2, request_state_ttl_s=100) as probe:
        client = probe.modern()
        for _ in range(2):
            assert (await client.tool("elicit_url"))["resultType"] == "input_required"
        with pytest.raises(RpcError, match="the limit max_interactions is 2") as caught:
            await client.tool("elicit_url")
        assert caught.value.code == 1002
        assert reached(probe) == [("max_interactions", 2)]
        await trio.sleep(100)
        assert (await client.tool("elicit_url"))["resultType"] == "input_required"


async def test_the_file_of_the_audit_is_bounded_in_bytes(tmp_path: Path) -> None:
    """Each call has half a megabyte of evidence, of which two fit."""
    async with running(audit_db=str(tmp_path / "audit.db"), audit_bytes=1024 * 1024, audit_flush_s=0.01) as probe:
        client = probe.modern()
        for _ in range(6):
            await client.tool("long_output", {"blocks": 7, "chars": 65536})
        with trio.fail_after(30):
            while not (kept := [call["id"] for call in (await page(probe, "/api/calls"))["calls"]]) or len(kept) > 2:
                pass
        assert kept[0].endswith("c6"), "the oldest go first"

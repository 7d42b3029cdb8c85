"""A test that hangs fails with its stacks, and the tests after it run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

HANGING = """
import time
import pytest
import trio

async def test_loop_of_checkpoints():
    while True:
        await trio.lowlevel.checkpoint()

async def forgotten():
    await trio.sleep_forever()

async def test_virtual_time(autojump_clock):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(forgotten)

def test_without_trio():
    time.sleep(60)

@pytest.fixture
async def stuck():
    await trio.sleep_forever()

async def test_fixture(stuck):
    pass

async def test_cancellation_is_swallowed():
    try:
        await trio.sleep_forever()
    except trio.Cancelled:
        pass

async def test_that_runs():
    await trio.lowlevel.checkpoint()

def test_trio_itself_runs():
    trio.run(trio.lowlevel.checkpoint)
"""

STUBBORN = """
import trio

async def test_shielded():
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()

async def test_that_runs():
    await trio.lowlevel.checkpoint()
"""


def run(folder: Path, tests: str, *options: str) -> str:
    """What pytest prints about a file of tests with a limit of one second."""
    (folder / "test_hanging.py").write_text(tests)
    plugins = ("-p", "tests.support.time_limit", "-p", "no:cacheprovider")
    limits = ("--timeout=1", "--rootdir", str(folder), "-c", str(ROOT / "pyproject.toml"))
    command = [sys.executable, "-m", "pytest", *plugins, *limits, *options, str(folder)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode()


def test_what_hangs_fails_with_the_stacks_of_its_tasks(tmp_path: Path) -> None:
    said = run(tmp_path, HANGING)
    assert "5 failed, 2 passed" in said
    failed = re.findall(r"^FAILED .*::(\w+)", said, re.MULTILINE)
    assert not {"test_that_runs", "test_trio_itself_runs"} & set(failed)
    assert said.count("it took more than 1 s\n--- main thread") >= 5
    assert re.search(r"--- task .*forgotten\n.*in forgotten\n +await trio\.sleep_forever", said)
    assert re.search(r"--- main thread\n(  .*\n)+.*in test_without_trio\n +time\.sleep", said)


def test_what_does_not_end_ends_its_worker_and_no_other_test(tmp_path: Path) -> None:
    said = run(tmp_path, STUBBORN, "-n", "1", "-o", "addopts=")
    assert "1 failed, 1 passed" in said
    assert "crashed while running" in said
    assert "test_shielded does not end when it is cancelled\n--- main thread" in said

"""What sleeps on a real clock in a test has its reason beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
import trio
from trio.testing import MockClock

from .support.real_time import TESTS, has_reason

REAL = {"time.sleep", "asyncio.sleep", "anyio.sleep", "sleep"}


def always_real() -> Iterator[tuple[str, int]]:
    """The sleeps that know no virtual time, or that are imported by name so that nothing could look at them."""
    for file in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in REAL:
                yield str(file), node.lineno


def test_each_sleep_that_is_always_real_has_a_reason() -> None:
    assert [place for place in always_real() if not has_reason(*place)] == []


async def test_a_bare_sleep_on_a_real_clock_fails() -> None:
    with pytest.raises(AssertionError, match="without a reason"):
        await trio.sleep(0.001)


async def test_a_sleep_with_a_reason_passes() -> None:
    await trio.sleep(0.001)  # real time: what is tried here
    # real time: the same above the line
    await trio.sleep(0.001)


async def test_in_virtual_time_no_reason_is_asked_for(autojump_clock: MockClock) -> None:
    await trio.sleep(1000)
    assert trio.current_time() == 1000

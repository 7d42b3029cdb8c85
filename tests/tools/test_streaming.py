"""Toolset `streaming`: pace, exact texts, exact lengths, and the same bytes in every process."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

import probe.tools
from probe.tools import streaming
from probe.wire.jsonrpc import encode

from .fakes import FakeContext, call, texts


async def test_progress_reports_each_step_after_its_time(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(streaming.PROGRESS, {"steps": 2, "step_ms": 300}, context)
    assert context.events == [
        ("sleep", 0.3),
        ("progress", 1, 2, "step 1/2"),
        ("sleep", 0.3),
        ("progress", 2, 2, "step 2/2"),
    ]
    assert result["structuredContent"] == {"steps": 2, "notified": True, "done": True}
    assert texts(result) == ['{"steps":2,"notified":true,"done":true}']


async def test_progress_says_when_nobody_was_notified(autojump_clock: MockClock) -> None:
    context = FakeContext(notified=False)
    result = await call(streaming.PROGRESS, context=context)
    assert result["structuredContent"] == {"steps": 5, "notified": False, "done": True}
    assert len(context.of("progress")) == 5


async def test_progress_fits_its_ceiling_at_its_bounds(autojump_clock: MockClock) -> None:
    context = FakeContext()
    before = trio.current_time()
    await call(streaming.PROGRESS, {"steps": 100, "step_ms": 5000}, context)
    assert streaming.PROGRESS.ceiling_s is not None
    assert 500 <= trio.current_time() - before < streaming.PROGRESS.ceiling_s


async def test_progress_cancelled_after_three_steps_has_reported_three(autojump_clock: MockClock) -> None:
    context = FakeContext()
    with trio.move_on_after(1.75) as scope:
        await call(streaming.PROGRESS, {"steps": 10, "step_ms": 500}, context)
    assert scope.cancelled_caught
    assert [step for step, _, _ in context.of("progress")] == [1, 2, 3]


@pytest.mark.parametrize("blocks", [1, 9, 10, 50])
@pytest.mark.parametrize("chars", [1, 9, 10, 11, 256, 65536])
async def test_long_output_has_exact_counts_and_lengths(blocks: int, chars: int) -> None:
    result = await call(streaming.LONG_OUTPUT, {"blocks": blocks, "chars": chars})
    assert list(result) == ["content"]
    found = texts(result)
    assert [len(block) for block in found] == [chars] * blocks
    assert [len(block.encode()) for block in found] == [chars] * blocks
    for number, block in enumerate(found, 1):
        label = f"[block {number}] "
        assert block.startswith(label[:chars])


async def test_long_output_tells_the_position_every_ten_characters() -> None:
    (block,) = texts(await call(streaming.LONG_OUTPUT, {"blocks": 1, "chars": 1234}))
    assert block[:30] == "[block 1] ........20........30"
    assert all(block[:end].endswith(f".{end}") for end in range(20, 1231, 10))
    assert block[1230:] == "...."


async def test_long_output_defaults_to_three_blocks_of_256() -> None:
    assert [len(block) for block in texts(await call(streaming.LONG_OUTPUT))] == [256, 256, 256]


async def test_chatty_has_its_four_blocks() -> None:
    result = await call(streaming.CHATTY)
    assert result == {
        "content": [
            {"type": "text", "text": "first block: short"},
            {"type": "text", "text": "second block: a slightly longer string with multiple words"},
            {"type": "text", "text": "third block: numbers 1 2 3 4 5"},
            {"type": "text", "text": "fourth block: unicode; caf\u00e9 r\u00e9sum\u00e9 na\u00efve"},
        ]
    }


_ELSEWHERE = """
import hashlib
from probe.tools import streaming
from probe.wire.jsonrpc import encode
results = [streaming.CHATTY.run({}), streaming.LONG_OUTPUT.run({"blocks": 50, "chars": 65536})]
print(hashlib.sha256(encode(results)).hexdigest())
"""


@pytest.mark.parametrize("seed", ["0", "1"])
async def test_chatty_and_long_output_are_the_same_bytes_in_another_process(seed: str) -> None:
    here = [await call(streaming.CHATTY), await call(streaming.LONG_OUTPUT, {"blocks": 50, "chars": 65536})]
    source = str(Path(probe.tools.__path__[0]).parents[1])
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": source, "LC_ALL": "C"}
    with trio.fail_after(60):
        there = await trio.run_process([sys.executable, "-c", _ELSEWHERE], capture_stdout=True, env=environment)
    assert there.stdout.decode().strip() == hashlib.sha256(encode(here)).hexdigest()


def test_tools_that_never_wait_are_plain_functions() -> None:
    assert (streaming.PROGRESS.waits, streaming.LONG_OUTPUT.waits, streaming.CHATTY.waits) == (True, False, False)

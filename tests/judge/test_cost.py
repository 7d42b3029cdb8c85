"""What the judge does for each entry does not grow with the log before it."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from bench.judging import Shape, judged, log


def calls(shape: Shape, entries: int) -> int:
    """How many functions are called to judge a log; the clock and other work have no part in it."""
    judge, count = judged(list(log(shape, entries))), 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        judge()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("shape", ["calls", "progress", "sessions"])
def test_twice_as_many_entries_take_twice_the_work(shape: Shape) -> None:
    calls(shape, 200)  # what is made once, such as the validators of a schema
    assert calls(shape, 4_000) < 2.1 * calls(shape, 2_000)

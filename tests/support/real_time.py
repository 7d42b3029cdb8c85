"""A test that sleeps on a real clock has the reason beside it: `# real time: the pace of the client`.

In virtual time a test may sleep as it likes. Only when a test runs is it known whether its clock is a real one, so
`trio.sleep` looks then; `tests/test_real_time.py` looks for the sleeps that are always real.
"""

from __future__ import annotations

import functools
import linecache
import sys
from pathlib import Path
from typing import Final

import trio
from trio.testing import MockClock

TESTS: Final = Path(__file__).parents[1]
MARK: Final = "real time: "

_sleep = trio.sleep


@functools.cache
def has_reason(file: str, line: int) -> bool:
    """True if the reason stands in this line, or as a comment in the line above."""
    above = linecache.getline(file, line - 1).strip()
    return MARK in linecache.getline(file, line) or (above.startswith("#") and MARK in above)


@functools.wraps(_sleep)
async def _sleep_with_reason(seconds: float) -> None:
    at = sys._getframe(1)
    file = at.f_code.co_filename
    if file.startswith(str(TESTS)) and not isinstance(trio.lowlevel.current_clock(), MockClock):
        assert has_reason(file, at.f_lineno), f"{file}:{at.f_lineno} sleeps on a real clock without a reason"
    await _sleep(seconds)


trio.sleep = _sleep_with_reason

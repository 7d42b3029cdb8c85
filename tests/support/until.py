"""Waiting, on a real clock, for a state that no event announces."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

_T = TypeVar("_T")


async def until(reached: Callable[[], _T], within_s: float = 20.0) -> _T:
    """Wait for what the kernel, a thread or another process brings about; returns what `reached` then gives.

    Raises `trio.TooSlowError` after `within_s` seconds.
    """
    with trio.fail_after(within_s):
        while not (found := reached()):  # noqa: ASYNC110 - no event tells it
            await trio.sleep(0.005)  # real time: they can only be asked
    return found

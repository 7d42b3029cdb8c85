"""Marks: numbers in the arguments of calls, which identify them in the log of the probe.

A trial has a block of `BLOCK` marks, such as 7000 to 7999: 7000 names the trial, and each of its calls has one of the
block. Three tools of the probe have an argument `mark`, a number from 0 to 999,999,999.
"""

from __future__ import annotations

import zlib
from typing import Final

BLOCK: Final = 1000
"""Marks of a trial: the largest one has 301 calls."""

_RUNS: Final = 999_000
# A run has fewer trials. The highest first mark is this many blocks before the end of the numbers.
_MOST_TRIALS: Final = 900
_CALLS_OF_CLIENT: Final = 10
_CLIENT: Final = "gateway-check-"
_DIGITS: Final = 9


def first_mark(seed: int) -> int:
    """The mark of the first trial of a run. Runs with neighbouring seeds are far apart."""
    return BLOCK * (1 + zlib.crc32(b"%d" % seed) % (_RUNS - _MOST_TRIALS))


def belongs(number: int, mark: int) -> bool:
    """True if a number is in the block of the trial `mark`."""
    return mark <= number < mark + BLOCK


def of_run(number: int, first: int) -> bool:
    """True if a number is in a block of the run with this first mark, or is 0, the default of the argument."""
    return number == 0 or first <= number < first + BLOCK * _MOST_TRIALS


def client_mark(mark: int, client: int) -> int:
    """The mark of client 0, 1, … of a trial; its calls have the nine marks after it."""
    return mark + _CALLS_OF_CLIENT * (1 + client)


def client_of(number: int, mark: int) -> int:
    """The client (0, 1, …) of a call with this mark."""
    return (number - mark) // _CALLS_OF_CLIENT - 1


def client_name(mark: int) -> str:
    """The name of a client with this mark: some gateways pass it on, and people see it in the dashboard."""
    return f"{_CLIENT}{mark}"


def named_mark(client: str) -> int | None:
    """The mark in the name of a client; None for any other client."""
    return number_in(client.removeprefix(_CLIENT)) if client.startswith(_CLIENT) else None


def number_in(text: str) -> int | None:
    """The mark in a text, such as the value of a header; None for another text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None

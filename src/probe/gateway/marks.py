"""Marks: the numbers in the arguments of calls, by which they are found in the log of the probe.

Arguments of the probe's tools are bounded numbers, and `mark` of three tools is one from 0 to 999,999,999. A trial has
`BLOCK` marks of its own: the first one names it, and each of its calls has that one or another one of the block.
"""

from __future__ import annotations

import zlib
from typing import Final

BLOCK: Final = 1000
"""More than the calls of the largest trial, which opens 301 streams."""

_RUNS: Final = 999_000
# No run has so many trials: the last run begins this many blocks before the end of the numbers.
_MOST_TRIALS: Final = 900
_CALLS_OF_CLIENT: Final = 10
_CLIENT: Final = "gateway-check-"
_DIGITS: Final = 9


def first_mark(seed: int) -> int:
    """The mark of the first trial of a run. Runs with neighbouring seeds are far apart."""
    return BLOCK * (1 + zlib.crc32(b"%d" % seed) % (_RUNS - _MOST_TRIALS))


def belongs(number: int, mark: int) -> bool:
    """True if a mark is one of the block of a trial, which `mark` names."""
    return mark <= number < mark + BLOCK


def of_run(number: int, first: int) -> bool:
    """True if a mark is one of the run whose first mark this is; 0 is that of no run, and of each."""
    return number == 0 or first <= number < first + BLOCK * _MOST_TRIALS


def client_mark(mark: int, client: int) -> int:
    """The mark of one of several clients of a trial, counted from 0; the nine after it are those of its calls."""
    return mark + _CALLS_OF_CLIENT * (1 + client)


def client_of(number: int, mark: int) -> int:
    """The number of the client of a trial that sent the call with this mark."""
    return (number - mark) // _CALLS_OF_CLIENT - 1


def client_name(mark: int) -> str:
    """The name of a client with this mark: some gateways pass it on, and people see it in the dashboard."""
    return f"{_CLIENT}{mark}"


def named_mark(client: str) -> int | None:
    """The mark in the name of a client; None where it is no client of a check."""
    return number_in(client.removeprefix(_CLIENT)) if client.startswith(_CLIENT) else None


def number_in(text: str) -> int | None:
    """A mark that was written as text, such as in a header; None where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None

"""Logs that were written as lines of JSON, read back whole."""

from __future__ import annotations

from collections.abc import Iterable

from probe.log.ndjson import LogReader, SavedLog


def load(lines: Iterable[bytes]) -> SavedLog:
    """Read the lines that `ndjson.dump` wrote. Raises `NdjsonError`."""
    reading = LogReader(lines)
    items = list(reading)
    return SavedLog(reading.header, items, reading.end)

"""Tool calls as a table of comma-separated values (RFC 4180), also for spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import Any, Final

from pydantic_core import from_json

from ...views.records import APART, CallRecord
from ...wire.jsonrpc import encode

COLUMNS: Final = (
    "id",
    *(name for name in CallRecord.__struct_fields__ if name not in APART),
    *("progress_token_type", "arguments", "result"),
)
"""The members of a row, in order."""

# Columns with values of several JSON types: `5` is not `"5"`.
_TYPED: Final = frozenset({"request_id", "progress_token", "arguments", "result"})
# Some spreadsheets take a cell with this beginning, also in the wide forms, for a formula, and the text is a client's.
# Such a cell gets a `'` before it; so does one that begins with `'`.
_ACTIVE: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", "'")


def header() -> bytes:
    """The first line."""
    return _line(COLUMNS)


def line(row: bytes) -> bytes:
    """The line of a row in JSON. Null is an empty cell; other values than texts are written as JSON."""
    fields = from_json(row)
    return _line(_cell(name, fields[name]) for name in COLUMNS)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and name not in _TYPED:
        return f"'{value}" if value.startswith(_ACTIVE) else value
    return encode(value).decode()


def _line(cells: Any) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)
    return text.getvalue().encode()

"""Rows and entries of earlier versions in the audit's file, in the present form.

    format 1   a row has no `label`. An entry has `pair` in place of `cause`, with the same meaning, and only those
               members of its context that its kind had as fields. A `dispatch.cancelled` has `cause` in place of `by`.

Such an entry lacks newer fields of its kind. All else is unchanged: stored JSON keeps its bytes.
"""

from __future__ import annotations

from pydantic_core import from_json

from ...log.context import Context


def row_as_now(row: bytes) -> bytes:
    """A row of format 1 in the present form."""
    return b'{"label":null,' + row[1:]


def entry_as_now(entry: bytes) -> bytes:
    """An entry of format 1 in the present form."""
    value = from_json(entry)
    if value["kind"] == "dispatch.cancelled":
        entry = _renamed(entry, b"cause", b"by")
    entry = _renamed(entry, b"pair", b"cause")
    none = "".join(f'"{name}":null,' for name in Context.__struct_fields__ if name not in value)
    return b"{" + none.encode() + entry[1:]


def _renamed(entry: bytes, old: bytes, new: bytes) -> bytes:
    # Quotation marks inside strings are escaped, and stored JSON is last: so the first match is the member itself.
    return entry.replace(b',"%b":' % old, b',"%b":' % new, 1)

"""Logs that other processes forward to this server (`mcp-probe stdio --forward`)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class ForwardingBegun(Struct, frozen=True):
    """Another process sends its log here (`mcp-probe stdio --forward`). Entries of its log have this connection.

    `run`, `program` (its version) and `pid` are the process's, `address` is where it comes from. `taken` is up to which
    number of its log this server had it before, 0 at first. Cause: the `http.request`.
    """

    kind: ClassVar[str] = "forwarding.begun"
    run: str
    program: str
    pid: int
    address: str
    taken: int


class ForwardingMissed(Struct, frozen=True):
    """Entries of the other process are missing here: its log had pushed them out, or they were too large."""

    kind: ClassVar[str] = "forwarding.missed"
    entries: int


class ForwardingEnded(Struct, frozen=True):
    """The other process sends nothing more. Cause: the `forwarding.begun`.

    `by` is `process` where it has told all of its log, `connection` where it went without a word and may come again,
    else why this server ended it. `taken` is up to which number of its log it was. Its connection and its
    session are recorded as closed before, unless the process has said so itself, and as opened if it comes again.
    """

    kind: ClassVar[str] = "forwarding.ended"
    by: str
    taken: int

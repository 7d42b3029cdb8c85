"""Server-sent events, written: the framing of the WHATWG HTML standard, section 9.2.

A JSON message has no raw line break, so each one is a single `data:` line.
"""

from __future__ import annotations


def event(data: bytes, *, id: str | None = None, retry_ms: int | None = None, name: str | None = None) -> bytes:
    """One event. `data` has no line break. An empty `data` with an `id` primes a client for `Last-Event-ID`."""
    kind = b"" if name is None else b"event: " + name.encode() + b"\n"
    head = b"" if id is None else b"id: " + id.encode() + b"\n"
    wait = b"" if retry_ms is None else b"retry: %d\n" % retry_ms
    return kind + head + wait + b"data: " + data + b"\n\n"


def comment(text: str, *, id: str | None = None) -> bytes:
    """A line that clients ignore: keeps intermediaries awake and reveals peers that are gone.

    With an `id` it is the place where the client resumes.
    """
    place = b"" if id is None else b"id: " + id.encode() + b"\n"
    return b": " + text.encode() + b"\n" + place + b"\n"

"""Where the messages of a legacy client came from, and where the answers go."""

from __future__ import annotations

from dataclasses import dataclass

from ..reading import Reading


@dataclass(frozen=True, slots=True)
class Inlet:
    """One exchange that brought messages, and what its connection reads: streams for the answers are added there.

    `seen` is the stream and the position that the client named as the last event it has seen (`Last-Event-ID`).
    """

    exchange: int
    reading: Reading
    seen: tuple[str, int] | None = None

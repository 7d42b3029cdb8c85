"""Events of kinds that this version does not have."""

from __future__ import annotations

from msgspec import Struct


class UnknownEvent(Struct, frozen=True):
    """An event of a saved log that a newer version wrote. It is kept and shown; no table and no rule reads it.

    `own` is a JSON object of the members beside the place and the context.
    """

    kind: str
    own: bytes

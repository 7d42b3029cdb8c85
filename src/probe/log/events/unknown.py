"""Events of kinds unknown to this version."""

from __future__ import annotations

from msgspec import Struct


class UnknownEvent(Struct, frozen=True):
    """An event of a saved log from a newer version. It is kept and shown; no table and no rule reads it.

    `own` is a JSON object of the members beside the place and the context.
    """

    kind: str
    own: bytes

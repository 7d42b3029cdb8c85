"""A room in the traces and logs that the process sends to a collector: a number, and never an id of the room."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from re import Match
from re import compile as pattern
from typing import Final

_PURPOSE: Final = b"mcp-probe room in telemetry "
_DIGITS: Final = 16
# A percent sign may be coded again within another address.
_CODED: Final = pattern(r"%(?:25)*([0-9A-Fa-f]{2})")
_HALF: Final = pattern(r"%[0-9A-Fa-f]?…$")
# Where a long text was cut off.
_MORE: Final = "…"
# A shorter beginning of an id says nothing of the rest.
_LEAST: Final = 8


def room_number(id: str) -> str:
    """The number of a room, the same on each replica.

    It cannot be turned back: an id has 128 random bits, too many to try, so the digest needs no key.
    """
    return sha256(_PURPOSE + id.encode()).hexdigest()[:_DIGITS]


class HiddenSecrets:
    """Replaces the `secrets` of a room by `shown` in a text, also percent-encoded, and where a long text was cut."""

    def __init__(self, secrets: Sequence[str], shown: str) -> None:
        self._secrets = secrets
        self._shown = shown

    def __call__(self, text: str) -> str:
        plain = _HALF.sub(_MORE, _CODED.sub(_character, text)) if "%" in text else text
        hidden = plain
        for secret in self._secrets:
            hidden = hidden.replace(secret, self._shown)
            if hidden.endswith(_MORE):
                hidden = self._without_begun(hidden[: -len(_MORE)], secret)
        return text if hidden == plain else hidden

    def _without_begun(self, text: str, secret: str) -> str:
        begun = next((size for size in range(len(secret), _LEAST - 1, -1) if text.endswith(secret[:size])), 0)
        return f"{text[:-begun]}{self._shown}{_MORE}" if begun else f"{text}{_MORE}"


def _character(coded: Match[str]) -> str:
    return chr(int(coded[1], 16))

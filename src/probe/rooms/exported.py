"""A room in the traces and logs that the process sends to a collector: a number, and never an id of the room."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from re import Match, escape
from re import compile as pattern
from typing import Final

_PURPOSE: Final = b"mcp-probe room in telemetry "
_DIGITS: Final = 16
# A percent sign may be coded again within another address, and a code cut off where a long text is clipped. JSON in a
# text may have escapes, with a backslash for each time that it was put into another JSON; a
# long run of them is read once.
_CODE: Final = pattern(r"%(?:25)*(?:([0-9A-Fa-f]{2})|[0-9A-Fa-f]?(?=…))|(?<!\\)\\+u00([0-9A-Fa-f]{2})")
# What is left of the code of the next character behind a hidden part, where a text was cut within it: its first digit
# is half of the character.
_CUT_CODE: Final = r"(?:%(?:25)*[0-9A-Fa-f]|\\+u(?:0(?:0[0-9A-Fa-f]?)?)?)(?![0-9A-Fa-f])"
# Codes of codes that are undone.
_CODINGS: Final = 3
# A shorter part of a secret says nothing of the rest.
_SHORTEST_PART: Final = 8
_WORD: Final = pattern(rf"[A-Za-z0-9_-]{{{_SHORTEST_PART},}}")


def room_number(id: str) -> str:
    """The number of a room, the same on each replica.

    It cannot be turned back: an id has 128 random bits, too many to try, so the digest needs no key.
    """
    return sha256(_PURPOSE + id.encode()).hexdigest()[:_DIGITS]


class HiddenSecrets:
    """Replaces `secrets` of a room, and each part of one with 8 characters, by `shown`.

    They may be percent-encoded, or have the escapes of JSON.

    A part is what is left where a long text was clipped. Upper and lower case are the same.
    """

    def __init__(self, secrets: Sequence[str], shown: str) -> None:
        self._secrets = " ".join(secrets).lower()
        self._shown = shown
        self._cut_code = pattern(f"(?<={escape(shown)}){_CUT_CODE}")

    def __call__(self, text: str) -> str:
        forms = [text]
        while ("%" in forms[-1] or "\\u" in forms[-1]) and len(forms) <= _CODINGS:
            forms.append(_CODE.sub(_character, forms[-1]))
        # The text without codes first; but a percent sign before a secret may have taken its first characters.
        for form in reversed(forms):
            hidden = _WORD.sub(self._hidden, form)
            if hidden != form:
                return self._cut_code.sub("", hidden)
        return text

    def _hidden(self, word: Match[str]) -> str:
        text, hidden, end = word[0], "", 0
        letters = text.lower()
        for at in range(len(text) - _SHORTEST_PART + 1):
            if letters[at : at + _SHORTEST_PART] in self._secrets:
                if at > end or not hidden:
                    hidden += text[end:at] + self._shown
                end = at + _SHORTEST_PART
        return hidden + text[end:]


def _character(coded: Match[str]) -> str:
    digits = coded[1] or coded[2]
    return chr(int(digits, 16)) if digits else ""

"""Text from clients on a terminal or in a file: it cannot end a line, move the cursor or hide the text behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

LONGEST: Final = 200
"""Characters of a name on a terminal; the event log has all of it."""
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:+@")


def shown(text: str) -> str:
    """Escape all characters that are not printable, such as line ends and marks of direction (U+202E)."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def encodable(text: str, encoding: str | None) -> str:
    r"""Escape the characters that an encoding does not have, such as `\u65e5` in `cp1252`; None has all."""
    return text if encoding is None else text.encode(encoding, "backslashreplace").decode(encoding)


def cut(text: str) -> str:
    """The first `LONGEST` characters, with `…` where more follow."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def value(value: Any) -> str:
    """A value in a line of text, quoted where it could be taken for more than one value."""
    if not isinstance(value, str):
        return shown(cut(str(value)))
    text = cut(value)
    if text and _PLAIN.issuperset(text):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{shown(quoted)}"'


def json_line(members: Mapping[str, Any]) -> str:
    """One JSON object in printable ASCII."""
    return json.dumps(members, ensure_ascii=True, separators=(",", ":"))

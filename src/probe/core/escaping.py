"""Text of others on a terminal or in a file: nothing of it can end a line, move a cursor or hide what follows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

# Enough for every name that is meant to be read; the event log has the whole.
LONGEST: Final = 200
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:+@")


def shown(text: str) -> str:
    """Text on one line: what cannot be printed is escaped, which also takes the signs that turn the writing round."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def encodable(text: str, encoding: str | None) -> str:
    r"""Text in which all that an encoding does not have is escaped, such as `\u65e5` in `cp1252`; None has all."""
    return text if encoding is None else text.encode(encoding, "backslashreplace").decode(encoding)


def cut(text: str) -> str:
    """No longer than a line can bear."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def value(value: Any) -> str:
    """A value in a line for people, quoted where somebody could take it for more than one."""
    if not isinstance(value, str):
        return shown(cut(str(value)))
    text = cut(value)
    if text and _PLAIN.issuperset(text):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{shown(quoted)}"'


def json_line(members: Mapping[str, Any]) -> str:
    """One JSON object, in those of ASCII's characters that can be printed."""
    return json.dumps(members, ensure_ascii=True, separators=(",", ":"))
